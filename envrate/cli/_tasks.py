"""`envrate tasks`: the preset tasks."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json


@app.command()
def tasks(as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False) -> None:
    """Lists the preset tasks with their demand."""
    with only_json(as_json):
        from envrate import tasks as presets

        rows: list[dict[str, Any]] = []
        for name in presets.names():
            task = presets.get(name)
            bracket = task.demand()
            rows.append(
                {
                    "name": name,
                    "about": (presets.PRESETS[name].__doc__ or "").strip(),
                    "tick_ms": task.tick_ms,
                    "micro_turn_ms": task.micro_turn_ms,
                    "horizon_ms": task.horizon_ms,
                    "demand": {"lower": bracket.lower, "upper": bracket.upper, "kind": bracket.kind},
                }
            )
    if as_json:
        emit_json({"tasks": rows})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Preset tasks")
    for heading in ("task", "tick ms", "micro-turn ms", "horizon ms", "demand bits/s", "about"):
        table.add_column(heading)
    for row in rows:
        low, high = row["demand"]["lower"], row["demand"]["upper"]
        rate = f"{low:.4f}" if high - low < 1e-6 else f"{low:.4f} ... {high:.4f}"
        table.add_row(
            row["name"], str(row["tick_ms"]), str(row["micro_turn_ms"]), str(row["horizon_ms"]), rate, row["about"]
        )
    Console().print(table)
