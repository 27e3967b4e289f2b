"""`envrate score` and `envrate frontier`: other benchmarks' runs, and our own traces, as bits."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json

if TYPE_CHECKING:
    from envrate.bench_adapters import Found, ScoredRun, ScoreTable

#: A folder named by the time of the run.
STAMP = re.compile(r"\d{8}[_-]\d{6}")

Paths = Annotated[
    list[Path], typer.Argument(help="Runs: files or folders, recognised by what they hold.", metavar="PATH")
]
Kind = Annotated[str | None, typer.Option("--kind", help="Name the benchmark or format instead of recognising it.")]
Data = Annotated[Path | None, typer.Option("--data", help="The benchmark's own data folder.")]
Key = Annotated[Path | None, typer.Option("--mcq-key", help="Key of its multiple-choice items.")]
Seconds = Annotated[str | None, typer.Option("--seconds", help="An item's own clock: 'clip' or a number of seconds.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="An adapter's own option, NAME=VALUE; may be repeated.")
]
Hindsight = Annotated[
    bool, typer.Option("--hindsight", help="Also draw frontiers of runs whose answers were placed in time afterwards.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Png = Annotated[Path | None, typer.Option("--png", help="Draw the frontiers into this .png, .svg or .pdf.")]


@app.command()
def score(
    paths: Paths,
    kind: Kind = None,
    data: Data = None,
    mcq_key: Key = None,
    seconds: Seconds = None,
    option: Options = None,
    against: Annotated[str | None, typer.Option("--against", help="'published': beside published runs.")] = None,
    hindsight: Hindsight = False,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Scores runs of other benchmarks, or our own traces: own numbers, bits per item, bits/s within a latency."""
    if against not in (None, "published"):
        raise ValueError(f"--against: expected 'published', got {against!r}")
    with only_json(as_json):
        runs = _scored(paths, kind, _options(data, mcq_key, seconds, option))
        from envrate.bench_adapters import disagreements

        same = len({(run.found.adapter.name, run.own.main if run.own is not None else "") for run in runs}) == 1
        rated = [run for run in runs if run.rate is not None and same]
        flags = disagreements(
            [run.name for run in rated],
            [run.accuracy for run in rated],
            [run.rate for run in rated if run.rate is not None],
        )
        published = [_published(run) for run in runs] if against else []
        conveyed = [_conveyed(run) for run in runs]
        drawn = [run for run in runs if (hindsight or not run.trace.header.hindsight) and run.is_timed]
        if png is not None:
            _draw(drawn, png)
    if as_json:
        document = {
            "runs": [
                run.to_dict() | ({"information": bounds} if bounds else {})
                for run, bounds in zip(runs, conveyed, strict=True)
            ],
            "frontiers": [{"run": run.name} | run.frontier.to_json() for run in drawn],
            "order_differs": [vars(flag) for flag in flags],
        }
        emit_json(document | ({"published": [table.to_dict() for table in published]} if against else {}))
        return
    from envrate.cli import _score_tables as tables

    tables.show(runs, [run for run in drawn if len(runs) == 1], flags, published)
    if len(runs) == 1:
        for bound in conveyed[0]:
            tables.say(
                f"information within {bound['latency_ms']} ms, {bound['reading']}: at least {bound['rate']:.4f} bits/s "
                f"whatever the coding (from: {bound['from']})"
            )
    if png is not None:
        tables.say(f"frontiers drawn into {png}")


@app.command()
def frontier(
    paths: Paths,
    kind: Kind = None,
    data: Data = None,
    mcq_key: Key = None,
    seconds: Seconds = None,
    option: Options = None,
    hindsight: Hindsight = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Draw our own frontiers of the same task, modality and link behind.")
    ] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the points into this .csv file.")] = None,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Frontiers of one or more runs for use in papers: table, CSV, JSON or a figure."""
    with only_json(as_json):
        runs = _scored(paths, kind, _options(data, mcq_key, seconds, option))
        late = [run.name for run in runs if run.trace.header.hindsight and not hindsight]
        if late:
            raise ValueError(
                f"{', '.join(late)}: answers were placed in time afterwards (hindsight), so this is no real-time "
                "frontier; use --hindsight to have it all the same"
            )
        untimed = [run.name for run in runs if not run.is_timed]
        if untimed:
            raise ValueError(f"{', '.join(untimed)}: no latency was measured, so no frontier; try envrate score")
        if csv_file is not None:
            _write_csv(runs, csv_file)
        if reference and png is None:
            raise ValueError("--reference: expected --png too, the figure to draw behind")
        if png is not None:
            _draw(runs, png, reference)
    if as_json:
        emit_json({"frontiers": [{"run": run.name} | run.frontier.to_json() for run in runs]})
        return
    from envrate.cli import _score_tables as tables

    if csv_file is None and png is None:
        tables.show_frontiers(runs)
    for path in (csv_file, png):
        if path is not None:
            tables.say(f"{path} written")


def _conveyed(run: ScoredRun) -> list[dict[str, Any]]:
    """I(l) of a run on a task of ours at its last latency, the larger of the auxiliary channel's bound and C."""
    header = run.trace.header
    law_known = header.task is not None and (header.task.is_memoryless or hasattr(header.task.latent, "matrix"))
    if run.trace.is_tracking or not law_known:
        return []
    from envrate.scorers import information

    found = []
    for reading in ("output-only", "resolved"):
        point, bound = run.frontier.at(header.horizon_ms, reading), information(run.trace, reading=reading)
        rate, source = bound.headline(point.raw)
        if source:
            found.append({"latency_ms": point.latency_ms, "reading": reading, "rate": rate, "from": source})
    return found


def _options(data: Path | None, mcq_key: Path | None, seconds: str | None, more: list[str] | None) -> dict[str, Any]:
    """The adapter's options that were given."""
    given: dict[str, Any] = {}
    for pair in more or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--option: expected NAME=VALUE, got {pair!r}")
        given[name] = _value(value)
    given |= {name: value for name, value in (("data", data), ("mcq_key", mcq_key)) if value is not None}
    if seconds is not None:
        given["seconds"] = _value(seconds)
    return given


def _value(text: str) -> Any:
    """A number, true or false as such; anything else as text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, (bool, int, float)) else text


def _scored(paths: list[Path], kind: str | None, options: dict[str, Any]) -> list[ScoredRun]:
    """Every run at the paths, scored."""
    from envrate import bench_adapters
    from envrate.bench_adapters import option_names

    found = [run for path in paths for run in bench_adapters.runs(path, kind)]
    takes = [option_names(run.adapter.load) for run in found]
    for name in options:
        if not any(names is None or name in names for names in takes):
            listed = ", ".join(sorted({run.adapter.name for run in found}))
            raise ValueError(f"--{name.replace('_', '-')}: no such option for {listed}")
    mine = [{k: v for k, v in options.items() if names is None or k in names} for names in takes]
    # Loaded before any is scored, so that a mistake shows at once and runs on one clock get one grid.
    traces = [
        _guarded(run, found, partial(bench_adapters.load, run.path, run.recognition.kind, **given))
        for run, given in zip(found, mine, strict=True)
    ]
    scored = []
    for run, name, trace, given in zip(found, _labels(found), bench_adapters.on_one_grid(traces), mine, strict=True):
        scored.append(_guarded(run, found, partial(bench_adapters.score_run, run, name, trace=trace, **given)))
    return scored


def _guarded(run: Found, found: list[Found], work: Callable[[], Any]) -> Any:
    """What `work` returns; whatever an adapter raises becomes one line that names the run."""
    try:
        return work()
    except (ValueError, OSError, ImportError) as error:
        said = str(error)
        raise ValueError(said if len(found) == 1 or str(run.path) in said else f"{run.path}: {said}") from error
    except Exception as error:  # a stranger's adapter may fail in any way; a user gets one line all the same
        raise ValueError(
            f"{run.path}: the adapter {run.adapter.name} failed: {type(error).__name__}: {error}"
        ) from error


def _labels(found: list[Found]) -> list[str]:
    """A short name for each run: as few trailing parts of its path as tell it from the others."""
    parts = [run.path.absolute().parts for run in found]
    labels = []
    for number, mine in enumerate(parts):
        others = [theirs for i, theirs in enumerate(parts) if i != number]
        first = 2 if STAMP.fullmatch(mine[-1]) else 1  # a time stamp alone says nothing
        depth = next((d for d in range(first, len(mine) + 1) if all(o[-d:] != mine[-d:] for o in others)), 0)
        twins = sum(theirs == mine for theirs in parts[:number])
        labels.append("/".join(mine[-depth:]) if depth else f"{mine[-1]} ({twins + 1})")
    return labels


def _published(run: ScoredRun) -> ScoreTable:
    """The published runs on the split of `run`, with `run` among them."""
    from envrate.bench_adapters import Publishes, with_run

    if not isinstance(run.found.adapter, Publishes):
        raise ValueError(f"--against: {run.found.adapter.name} carries no published runs")
    split = run.own.split if run.own is not None else None
    return with_run(run.found.adapter.published(split), run.own, run.name)


def _draw(runs: list[ScoredRun], path: Path, reference: bool = False) -> None:
    if not runs:
        raise ValueError(
            "--png: no run has a frontier: none has a measured latency, or all are marked hindsight (--hindsight)"
        )
    from envrate import plots

    title = None if len({run.frontier.name for run in runs}) == 1 else " and ".join({r.frontier.name for r in runs})
    figure = plots.frontier([run.frontier for run in runs], path, labels=[run.name for run in runs], title=title)
    if reference:
        from envrate.reference import draw_behind, matching

        known = {id(entry): entry for run in runs for entry in matching(run.frontier)}
        if not known:
            raise ValueError("--reference: no shipped frontier has the task, modality and link of these runs")
        draw_behind(figure, list(known.values()))
        plots.save(figure, path)


def _write_csv(runs: list[ScoredRun], path: Path) -> None:
    rows = [{"run": run.name} | row for run in runs for row in run.frontier.rows()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
