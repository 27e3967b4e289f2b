"""Reference frontiers: tasks x modalities x standard links x reference agents, shipped in the wheel.

They are plain results of `envrate.sweep` jobs with fixed seeds, so that anyone can recompute any of them.
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

from envrate import __version__, _ids, sweep, tasks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINKS = ("lan", "wifi", "4g", "satellite", "worked")
SEED = 20_000
#: Tasks that are also run in the rendered modalities, which take most of the time.
RENDERED_TASKS = ("alert", "hold", "track")
#: Tasks left out: the demand of a threshold task is an estimate, no reference to hold others against.
LEFT_OUT = ("exceed",)
FORMAT = "envrate-reference"
#: Credited rates of a recomputed frontier may differ by this, in bits/s: another processor rounds differently.
TOLERANCE = 1e-3
#: What is kept of each point; the rest can be recomputed.
KEPT = ("latency_ms", "reading", "credited", "credited_low", "credited_high", "severity", "events")


def specs() -> list[sweep.Spec]:
    """The jobs behind the shipped file."""
    wanted: list[sweep.Spec] = []
    for task, modality in _ids.pairs():
        symbols = modality == "symbols"
        if task in LEFT_OUT or (not symbols and task not in RENDERED_TASKS):
            continue
        size = {"num_envs": 32, "num_ticks": 250} if symbols else {"num_envs": 16, "num_ticks": 100}
        for agent in reference_agents(task, modality):
            job = {"task": task, "modality": modality, "agent": agent, "link": list(LINKS), "seed": SEED}
            wanted += sweep.expand(job | size | {"resamples": 500})
    return wanted


def reference_agents(task: str, modality: str) -> Sequence[str]:
    """Agents that are run on a pair: the perceiver where there is something to perceive, else those by rule."""
    if modality != "symbols":
        return ("perceiver",)
    return ("ideal", "echo") if tasks.get(task).is_tracking else ("ideal", "reactive", "never", "random")


def build(
    folder: str | os.PathLike[str], out: str | os.PathLike[str], *, jobs: int = -1,
    on_done: Callable[[int, int], None] | None = None,
) -> Path:  # fmt: skip
    """Runs every reference job (resumable in `folder`) and writes the one JSON file `out`."""
    entries = [_entry(result) for result in sweep.run(specs(), folder, jobs=jobs, on_done=on_done)]
    path = Path(out)
    document = {"format": FORMAT, "version": __version__, "frontiers": entries}
    path.write_text(json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n", encoding="utf-8")
    return path


def _entry(result: dict[str, Any]) -> dict[str, Any]:
    """A result cut down to what plots and checks need, numbers to six digits."""
    frontier = result["frontier"]
    points = [
        {key: float(f"{value:.6g}") if isinstance(value := point[key], float) else value for key in KEPT}
        for point in frontier["points"]
    ]
    kept = {key: frontier[key] for key in ("task", "unit", "tick_ms", "micro_turn_ms", "demand", "keeps_up_at_ms")}
    return {"spec": result["spec"], **kept, "points": points}


@cache
def load() -> list[dict[str, Any]]:
    """The shipped reference frontiers: a list of `{"spec", "task", "demand", "points", ...}`."""
    text = (resources.files("envrate") / "data" / "reference.json").read_text(encoding="utf-8")
    return list(json.loads(text)["frontiers"])


def find(**wanted: Any) -> list[dict[str, Any]]:
    """Shipped frontiers whose spec has the given values, such as task="alert", link="wifi"."""
    return [entry for entry in load() if all(entry["spec"].get(key) == value for key, value in wanted.items())]


def draw_behind(figure: Figure, **wanted: Any) -> int:
    """Draws the shipped frontiers that `find` gives behind those of a frontier's figure; returns how many."""
    axes, entries = figure.axes[0], find(**wanted)
    for entry in entries:
        known = [p for p in entry["points"] if p["reading"] == "output-only" and p["credited"] is not None]
        spec = entry["spec"]
        axes.plot(
            [p["latency_ms"] for p in known],
            [p["credited"] for p in known],
            drawstyle="steps-post",
            color="0.7",
            linewidth=0.9,
            zorder=0.5,
        )
        if known:
            label = f"{spec['agent']}, {spec['link']}"
            axes.annotate(label, (known[-1]["latency_ms"], known[-1]["credited"]), fontsize=6, color="0.5", ha="right")
    return len(entries)


def check(*, sample: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Recomputes a random sample of the shipped frontiers and says how far each one is off.

    Returns:
        One `{"spec", "largest_difference", "agrees"}` per recomputed frontier; differences in bits/s.
    """
    entries = load()
    chosen = np.random.default_rng(seed).choice(len(entries), size=min(sample, len(entries)), replace=False)
    return [compare_with_fresh(entries[index]) for index in sorted(chosen.tolist())]


def compare_with_fresh(shipped: dict[str, Any]) -> dict[str, Any]:
    """Recomputes one shipped frontier; `{"spec", "largest_difference", "agrees"}`, the difference in bits/s."""
    fresh = _entry(sweep.run_job(shipped["spec"]))
    difference = max((_apart(a, b) for a, b in zip(shipped["points"], fresh["points"], strict=True)), default=0.0)
    return {"spec": shipped["spec"], "largest_difference": difference, "agrees": bool(difference <= TOLERANCE)}


def _apart(shipped: dict[str, Any], fresh: dict[str, Any]) -> float:
    """Difference of two points' credited rates; infinite where only one of them has a number."""
    a, b = shipped["credited"], fresh["credited"]
    if a is None or b is None:
        return 0.0 if a is None and b is None else math.inf
    return abs(float(a) - float(b))
