"""Bits per item of a run, and where accuracy and bits put two runs in a different order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from envrate.bench_adapters._adapter import Cell, ScoreTable
from envrate.trace import ACT, Trace

MS_PER_S = 1000.0


@dataclass(frozen=True)
class ItemRate:
    """Credited throughput per item, with its 95 % interval; NaN with a `reason` where it cannot be had."""

    bits: float
    low: float
    high: float
    demand: float  # nominal bits per item
    items: int
    reason: str | None = None


def untimed(trace: Trace) -> Trace:
    """The run without its clock: answers of unmeasured latency count as given by the horizon.

    Only runs on the `service` clock change: their answers are single replies, and the time is the service's.
    """
    if trace.header.clock != "service" or not len(trace.responses["time_ms"]):
        return trace
    responses = dict(trace.responses)
    late = responses["kind"] == ACT
    horizon = trace.header.horizon_ms
    for column in ("time_ms", "compute_ms"):
        responses[column] = np.where(late, np.minimum(responses[column], horizon), responses[column])
    return Trace(trace.header, trace.ticks, responses, trace.report)


def bits_per_item(trace: Trace, *, seed: int = 0, resamples: int = 2000) -> ItemRate:
    """Credited throughput per item with its 95 % interval, whatever the latency of the answers.

    It is the frontier at the largest allowed latency, times the exposure per item, so it does not depend on the clock
    that a rate per second divides by.

    Args:
        trace: a run of a benchmark; `header.items` counts its items.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Raises:
        ValueError: the run has no items or no exposure.
    """
    header = trace.header
    if header.items < 1 or header.duration_ms < 1:
        raise ValueError(f"trace: expected a run with items and an exposure, got {header.items} items")
    # Imported here: recognising a path and reading its accuracy need no scorer.
    from envrate.scorers import frontier

    last = frontier(untimed(trace), [header.horizon_ms], seed=seed, resamples=resamples).at(header.horizon_ms)
    scale = header.duration_ms / MS_PER_S / header.items
    return ItemRate(
        bits=last.credited * scale,
        low=last.credited_low * scale,
        high=last.credited_high * scale,
        demand=header.demand.upper * scale,
        items=header.items,
        reason=last.reason or None,
    )


@dataclass(frozen=True)
class Disagreement:
    """Two runs that accuracy and bits put in different orders."""

    better_by_accuracy: str
    better_by_bits: str
    accuracy: tuple[float, float]  # of the two, in that order
    bits: tuple[float, float]
    shown: bool  # whether the intervals of the bits lie apart

    def __str__(self) -> str:
        """One sentence."""
        a, b = self.better_by_accuracy, self.better_by_bits
        how = "intervals apart" if self.shown else "within the intervals"
        return (
            f"{a} is more accurate than {b} ({self.accuracy[0]:.4f} against {self.accuracy[1]:.4f}), {b} carries more "
            f"bits per item ({self.bits[1]:.4f} against {self.bits[0]:.4f}; {how})"
        )


def disagreements(
    names: Sequence[str], accuracies: Sequence[float | None], rates: Sequence[ItemRate]
) -> list[Disagreement]:
    """The pairs of runs whose order by accuracy and by bits per item differ; ties and withheld rates are no order."""
    found = []
    for i in range(len(names)):
        for j in range(len(names)):
            a, b = accuracies[i], accuracies[j]
            if a is None or b is None or not (math.isfinite(rates[i].bits) and math.isfinite(rates[j].bits)):
                continue
            if a > b and rates[i].bits < rates[j].bits:
                apart = rates[i].high < rates[j].low
                pair = (rates[i].bits, rates[j].bits)
                found.append(Disagreement(names[i], names[j], (a, b), pair, apart))
    return found


def with_run(published: ScoreTable, own: ScoreTable | None, name: str) -> ScoreTable:
    """Published runs with one's own among them, by falling main number.

    Args:
        published: the table of the benchmark's adapter.
        own: the run's own numbers; its values go under the columns of the same name.
        name: what to call the run.

    Raises:
        ValueError: the run has no number by which the published ones are ranked.
    """
    mine = None if own is None else own.values.get(published.main)
    if own is None or mine is None or published.main not in published.columns:
        raise ValueError(f"--against: the run has no {published.main!r}, by which the published runs are ranked")
    cells = [name if number == 0 else own.values.get(column) for number, column in enumerate(published.columns)]
    place = published.columns.index(published.main)

    def key(row: tuple[Cell, ...]) -> float:
        value = row[place]
        return -float(value) if isinstance(value, (int, float)) else math.inf

    rows = sorted([*published.rows, tuple(cells)], key=key)
    notes = [*published.notes]
    if published.split is None:
        notes.append("the run's items are those of no published split: the table holds all of them")
    return replace(published, rows=tuple(rows), values=own.values, notes=tuple(notes))
