"""Comparison of two runs: paired by common random numbers, with an interval for the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.scorers import _bootstrap
from envrate.scorers._comparison_scores import Resampled, check_runs, enter, own_latencies, same_ticks
from envrate.scorers._frontier import OUTPUT_ONLY, RESOLVED
from envrate.scorers._tally import Tally, check_latencies
from envrate.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
        reading and, where both runs have the link's log, in the resolved one. Tracking runs have C = R(max(D, D*)) and
        the squared error for their severity, in the output-only reading.

    Raises:
        ValueError: runs with different tick lengths (their bits per second have different units), a tracking run with
            one that answers with symbols.
    """
    _checks.integer("resamples", resamples, 100)
    _checks.integer("seed", seed, 0)
    check_runs({"a": a, "b": b})
    longest = max((a, b), key=lambda run: run.header.horizon_ms).header
    wanted = np.union1d(own_latencies(a), own_latencies(b)) if latencies_ms is None else latencies_ms
    common = check_latencies(wanted, longest)
    entries = [enter(run, name, common) for run, name in ((a, "a"), (b, "b"))]
    names = [entry.label(name) for entry, name in zip(entries, ("a", "b"), strict=True)]
    paired = same_ticks(*entries)
    notes = [] if paired else ["not paired: the runs met different required responses, so the interval is wider"]
    if a.header.task != b.header.task:
        notes.append("the runs are on different tasks: their demands differ")
    resolved = all(entry.link_log for entry in entries)
    readings = (OUTPUT_ONLY, RESOLVED)[: 1 + resolved]
    reasons = [f"{name}: {said}" for name, entry in zip(names, entries, strict=True) if (said := entry.too_little())]
    if reasons:
        nan = math.nan
        points = [
            Difference(int(level), reading, nan, nan, nan, nan, nan, "not shown", nan, nan, nan, "; ".join(reasons))
            for reading in readings
            for level in common
        ]
    else:
        seeds = (seed, seed if paired else seed + 1)
        scored = [
            [s.at(entry.levels) for s in entry.resampled(resolved=resolved, resamples=resamples, seed=one)]
            for entry, one in zip(entries, seeds, strict=True)
        ]
        points = [
            point
            for reading, x, y in zip(readings, *scored, strict=True)
            for point in _differences(common, reading, x, y, paired=paired)
        ]
    return Comparison(names[0], names[1], a.header.tick_ms, paired, tuple(points), tuple(notes))


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
