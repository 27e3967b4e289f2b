"""Speed of scoring, in memory.

    python benchmarks/score.py            # prints a table and writes benchmarks/results/score.json

Aims: a trace of 1e6 ticks scored in under 2 s; 2000 resamples of a trace of 1e5 ticks in under 2 s. The first call
in a process also imports SciPy and loads compiled kernels; it is timed apart. Sources with memory (hold, watch, exceed)
are timed cold, before any plane has been searched for, and again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from bisect import bisect
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from envrate import tasks
from envrate.scorers import _credited, frontier, tally
from envrate.task import Task
from envrate.trace import Header, Trace

RESULT = Path(__file__).parent / "results" / "score.json"
RUNS = (
    ("alert", 100_000, 1, 2000),
    ("alert", 100_000, 64, 2000),
    ("alert", 1_000_000, 1, 2000),
    ("alert", 1_000_000, 64, 2000),
    ("choice8", 100_000, 64, 2000),
    ("hold", 1_000_000, 64, 2000),
    ("watch", 1_000_000, 64, 2000),
    ("exceed", 1_000_000, 64, 2000),
)


def run(task: Task, ticks: int, episodes: int, seed: int = 0) -> Trace:
    """A reactive agent that is wrong in 5 % of the ticks, behind a link of 300 to 1000 ms."""
    rng = np.random.default_rng(seed)
    required = responses(task, ticks, rng)
    given = np.where(rng.random(ticks) < 0.05, rng.integers(0, task.num_symbols, ticks), required)
    episode = np.arange(ticks) * episodes // ticks
    tick = np.arange(ticks) - np.searchsorted(episode, episode)
    onset = tick * task.tick_ms
    delivered = onset + np.where(rng.random(ticks) < 0.6, 300, 600) + rng.integers(0, 400, ticks)
    acts = np.flatnonzero(given)
    return Trace(
        Header.for_task(task, link={"kind": "link"}),
        {"episode": episode, "tick": tick, "onset_ms": onset, "required": required, "delivered_ms": delivered},
        {"episode": episode[acts], "tick": tick[acts], "time_ms": delivered[acts], "value": given[acts]},
    )


def responses(task: Task, ticks: int, rng: np.random.Generator) -> np.ndarray:
    """(ticks,) required responses by the task's law: a chain, or intervals of an Ornstein-Uhlenbeck process."""
    if not hasattr(task.latent, "matrix"):
        keep = np.exp(-task.tick_ms / task.latent.timescale_ms)
        value = lfilter([np.sqrt(1 - keep**2)], [1, -keep], rng.standard_normal(ticks))
        return np.asarray(task.response.symbols)[np.searchsorted(task.response.edges, value)]
    rows = np.cumsum(task.latent.matrix, axis=1).tolist()
    state, path = 0, []
    for draw in rng.random(ticks).tolist():
        state = min(bisect(rows[state], draw), len(rows) - 1)
        path.append(state)
    return np.asarray(task.table)[path]


def seconds(function, *arguments, **options) -> float:  # type: ignore[no-untyped-def]
    start = time.perf_counter()
    function(*arguments, **options)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    first = seconds(frontier, run(tasks.get("alert"), 1000, 1))
    seconds(frontier, run(tasks.get("hold"), 1000, 1))
    rows = []
    print(f"first call in the process: {first:.2f} s")
    print(f"{'task':10s}{'ticks':>10s}{'episodes':>10s}{'tally s':>10s}{'frontier s':>12s}{'again s':>10s}")
    for name, ticks, episodes, resamples in RUNS:
        trace = run(tasks.get(name), ticks, episodes)
        counted = min(seconds(tally, trace) for _ in range(given.repeats))
        cold = []
        for _ in range(given.repeats):
            _credited.process.cache_clear()
            cold.append(seconds(frontier, trace, resamples=resamples))
        again = min(seconds(frontier, trace, resamples=resamples) for _ in range(given.repeats))
        print(f"{name:10s}{ticks:10d}{episodes:10d}{counted:10.3f}{min(cold):12.3f}{again:10.3f}", flush=True)
        rows.append({"task": name, "ticks": ticks, "episodes": episodes, "resamples": resamples})
        rows[-1] |= {"tally_s": counted, "frontier_s": min(cold), "again_s": again}
    machine = {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count()}
    given.out.write_text(json.dumps({"first_call_s": first, "runs": rows, "machine": machine}, indent=1) + "\n")


if __name__ == "__main__":
    main()
