"""Speed of scoring, in memory.

    python benchmarks/score.py            # prints a table and writes benchmarks/results/score.json

Aims: a trace of 1e6 ticks scored in under 2 s; 2000 resamples of a trace of 1e5 ticks in under 2 s. The first call
in a process also imports SciPy and loads compiled kernels; it is timed apart.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np

from envrate import tasks
from envrate.scorers import frontier, tally
from envrate.task import Task
from envrate.trace import Header, Trace

RESULT = Path(__file__).parent / "results" / "score.json"
RUNS = (
    ("alert", 100_000, 1, 2000),
    ("alert", 100_000, 64, 2000),
    ("alert", 1_000_000, 1, 2000),
    ("alert", 1_000_000, 64, 2000),
    ("choice8", 100_000, 64, 2000),
)


def run(task: Task, ticks: int, episodes: int, seed: int = 0) -> Trace:
    """A reactive agent that is wrong in 5 % of the ticks, behind a link of 300 to 1000 ms."""
    rng = np.random.default_rng(seed)
    required = np.asarray(task.table)[rng.choice(len(task.table), ticks, p=task.latent.stationary)]
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
    rows = []
    print(f"first call in the process: {first:.2f} s")
    print(f"{'task':10s}{'ticks':>10s}{'episodes':>10s}{'tally s':>10s}{'frontier s':>12s}")
    for name, ticks, episodes, resamples in RUNS:
        trace = run(tasks.get(name), ticks, episodes)
        counted = min(seconds(tally, trace) for _ in range(given.repeats))
        scored = min(seconds(frontier, trace, resamples=resamples) for _ in range(given.repeats))
        print(f"{name:10s}{ticks:10d}{episodes:10d}{counted:10.3f}{scored:12.3f}", flush=True)
        rows.append({"task": name, "ticks": ticks, "episodes": episodes, "resamples": resamples})
        rows[-1] |= {"tally_s": counted, "frontier_s": scored}
    machine = {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count()}
    given.out.write_text(json.dumps({"first_call_s": first, "runs": rows, "machine": machine}, indent=1) + "\n")


if __name__ == "__main__":
    main()
