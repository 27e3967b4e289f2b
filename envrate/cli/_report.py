"""`envrate report`: one self-contained page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envrate.cli._app import app, emit_json, only_json


@app.command()
def report(
    trace: Annotated[Path, typer.Argument(help="A trace, .jsonl or .parquet.")],
    out: Annotated[Path, typer.Option(help="The page, ending in .html.")] = Path("report.html"),
    latency_ms: Annotated[int | None, typer.Option(help="Allowed latency of the headline numbers.")] = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Writes a page with the frontier, the split, the restraint table, the latencies and the demand's certificate."""
    with only_json(as_json):
        from envrate.report import write_report
        from envrate.trace import Trace

        path = write_report(Trace.load(trace), out, latency_ms=latency_ms, seed=seed)
    if as_json:
        emit_json({"report": str(path)})
    else:
        print(path)
