"""The time contract as arithmetic: which tick, packet and deadline fall into which micro-turn. See docs/time.md.

Every method takes and gives whole numbers, Python's, NumPy's or traced scalars alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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

    def due_tick(self, step: Any) -> Any:
        """The only tick whose onset + horizon can lie in [step m, (step + 1) m)."""
        return ((step + 1) * self.turn_ms - 1 - self.horizon_ms) // self.tick_ms

    def ticks_open(self) -> int:
        """Slots for ticks that can still be answered."""
        return self.horizon_ms // self.tick_ms + 1

    def slots(self, age_ms: int, every_ms: int) -> int:
        """Slots for things sent every `every_ms` that are needed until the first observation at `age_ms` or later."""
        return -(-(age_ms + self.turn_ms) // every_ms)

    def onsets(self) -> np.ndarray:
        """(total_ticks,) int64 onsets."""
        return np.arange(self.total_ticks, dtype=np.int64) * self.tick_ms
