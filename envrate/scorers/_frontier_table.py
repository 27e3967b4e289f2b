"""A frontier as a rich table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from envrate.scorers._frontier import Frontier, Point

HEADINGS = (
    "l ms", "reading", "C bits/s", "95 %", "gap", "95 %", "detect", "identify", "severity", "R(D)", "keeps up", "events"
)


def number(value: float, digits: int = 4) -> str:
    """A number for a table; a dash where there is none."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def frontier_table(frontier: Frontier, reading: str | None = None) -> Table:
    """Rows of the points at which anything changes, by latency; the caption has the demand and the notes."""
    demand = frontier.demand
    due = number(demand.upper) if demand.width < 1e-6 else f"{number(demand.lower)} ... {number(demand.upper)}"
    keeps = frontier.keeps_up_at_ms
    said = f"demand {due} bits/s ({demand.kind}), T = {frontier.header.tick_ms} ms; " + (
        "not shown to keep up" if keeps is None else f"keeps up from {keeps} ms on"
    )
    leftovers = [
        f"{count} {name} responses"
        for name, count in (
            ("redundant", frontier.redundant), ("premature", frontier.premature), ("unattributed", frontier.no_tick)
        )
        if count
    ]
    title = " · ".join(part for part in (frontier.name, frontier.header.modality, frontier.header.agent) if part)
    table = Table(title=title, caption="; ".join([said, *leftovers, *frontier.notes]))
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("reading", "keeps up") else "right", no_wrap=True)
    chosen = [p for p in frontier.points if reading in (None, p.reading)]
    seen: dict[str, Point] = {}
    for point in sorted(chosen, key=lambda p: p.latency_ms):
        last = seen.get(point.reading)
        if last is not None and _same(last, point) and point.latency_ms != max(frontier.latencies_ms):
            continue
        seen[point.reading] = point
        table.add_row(*_cells(point))
    return table


def _same(a: Point, b: Point) -> bool:
    keys = ("credited", "severity", "keeps_up", "reason")
    return all(getattr(a, key) == getattr(b, key) or getattr(a, key) != getattr(a, key) for key in keys)


def _cells(p: Point) -> tuple[str, ...]:
    if not math.isfinite(p.credited):
        return (str(p.latency_ms), p.reading, "-", p.reason, *["-"] * 6, p.keeps_up, str(p.events))
    return (
        str(p.latency_ms),
        p.reading,
        number(p.credited),
        f"{number(p.credited_low, 3)} ... {number(p.credited_high, 3)}",
        number(p.gap),
        f"{number(p.gap_low, 3)} ... {number(p.gap_high, 3)}",
        number(p.detection),
        number(p.identification),
        number(p.severity),
        number(p.rate_equivalent),
        p.keeps_up,
        str(p.events),
    )
