"""Frontier: what got through within each allowed latency, in both readings, with intervals and the gap."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.rd import Bracket
from envrate.scorers import _bootstrap, _frontier_score, _intervals
from envrate.scorers._frontier_score import Scores
from envrate.scorers._tally import Tally, check_latencies, tally
from envrate.trace import Header, Trace

if TYPE_CHECKING:
    from rich.console import Group

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OUTPUT_ONLY, RESOLVED = "output-only", "resolved"
READINGS = (OUTPUT_ONLY, RESOLVED)
YES, NO, NOT_SHOWN = "yes", "no", "not shown"
#: A system keeps up when the gap is at most this share of the demand.
SMALL_GAP = 0.05
NO_LINK_LOG = "no resolved reading: the run has no link log, so a late packet cannot be told from a silent agent"


@dataclass(frozen=True)
class Point:
    """A frontier at one allowed latency in one reading; rates in bits/s, NaN where `reason` says why.

    `credited` and what belongs to it (`detection`, `identification`, the gap) are the largest over all latencies up to
    this one; `raw` is the value at this latency alone. Severity and rate equivalent are of this latency alone.
    Intervals are 95 %.
    """

    latency_ms: int
    reading: str
    credited: float
    credited_low: float
    credited_high: float
    gap: float
    gap_low: float
    gap_high: float
    detection: float
    identification: float
    severity: float
    rate_equivalent: float
    keeps_up: str
    events: int
    censored: int
    reason: str = ""
    raw: float = math.nan
    severity_low: float = math.nan
    severity_high: float = math.nan

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form; a number that cannot be had is None."""
        kept = {k: v for k, v in self.__dict__.items() if k not in ("raw", "severity_low", "severity_high")}
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in kept.items()}


@dataclass(frozen=True)
class Frontier:
    """Task-relevant bits per second within each allowed latency, against the demand.

    Args:
        header: of the run: task, demand, modality, link, agent.
        points: by reading, then by latency.
        notes: what a reader has to know.
        redundant: later responses to a tick already answered: counted, never credited.
        premature: responses computed before the tick they name had begun.
        no_tick: responses that name no tick.
        method: how the rate of the source was had.
    """

    header: Header
    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()
    redundant: int = 0
    premature: int = 0
    no_tick: int = 0
    method: str = ""

    @property
    def name(self) -> str:
        """The task's name, or the run's source."""
        return self.header.task.name if self.header.task is not None else self.header.source

    @property
    def demand(self) -> Bracket:
        """R(0) of the task in bits/s, or a nominal demand."""
        return self.header.demand

    @property
    def latencies_ms(self) -> list[int]:
        """Allowed latencies."""
        return [p.latency_ms for p in self.points if p.reading == OUTPUT_ONLY]

    @property
    def has_resolved(self) -> bool:
        """Whether there is a resolved reading."""
        return any(p.reading == RESOLVED and math.isfinite(p.credited) for p in self.points)

    def reading(self, name: str = OUTPUT_ONLY) -> list[Point]:
        """The points of one reading, by latency."""
        _checks.choice("reading", name, READINGS)
        return [p for p in self.points if p.reading == name]

    def at(self, latency_ms: float, reading: str = OUTPUT_ONLY) -> Point:
        """The point at the largest latency up to `latency_ms`; raises ValueError where there is none."""
        found = [p for p in self.reading(reading) if p.latency_ms <= latency_ms]
        if not found:
            raise ValueError(f"latency_ms: expected at least {min(self.latencies_ms)} ms, got {latency_ms!r}")
        return found[-1]

    @property
    def keeps_up_at_ms(self) -> int | None:
        """The smallest latency at which the system is shown to keep up, by its outputs alone; None where at none."""
        return self.keeps_up_at(OUTPUT_ONLY)

    def keeps_up_at(self, reading: str) -> int | None:
        """The smallest latency at which the system is shown to keep up in one reading; None where at none."""
        return next((p.latency_ms for p in self.reading(reading) if p.keeps_up == YES), None)

    def rows(self) -> list[dict[str, Any]]:
        """The points as plain dicts, as in the JSON form."""
        return [p.to_json() for p in self.points]

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form: task, units, demand and points; numbers that cannot be had are None with their reason."""
        demand = self.demand
        return {
            "task": self.name,
            "unit": "bits/s",
            "tick_ms": self.header.tick_ms,
            "micro_turn_ms": self.header.micro_turn_ms,
            "demand": {"lower": demand.lower, "upper": demand.upper, "kind": demand.kind, "method": demand.method},
            "keeps_up_at_ms": self.keeps_up_at_ms,
            "points": self.rows(),
        }

    def table(self, reading: str | None = None) -> Group:
        """Rich tables, one per reading or the one asked for; print them with rich, or take `rows()`."""
        from envrate.scorers._frontier_table import frontier_table

        return frontier_table(self, reading)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Draws the frontier under the demand line; see `envrate.plots.frontier`, whose options it takes."""
        # By name: plots sit above scorers, and matplotlib stays out until a picture is wanted.
        return importlib.import_module("envrate.plots").frontier([self], path, **options)


def frontier(
    run: Trace | Tally,
    latencies_ms: Sequence[int] | IntArray | None = None,
    *,
    seed: int = 0,
    resamples: int = 2000,
) -> Frontier:
    """Scores a run at each allowed latency.

    Args:
        run: a trace, or the tally of a run that kept its counts only.
        latencies_ms: allowed latencies, within 0 ... horizon; None takes every multiple of the micro-turn.
        seed: of the bootstrap.
        resamples: of the bootstrap; intervals are 95 %.

    Returns:
        Credited throughput in bits/s with intervals, in the output-only and the resolved reading, its running maximum
        over latency, detection and identification, severity, rate equivalent, the gap to the demand, and whether the
        system keeps up: yes, no, or not shown.

    Raises:
        ValueError: latencies out of range, a required symbol that the law excludes, a run that cannot be scored.
    """
    _checks.integer("resamples", resamples, 100)
    _checks.integer("seed", seed, 0)
    if isinstance(run, Trace) and run.is_tracking:
        tracking = importlib.import_module("envrate.scorers._tracking")
        return tracking.tracking_frontier(run, latencies_ms, seed=seed, resamples=resamples)  # type: ignore[no-any-return]
    if not isinstance(run, (Trace, Tally)):
        raise ValueError(f"run: expected a Trace or a Tally, got {type(run).__name__}")
    counts = tally(run, latencies_ms) if isinstance(run, Trace) else at_levels(run, latencies_ms)
    trace = run if isinstance(run, Trace) else None
    _frontier_score.impossible(counts)
    notes = _notes(counts)
    reason = _withheld(counts)
    readings = READINGS if counts.link_log else READINGS[:1]
    if reason:
        points = [_empty(counts, reading, reason) for reading in readings]
    else:
        scores, level_of = _frontier_score.score(
            counts, trace, resolved=counts.link_log, resamples=resamples, seed=seed
        )
        points = [_points(counts, reading, s, level_of) for reading, s in zip(readings, scores, strict=True)]
    if not counts.link_log:
        points.append(_empty(counts, RESOLVED, NO_LINK_LOG))
    return Frontier(
        header=counts.header,
        points=tuple(p for group in points for p in group),
        notes=notes,
        redundant=counts.redundant,
        premature=counts.premature,
        no_tick=counts.no_tick,
    )


def at_levels(counts: Tally, latencies_ms: Sequence[int] | IntArray | None) -> Tally:
    """A tally at some of its latencies; raises ValueError at one that it did not count."""
    if latencies_ms is None:
        return counts
    wanted = check_latencies(latencies_ms, counts.header)
    place = np.searchsorted(counts.latencies_ms, wanted)
    held = counts.latencies_ms[np.minimum(place, len(counts.latencies_ms) - 1)]
    if (held != wanted).any():
        missing = int(wanted[held != wanted][0])
        raise ValueError(f"latencies_ms: {missing} ms was not counted, expected some of {counts.latencies_ms.tolist()}")
    return replace(counts, latencies_ms=wanted, counts=tuple(c[:, place] for c in counts.counts))


def _withheld(counts: Tally) -> str:
    """Why no rate can be had; empty where one can."""
    found = _frontier_score.events(counts)
    if found < _intervals.MIN_EVENTS:
        return f"{found} events, expected at least {_intervals.MIN_EVENTS}"
    missing = _frontier_score.never_came_up(counts)
    if missing:
        return "; ".join(missing)
    if counts.header.task is None and counts.header.duration_ms == 0:
        return "the run has no exposure (duration_ms is 0), so there is no rate per second"
    return ""


def _notes(counts: Tally) -> tuple[str, ...]:
    """What a reader has to know about the numbers."""
    notes = list(counts.header.notes)
    if not counts.link_log:
        notes.append(NO_LINK_LOG)
    elif not counts.probed:
        notes.append("the resolved reading rests on the link's log alone: no tick was probed")
    if len(np.unique(counts.episode)) < 20 and counts.by_episode:
        notes.append(f"intervals rest on {counts.num_blocks} items only and may be too narrow")
    if counts.header.demand.kind == "nominal":
        notes.append("the demand is nominal: compare rankings, not bits, with other tasks")
    return tuple(notes)


def _empty(counts: Tally, reading: str, reason: str) -> list[Point]:
    """Points without numbers, and why."""
    kept = ("latency_ms", "reading", "keeps_up", "events", "censored", "reason")
    nothing: dict[str, Any] = {f.name: math.nan for f in fields(Point) if f.name not in kept}
    found = _frontier_score.events(counts)
    return [
        Point(
            latency_ms=int(level),
            reading=reading,
            keeps_up=NOT_SHOWN,
            events=found,
            censored=counts.censored,
            reason=reason,
            **nothing,
        )
        for level in counts.latencies_ms
    ]


def _points(counts: Tally, reading: str, scores: Scores, level_of: IntArray) -> list[Point]:
    """The points of one reading: running maximum, intervals, gap, keeps up."""
    best = _running_argmax(scores.credited)
    credited = scores.credited[best]
    resampled = np.fmax.accumulate(scores.resampled, axis=1)  # the maximum is taken anew in each resample
    low, high = _bootstrap.bca(credited, resampled, scores.influence[:, best])
    sparse = np.fmax.accumulate(scores.sparse)
    low = np.maximum(_intervals.add_in_squares(credited, low, sparse), 0.0)
    low = np.where(credited <= np.fmax.accumulate(scores.chance), 0.0, low)
    ties = np.fmax.accumulate(scores.ties)
    high = -_intervals.add_in_squares(-credited, -np.maximum(high, credited), -ties)
    harm_low, harm_high = _bootstrap.bca(scores.severity, scores.severity_resampled, scores.severity_influence)
    harm_high = -_intervals.add_in_squares(-scores.severity, -harm_high, -scores.severity_sparse)
    due, found = counts.header.demand.upper, _frontier_score.events(counts)
    points = []
    for level, k in zip(counts.latencies_ms, level_of, strict=True):
        withheld = not math.isfinite(credited[k])
        detection = float(scores.detection[best[k]])
        points.append(
            Point(
                latency_ms=int(level),
                reading=reading,
                credited=float(credited[k]),
                credited_low=float(low[k]),
                credited_high=float(high[k]),
                gap=due - float(credited[k]),
                gap_low=due - float(high[k]),
                gap_high=due - float(low[k]),
                detection=detection,
                identification=float(credited[k]) - detection,
                severity=float(scores.severity[k]),
                rate_equivalent=float(scores.rate_equivalent[k]),
                keeps_up=_keeps_up(counts, due - low[k], due - high[k], harm_low[k], harm_high[k]),
                events=found,
                censored=counts.censored,
                reason="a stratum's rate cannot be had" if withheld else "",
                raw=float(scores.credited[k]),
                severity_low=float(harm_low[k]),
                severity_high=float(harm_high[k]),
            )
        )
    return points


def _running_argmax(values: FloatArray) -> IntArray:
    """Position of the largest value so far, the earliest of equals; NaN counts as nothing."""
    filled = np.where(np.isfinite(values), values, -np.inf)
    top = np.maximum.accumulate(filled)
    new = np.concatenate([[True], top[1:] > top[:-1]])
    return np.maximum.accumulate(np.where(new, np.arange(len(values)), 0))


def _keeps_up(counts: Tally, gap_high: float, gap_low: float, harm_low: float, harm_high: float) -> str:
    """Yes and no need the whole interval; else it is not shown."""
    task = counts.header.task
    if task is not None and task.tolerance > 0:
        low, high, limit = harm_low, harm_high, task.tolerance
    else:
        low, high, limit = gap_low, gap_high, SMALL_GAP * counts.header.demand.upper
    return YES if high <= limit else NO if low > limit else NOT_SHOWN
