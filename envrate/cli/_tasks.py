"""`envrate tasks`: the preset tasks, and the page of one of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json


@app.command()
def tasks(
    name: Annotated[str | None, typer.Argument(help="A preset, to see its page; default: list all.")] = None,
    modality: Annotated[str, typer.Option("--modality", help="How that page's latent is shown.")] = "symbols",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Lists the preset tasks with their demand, or says all about one."""
    if name is not None:
        _show_page(name, modality, as_json)
        return
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

    table = Table(title="Preset tasks", caption="T: tick, m: micro-turn, H: horizon, in ms; demand in bits/s")
    table.add_column("task", no_wrap=True)
    table.add_column("T/m/H", no_wrap=True)
    table.add_column("demand", justify="right", no_wrap=True)
    table.add_column("about")
    for row in rows:
        low, high, kind = (row["demand"][key] for key in ("lower", "upper", "kind"))
        rate = f"{high:.4f}" if high - low < 1e-6 else f"{low:.4f}\n...{high:.4f}"
        times = f"{row['tick_ms']}/{row['micro_turn_ms']}/{row['horizon_ms']}"
        table.add_row(row["name"], times, rate if kind == "exact" else f"{rate}\n({kind})", row["about"])
    Console().print(table)


def _show_page(name: str, modality: str, as_json: bool) -> None:
    """The page of a task in one modality; as JSON, the task itself and its legend."""
    with only_json(as_json):
        from dataclasses import asdict

        from envrate import tasks as presets
        from envrate.envs import _build, _docs

        task = presets.get(name)
        core = _build.make_core(task, modality, None, num_ticks=1000, compute_ms=0)
        document = {"task": task.to_dict(), "modality": modality, "legend": asdict(core.renderer.legend(task))}
        text = _docs.page(core)
    if as_json:
        emit_json(document)
    else:
        print(text)
