"""The time contract as arithmetic: which tick, packet and deadline fall into which micro-turn. See docs/time.md.

Every method takes and gives whole numbers, Python's, NumPy's or traced scalars alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.task import Task

#: The clock is a 32-bit number of milliseconds; a run ends well before it would wrap.
MAX_DURATION_MS = 2**31 - 2**27


@dataclass(frozen=True)
class Clock:
    """Times of one episode.

    Args:
        tick_ms: T.
        turn_ms: m, the micro-turn.
        horizon_ms: H.
        num_ticks: ticks that are scored.
        frame_ms: length of a captured frame; None for an event renderer, whose packet n goes out at tick n's onset.
        probe_after_ms: from a tick's onset to the question about it.
        max_steps: micro-turns of an episode; None is the fewest that score `num_ticks` ticks.
    """

    tick_ms: int
    turn_ms: int
    horizon_ms: int
    num_ticks: int
    frame_ms: int | None
    probe_after_ms: int
    max_steps: int | None = None

    def __post_init__(self) -> None:
        """Refuses a run that the clock cannot count."""
        longest = (MAX_DURATION_MS - self.horizon_ms - self.turn_ms) // self.tick_ms
        if self.num_ticks > longest:
            raise ValueError(f"num_ticks: expected at most {longest} ticks of {self.tick_ms} ms, got {self.num_ticks}")

    @classmethod
    def of(cls, task: Task, num_ticks: int, frame_ms: int | None, max_steps: int | None = None) -> Clock:
        """The clock of a task seen through frames of `frame_ms`; `max_steps`, where given, fixes the ticks scored."""
        if frame_ms is not None:
            _checks.integer("renderer.frame_ms", frame_ms, 1, task.micro_turn_ms, "ms, at most one micro-turn")
        if max_steps is not None:
            least = task.horizon_ms // task.micro_turn_ms + 1
            _checks.integer("max_episode_steps", max_steps, least, unit="micro-turns, so that a tick can be scored")
            num_ticks = (max_steps * task.micro_turn_ms - 1 - task.horizon_ms) // task.tick_ms + 1
        return cls(
            tick_ms=task.tick_ms,
            turn_ms=task.micro_turn_ms,
            horizon_ms=task.horizon_ms,
            num_ticks=_checks.integer("num_ticks", num_ticks, 1),
            frame_ms=frame_ms,
            probe_after_ms=0 if task.probes is None else task.probes.after_ms,
            max_steps=max_steps,
        )

    @property
    def num_steps(self) -> int:
        """Micro-turns of an episode: the fewest that score `num_ticks` ticks, and then no more than those."""
        if self.max_steps is not None:
            return self.max_steps
        return ((self.num_ticks - 1) * self.tick_ms + self.horizon_ms) // self.turn_ms + 1

    @property
    def end_ms(self) -> int:
        """The episode's length."""
        return self.num_steps * self.turn_ms

    @property
    def total_ticks(self) -> int:
        """Ticks whose onset lies in [0, end], scored or not."""
        return self.end_ms // self.tick_ms + 1

    @property
    def packet_ms(self) -> int:
        """Time between packets of the signal."""
        return self.tick_ms if self.frame_ms is None else self.frame_ms

    @property
    def first_packet(self) -> int:
        """Number of the first packet: 0 goes out at time 0; a frame needs its length first."""
        return 0 if self.frame_ms is None else 1

    @property
    def packets_per_step(self) -> int:
        """Most packets of the signal that one micro-turn can send."""
        return -(-self.turn_ms // self.packet_ms)

    def newest_tick(self, time_ms: Any) -> Any:
        """The newest tick that has begun at `time_ms` >= 0."""
        return time_ms // self.tick_ms

    def newest_packet(self, time_ms: Any) -> Any:
        """The newest packet of the signal sent by `time_ms` >= 0."""
        return time_ms // self.packet_ms

    def tick_of_packet(self, packet: Any) -> Any:
        """The tick that a packet is about: an event's own, a frame's tick just before its capture ends."""
        return packet if self.frame_ms is None else (packet * self.packet_ms - 1) // self.tick_ms

    def newest_probe(self, time_ms: Any) -> Any:
        """The newest tick whose question has been put by `time_ms`; negative before the first."""
        return (time_ms - self.probe_after_ms) // self.tick_ms

    def ticks_open(self) -> int:
        """Slots for ticks that can still be answered."""
        return self.horizon_ms // self.tick_ms + 1

    def slots(self, age_ms: int, every_ms: int) -> int:
        """Slots for things sent every `every_ms` that are needed until the first observation at `age_ms` or later."""
        return -(-(age_ms + self.turn_ms) // every_ms)

    def onsets(self) -> NDArray[np.int64]:
        """(total_ticks,) int64 onsets."""
        return np.arange(self.total_ticks, dtype=np.int64) * self.tick_ms


class Tempo:
    """The clock's counters of an episode in one int32 vector, advanced by one micro-turn with additions alone.

    One vector is one small operation in compiled code, where a division per counter would be an operation each.
    """

    #: Micro-turns and milliseconds since reset.
    STEP, NOW = 0, 1
    #: The newest tick, its age, and its slots among open ticks and among packets of an event renderer.
    TICK, AGE, SLOT, PACKET_SLOT = 2, 3, 4, 5
    #: The newest tick whose horizon has passed, the time since, and its slot among open ticks.
    DUE, DUE_AGE, DUE_SLOT = 6, 7, 8

    def __init__(self, clock: Clock, packet_slots: int) -> None:
        """Fixes the increments."""
        m, tick, horizon, slots = clock.turn_ms, clock.tick_ms, clock.horizon_ms, clock.ticks_open()
        due = (-horizon - 1) // tick
        never = 2**31 - 1
        #          start               each   onset  due  wraps at
        fields = [
            (0, 1, 0, 0, never),
            (0, m, 0, 0, never),
            (0, 0, 1, 0, never),
            (0, m, 0, 0, tick),
            (0, 0, 1, 0, slots),
            (0, 0, 1, 0, packet_slots),
            (due, 0, 0, 1, never),
            ((-horizon - 1) % tick, m, 0, 0, tick),
            (due % slots, 0, 0, 1, slots),
        ]
        table: NDArray[np.int32] = np.array(fields, dtype=np.int32)
        self._start, self._each, self._onset, self._due, self._wrap = (table[:, column] for column in range(5))
        self._last_age = np.int32(tick - m)

    def start(self) -> NDArray[np.int32]:
        """The counters at reset, tick 0 begun."""
        return self._start

    def advance(self, now: Any) -> Any:
        """The counters one micro-turn later; a tick began, or passed its horizon, where its counter went up."""
        onset, due = now[self.AGE] >= self._last_age, now[self.DUE_AGE] >= self._last_age
        moved = now + self._each + jnp.where(onset, self._onset, 0) + jnp.where(due, self._due, 0)
        return moved - jnp.where(moved >= self._wrap, self._wrap, 0)
