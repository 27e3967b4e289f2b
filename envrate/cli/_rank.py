"""`envrate rank`: several runs in order, how sure the order is, and whether another ranking agrees."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json

if TYPE_CHECKING:
    from envrate.scorers import Ranking, Transfer


@app.command()
def rank(
    traces: Annotated[list[Path], typer.Argument(help="Two or more traces with ticks of the same length.")],
    latency_ms: Annotated[
        int | None, typer.Option("--latency-ms", help="The allowed latency; default: the longest horizon.")
    ] = None,
    reading: Annotated[str, typer.Option("--reading", help="output-only or resolved.")] = "output-only",
    transfer: Annotated[
        Path | None,
        typer.Option("--transfer", help="Another ranking: the JSON of this command, or {name: score}."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Ranks runs by credited throughput, with intervals and the probability that each order is right."""
    with only_json(as_json):
        from envrate import scorers
        from envrate.trace import Trace

        runs = [Trace.load(path) for path in traces]
        found = scorers.rank(runs, latency_ms, names=_names(runs, traces), reading=reading, seed=seed)
        agreement = None if transfer is None else scorers.transfer(found, _scores(transfer), seed=seed)
    if as_json:
        emit_json(found.to_dict() | ({} if agreement is None else {"transfer": agreement.to_dict()}))
        return
    _show(found)
    if agreement is not None:
        _show_transfer(agreement)


def _names(runs: list[Any], paths: list[Path]) -> list[str]:
    """Agents' names where they tell the runs apart, else the files'."""
    agents = [run.header.agent for run in runs]
    return agents if all(agents) and len(set(agents)) == len(agents) else [path.stem for path in paths]


def _scores(path: Path) -> dict[str, float]:
    """Scores by name from a file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"--transfer: {path} is no JSON: {error}") from None
    if isinstance(document, dict) and isinstance(document.get("runs"), list):
        document = {run.get("name"): run.get("credited") for run in document["runs"] if isinstance(run, dict)}
    if not isinstance(document, dict) or not all(_is_number(value) for value in document.values()):
        raise ValueError(f"--transfer: {path} expected the JSON of `envrate rank` or an object of numbers by name")
    return {str(name): float(value) for name, value in document.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _show(found: Ranking) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"Bits/s within {found.latency_ms} ms, {found.reading}")
    for heading in ("rank", "run", "C bits/s", "95 %", "severity", "above the next"):
        table.add_column(heading, justify="left" if heading == "run" else "right")
    for k, run in enumerate(found.runs):
        last = k + 1 == len(found.runs)
        table.add_row(
            str(run.rank),
            run.name,
            f"{run.credited:.3f}",
            f"{run.low:.3f}..{run.high:.3f}",
            f"{run.severity:.3f}",
            "" if last else f"{found.order[k, k + 1]:.1%}",
        )
    console.print(table)
    console.print("Above the next: the share of resamples in which the order is this one, ties counting half.")
    severity = {run.name: run.severity for run in found.runs}
    for better, worse in found.disputed:
        console.print(
            f"{better} gets more through than {worse}, yet its severity is higher: "
            f"{severity[better]:.4f} against {severity[worse]:.4f} per tick"
        )
    for note in found.notes:
        console.print(note)


def _show_transfer(found: Transfer) -> None:
    from rich.console import Console

    console = Console()
    if found.reason:
        console.print(f"Transfer: {found.reason}")
    else:
        for name, value, low, high, p in (
            ("Kendall tau-b", found.kendall, found.kendall_low, found.kendall_high, found.kendall_p),
            ("Spearman rho", found.spearman, found.spearman_low, found.spearman_high, found.spearman_p),
        ):
            console.print(f"{name} {value:.3f}, 95 % {low:.3f}..{high:.3f}, p = {p:.3g} ({len(found.systems)} systems)")
    if found.left_out:
        console.print(f"in one ranking only: {', '.join(found.left_out)}")
