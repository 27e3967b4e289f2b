"""Runs made ready for comparisons and rankings: what they met, and their scores with resamples.

Runs with symbols are counted in tallies; tracking runs have squared errors. Both come out as the same `Resampled`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from envrate.scorers import _bootstrap, _frontier_score, _intervals, _tracking
from envrate.scorers._frontier import at_levels
from envrate.scorers._frontier_score import Scores
from envrate.scorers._tally import Tally, default_latencies, tally
from envrate.trace import Header, Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Stretches that a run without enough episodes is cut into, drawn independently and alike for both runs.
STRETCHES = 50
#: Relative step of the derivative of C in the distortion.
STEP = 1e-4


@dataclass(frozen=True)
class Resampled:
    """Scores of one run in one reading at each allowed latency, with resamples drawn for a comparison."""

    credited: FloatArray  # (L,) running maximum over latency
    draws: FloatArray  # (R, L)
    influence: FloatArray  # (B, L)
    sparse: FloatArray  # (L,) C with rare failures at their upper bounds
    ties: FloatArray  # (L,) C at what a maximum over tied shares of e may hide
    severity: FloatArray  # (L,)
    severity_draws: FloatArray  # (R, L)
    severity_influence: FloatArray  # (B, L)
    severity_sparse: FloatArray  # (L,)

    def at(self, levels: IntArray) -> Resampled:
        """The scores at some levels, which may repeat."""
        return Resampled(*(getattr(self, field.name)[..., levels] for field in fields(self)))

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """(L,) both ends of the 95 % interval of C."""
        low, high = _bootstrap.bca(self.credited, self.draws, self.influence)
        low = _intervals.add_in_squares(self.credited, np.minimum(low, self.credited), self.sparse)
        high = -_intervals.add_in_squares(-self.credited, -np.maximum(high, self.credited), -self.ties)
        return np.maximum(low, 0.0), high


@dataclass(frozen=True)
class Entry:
    """A run at a list of allowed latencies."""

    run: Trace | Tally
    counted: Tally | None  # None for a tracking run
    latencies_ms: IntArray  # (M,) rising, what is scored
    levels: IntArray  # (L,) which of them stands for each latency asked for

    @property
    def header(self) -> Header:
        """Of the run."""
        return self.run.header

    @property
    def link_log(self) -> bool:
        """Whether there is a resolved reading."""
        return self.counted is not None and self.counted.link_log

    def label(self, fallback: str) -> str:
        """What to call the run."""
        return self.header.agent or self.header.source or fallback

    def too_little(self) -> str:
        """Why no rate can be had; empty where one can."""
        if self.counted is None:
            assert isinstance(self.run, Trace)
            return _tracking.too_few(self.run)
        found = _frontier_score.events(self.counted)
        if found < _intervals.MIN_EVENTS:
            return f"{found} events, expected at least {_intervals.MIN_EVENTS}"
        return "; ".join(_frontier_score.never_came_up(self.counted))

    def resampled(self, *, resolved: bool, resamples: int, seed: int) -> list[Resampled]:
        """Scores at `latencies_ms` in the output-only and, on demand, the resolved reading.

        Blocks are drawn independently: episodes, or stretches of ticks where there are too few of those. Runs with
        equally many blocks and the same seed are resampled alike.
        """
        trace = self.run if isinstance(self.run, Trace) else None
        if self.counted is None:
            assert trace is not None
            return [_of_values(trace, self.latencies_ms, resamples=resamples, seed=seed)]
        scores, level_of = _frontier_score.score(
            _stretches(self.counted), trace, resolved=resolved, resamples=resamples, seed=seed
        )
        return [_expanded(s, level_of) for s in scores]


def check_runs(runs: dict[str, Trace | Tally]) -> None:
    """Raises ValueError for what cannot be compared; runs by the name of their argument."""
    tracks = {}
    for name, run in runs.items():
        if not isinstance(run, (Trace, Tally)):
            raise ValueError(f"{name}: expected a Trace or a Tally, got {type(run).__name__}")
        tracks[name] = isinstance(run, Trace) and run.is_tracking
    if len(set(tracks.values())) > 1:
        values, symbols = (next(name for name, t in tracks.items() if t is kind) for kind in (True, False))
        raise ValueError(
            f"{values}: it follows values and {symbols} answers with symbols: their demands are of different kinds, so "
            "bits per second of the one say nothing about the other"
        )
    ticks = {name: run.header.tick_ms for name, run in runs.items()}
    first = next(iter(ticks))
    for name, tick_ms in ticks.items():
        if tick_ms != ticks[first]:
            raise ValueError(
                f"{name}: its ticks last {tick_ms} ms, those of {first} {ticks[first]} ms; the tick is part of the "
                "unit of bits/s, so only runs with equal ticks can be compared"
            )


def own_latencies(run: Trace | Tally) -> IntArray:
    """Allowed latencies that a run is counted at where none are named."""
    return run.latencies_ms if isinstance(run, Tally) else default_latencies(run.header)


def enter(run: Trace | Tally, name: str, latencies_ms: IntArray) -> Entry:
    """The run at a list of latencies.

    A frontier is a step function: a latency beyond the run's horizon, or between those that a tally was counted at, is
    the largest one before it.
    """
    if isinstance(run, Trace):
        levels = np.minimum(latencies_ms, run.header.horizon_ms)
        distinct = np.unique(levels)
        result = None if run.is_tracking else tally(run, distinct)
    else:
        place = np.searchsorted(run.latencies_ms, latencies_ms, side="right") - 1
        if place.min() < 0:
            raise ValueError(f"{name}: it was not counted at or below {int(latencies_ms.min())} ms")
        levels = run.latencies_ms[place]
        distinct = np.unique(levels)
        result = at_levels(run, distinct)
    return Entry(run, result, distinct, np.searchsorted(distinct, levels))


def same_ticks(a: Entry, b: Entry) -> bool:
    """Whether two runs were asked the same, tick by tick or block by block: common random numbers."""
    if a.header.task != b.header.task:
        return False
    if a.counted is None or b.counted is None:
        met = []
        for entry in (a, b):
            assert isinstance(entry.run, Trace)
            ticks = entry.run.ticks
            met.append([ticks[name][ticks["scored"]] for name in ("episode", "tick", "required")])
        return all(np.array_equal(x, y) for x, y in zip(*met, strict=True))
    if a.counted.num_blocks != b.counted.num_blocks or len(a.counted.counts) != len(b.counted.counts):
        return False
    counts = [[c[:, 0].sum(axis=-1) for c in entry.counted.counts] for entry in (a, b) if entry.counted is not None]
    return all(x.shape == y.shape and bool((x == y).all()) for x, y in zip(*counts, strict=True))


def _stretches(run: Tally) -> Tally:
    """The run in blocks that may be drawn independently."""
    if run.by_episode:
        return run
    group = -(-run.num_blocks // STRETCHES)
    starts = np.arange(0, run.num_blocks, group)
    counts = tuple(np.add.reduceat(c, starts, axis=0) for c in run.counts)
    return replace(run, counts=counts, episode=run.episode[starts], by_episode=True)


def _expanded(scores: Scores, level_of: IntArray) -> Resampled:
    """Running maxima over latency, at every allowed latency."""
    top = np.fmax.accumulate(scores.credited)
    best = np.array([int(np.flatnonzero(scores.credited[: k + 1] >= top[k])[0]) for k in range(len(top))])
    return Resampled(
        credited=top[level_of],
        draws=np.fmax.accumulate(scores.resampled, axis=1)[:, level_of],
        influence=scores.influence[:, best][:, level_of],
        sparse=np.fmax.accumulate(scores.sparse)[level_of],
        ties=np.fmax.accumulate(scores.ties)[level_of],
        severity=scores.severity[level_of],
        severity_draws=scores.severity_resampled[:, level_of],
        severity_influence=scores.severity_influence[:, level_of],
        severity_sparse=scores.severity_sparse[level_of],
    )


def _of_values(run: Trace, latencies_ms: IntArray, *, resamples: int, seed: int) -> Resampled:
    """A tracking run: C = R(max(D, D*)), and the squared error for its severity."""
    task = run.task
    found = _tracking.distortions(run, latencies_ms, seed=seed, resamples=resamples)
    point = _tracking.credited(task, found.best)
    ahead, back = (_tracking.credited(task, found.best * (1 + step)) for step in (STEP, -STEP))
    slope = (ahead - back) / (2 * STEP * np.maximum(found.best, np.finfo(float).tiny))
    return Resampled(
        credited=point,
        draws=_tracking.credited(task, found.draws),
        influence=found.influence * slope,
        sparse=point,
        ties=point,
        severity=found.best,
        severity_draws=found.draws,
        severity_influence=found.influence,
        severity_sparse=found.best,
    )
