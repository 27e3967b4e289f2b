"""The link as a plain queue, one packet after the other, in whole microseconds since the start. No JAX."""

from __future__ import annotations

import math

import numpy as np

from envrate.channels import Constant, Exponential, GilbertElliott, Link, TwoPoint, Uniform

LOST, FULL, LATE = "lost", "full", "late"
HALF = 2**31


class ReferenceLink:
    """Sends packets in order of time; `arrivals()` gives ms since the start, or what became of each."""

    def __init__(self, link: Link, bits: int, horizon_ms: int) -> None:
        self.link, self.bits = link, bits
        self.max_age = horizon_ms + 1000 if link.max_age_ms is None else link.max_age_ms
        self.tx = 0 if link.bandwidth_bps is None else min(2**30, round(bits * 1e6 / link.bandwidth_bps))
        self.bad = False
        self.packets: list[dict] = []  # every packet offered

    def _loss(self, word: int, chain_word: int) -> bool:
        """Gilbert-Elliott moves once per packet offered, then loses with its new state's probability."""
        loss = self.link.loss
        if isinstance(loss, GilbertElliott):
            u = chain_word >> 1
            if self.bad:
                self.bad = not u < round(loss.p_bad_to_good * HALF)
            else:
                self.bad = u < round(loss.p_good_to_bad * HALF)
            probability = loss.loss_bad if self.bad else loss.loss_good
        else:
            probability = loss
        return (word >> 1) < round(probability * HALF)

    def _jitter(self, word: int) -> int:
        jitter = self.link.jitter
        if isinstance(jitter, Constant):
            return jitter.value_ms
        if isinstance(jitter, Uniform):
            return jitter.low_ms + (word * (jitter.high_ms - jitter.low_ms + 1) >> 32)
        if isinstance(jitter, TwoPoint):
            return jitter.high_ms if (word >> 1) < round(jitter.p_high * HALF) else jitter.low_ms
        assert isinstance(jitter, Exponential)
        uniform = np.float32((word >> 8) + 1) * np.float32(2.0**-24)
        return math.floor(-np.float32(jitter.mean_ms) * np.log(uniform))

    def send(self, sent_ms: int, words: tuple[int, int], chain_word: int) -> None:
        """Offers a packet."""
        lost, hop = self._loss(words[1], chain_word), self.link.delay_ms + self._jitter(words[0])
        packet = {"sent": sent_ms, "hop": hop, "lost": lost, "fate": None, "start": None}
        now = sent_ms * 1000
        queue = [q for q in self.packets if q["fate"] in (None, LOST) and q["start"] + self.tx > now]
        busy_until = max([now, *(q["start"] + self.tx for q in queue)])
        start, victim = busy_until, None
        if self._is_full(queue, now):
            waiting = [q for q in queue if q["start"] > now]
            if self.link.drop == "newest" or not waiting:
                packet["fate"] = FULL
            else:
                victim, start = waiting[0], busy_until - self.tx
        packet["start"] = start
        survivors = [q for q in self.packets if q is not victim]
        if self._arrival_ms([*self._moved(survivors, victim), packet], packet) - sent_ms > self.max_age:
            # Both refusals are possible at once. A full buffer refuses first unless it makes room by its oldest.
            packet["fate"] = packet["fate"] or LATE
        if packet["fate"] is None:
            if victim is not None:
                victim["fate"] = FULL
                for q in self.packets:
                    if q["fate"] in (None, LOST) and q["start"] > victim["start"]:
                        q["start"] -= self.tx
            if lost:
                packet["fate"] = LOST
        self.packets.append(packet)

    def _moved(self, packets: list[dict], victim: dict | None) -> list[dict]:
        if victim is None:
            return packets
        return [q | {"start": q["start"] - self.tx} if q["start"] > victim["start"] else q for q in packets]

    def _is_full(self, queue: list[dict], now: int) -> bool:
        """Queued bits and the rest of the packet in service, at `bits` per `tx` microseconds, leave no room."""
        if self.link.buffer_bits is None:
            return False
        if self.link.buffer_bits < self.bits:
            return True
        if self.tx == 0:
            return False
        rest_us = sum(q["start"] + self.tx - max(now, q["start"]) for q in queue)
        return rest_us * self.bits + self.bits * self.tx > self.link.buffer_bits * self.tx

    def _arrival_ms(self, packets: list[dict], packet: dict) -> int:
        """max(arrival before, departure + delay + jitter), over packets that were neither lost nor dropped."""
        last = 0
        for q in packets:
            if q is packet or q["fate"] is None:
                arrival = -(-(q["start"] + self.tx) // 1000) + q["hop"]
                last = max(last, arrival)
            if q is packet:
                return last
        raise AssertionError

    def arrivals(self) -> list[int | str]:
        """Of every packet, in order."""
        return [q["fate"] or self._arrival_ms(self.packets, q) for q in self.packets]


def random_link(rng: np.random.Generator) -> tuple[Link, int, int]:
    """(link, packet bits, horizon) with every feature on in some."""
    bits = int(rng.integers(1, 4000))
    spacing = float(rng.uniform(5, 400))  # ms that a packet takes to send
    bandwidth = None if rng.random() < 0.2 else bits / spacing * 1000
    low = int(rng.integers(0, 200))
    jitter = [
        Constant(low),
        Uniform(low, low + int(rng.integers(0, 500))),
        TwoPoint(low, low + int(rng.integers(0, 500)), float(rng.random())),
        Exponential(float(rng.uniform(1, 200))),
    ][rng.integers(4)]
    loss: float | GilbertElliott = float(rng.choice([0.0, 0.1, 0.5, 1.0], p=[0.4, 0.3, 0.25, 0.05]))
    if rng.random() < 0.3:
        loss = GilbertElliott(*rng.uniform(0.05, 0.9, 2).tolist(), *rng.random(2).tolist())
    buffer = None if rng.random() < 0.3 else int(rng.uniform(0.5, 6) * bits)
    if rng.random() < 0.2:
        buffer = bits * int(rng.integers(1, 5))  # a whole number of packets: the exact boundary
    link = Link(
        bandwidth_bps=bandwidth,
        delay_ms=int(rng.integers(0, 400)),
        jitter=jitter,
        loss=loss,
        buffer_bits=buffer,
        drop=str(rng.choice(["newest", "oldest"])),
        max_age_ms=None if rng.random() < 0.5 else int(rng.integers(1, 1500)),
    )
    return link, bits, int(rng.integers(100, 3000))
