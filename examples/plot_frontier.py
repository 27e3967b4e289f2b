"""Draws frontiers for a paper: one figure and one table of points.

    python examples/plot_frontier.py                          the worked example on two links
    python examples/plot_frontier.py a.jsonl b.jsonl -o f     saved traces, or runs of other benchmarks

Writes NAME.pdf, NAME.png and NAME.csv; NAME is `frontier` unless -o says otherwise.
"""

import argparse
import csv
import sys

import envrate as er


def worked_example() -> dict[str, er.Trace]:
    """An alert task over a link that is late with 40 % of its packets, and over one that loses a fifth of them."""
    late = er.channels.Link(delay_ms=300, jitter=er.channels.TwoPoint(0, 300, p_high=0.4))
    lossy = er.channels.Link(delay_ms=300, loss=0.2)
    return {
        name: er.rollout("alert", "reactive", link=link, num_envs=16, num_ticks=500)
        for name, link in (("late by 300 ms, 40 %", late), ("lost, 20 %", lossy))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*")
    parser.add_argument("-o", "--output", default="frontier")
    given = parser.parse_args()

    traces = {path: er.bench_adapters.load(path) for path in given.runs} or worked_example()
    names = list(traces)
    frontiers = [er.frontier(trace) for trace in er.bench_adapters.on_one_grid(list(traces.values()))]

    for ending in ("pdf", "png"):
        er.plots.frontier(frontiers, f"{given.output}.{ending}", labels=names)
    with open(f"{given.output}.csv", "w", newline="", encoding="utf-8") as file:
        rows = [{"run": name} | row for name, one in zip(names, frontiers, strict=True) for row in one.rows()]
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for name, one in zip(names, frontiers, strict=True):
        last = one.at(one.latencies_ms[-1])
        print(f"{name}: {last.credited:.4f} bits/s at {last.latency_ms} ms of {one.demand.upper:.4f} demanded")
    print(f"written: {given.output}.pdf, {given.output}.png, {given.output}.csv")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"plot_frontier: {error}")
