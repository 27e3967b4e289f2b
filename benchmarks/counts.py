"""Memory of a rollout that only counts: 4096 environments at 10^4 and at 10^5 ticks, each in a process of its own.

    python benchmarks/counts.py [--out benchmarks/results/counts.md]

A tick is one micro-turn here (500 ms), so that the longer run takes minutes and not an hour. The figure is the ratio of
the two peaks of resident memory, imports and compilation included.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

NUM_ENVS, TICKS = 4096, (10**4, 10**5)
RUN = """
import json, resource, sys, time
import envrate
task = envrate.tasks.get("alert").replace(micro_turn_ms=500)
start = time.perf_counter()
counts = envrate.rollout(task, "reactive", link="worked", num_envs={envs}, num_ticks={ticks}, record="counts")
seconds = time.perf_counter() - start
unit = 1024 if sys.platform == "darwin" else 1
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / unit
print(json.dumps({{"ticks": int(counts.num_ticks), "mib": peak, "seconds": seconds}}))
"""


def measure(ticks: int) -> dict[str, float]:
    code = RUN.format(envs=NUM_ENVS, ticks=ticks)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    if found["ticks"] != NUM_ENVS * ticks:
        raise SystemExit(f"counted {found['ticks']} ticks, expected {NUM_ENVS * ticks}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    short, long = (measure(ticks) for ticks in TICKS)
    lines = [
        '# Memory of a rollout with `record="counts"`',
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} CPU cores ({platform.machine()}). "
        "Made by `benchmarks/counts.py`.",
        "",
        f"| {NUM_ENVS} environments | ticks counted | peak memory | seconds |",
        "|---|---:|---:|---:|",
    ]
    for ticks, found in zip(TICKS, (short, long), strict=True):
        lines.append(f"| {ticks} ticks | {found['ticks']} | {found['mib']:.0f} MiB | {found['seconds']:.0f} |")
    lines += ["", f"Ratio of the peaks: {long['mib'] / short['mib']:.3f} for ten times the ticks.", ""]
    text = "\n".join(lines)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
