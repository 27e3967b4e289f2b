"""The split of the gap: how much of it the link, the perception and the decision are to blame for.

link       = R(0) - C_ideal        no decision rule can get it through this link in time
perception = C_ideal - C_decoded   it reached the agent and is not in its outputs
decision   = C_decoded - C         it is in its outputs in the wrong form: relabelling would win it back
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.rd import Bracket
from envrate.scorers._frontier_score import events, never_came_up
from envrate.scorers._ideal import Scale, Situations, climb, least_severity, starting_costs
from envrate.scorers._intervals import MIN_EVENTS
from envrate.scorers._outcome import Outcomes, outcomes
from envrate.scorers._posterior import Contexts, Observer
from envrate.scorers._resolved import conditional, reduce
from envrate.scorers._split_decoded import memoryless_situations, process_situations
from envrate.scorers._tally import Tally, check_latencies, tally
from envrate.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MS_PER_S = 1000.0
READINGS = ("output-only", "resolved")


@dataclass(frozen=True)
class SplitPoint:
    """The split at one allowed latency in one reading, bits per second; NaN with a reason where it cannot be had.

    `link + perception + decision` is the gap R(0) - C. A part may come out a little below 0 by chance; it is not
    clipped. Rates are running maxima over the latencies of the split, as on a frontier.
    """

    latency_ms: int
    reading: str
    credited: float  # C of the agent
    decoded: float  # C_decoded
    ideal: float  # C_ideal
    prediction: float  # C of the best rule that has seen nothing of the tick itself
    link_information: float  # what any rule could convey of a tick at most: I(A_t; delivered by onset + l), at most h
    link: float
    perception: float
    decision: float
    severity: float  # of the observer of least severity, per tick: a bound on severity, not on C
    reason: str = ""

    @property
    def gap(self) -> float:
        """R(0) - C."""
        return self.link + self.perception + self.decision

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; NaN becomes None."""
        body = dict(vars(self)) | {"gap": self.gap}
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in body.items()}


@dataclass(frozen=True)
class Split:
    """The split at each allowed latency, per reading."""

    task: str
    agent: str
    tick_ms: int
    demand: Bracket  # bits per second; R(0) of the split is its upper end, as of a gap
    points: tuple[SplitPoint, ...]

    def at(self, latency_ms: float, reading: str = "output-only") -> SplitPoint:
        """The point at the largest latency up to `latency_ms`; raises ValueError where there is none."""
        found = [p for p in self.reading(reading) if p.latency_ms <= latency_ms]
        if not found:
            known = [p.latency_ms for p in self.reading(reading)]
            raise ValueError(f"latency_ms: expected one of {known} ms in reading {reading!r}, got {latency_ms!r}")
        return found[-1]

    def reading(self, name: str) -> list[SplitPoint]:
        """The points of one reading in order of latency."""
        _checks.choice("reading", name, READINGS)
        return [point for point in self.points if point.reading == name]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "task": self.task,
            "agent": self.agent,
            "unit": "bits/s",
            "tick_ms": self.tick_ms,
            "demand": {"lower": self.demand.lower, "upper": self.demand.upper, "kind": self.demand.kind},
            "points": [point.to_dict() for point in self.points],
        }


def split(
    trace: Trace, latencies_ms: Sequence[int] | None = None, *, readings: Sequence[str] | None = None
) -> Split:
    """Splits the gap of a run.

    Args:
        trace: a run on a task whose letters are Markov, with the link's log.
        latencies_ms: allowed latencies; None takes 0, m, 2m ... up to the horizon.
        readings: of "output-only" and "resolved"; None takes both.

    Returns:
        The split. C_ideal is ascended over decision rules on the exact posterior given all that was delivered by
        onset + l; C_decoded over relabellings of the agent's outcomes, the identity among them. Both are local maxima,
        so true maxima can only be larger.

    Raises:
        ValueError: a tracking trace, one without a task or a link log, or intervals of a Gaussian process with memory.
    """
    task = trace.task
    observer = Observer.of(trace)
    levels = check_latencies(latencies_ms, trace.header)
    wanted = READINGS if readings is None else [_checks.choice("readings", name, READINGS) for name in readings]
    counted = tally(trace, levels.tolist())
    demand = task.demand()
    reason = _too_little(counted)
    if reason:
        points = [_withheld(level, reading, reason) for reading in wanted for level in levels.tolist()]
        return Split(task.name, trace.header.agent, task.tick_ms, demand, tuple(points))
    reduced = reduce(counted.counts[0].sum(axis=0))  # (L, A, A + 4)
    seen = [(observer.contexts(level), observer.contexts(level, own=False)) for level in levels.tolist()]
    run = _Run(trace, outcomes(trace), levels, seen, demand)
    best = {"output-only": run.rates(reduced, resolved=False)}
    if "resolved" in wanted:
        # What is worth something by its outputs alone is worth no less with its silences resolved.
        best["resolved"] = np.maximum(best["output-only"], run.rates(reduced, resolved=True))
    points = [run.point(index, reading, row) for reading in wanted for index, row in enumerate(best[reading])]
    return Split(task.name, trace.header.agent, task.tick_ms, demand, tuple(points))


def _too_little(counted: Tally) -> str:
    """Why no rate can be had of a run; empty where one can."""
    missing = never_came_up(counted)
    if missing:
        return "; ".join(missing)
    number = events(counted)
    return f"{number} events, at least {MIN_EVENTS} are needed" if number < MIN_EVENTS else ""


def _withheld(level: int, reading: str, reason: str) -> SplitPoint:
    return SplitPoint(level, reading, *(float("nan"),) * 9, reason)


@dataclass(frozen=True)
class _Run:
    """What both readings of a split share."""

    trace: Trace
    found: Outcomes
    levels: IntArray
    seen: list[tuple[Contexts, Contexts]]  # per latency: with and without the tick's own packets
    demand: Bracket

    def rates(self, reduced: FloatArray, *, resolved: bool) -> FloatArray:
        """(L, 4) C, C_decoded, C_ideal and the C of prediction in bits/s, from (L, A, A + 4) counts."""
        task = self.trace.task
        tables = np.where((task.pmf > 0)[:, None], conditional(reduced, resolved=resolved), 0.0)
        scale = Scale(task, resolved)
        starts = starting_costs(task)
        groups: list[list[FloatArray]] = []
        for level, table, (contexts, blind) in zip(self.levels.tolist(), tables, self.seen, strict=True):
            decoded = climb(scale, self._outcomes(level, table, resolved=resolved), starts, [table])
            ideal = climb(scale, Situations.of(contexts, resolved=resolved), starts, [table, decoded[0]])
            # Without its own packets every tick is unheard.
            unheard = Contexts(blind.weight, blind.posterior, np.zeros(len(blind.weight), bool))
            guess = climb(scale, Situations.of(unheard, resolved=resolved), starts)
            groups += [[table], [table, decoded[0]], ideal, guess[:1]]
        rates = scale.credited(np.concatenate([np.stack(group) for group in groups])) * MS_PER_S / task.tick_ms
        ends = np.cumsum([len(group) for group in groups])
        best = np.array([part.max() for part in np.split(rates, ends[:-1])]).reshape(len(self.levels), 4)
        return np.asarray(np.maximum.accumulate(best, axis=0))

    def _outcomes(self, level: int, table: FloatArray, *, resolved: bool) -> Situations:
        if self.trace.task.is_memoryless:
            return memoryless_situations(self.trace.task, table)
        return process_situations(self.trace, self.found, level, resolved=resolved)

    def point(self, index: int, reading: str, row: FloatArray) -> SplitPoint:
        """One point, from its four rates."""
        task = self.trace.task
        contexts = self.seen[index][0]
        credited, decoded, ideal, prediction = row.tolist()
        return SplitPoint(
            latency_ms=int(self.levels[index]),
            reading=reading,
            credited=credited,
            decoded=decoded,
            ideal=ideal,
            prediction=prediction,
            link_information=min(contexts.information() * MS_PER_S / task.tick_ms, self.demand.upper),
            link=self.demand.upper - ideal,
            perception=ideal - decoded,
            decision=decoded - credited,
            severity=least_severity(contexts, task.distortion)[0],
        )
