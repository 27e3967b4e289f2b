"""The environment as a list of events, for one environment at a time, in plain Python. It shares no code with the core.

Symbols only: packets carry the latent's state, probes its number of states.
"""

from __future__ import annotations

import hashlib

import numpy as np
from channels.link_reference import ReferenceLink

from envrate.channels import Link
from envrate.task import Task

MASK = 2**32 - 1
LATENT, LINK, LINK_STATE, PROBE, LINK_PROBE, LINK_STATE_PROBE = 0, 1, 2, 3, 9, 10


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32, 20 rounds; Salmon et al. (2011)."""
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    keys = (key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter[0] + keys[0]) & MASK, (counter[1] + keys[1]) & MASK
    for group in range(5):
        for r in rotations[group % 2]:
            x = (x + y) & MASK
            y = ((y << r) | (y >> (32 - r))) & MASK
            y ^= x
        x = (x + keys[(group + 1) % 3]) & MASK
        y = (y + keys[(group + 2) % 3] + group + 1) & MASK
    return x, y


class ReferenceEnv:
    """One episode. `observe(k)` may be asked for in order of k; `act(k, action)` gives the reward of step k."""

    def __init__(
        self,
        task: Task,
        link: Link,
        *,
        num_ticks: int,
        compute_ms: int,
        bits: int,
        window: int,
        seed: int,
        index: int = 0,
        episode: int = 0,
    ) -> None:
        self.task, self.link, self.window = task, link, window
        self.num_ticks, self.delay = num_ticks, compute_ms + link.uplink_ms
        digest = hashlib.blake2b(str(seed).encode(), digest_size=8).digest()
        high, low = np.frombuffer(digest, "<u4").tolist()
        self.key, self.episode = (high, (low + index) & MASK), episode
        m, tick_ms, horizon = task.micro_turn_ms, task.tick_ms, task.horizon_ms
        # The fewest whole micro-turns whose end lies after the last scored tick's onset + horizon.
        self.num_steps = 1
        while self.num_steps * m <= (num_ticks - 1) * tick_ms + horizon:
            self.num_steps += 1
        self.end = self.num_steps * m
        self.z = self._path(self.end // tick_ms + 1)
        self.required = [task.response[z] for z in self.z]
        self.answered: set[int] = set()
        self.probe_answered: set[int] = set()
        self.packets = self._packets(bits)

    def _bits(self, index: int, stream: int) -> tuple[int, int]:
        return threefry(self.key, (index, self.episode * 16 + stream))

    def _path(self, count: int) -> list[int]:
        law, path = self.task.latent, []
        row = law.stationary if law.initial is None else law.initial
        for i in range(count):
            u = self._bits(i, LATENT)[0] >> 1
            limits = np.round(np.cumsum(row)[:-1] * 2**31)
            path.append(int((u >= limits).sum()))
            row = law.matrix[path[-1]]
        return path

    def _packets(self, bits: int) -> list[dict]:
        """Everything sent in the episode, with its arrival; None where it never comes."""
        sends = [(i * self.task.tick_ms, 0, i) for i in range(len(self.z))]
        probes = self.task.probes
        if probes is not None:
            for i in range(len(self.z)):
                rate = probes.rate[self.z[i]] if isinstance(probes.rate, tuple) else probes.rate
                if (self._bits(i, PROBE)[0] >> 1) < round(rate * 2**31):
                    sends.append((i * self.task.tick_ms + probes.after_ms, 1, i))
        sends = sorted(s for s in sends if s[0] <= self.end)
        link = ReferenceLink(self.link, bits, self.task.horizon_ms)
        for moment, probe, i in sends:
            own, chain = (LINK_PROBE, LINK_STATE_PROBE) if probe else (LINK, LINK_STATE)
            link.send(moment, self._bits(i, own), self._bits(i, chain)[0])
        return [
            {"sent": moment, "probe": bool(probe), "tick": i, "arrival": None if isinstance(a, str) else a, "fate": a}
            for (moment, probe, i), a in zip(sends, link.arrivals(), strict=True)
        ]

    def observe(self, k: int) -> dict[str, list[int]]:
        """Observation k: what arrived in ((k-1) m, k m]."""
        m = self.task.micro_turn_ms
        came = [p for p in self.packets if p["arrival"] is not None and (k - 1) * m < p["arrival"] <= k * m]
        shown = came[-self.window :]
        pad = [-1] * (self.window - len(shown))
        states = self.task.latent.num_states
        return {
            "signal": pad + [states if p["probe"] else self.z[p["tick"]] for p in shown],
            "age_ms": pad + [k * m - p["sent"] for p in shown],
            "fresh": len(came),
        }

    def _seen(self, k: int, probe: bool) -> list[int]:
        now = k * self.task.micro_turn_ms
        return [
            p["tick"] for p in self.packets if p["probe"] == probe and p["arrival"] is not None and p["arrival"] <= now
        ]

    def act(self, k: int, action: list[int]) -> tuple[float, int, int]:
        """(reward, tick answered, tick whose probe is answered) of the action chosen at k m; -1 where none."""
        task, now = self.task, k * self.task.micro_turn_ms
        effect = now + self.delay
        factors, symbol = list(action[1:]), action[0]
        if task.reply == "named":
            tick = max(now // task.tick_ms - factors.pop(0), -1)
        else:
            tick = max(self._seen(k, probe=False), default=-1)
        cost, given = 0.0, -1
        if symbol > 0:
            given = tick
            onset = tick * task.tick_ms
            if tick >= 0 and effect - onset <= task.horizon_ms and tick not in self.answered:
                self.answered.add(tick)
                if onset + task.horizon_ms < self.end:
                    cost += task.distortion[self.required[tick], symbol]
        for i in range(len(self.z)):
            deadline = i * task.tick_ms + task.horizon_ms
            expires = now <= deadline < now + task.micro_turn_ms
            if expires and i not in self.answered and deadline < self.end:
                cost += task.distortion[self.required[i], 0]
        asked = -1
        if task.probes is not None and factors[-1] > 0:
            limit = task.probes.after_ms + task.probes.deadline_ms
            can = [
                i
                for i in self._seen(k, probe=True)
                if i not in self.probe_answered and effect <= i * task.tick_ms + limit
            ]
            asked = max(can, default=-1)
            self.probe_answered.add(asked)
        return -cost, given, asked

    def delivered(self) -> list[int]:
        """Per tick that begins before the end: the observation that first showed its packet, or -1."""
        m = self.task.micro_turn_ms
        found = {}
        for p in self.packets:
            seen = None if p["arrival"] is None else -(-p["arrival"] // m) * m
            if not p["probe"] and seen is not None and seen <= self.end:
                found[p["tick"]] = seen
        return [found.get(i, -1) for i in range(-(-self.end // self.task.tick_ms))]
