"""`envrate sweep` and `envrate reference`: many runs, resumable, and the frontiers shipped in the wheel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 is one per core.")]

reference_app = typer.Typer(help="Reference frontiers: every task, modality, standard link and reference agent.")
app.add_typer(reference_app, name="reference")


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, where that is a terminal; yields what to call with (done, total)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="YAML or JSON: task, modality, link, agent ...; lists are combined.")],
    out: Annotated[Path, typer.Option(help="Folder of results; finished jobs in it are kept.")] = Path("sweep"),
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Runs every combination in a spec; an interrupted sweep goes on where it stopped."""
    with only_json(as_json), progress("sweep") as on_done:
        import yaml

        from envrate import sweep as sweeps

        try:
            wanted = yaml.safe_load(spec.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(f"{spec}: not readable as YAML: {error}") from None
        results = sweeps.run(sweeps.expand(wanted), out, engine=engine, jobs=jobs, on_done=on_done)
    if as_json:
        emit_json({"frontiers": [result["frontier"] | {"spec": result["spec"]} for result in results]})
    else:
        _print_results(results)


def _print_results(results: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title="bits/s", box=box.SIMPLE, padding=(0, 1, 0, 0))
    for name in ("task", "modality", "link", "agent"):
        table.add_column(name, overflow="fold")
    for name in ("demand", "C at the horizon", "95 %", "keeps up at"):
        table.add_column(name, justify="right")
    for result in results:
        spec, frontier = result["spec"], result["frontier"]
        last = [point for point in frontier["points"] if point["reading"] == "output-only"][-1]
        known = last["credited"] is not None
        table.add_row(
            frontier["task"],
            spec["modality"],
            spec["link"] if isinstance(spec["link"], str) else "custom",
            spec["agent"],
            f"{frontier['demand']['upper']:.3f}",
            f"{last['credited']:.3f}" if known else last["reason"],
            f"{last['credited_low']:.3f}-{last['credited_high']:.3f}" if known else "",
            "" if frontier["keeps_up_at_ms"] is None else f"{frontier['keeps_up_at_ms']} ms",
        )
    Console().print(table)


@reference_app.command("build")
def reference_build(
    folder: Annotated[Path, typer.Option(help="Folder of single results; finished jobs in it are kept.")],
    out: Annotated[Path, typer.Option(help="The one file.")] = Path("reference.json"),
    jobs: Jobs = -1,
) -> None:
    """Recomputes every reference frontier into one JSON file."""
    from envrate import reference

    with progress("reference") as on_done:
        path = reference.build(folder, out, jobs=jobs, on_done=on_done)
    print(path)


@reference_app.command("check")
def reference_check(
    sample: Annotated[int, typer.Option(help="How many frontiers to recompute.")] = 4,
    seed: Annotated[int, typer.Option(help="Of the choice.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Recomputes a random sample of the shipped frontiers; status 1 where one is off."""
    with only_json(as_json), progress("check") as on_done:
        from envrate import reference

        report = reference.check(sample=sample, seed=seed, on_done=on_done)
    if as_json:
        emit_json({"checked": report})
    else:
        for row in report:
            spec = row["spec"]
            verdict = "agrees" if row["agrees"] else "DIFFERS"
            what = ", ".join(str(spec[key]) for key in ("task", "modality", "link", "agent"))
            print(f"{verdict}: {what}: largest difference {row['largest_difference']:.2g} bits/s")
    if not all(row["agrees"] for row in report):
        raise typer.Exit(1)


@reference_app.command("list")
def reference_list(as_json: AsJson = False) -> None:
    """Lists the shipped reference frontiers."""
    with only_json(as_json):
        from envrate import reference

        entries = reference.load()
    if as_json:
        emit_json({"frontiers": entries})
        return
    for entry in entries:
        spec, last = entry["spec"], entry["points"][-1]
        what = " ".join(str(spec[key]) for key in ("task", "modality", "link", "agent"))
        rate = "none" if last["credited"] is None else f"{last['credited']:.4f}"
        print(f"{what}: {rate} of {entry['demand']['upper']:.4f} bits/s")
