"""Comparison of two runs: paired by common random numbers, with an interval for the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.scorers import _bootstrap, _frontier_score
from envrate.scorers._frontier import OUTPUT_ONLY, RESOLVED, at_levels
from envrate.scorers._frontier_score import Scores
from envrate.scorers._intervals import MIN_EVENTS
from envrate.scorers._tally import Tally, check_latencies, default_latencies, tally
from envrate.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Stretches that a run without enough episodes is cut into, drawn independently and alike for both runs.
STRETCHES = 50


@dataclass(frozen=True)
class Difference:
    """C of the first run less that of the second at one latency in one reading, bits/s with a 95 % interval.

    `verdict` is "a", "b" or "not shown": an interval that holds 0 shows nothing, least of all equality.
    """

    latency_ms: int
    reading: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    verdict: str
    severity_difference: float
    severity_low: float
    severity_high: float
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; NaN becomes None."""
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in vars(self).items()}


@dataclass(frozen=True)
class Comparison:
    """Two runs, latency by latency."""

    a: str
    b: str
    tick_ms: int
    paired: bool  # both runs met the same required responses
    points: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    def reading(self, name: str = OUTPUT_ONLY) -> list[Difference]:
        """The points of one reading, by latency."""
        return [p for p in self.points if p.reading == _checks.choice("reading", name, (OUTPUT_ONLY, RESOLVED))]

    def at(self, latency_ms: float, reading: str = OUTPUT_ONLY) -> Difference:
        """The point at the largest latency up to `latency_ms`; raises ValueError where there is none."""
        found = [p for p in self.reading(reading) if p.latency_ms <= latency_ms]
        if not found:
            raise ValueError(f"latency_ms: expected one that was compared, got {latency_ms!r}")
        return found[-1]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "a": self.a,
            "b": self.b,
            "unit": "bits/s",
            "tick_ms": self.tick_ms,
            "paired": self.paired,
            "points": [p.to_dict() for p in self.points],
            "notes": list(self.notes),
        }


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


def check_run(run: Trace | Tally, name: str) -> None:
    """Raises ValueError for what cannot be compared."""
    if not isinstance(run, (Trace, Tally)):
        raise ValueError(f"{name}: expected a Trace or a Tally, got {type(run).__name__}")
    if isinstance(run, Trace) and run.is_tracking:
        raise ValueError(f"{name}: a tracking run has no symbols to count; compare runs on tasks with symbols")


def own_latencies(run: Trace | Tally) -> IntArray:
    """Allowed latencies that a run is counted at where none are named."""
    return run.latencies_ms if isinstance(run, Tally) else default_latencies(run.header)


def counted(run: Trace | Tally, name: str, latencies_ms: IntArray) -> tuple[Tally, IntArray]:
    """The tally of a run for a list of latencies, and (L,) the level of the tally that stands for each of them.

    A frontier is a step function: a latency beyond the run's horizon, or between those that a tally was counted at, is
    the largest one before it.
    """
    if isinstance(run, Trace):
        levels = np.minimum(latencies_ms, run.header.horizon_ms)
        result = tally(run, np.unique(levels))
    else:
        place = np.searchsorted(run.latencies_ms, latencies_ms, side="right") - 1
        if place.min() < 0:
            raise ValueError(f"{name}: it was not counted at or below {int(latencies_ms.min())} ms")
        levels = run.latencies_ms[place]
        result = at_levels(run, np.unique(levels))
    return result, np.searchsorted(result.latencies_ms, levels)


def label(run: Tally, fallback: str) -> str:
    """What to call a run."""
    return run.header.agent or run.header.source or fallback


def too_little(run: Tally) -> str:
    """Why no rate can be had of a run; empty where one can."""
    found = _frontier_score.events(run)
    if found < MIN_EVENTS:
        return f"{found} events, expected at least {MIN_EVENTS}"
    return "; ".join(_frontier_score.never_came_up(run))


def same_ticks(a: Tally, b: Tally) -> bool:
    """Whether two runs met the same required responses, block by block: common random numbers."""
    if a.header.task != b.header.task or a.num_blocks != b.num_blocks or len(a.counts) != len(b.counts):
        return False
    met = [[counts[:, 0].sum(axis=-1) for counts in run.counts] for run in (a, b)]
    return all(x.shape == y.shape and bool((x == y).all()) for x, y in zip(*met, strict=True))


def resampled(run: Tally, trace: Trace | None, *, resolved: bool, resamples: int, seed: int) -> list[Resampled]:
    """Scores in the output-only and, on demand, the resolved reading.

    Blocks are drawn independently: episodes, or stretches of ticks where there are too few of those. Runs with equally
    many blocks and the same seed are resampled alike.
    """
    scores, level_of = _frontier_score.score(
        _stretches(run), trace, resolved=resolved, resamples=resamples, seed=seed
    )
    return [_expanded(s, level_of) for s in scores]


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


def compare(
    a: Trace | Tally,
    b: Trace | Tally,
    latencies_ms: list[int] | None = None,
    *,
    seed: int = 0,
    resamples: int = 2000,
) -> Comparison:
    """The difference in credited throughput between two runs at each allowed latency.

    Args:
        a: a run.
        b: another one; with the same task and seed as `a` the two are paired: each resample draws the same episodes
            (or stretches of ticks) from both, so that what both found hard cancels.
        latencies_ms: allowed latencies; None takes those of either run. Beyond its horizon a run scores what it did
            there.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Returns:
        Differences with 95 % intervals (BCa, widened where a failure was seen fewer than 5 times), in the output-only
        reading and, where both runs have the link's log, in the resolved one.

    Raises:
        ValueError: runs with different tick lengths (their bits per second have different units), tracking runs.
    """
    _checks.integer("resamples", resamples, 100)
    _checks.integer("seed", seed, 0)
    for run, name in ((a, "a"), (b, "b")):
        check_run(run, name)
    ticks = [run.header.tick_ms for run in (a, b)]
    if ticks[0] != ticks[1]:
        raise ValueError(
            f"b: its ticks last {ticks[1]} ms, those of a {ticks[0]} ms; the tick is part of the unit of bits/s, so "
            "only runs with equal ticks can be compared"
        )
    longest = max((a, b), key=lambda run: run.header.horizon_ms).header
    wanted = np.union1d(own_latencies(a), own_latencies(b)) if latencies_ms is None else latencies_ms
    common = check_latencies(wanted, longest)
    found = [counted(run, name, common) for run, name in ((a, "a"), (b, "b"))]
    runs, levels = [run for run, _ in found], [level for _, level in found]
    names = [label(run, name) for run, name in zip(runs, ("a", "b"), strict=True)]
    paired = same_ticks(*runs)
    notes = [] if paired else ["not paired: the runs met different required responses, so the interval is wider"]
    if runs[0].header.task != runs[1].header.task:
        notes.append("the runs are on different tasks: their demands differ")
    resolved = all(run.link_log for run in runs)
    readings = (OUTPUT_ONLY, RESOLVED)[: 1 + resolved]
    reasons = [f"{name}: {reason}" for name, run in zip(names, runs, strict=True) if (reason := too_little(run))]
    if reasons:
        nan = math.nan
        points = [
            Difference(int(level), reading, nan, nan, nan, nan, nan, "not shown", nan, nan, nan, "; ".join(reasons))
            for reading in readings
            for level in common
        ]
        return Comparison(names[0], names[1], ticks[0], paired, tuple(points), tuple(notes))
    traces = [run if isinstance(run, Trace) else None for run in (a, b)]
    seeds = (seed, seed if paired else seed + 1)
    scored = [
        resampled(run, trace, resolved=resolved, resamples=resamples, seed=s)
        for run, trace, s in zip(runs, traces, seeds, strict=True)
    ]
    points = [
        point
        for reading, x, y in zip(readings, *scored, strict=True)
        for point in _differences(common, reading, x.at(levels[0]), y.at(levels[1]), paired=paired)
    ]
    return Comparison(names[0], names[1], ticks[0], paired, tuple(points), tuple(notes))


def _differences(levels: IntArray, reading: str, x: Resampled, y: Resampled, *, paired: bool) -> list[Difference]:
    low, high = _interval(x.credited, y.credited, x.draws, y.draws, x.influence, y.influence, paired=paired)
    gap = x.credited - y.credited
    # A failure hardly seen in a can only lower a; tied shares of e in b can only raise b; and the other way round.
    low = gap - np.sqrt((gap - low) ** 2 + (x.credited - x.sparse) ** 2 + (y.ties - y.credited) ** 2)
    high = gap + np.sqrt((high - gap) ** 2 + (y.credited - y.sparse) ** 2 + (x.ties - x.credited) ** 2)
    harm = x.severity - y.severity
    harm_low, harm_high = _interval(
        x.severity, y.severity, x.severity_draws, y.severity_draws, x.severity_influence, y.severity_influence,
        paired=paired,
    )
    harm_low = harm - np.hypot(harm - harm_low, y.severity_sparse - y.severity)
    harm_high = harm + np.hypot(harm_high - harm, x.severity_sparse - x.severity)
    return [
        Difference(
            latency_ms=int(level),
            reading=reading,
            a=float(x.credited[k]),
            b=float(y.credited[k]),
            difference=float(gap[k]),
            low=float(low[k]),
            high=float(high[k]),
            verdict="a" if low[k] > 0 else "b" if high[k] < 0 else "not shown",
            severity_difference=float(harm[k]),
            severity_low=float(harm_low[k]),
            severity_high=float(harm_high[k]),
        )
        for k, level in enumerate(levels)
    ]


def _interval(
    a: FloatArray,
    b: FloatArray,
    a_draws: FloatArray,
    b_draws: FloatArray,
    a_influence: FloatArray,
    b_influence: FloatArray,
    *,
    paired: bool,
) -> tuple[FloatArray, FloatArray]:
    """BCa interval of a - b; influences of paired runs subtract block by block, of others they stand side by side."""
    centred = [u - u.mean(axis=0) for u in (a_influence, b_influence)]
    influence = centred[0] - centred[1] if paired else np.concatenate([centred[0], -centred[1]])
    low, high = _bootstrap.bca(a - b, a_draws - b_draws, influence)
    return np.minimum(low, a - b), np.maximum(high, a - b)
