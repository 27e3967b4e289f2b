"""Frames per second of each renderer in the scanned rollout, MJX compile time, and a video environment in a plain loop.

    python benchmarks/render.py [--json results.json]

Prints one table; everything is measured in one run, best of three repeats.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import envrate  # noqa: F401 - registers the ids
from envrate import _counters
from envrate.envs import _build
from envrate.renderers import Audio, Proprio, Screen, Video, _arm

STEPS = 50


def scanned(renderer: Any, batch: int, task: str = "alert", num_ticks: int = 200) -> tuple[float, float]:
    """(seconds to compile, micro-turns per second over the batch) of a scan that uses every number drawn."""
    core = _build.make_core(task, renderer, None, num_ticks=num_ticks, compute_ms=0)
    key = tuple(jnp.asarray(word) for word in _counters.keys(0, batch))
    state, _ = jax.jit(lambda k: core.init(core.params, k, jnp.int32(0)))(key)

    def body(carry: Any, _: None) -> Any:
        state, total = carry
        state, seen, _, _ = core.step(core.params, state, jnp.zeros(batch, jnp.int32))
        used = sum(leaf.astype(jnp.float32).sum() for leaf in jax.tree.leaves(seen.signal))
        return (state, total + used), None

    begin = time.perf_counter()
    run = jax.jit(lambda c: jax.lax.scan(body, c, None, length=STEPS)[0]).lower((state, jnp.float32(0))).compile()
    compiled = time.perf_counter() - begin
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        jax.block_until_ready(run((state, jnp.float32(0))))
        best = min(best, time.perf_counter() - begin)
    return compiled, batch * STEPS / best


def mjx_alone(batch: int) -> tuple[float, float]:
    """(seconds to compile, control steps per second) of the arm alone, scanned."""

    def one(q: Any, v: Any) -> Any:
        return _arm.step_mjx(20000, q, v, jnp.zeros(3), jnp.zeros(3))[:2]

    def body(carry: Any, _: None) -> Any:
        return jax.vmap(one)(*carry), None

    start = (jnp.full((batch, 3), 0.1), jnp.zeros((batch, 3)))
    begin = time.perf_counter()
    run = jax.jit(lambda c: jax.lax.scan(body, c, None, length=200)[0]).lower(start).compile()
    compiled = time.perf_counter() - begin
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        jax.block_until_ready(run(start))
        best = min(best, time.perf_counter() - begin)
    return compiled, batch * 200 / best


def plain_loop(steps: int = 500) -> float:
    """Steps per second of one video environment in a Gymnasium loop."""
    env = gym.make("EnvRate/Alert-Video-v0", num_ticks=10_000)
    env.reset(seed=0)
    for _ in range(5):
        env.step(0)
    begin = time.perf_counter()
    for _ in range(steps):
        env.step(0)
    return steps / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def row(what: str, value: float, unit: str, goal: str, compiled: float | None = None) -> None:
        rows.append({"what": what, "value": value, "unit": unit, "goal": goal, "compile_s": compiled})
        time_text = "" if compiled is None else f"  (compile {compiled:.1f} s)"
        sys.stdout.write(f"{what:42s} {value:14,.0f} {unit:18s} goal {goal}{time_text}\n")
        sys.stdout.flush()

    compiled, speed = scanned("symbols", 128)
    row("symbols, batch 128", speed, "steps/s", "-", compiled)
    compiled, speed = scanned(Audio(), 128)
    row("audio 16 kHz, batch 128", speed * 0.1, "x real time", "2,000", compiled)
    compiled, speed = scanned(Video(), 128)
    row("video 64x64, batch 128", speed, "frames/s", "20,000", compiled)
    compiled, speed = scanned(Screen(64, 64), 128)
    row("screen 64x64, batch 128", speed, "frames/s", "20,000", compiled)
    compiled, speed = scanned(Screen(), 128)
    row("screen 96x128, batch 128", speed, "frames/s", "-", compiled)
    compiled, speed = mjx_alone(256)
    row("arm in MJX alone, batch 256", speed, "control steps/s", "800,000, 5 s", compiled)
    compiled, speed = scanned(Proprio(), 256)
    row("proprio, batch 256", speed * 5, "control steps/s", "800,000", compiled)
    row("video, one environment, Gymnasium loop", plain_loop(), "steps/s", "1,000")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"jax": jax.__version__, "python": sys.version.split()[0], "rows": rows}, file, indent=2)


if __name__ == "__main__":
    main()
