"""Frames per second of each renderer in the scan, MJX's compile time, a video environment in a plain loop, its memory.

    python benchmarks/render.py [--json results.json]

Prints one table; everything is measured in one run, best of five repeats. A shared machine stretches the clock, so
speeds and compile times are given in processor time too, in which a second core counts like the first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import envrate  # noqa: F401 - registers the ids
from envrate import _counters
from envrate.envs import _build
from envrate.renderers import Audio, Proprio, Screen, Video, _arm

STEPS = 50


#: Peak memory of a process with many video environments, GiB.
MEMORY = """
import resource, numpy as np, gymnasium as gym, envrate
envs = gym.make_vec("EnvRate/Alert-Video-v0", num_envs=4096, vectorization_mode="vector_entry_point", num_ticks=10)
envs.reset(seed=0)
for _ in range(4):
    envs.step(np.zeros(4096, np.int64))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2)
"""


class Speed(NamedTuple):
    """What a compiled scan costs, by the clock and in processor time."""

    compile_s: float
    compile_cpu_s: float
    per_s: float
    per_cpu_s: float


def measure(scan: Callable[[Any], Any], start: Any, steps: int) -> Speed:
    """Compiles `scan`, which makes `steps` steps of its batch, and runs it."""
    begin, cpu = time.perf_counter(), time.process_time()
    run = jax.jit(scan).lower(start).compile()
    compiled = time.perf_counter() - begin, time.process_time() - cpu
    times = []
    for _ in range(5):
        begin, cpu = time.perf_counter(), time.process_time()
        jax.block_until_ready(run(start))
        times.append((time.perf_counter() - begin, time.process_time() - cpu))
    least, least_cpu = np.min(times, axis=0)
    return Speed(*compiled, steps / float(least), steps / float(least_cpu))


def scanned(renderer: Any, batch: int, task: str = "alert", num_ticks: int = 200) -> Speed:
    """Micro-turns of a batch of environments in a scan that uses every number drawn."""
    core = _build.make_core(task, renderer, None, num_ticks=num_ticks, compute_ms=0)
    key = tuple(jnp.asarray(word) for word in _counters.keys(0, batch))
    state, _ = jax.jit(lambda k: core.init(core.params, k, jnp.int32(0)))(key)

    def body(carry: Any, _: None) -> Any:
        state, total = carry
        state, seen, _, _ = core.step(core.params, state, jnp.zeros(batch, jnp.int32))
        used = sum(leaf.astype(jnp.float32).sum() for leaf in jax.tree.leaves(seen.signal))
        return (state, total + used), None

    start = (state, jnp.float32(0))
    return measure(lambda c: jax.lax.scan(body, c, None, length=STEPS)[0], start, batch * STEPS)


def mjx_alone(batch: int) -> Speed:
    """Control steps of the arm alone in a scan."""
    _arm._mjx_parts(20000)  # importing MuJoCo is not compiling

    def one(q: Any, v: Any) -> Any:
        return _arm.step_mjx(20000, q, v, jnp.zeros(3), jnp.zeros(3))[:2]

    def body(carry: Any, _: None) -> Any:
        return jax.vmap(one)(*carry), None

    start = (jnp.full((batch, 3), 0.1), jnp.zeros((batch, 3)))
    return measure(lambda c: jax.lax.scan(body, c, None, length=200)[0], start, batch * 200)


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


def peak_memory() -> float:
    """GiB of a process of its own with 4,096 video environments."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def row(what: str, unit: str, goal: str, found: float | Speed, per_step: float = 1.0) -> None:
        """One line; a scan's figures are its micro-turns times `per_step`."""
        note = ""
        if isinstance(found, Speed):
            value, per_cpu_s = found.per_s * per_step, found.per_cpu_s * per_step
            compiled = {"compile_s": found.compile_s, "compile_cpu_s": found.compile_cpu_s}
            rows.append({"what": what, "value": value, "unit": unit, "goal": goal, "per_cpu_s": per_cpu_s, **compiled})
            note = f"{per_cpu_s:,.0f} per CPU s; compile {found.compile_s:.1f} s, CPU {found.compile_cpu_s:.1f} s"
        else:
            value = found
            rows.append({"what": what, "value": value, "unit": unit, "goal": goal})
        number = f"{value:14,.0f}" if value >= 10 else f"{value:14.2f}"
        sys.stdout.write(f"{what:42s} {number} {unit:16s} goal {goal:8s} {note}\n")
        sys.stdout.flush()

    row("symbols, batch 128", "steps/s", "-", scanned("symbols", 128))
    row("audio 16 kHz, batch 128", "x real time", "2,000", scanned(Audio(), 128), 0.1)
    row("video 64x64, batch 128", "frames/s", "20,000", scanned(Video(), 128))
    row("screen 64x64, batch 128", "frames/s", "20,000", scanned(Screen(64, 64), 128))
    row("screen 96x128, batch 128", "frames/s", "-", scanned(Screen(), 128))
    row("arm in MJX alone (compile: goal 5 s), 256", "control steps/s", "800,000", mjx_alone(256))
    row("proprio, batch 256", "control steps/s", "800,000", scanned(Proprio(), 256), 5.0)
    row("video, one environment, Gymnasium loop", "steps/s", "1,000", plain_loop())
    row("video, 4,096 environments, peak memory", "GiB", "2", peak_memory())
    if options.json:
        about = {"jax": jax.__version__, "python": sys.version.split()[0], "load": os.getloadavg()[0]}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**about, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    main()
