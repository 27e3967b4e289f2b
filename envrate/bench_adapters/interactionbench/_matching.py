"""InteractionBench's matching of emissions to events, and the timing numbers that rest on it.

It looks at where the events are, so a random speaker gets credit for the ones he hits; it serves the benchmark's own
scores, delays and the table of restraint, never the bits.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean


@dataclass(frozen=True)
class Matching:
    """Which emission took which event; emissions and events are numbered in order of time."""

    taken: tuple[int | None, ...]  # emission of each event, or None
    delays: tuple[float | None, ...]  # seconds after the event, early ones 0
    premature: int
    redundant: int
    spurious: int

    @property
    def violations(self) -> int:
        """Emissions that took no event."""
        return self.premature + self.redundant + self.spurious

    @property
    def matched(self) -> int:
        """Events that were taken."""
        return sum(n is not None for n in self.taken)


def match(
    events: Sequence[float],
    emissions: Sequence[float],
    *,
    pre_tol: float = 1.0,
    gate: Callable[[int, int], bool] | None = None,
) -> Matching:
    """One pass over the emissions in order of time.

    Args:
        events: rising times, seconds.
        emissions: rising times, seconds.
        pre_tol: an emission up to so many seconds early still belongs to the event. With infinity an emission goes to
            the event before it, or if that is taken to the next one, and none is premature.
        gate: whether emission i may take event n, as gate(i, n); an emission turned away is spurious.
    """
    taken: list[int | None] = [None] * len(events)
    delays: list[float | None] = [None] * len(events)
    premature = redundant = spurious = 0
    for i, t in enumerate(emissions):
        n = bisect_right(events, t + pre_tol) - 1
        if math.isinf(pre_tol):
            n = max(bisect_right(events, t) - 1, 0)
            if events and taken[n] is not None and n + 1 < len(events):
                n += 1
        if n < 0 or not events:
            premature += 1
        elif taken[n] is not None:
            redundant += 1
        elif gate is not None and not gate(i, n):
            spurious += 1
        else:
            taken[n], delays[n] = i, max(0.0, t - events[n])
    return Matching(tuple(taken), tuple(delays), premature, redundant, spurious)


@dataclass(frozen=True)
class Timing:
    """Timing accuracy (TA), silence compliance (SC, None without emissions) and their harmonic mean, 0 to 100."""

    ta: float
    sc: float | None
    score: float


def timing(matching: Matching, emissions: int, *, delta: float = 5.0) -> Timing:
    """The benchmark's timing numbers of one item, rounded as it rounds them.

    Args:
        matching: of the item, with at least one event.
        emissions: how many emissions say something.
        delta: credit falls linearly to 0 at this delay, seconds.
    """
    credits = [0.0 if d is None else max(0.0, 1.0 - d / delta) for d in matching.delays]
    ta = round(100.0 * mean(credits), 1)
    if not emissions:
        return Timing(ta, None, ta)
    sc = round(100.0 * max(0.0, 1.0 - matching.violations / max(len(credits), 1)), 1)
    return Timing(ta, sc, round(2 * ta * sc / (ta + sc), 1) if ta + sc > 0 else 0.0)
