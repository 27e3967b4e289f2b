"""One latent, five senses: the same demand, five frontiers in one figure.

The worked example's latent is shown as tokens, sound, video, a screen and an arm, over the same link; a reference
perceiver answers in each. The demand does not know the modality; how early the bits come does.

    python examples/same_demand.py --out same_demand.svg
"""

from __future__ import annotations

import argparse
import sys

import envrate as er
from envrate.envs import rollout
from envrate.renderers import Audio, Proprio, Screen, Symbols, Video
from envrate.scorers import Frontier, frontier

RENDERERS = {
    "symbols": Symbols(),
    "audio": Audio(codec="auto"),
    "video": Video(codec="auto"),
    "screen": Screen(codec="auto"),
    "proprio": Proprio(codec="auto"),
}


def run(task: er.Task, link: dict[str, object], *, num_envs: int, num_ticks: int, seed: int) -> dict[str, Frontier]:
    """A frontier per modality."""
    found = {}
    for name, renderer in RENDERERS.items():
        trace = rollout(
            task, "perceiver", modality=renderer, link=link, num_envs=num_envs, num_ticks=num_ticks, seed=seed
        )
        found[name] = frontier(trace, resamples=500)
        points = ", ".join(f"{p.latency_ms} ms {p.credited:.3f}" for p in found[name].reading()[:10])
        sys.stdout.write(f"{name:8s} {points}\n")
        sys.stdout.flush()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="alert")
    parser.add_argument("--out", default="same_demand.svg")
    parser.add_argument("--num-envs", type=int, default=32)
    parser.add_argument("--num-ticks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    jitter = {"kind": "two-point", "low_ms": 0, "high_ms": 150, "p_high": 0.2}
    link = {"delay_ms": 100, "bandwidth_bps": 1e6, "jitter": jitter}
    task = er.tasks.get(options.task)
    found = run(task, link, num_envs=options.num_envs, num_ticks=options.num_ticks, seed=options.seed)
    fronts = list(found.values())
    er.plots.frontier(fronts, options.out, reading="output-only", labels=list(found), title="One latent, five senses")


if __name__ == "__main__":
    main()
