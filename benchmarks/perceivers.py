"""Frontiers of the perceivers with learned weights, their own compute time included.

    python benchmarks/perceivers.py [--write]

They are not among the shipped reference frontiers, which anyone can recompute to the digit: here the latency is this
machine's. The screen is looked at once per tick, since reading one picture takes longer than a micro-turn of `alert`.
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import numpy as np

import envrate as er
from envrate.renderers import Audio, Screen

LINKS = ("lan", "wifi", "worked")
ALERT = er.tasks.get("alert")
#: Agent -> (task, renderer, ticks).
RUNS = {
    "voice-activity": (ALERT, Audio(sound="voice"), 400),
    "screen-reader": (ALERT.replace(micro_turn_ms=500), Screen(), 80),
}


def rows() -> list[str]:
    """A row of the table per perceiver and link."""
    out = []
    for name, (task, renderer, ticks) in RUNS.items():
        for link in LINKS:
            trace = er.live.run(
                task, name, modality=renderer, link=link, clock="virtual", num_ticks=ticks, seed=20_000
            )
            frontier = er.frontier(trace, resamples=1000)
            spent = np.median(trace.responses["compute_ms"])
            points = [frontier.at(latency) for latency in (500, 1000, 2000)]
            rates = " | ".join(f"{p.credited:.2f} ({p.credited_low:.2f} to {p.credited_high:.2f})" for p in points)
            out.append(f"| {trace.header.agent} | {renderer.kind} | {link} | {spent:.0f} ms | {rates} |")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/perceivers.md")
    write = parser.parse_args().write
    text = "\n".join(
        [
            "# Perceivers with learned weights on `alert`",
            "",
            f"Demand 2 bits/s. Virtual clock, measured compute time; Python {platform.python_version()}, two virtual "
            "cores that other work may share. Bits/s with their 95 % interval, output-only.",
            "",
            "| perceiver | modality | link | compute, median | within 500 ms | 1000 ms | 2000 ms |",
            "|---|---|---|---|---|---|---|",
            *rows(),
            "",
        ]
    )
    print(text)
    if write:
        (Path(__file__).parent / "results" / "perceivers.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
