"""`envrate run`: an agent in a task behind a link, kept as a trace."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json

if TYPE_CHECKING:
    from collections.abc import Callable


@app.command()
def run(
    task: Annotated[str, typer.Argument(help="A preset, an id, or a task's JSON file.")],
    agent: Annotated[str, typer.Option("--agent", help="A reference agent by name.")] = "reactive",
    out: Annotated[Path, typer.Option("--out", help="The trace: a .jsonl or .parquet file.")] = Path("trace.jsonl"),
    modality: Annotated[
        str | None, typer.Option("--modality", help="How the latent is shown; an id says it itself, else symbols.")
    ] = None,
    link: Annotated[str | None, typer.Option("--link", help="A standard link by name, or a link's JSON file.")] = None,
    link_delay_ms: Annotated[int | None, typer.Option("--link-delay-ms", help="Propagation delay.")] = None,
    link_bandwidth_bps: Annotated[float | None, typer.Option("--link-bandwidth-bps", help="Bits per second.")] = None,
    link_jitter_ms: Annotated[int | None, typer.Option("--link-jitter-ms", help="Largest extra delay.")] = None,
    link_loss: Annotated[float | None, typer.Option("--link-loss", help="Probability that a packet is lost.")] = None,
    link_buffer_bits: Annotated[int | None, typer.Option("--link-buffer-bits", help="Bits that may wait.")] = None,
    link_uplink_ms: Annotated[int | None, typer.Option("--link-uplink-ms", help="Action to effect.")] = None,
    micro_turn_ms: Annotated[int | None, typer.Option("--micro-turn-ms", help="The agent's step.")] = None,
    compute_ms: Annotated[int, typer.Option("--compute-ms", help="The agent's own time.")] = 0,
    num_envs: Annotated[int, typer.Option("--num-envs", help="Environments, an episode each.")] = 32,
    num_ticks: Annotated[int, typer.Option("--num-ticks", help="Ticks that each scores.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Runs a reference agent and writes its trace; `envrate score` reads it."""
    if out.suffix not in (".jsonl", ".parquet"):
        raise ValueError(f"--out: expected a name that ends in .jsonl or .parquet, got {out.name!r}")
    if not out.parent.is_dir():
        raise ValueError(f"--out: expected a file in a folder that exists, got {str(out)!r}")
    fields = {
        "delay_ms": link_delay_ms,
        "bandwidth_bps": link_bandwidth_bps,
        "jitter": None if link_jitter_ms is None else {"kind": "uniform", "low_ms": 0, "high_ms": link_jitter_ms},
        "loss": link_loss,
        "buffer_bits": link_buffer_bits,
        "uplink_ms": link_uplink_ms,
    }
    with only_json(as_json):
        import dataclasses

        from envrate import channels
        from envrate.envs import _build
        from envrate.envs._rollout import simulate

        what, shown = _build.task_and_modality(_named_or_file(task), modality or "symbols")
        if modality is not None and shown != modality:
            raise ValueError(f"--modality: {task} is shown in {shown}, got {modality!r}; leave it out")
        if micro_turn_ms is not None:
            what = what.replace(micro_turn_ms=micro_turn_ms)
        base = channels.as_link(_named_or_file(link) if link is not None else None)
        changes: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        core = _build.make_core(
            what, shown, dataclasses.replace(base, **changes), num_ticks=num_ticks, compute_ms=compute_ms
        )
        with progress_bar(f"{what.name} / {core.renderer.kind} / {agent}") as tell:
            trace = simulate(core, agent, num_envs=num_envs, seed=seed, record="trace", jit=True, progress=tell)
        trace.save(out)  # type: ignore[union-attr]
    summary = {
        "trace": str(out),
        "task": what.name,
        "modality": core.renderer.kind,
        "agent": agent,
        "link": trace.header.link,
        "ticks": num_envs * num_ticks,
        "responses": len(trace.responses["tick"]),  # type: ignore[union-attr]
        "seed": seed,
        "notes": list(trace.header.notes),
    }
    if as_json:
        emit_json(summary)
        return
    sys.stdout.write(f"{out}: {summary['ticks']} ticks, {summary['responses']} responses\n")
    for note in trace.header.notes:
        sys.stdout.write(f"{note}\n")


def _named_or_file(value: str) -> Any:
    """A name as it is; the contents of a JSON file."""
    if not value.endswith(".json"):
        return value
    try:
        return json.loads(Path(value).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{value}: not JSON: {error}") from error


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """A bar on stderr where that is a terminal; gives a function that takes the share done."""
    if not sys.stderr.isatty():
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    told = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*told, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(title, total=1.0)
        yield lambda share: progress.update(bar, completed=share)
