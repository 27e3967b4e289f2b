"""Reference frontiers: tasks x modalities x standard links x reference agents, shipped in the wheel.

They are plain results of `envrate.sweep` jobs with fixed seeds, so that anyone can recompute any of them. Every preset
is there in every modality over every standard link; `reference_agents` says with which agents, and why not with others.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from envrate import __version__, _checks, _ids, sweep, tasks
from envrate._spec import to_dict
from envrate.channels import as_link

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from envrate.scorers import Frontier

LINKS = ("lan", "wifi", "4g", "satellite", "worked")
#: Of every job.
COMMON = {"seed": 20_000, "resamples": 500}
#: Enough ticks for intervals of less than a tenth of a bit/s in most places, and 20 or more episodes to resample.
#: Pictures and sounds take longer than symbols to draw and to read.
SIZE = {"num_envs": 32, "num_ticks": 250}
RENDERED_SIZE = {"num_envs": 20, "num_ticks": 125}
FORMAT = "envrate-reference"
#: Credited rates of a recomputed frontier may differ by this, in bits/s: another processor rounds differently.
TOLERANCE = 1e-3
#: Ends of drawn frontiers that are closer than this share of the figure's height share a label.
LABEL_SHARE = 0.04
#: What is kept of a frontier and, as columns, of its points, to so many significant digits; the rest can be recomputed.
OF_TASK = ("task", "unit", "tick_ms", "micro_turn_ms", "demand")
COLUMNS = ("credited", "credited_low", "credited_high", "severity", "events")
DIGITS = 5


def specs() -> list[sweep.Spec]:
    """The jobs behind the shipped file: every task, modality, standard link and reference agent that go together."""
    wanted: list[sweep.Spec] = []
    for task, modality in _ids.pairs():
        size = SIZE if modality == "symbols" else RENDERED_SIZE
        for agent in reference_agents(task, modality):
            job = {"task": task, "modality": modality, "agent": agent, "link": list(LINKS)}
            wanted += sweep.expand(job | size | COMMON)
    return wanted


def reference_agents(task: str, modality: str) -> Sequence[str]:
    """Agents that are run on a pair: those by rule where symbols show tokens, the perceiver elsewhere.

    A guess has to name its tick, and so does the ideal observer, which decides at the horizon. Agents that look at
    nothing run in symbols alone: what a picture shows changes nothing for them.
    """
    preset = tasks.get(task)
    if preset.is_tracking:
        return ("ideal", "echo", "never") if modality == "symbols" else ("perceiver",)
    if modality != "symbols":
        return ("perceiver",)
    blind = ("never", "always", "random")
    if not hasattr(preset.latent, "matrix"):
        return ("perceiver", *blind)
    naming = ("ideal", "guess") if preset.reply == "named" else ()
    return (*naming, "reactive", "echo", *blind)


def build(
    folder: str | os.PathLike[str], out: str | os.PathLike[str], *, jobs: int = -1,
    on_done: Callable[[int, int], None] | None = None,
) -> Path:  # fmt: skip
    """Runs every reference job (resumable in `folder`) and writes the one JSON file `out`."""
    path = Path(out)
    if not path.parent.is_dir():
        raise ValueError(f"out: expected a file in a folder that exists, got {str(path)!r}")
    results = sweep.run(specs(), folder, jobs=jobs, on_done=on_done)
    path.write_text(_dumps(results), encoding="utf-8")
    return path


def _dumps(results: Sequence[dict[str, Any]]) -> str:
    """The one file: what holds for a task once, then a line per frontier."""
    about: dict[str, dict[str, Any]] = {}
    lines = []
    common = sweep.DEFAULTS | COMMON
    for result in results:
        entry = _entry(result)
        name = entry["spec"]["task"]
        of_task = {key: entry.pop(key) for key in (*OF_TASK, "latency_ms")}
        if about.setdefault(name, of_task) != of_task:
            raise ValueError(f"reference: two results of {name} differ in what is the task's own; build anew")
        entry["spec"] = {key: value for key, value in entry["spec"].items() if common.get(key) != value}
        lines.append(json.dumps(entry, separators=(",", ":"), allow_nan=False))
    head = json.dumps({"format": FORMAT, "version": __version__, "spec": common, "tasks": about}, allow_nan=False)
    return f'{head[:-1]}, "frontiers": [\n' + ",\n".join(lines) + "\n]}\n"


def _entry(result: dict[str, Any]) -> dict[str, Any]:
    """A result cut down to what plots and checks need: points as columns, one number where a column is constant."""
    frontier = result["frontier"]
    readings = dict.fromkeys(point["reading"] for point in frontier["points"])
    columns = {
        reading: {
            key: _column([_short(point[key]) for point in frontier["points"] if point["reading"] == reading])
            for key in COLUMNS
        }
        for reading in readings
    }
    latencies = list(dict.fromkeys(point["latency_ms"] for point in frontier["points"]))
    kept = {key: frontier[key] for key in (*OF_TASK, "keeps_up_at_ms")}
    return {"spec": result["spec"], **kept, "latency_ms": latencies, "columns": columns}


def _short(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _column(values: list[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else values


@cache
def load() -> list[dict[str, Any]]:
    """The shipped reference frontiers: a list of `{"spec", "task", "demand", "points", ...}`."""
    text = (resources.files("envrate") / "data" / "reference.json").read_text(encoding="utf-8")
    document = json.loads(text)
    entries = []
    for entry in document["frontiers"]:
        spec = document["spec"] | entry["spec"]
        about = dict(document["tasks"][spec["task"]])
        moments = about.pop("latency_ms")
        points = [point for name, columns in entry["columns"].items() for point in _points(name, moments, columns)]
        entries.append({"spec": spec, **about, "keeps_up_at_ms": entry["keeps_up_at_ms"], "points": points})
    return entries


def _points(reading: str, latencies_ms: list[int], columns: dict[str, Any]) -> list[dict[str, Any]]:
    """The points of a reading; a column that is one number holds everywhere."""
    full = [column if isinstance(column, list) else [column] * len(latencies_ms) for column in columns.values()]
    return [
        {"latency_ms": latency, "reading": reading, **dict(zip(columns, row, strict=True))}
        for latency, *row in zip(latencies_ms, *full, strict=True)
    ]


def find(**wanted: Any) -> list[dict[str, Any]]:
    """Shipped frontiers whose spec has the given values, such as task="alert", link="wifi"."""
    return [entry for entry in load() if all(entry["spec"].get(key) == value for key, value in wanted.items())]


def matching(frontier: Frontier) -> list[dict[str, Any]]:
    """Shipped frontiers of the same task, modality and link as a user's; none where these are not a preset's."""
    header = frontier.header
    wanted = {
        "task": next((name for name in tasks.names() if tasks.get(name) == header.task), None),
        "modality": header.modality,
        "link": next((name for name in LINKS if to_dict(as_link(name)) == header.link), None),
    }
    return [] if None in wanted.values() else find(**wanted)


def draw_behind(figure: Figure, entries: Sequence[dict[str, Any]]) -> None:
    """Draws shipped frontiers, from `find` or `matching`, behind a frontier's figure; ends alike share a label."""
    axes = figure.axes[0]
    height = axes.get_ylim()[1] - axes.get_ylim()[0]
    same_link = len({entry["spec"]["link"] for entry in entries}) == 1
    ends: list[tuple[float, float, list[str]]] = []  # latency, bits/s, names
    for entry in sorted(entries, key=_last_rate):
        known = _known(entry)
        if not known:
            continue
        latencies, rates = [p["latency_ms"] for p in known], [p["credited"] for p in known]
        axes.plot(latencies, rates, drawstyle="steps-post", color="0.7", linewidth=0.9, zorder=0.5)
        spec = entry["spec"]
        name = spec["agent"] if same_link else f"{spec['agent']} on {spec['link']}"
        if ends and rates[-1] - ends[-1][1] < LABEL_SHARE * height:
            ends[-1][2].append(name)
        else:
            ends.append((latencies[-1], rates[-1], [name]))
    for latency, rate, names in ends:
        above = rate < LABEL_SHARE * height
        axes.annotate(
            "reference: " + ", ".join(names),
            (latency, rate),
            xytext=(-2, 2 if above else -2),
            textcoords="offset points",
            fontsize=6.5,
            color="0.45",
            ha="right",
            va="bottom" if above else "top",
        )


def _known(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The points of a frontier by its outputs alone that have a rate."""
    return [p for p in entry["points"] if p["reading"] == "output-only" and p["credited"] is not None]


def _last_rate(entry: dict[str, Any]) -> float:
    known = _known(entry)
    return float(known[-1]["credited"]) if known else 0.0


def check(
    *, sample: int = 4, seed: int = 0, on_done: Callable[[int, int], None] = lambda done, total: None
) -> list[dict[str, Any]]:
    """Recomputes a random sample of the shipped frontiers and says how far each one is off.

    Args:
        sample: how many.
        seed: of the choice.
        on_done: called with (done, total) as they are recomputed.

    Returns:
        One `{"spec", "largest_difference", "agrees"}` per recomputed frontier; differences in bits/s.
    """
    entries = load()
    size = _checks.integer("sample", sample, 1, len(entries))
    chosen = np.random.default_rng(_checks.integer("seed", seed, 0)).choice(len(entries), size=size, replace=False)
    report: list[dict[str, Any]] = []
    for index in sorted(chosen.tolist()):
        on_done(len(report), size)
        report.append(compare_with_fresh(entries[index]))
    return report


def compare_with_fresh(shipped: dict[str, Any]) -> dict[str, Any]:
    """Recomputes one shipped frontier; `{"spec", "largest_difference", "agrees"}`, the difference in bits/s."""
    fresh = sweep.run_job(shipped["spec"])["frontier"]["points"]
    difference = max((_apart(a, b) for a, b in zip(shipped["points"], fresh, strict=True)), default=0.0)
    return {"spec": shipped["spec"], "largest_difference": difference, "agrees": bool(difference <= TOLERANCE)}


def _apart(shipped: dict[str, Any], fresh: dict[str, Any]) -> float:
    """Difference of two points' credited rates; infinite where only one of them has a number."""
    a, b = shipped["credited"], fresh["credited"]
    if a is None or b is None:
        return 0.0 if a is None and b is None else math.inf
    return abs(float(a) - float(b))
