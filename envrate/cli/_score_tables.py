"""What `envrate score` and `envrate frontier` print for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from envrate.bench_adapters._scored import SERVICE_NOTE, UNTIMED

if TYPE_CHECKING:
    from envrate.bench_adapters import Disagreement, ScoredRun, ScoreTable


def _console() -> Console:
    """The terminal; a pipe or file has no width of its own and gets a wide one."""
    console = Console()
    return console if console.is_terminal else Console(width=140)


def say(sentence: str) -> None:
    """One sentence on stdout."""
    Console(highlight=False).print(escape(sentence), soft_wrap=True)


def show(
    runs: Sequence[ScoredRun],
    frontiers: Sequence[ScoredRun],
    flags: Sequence[Disagreement],
    published: Sequence[ScoreTable],
) -> None:
    """Recognition, the table of runs, order flags, and for a single run its own scores and frontier."""
    for run in runs:
        say(f"{run.name}: {run.found.recognition.description}")
    if any(run.rate is not None for run in runs):
        _console().print(_rates_table(runs))
    _console().print(_latency_table(runs))
    if any(run.service() is not None for run in runs):
        say(f"* {SERVICE_NOTE}")
    if len(runs) == 1:
        run = runs[0]
        if run.own is not None:
            _console().print(own_table(run.own))
        if run.information is not None:
            _say_information(run)
        show_frontiers(frontiers)
        if not frontiers and run.trace.header.hindsight:
            say("hindsight: answers were placed in time afterwards, so there is no real-time frontier (--hindsight)")
    for flag in flags:
        say(f"order differs: {flag}")
    if len(runs) > 1 and not flags and sum(run.accuracy is not None for run in runs) > 1:
        say("accuracy and bits put these runs in the same order")
    for table in published:
        _console().print(own_table(table))
    _say_notes(runs, shown=[note for run in frontiers for note in run.frontier.notes])


def _say_notes(runs: Sequence[ScoredRun], shown: Sequence[str]) -> None:
    """Each note once, with the runs that it is about; those that a table has shown are left out."""
    about: dict[str, list[str]] = {}
    for run in runs:
        for note in run.notes:
            if note not in shown:
                about.setdefault(note, []).append(run.name)
    for note, names in about.items():
        say(f"note: {note}" if len(names) == len(runs) else f"{', '.join(names)}: {note}")


def show_frontiers(runs: Sequence[ScoredRun]) -> None:
    """The frontier of each run."""
    for run in runs:
        readings = None if run.frontier.has_resolved else "output-only"
        _console().print(run.frontier.table(readings))


def _rates_table(runs: Sequence[ScoredRun]) -> Table:
    """Each run's own main number beside its bits per item, whatever the latency."""
    own = next((run.own for run in runs if run.own is not None), None)
    main = own.main if own is not None else "accuracy"
    table = _table("Bits per item", ("run", "items", main, "bits/item", "95 %", "demand"))
    for run in runs:
        rate = run.rate
        if rate is None:
            continue
        row = [_named(run), str(rate.items), _number(run.accuracy)]
        if math.isfinite(rate.bits):
            row += [_number(rate.bits), _interval(rate.low, rate.high)]
        else:
            row += ["-", escape(rate.reason or "")]
        table.add_row(*row, _number(rate.demand))
    return table


def _latency_table(runs: Sequence[ScoredRun]) -> Table:
    """Each run's bits per second of its own clock, within the largest allowed latency."""
    served = any(run.service() is not None for run in runs)
    headings = ("run", "l ms", "C", "95 %", "demand", "keeps up")
    more = ("s/answer*", "served b/s*") if served else ()
    table = _table("Bits per second within the largest allowed latency", headings + more)
    for run in runs:
        due = _number(run.trace.header.demand.upper)
        if not run.is_timed:
            row = ["-", "-", UNTIMED, due, "not shown"]
        else:
            last = run.frontier.at(run.trace.header.horizon_ms)
            shown = math.isfinite(last.credited)
            interval = _interval(last.credited_low, last.credited_high) if shown else escape(last.reason)
            row = [str(last.latency_ms), _number(last.credited), interval, due, last.keeps_up]
        if served:
            service = (run.service() or {}) if run.is_timed else {}
            row += [_number(service.get("median_seconds")), _number(service.get("bits_per_service_second"))]
        table.add_row(_named(run), *row)
    return table


def _table(title: str, headings: Sequence[str]) -> Table:
    """A table of runs: names and texts fold where room is short, numbers stay whole."""
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=0)
    for heading in headings:
        least = {"run": 8, "95 %": len("0.000..0.000")}.get(heading, len(heading))
        left = heading in ("run", "keeps up")
        table.add_column(heading, justify="left" if left else "right", overflow="fold", min_width=least)
    return table


def _named(run: ScoredRun) -> str:
    return escape(run.name) + (" (hindsight)" if run.trace.header.hindsight else "")


def own_table(own: ScoreTable) -> Table:
    """A benchmark's own numbers."""
    values = [f"{name} {_cell(value)}" for name, value in own.values.items() if value is not None]
    table = Table(title=escape(own.title), caption=escape("; ".join([*values, *own.notes])))
    for column in own.columns:
        table.add_column(escape(column), justify="left" if column == own.columns[0] else "right")
    for row in own.rows:
        table.add_row(*[escape(_cell(cell)) for cell in row])
    return table


def _say_information(run: ScoredRun) -> None:
    bound = run.information
    if math.isfinite(bound.bits):
        say(
            f"option probabilities carry at least {bound.bits:.4f} bits per item "
            f"({_interval(bound.low, bound.high)}, {bound.items} items, held-out calibration)"
        )
    else:
        say(f"no information bound from option probabilities: {bound.reason}")


def _cell(cell: str | float | None) -> str:
    if cell is None:
        return "-"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _number(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.4f}"


def _interval(low: float, high: float) -> str:
    return f"{low:.3f}..{high:.3f}" if math.isfinite(low) else "-"
