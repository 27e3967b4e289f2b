"""Observations that wait for an agent: one slot, in which what was not taken in time is merged, never lost."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from numpy.typing import NDArray

Observation = dict[str, NDArray[Any]]


def merge(older: Observation, newer: Observation, elapsed_ms: int) -> Observation:
    """The observation of an agent that saw neither: the newest packets of both, newest last, `fresh` added up."""
    window = len(newer["age_ms"])
    new = newer["age_ms"] >= 0 if newer["fresh"] > 0 else np.zeros(window, dtype=bool)
    if not new.any():
        aged = np.where(older["age_ms"] >= 0, older["age_ms"] + elapsed_ms, older["age_ms"])
        return older | {"age_ms": aged.astype(older["age_ms"].dtype)}
    arrived = min(int(newer["fresh"]), window)
    signal = np.concatenate([older["signal"], newer["signal"][window - arrived :]])[-window:]
    aged = np.where(older["age_ms"] >= 0, older["age_ms"] + elapsed_ms, older["age_ms"])
    ages = np.concatenate([aged, newer["age_ms"][window - arrived :]])[-window:]
    fresh = np.asarray(older["fresh"] + newer["fresh"], dtype=newer["fresh"].dtype)
    return {"signal": signal, "age_ms": ages.astype(newer["age_ms"].dtype), "fresh": fresh}


class Mailbox:
    """The newest observation that the agent has not taken. `missed` counts the steps it never saw on their own."""

    def __init__(self, micro_turn_ms: int) -> None:
        """An empty slot."""
        self._micro_turn_ms = micro_turn_ms
        self._ready = asyncio.Event()
        self._held: tuple[int, Observation] | None = None
        self._closed = False
        self.missed = 0

    def put(self, step: int, observation: Observation) -> None:
        """Leaves observation `step`, merged with what was left untaken."""
        if self._held is not None:
            self.missed += 1
            observation = merge(self._held[1], observation, (step - self._held[0]) * self._micro_turn_ms)
        self._held = (step, observation)
        self._ready.set()

    def close(self) -> None:
        """Lets a waiting agent go."""
        self._closed = True
        self._ready.set()

    async def take(self) -> tuple[int, Observation] | None:
        """The held observation with its step, once there is one; None when the episode is over."""
        await self._ready.wait()
        held, self._held = self._held, None
        if self._closed:
            return None
        self._ready.clear()
        return held
