"""Runs made without an environment, so that what a score should be is known exactly or by a short formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envrate.task import Task
from envrate.trace import NEVER, Header, Trace

IntArray = NDArray[np.int64]


@dataclass
class World:
    """What happened before the agent: latents, required responses, and when the link delivered each tick."""

    task: Task
    episode: IntArray
    tick: IntArray
    onset: IntArray
    latent: IntArray
    required: IntArray
    delivered: IntArray  # ms since the episode's start, -1 never
    probed: NDArray[np.bool_]
    generator: np.random.Generator

    @property
    def heard(self) -> NDArray[np.bool_]:
        """Ticks that were ever delivered."""
        return self.delivered >= 0


Acts = dict[str, IntArray]  # tick rows, times and values of responses


def chain_path(
    matrix: NDArray[np.float64], start: NDArray[np.float64], length: int, rng: np.random.Generator
) -> IntArray:
    """A sample path of a chain."""
    cumulative, uniform = matrix.cumsum(axis=1), rng.random(length)
    path = np.empty(length, dtype=np.int64)
    path[0] = min(len(start) - 1, np.searchsorted(start.cumsum(), uniform[0]))
    for t in range(1, length):
        path[t] = min(len(start) - 1, np.searchsorted(cumulative[path[t - 1]], uniform[t]))
    return path


def world(
    task: Task,
    ticks: int,
    *,
    seed: int = 0,
    episodes: int = 1,
    delay: tuple[int, int] = (0, 0),
    late: float = 0.0,
    loss: float = 0.0,
) -> World:
    """Samples a world: each packet comes after delay[0] or, with probability `late`, delay[1] ms, or is lost."""
    rng = np.random.default_rng(seed)
    length = ticks // episodes
    chain = task.latent
    paths = [chain_path(chain.matrix, chain.stationary, length, rng) for _ in range(episodes)]
    latent = np.concatenate(paths)
    tick = np.tile(np.arange(length), episodes)
    episode = np.repeat(np.arange(episodes), length)
    onset = tick * task.tick_ms
    arrival = onset + np.where(rng.random(len(latent)) < late, delay[1], delay[0])
    for e in range(episodes):  # first in, first out
        mine = episode == e
        arrival[mine] = np.maximum.accumulate(arrival[mine])
    arrival[rng.random(len(latent)) < loss] = NEVER
    probed = rng.random(len(latent)) < (task.probes.rate if task.probes is not None else 0.0)
    return World(task, episode, tick, onset, latent, np.asarray(task.table)[latent], arrival, probed, rng)


def trace(
    w: World,
    acts: Acts,
    answer: Callable[[World, IntArray], IntArray] | None = None,
    *,
    agent: str = "",
    link: bool = True,
) -> Trace:
    """The trace of a world in which an agent acted, and answered probes with `answer(world, rows)` (-1: nothing)."""
    rows = np.flatnonzero(w.probed)
    asked = np.full(len(w.tick), NEVER)
    if w.task.probes is not None:
        asked[rows] = w.onset[rows] + w.task.probes.after_ms
    right = np.where(asked >= 0, np.asarray(w.task.question)[w.latent], -1)
    said = np.full(len(rows), -1) if answer is None else answer(w, rows)
    told = rows[said >= 0]
    return Trace(
        Header.for_task(w.task, agent=agent, link={} if link else None, duration_ms=len(w.tick) * w.task.tick_ms),
        {
            "episode": w.episode,
            "tick": w.tick,
            "onset_ms": w.onset,
            "required": w.required,
            "stratum": np.zeros(len(w.tick), np.int64),
            "delivered_ms": w.delivered if link else np.full(len(w.tick), NEVER),
            "probe_ms": asked,
            "probe_required": right,
            "latent": w.latent,
        },
        {
            "episode": np.concatenate([w.episode[acts["row"]], w.episode[told]]),
            "time_ms": np.concatenate([acts["time"], asked[told]]),
            "tick": np.concatenate([w.tick[acts["row"]], w.tick[told]]),
            "value": np.concatenate([acts["value"], said[said >= 0]]),
            "kind": np.repeat([0, 1], [len(acts["row"]), len(told)]),
        },
    )


def respond(rows: IntArray, times: IntArray, values: IntArray) -> Acts:
    """Responses to ticks, without the null ones."""
    kept = values != 0
    return {"row": rows[kept], "time": times[kept], "value": values[kept]}


def honest(w: World) -> Acts:
    """Answers each tick rightly as soon as it is delivered."""
    rows = np.flatnonzero(w.heard)
    return respond(rows, w.delivered[rows], w.required[rows])


def nobody(w: World) -> Acts:
    """Never acts."""
    none = np.zeros(0, np.int64)
    return respond(none, none, none)


def remembers(w: World, rows: IntArray) -> IntArray:
    """Answers probes about what was delivered, and "don't know" (silence) to the others."""
    return np.where(w.heard[rows], np.asarray(w.task.question)[w.latent[rows]], -1)


def missing(w: World, share: float, seed: int) -> Trace:
    """The trace of an agent that misses each response with some probability."""
    acts = honest(w)
    kept = np.random.default_rng(seed).random(len(acts["row"])) >= share
    return trace(w, {k: v[kept] for k, v in acts.items()}, agent=f"misses {share:g}")
