"""`envrate compare`: two runs side by side, with an interval for the difference."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envrate.cli._app import app, emit_json, only_json

if TYPE_CHECKING:
    from envrate.scorers import Comparison
    from envrate.trace import Trace


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="A trace, .jsonl or .parquet.")],
    b: Annotated[Path, typer.Argument(help="Another one with ticks of the same length.")],
    latency_ms: Annotated[
        list[int] | None, typer.Option("--latency-ms", help="An allowed latency; may be repeated. Default: all.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """The difference in credited throughput between two runs, paired where both met the same ticks."""
    with only_json(as_json):
        from envrate import scorers
        from envrate.trace import Trace

        runs = [_named(Trace.load(path), path) for path in (a, b)]
        found = scorers.compare(runs[0], runs[1], latency_ms, seed=seed)
        document = found.to_dict()
        if as_json:
            frontiers = [scorers.frontier(run, latency_ms, seed=seed).to_json() for run in runs]
            document["frontiers"] = [{"run": name} | f for name, f in zip((found.a, found.b), frontiers, strict=True)]
    if as_json:
        emit_json(document)
        return
    _show(found)


def _named(run: Trace, path: Path) -> Trace:
    """A run without an agent's name goes by its file's."""
    return run if run.header.agent else run.with_header(agent=path.stem)


def _show(found: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    def number(value: float) -> str:
        return f"{value:.3f}" if math.isfinite(value) else "-"

    console = Console()
    table = Table(title=f"{found.a} (a) less {found.b} (b), bits/s at T = {found.tick_ms} ms")
    for heading in ("l ms", "reading", "a", "b", "a - b", "95 %", "more", "severity"):
        table.add_column(heading, justify="left" if heading in ("reading", "more") else "right", no_wrap=True)
    for p in found.points:
        table.add_row(
            str(p.latency_ms),
            p.reading,
            number(p.a),
            number(p.b),
            number(p.difference),
            f"{number(p.low)}..{number(p.high)}",
            p.verdict,
            number(p.severity_difference),
        )
    console.print(table)
    console.print("Paired by common random numbers." if found.paired else "Not paired.")
    console.print("Severity is that of a less that of b, per tick.")
    for note in (*found.notes, *sorted({p.reason for p in found.points if p.reason})):
        console.print(note)
