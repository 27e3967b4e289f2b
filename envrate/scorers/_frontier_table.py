"""A frontier as rich tables, one per reading, within 80 columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from envrate.scorers._frontier import Frontier, Point

HEADINGS = ("l ms", "C", "95 %", "gap", "detect", "identify", "severity", "R(D)", "keeps up")


def number(value: float, digits: int = 4) -> str:
    """A number for a table; a dash where there is none."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def frontier_table(frontier: Frontier, reading: str | None = None) -> Group:
    """A table per reading with the latencies at which anything changes, and what a reader has to know below."""
    title = " · ".join(part for part in (frontier.name, frontier.header.modality, frontier.header.agent) if part)
    shown = [name for name in dict.fromkeys(p.reading for p in frontier.points) if reading in (None, name)]
    tables, reasons = [], []
    for name in shown:
        points = frontier.reading(name)
        if all(p.reason and not math.isfinite(p.credited) for p in points) and len({p.reason for p in points}) == 1:
            reasons.append(f"{name}: {points[0].reason}")
            continue
        table = Table(title=f"{title}: {name}, bits/s", title_justify="left", box=box.SIMPLE_HEAD, padding=0)
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading == "keeps up" else "right", no_wrap=True)
        last: Point | None = None
        for point in points:
            if last is None or not _same(last, point) or point is points[-1]:
                table.add_row(*_cells(point))
                last = point
        tables.append(table)
        reasons += sorted({f"{name}: {p.reason}" for p in points if p.reason})
    return Group(*tables, *[Text(line) for line in (*_said(frontier), *reasons, *frontier.notes)])


def _said(frontier: Frontier) -> list[str]:
    """The demand, whether it is met, and what the numbers rest on."""
    demand, keeps = frontier.demand, frontier.keeps_up_at_ms
    due = number(demand.upper) if demand.width < 1e-6 else f"{number(demand.lower)} ... {number(demand.upper)}"
    lines = [
        f"demand {due} bits/s ({demand.kind}), T = {frontier.header.tick_ms} ms; "
        + ("not shown to keep up" if keeps is None else f"keeps up from {keeps} ms on")
    ]
    counts = [
        f"{count} {name}"
        for name, count in (
            ("events", frontier.points[0].events),
            ("censored ticks", frontier.points[0].censored),
            ("redundant responses", frontier.redundant),
            ("premature responses", frontier.premature),
            ("unattributed responses", frontier.no_tick),
        )
        if count
    ]
    return lines + (["; ".join(counts)] if counts else [])


def _same(a: Point, b: Point) -> bool:
    keys = ("credited", "severity", "keeps_up", "reason")
    return all(getattr(a, key) == getattr(b, key) or getattr(a, key) != getattr(a, key) for key in keys)


def _cells(p: Point) -> tuple[str, ...]:
    interval = f"{number(p.credited_low, 3)}..{number(p.credited_high, 3)}" if math.isfinite(p.credited) else "-"
    rates = (p.credited, p.gap, p.detection, p.identification, p.severity, p.rate_equivalent)
    credited, *others = (number(value, 3) for value in rates)
    return (str(p.latency_ms), credited, interval, *others, p.keeps_up)
