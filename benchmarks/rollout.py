"""Speed of rollouts and of the vector environment, beside gymnax and SyncVectorEnv CartPole in the same run.

    python benchmarks/rollout.py [--gymnax PYTHON] [--out benchmarks/results/rollout.md]

gymnax 1.0.1 caps jax and gymnasium below what EnvRate runs on, and does not declare `six`. So it lives in an
environment of its own, made once: a fresh virtual environment of the same Python with the same jax, gymnasium, six,
chex, flax, matplotlib and seaborn, and then `pip install --no-deps gymnax==1.0.1`. Name its interpreter with --gymnax;
without it only EnvRate's own figures are measured.

EnvRate's rollout is of EnvRate/Alert-Symbols-v0 with the whole link on (bandwidth, buffer, delay, jitter, loss) and
actions drawn at random inside the scan; observation and reward are both used, as in the gymnax runs. Figures of the
two are taken in turns, best of several, so that other work on the machine touches both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from pathlib import Path

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import envrate
from envrate import _counters, agents, channels, tasks
from envrate.envs import Core, _policy
from envrate.renderers import Symbols

SIZES = [(1, 100_000), (128, 10_000), (4096, 500)]
LINK = channels.Link(
    bandwidth_bps=2000.0, delay_ms=100, jitter=channels.TwoPoint(0, 300, 0.4), loss=0.05, buffer_bits=1000
)


def rollout_run(core: Core, batch: int, steps: int):
    agent = agents.get("random", core.task)

    def body(carry, _):
        state, seen, memory, total = carry
        action, memory = agent(_policy.observation(seen), memory)
        inner, _ = _policy.traced_action(core, action, batch)
        state, seen, reward, _ = core.step(core.params, state, inner)
        used = seen.signal.sum(0) + seen.age_ms.sum(0) + seen.fresh
        return (state, seen, memory, total + reward + used.astype(jnp.float32)), None

    @jax.jit
    def run(key):
        state, seen = core.init(core.params, key, jnp.int32(0))
        carry = (state, seen, agent.init(batch, 0), jnp.zeros(batch, jnp.float32))
        return jax.lax.scan(body, carry, None, length=steps)[0][3]

    return run


def measure_rollouts(repeats: int, gymnax: str | None) -> tuple[dict, dict]:
    core = Core(tasks.get("alert"), Symbols(), LINK, num_ticks=10**5)
    compiled, ours, theirs = {}, {}, {}
    for batch, steps in SIZES:
        key = tuple(jnp.asarray(word) for word in _counters.keys(0, batch))
        start = time.perf_counter()
        lowered = rollout_run(core, batch, steps).lower(key)
        compiled[batch] = (lowered.compile(), key, time.perf_counter() - start)
    for _ in range(repeats):
        for batch, steps in SIZES:
            run, key, compile_s = compiled[batch]
            for _ in range(3):
                start = time.perf_counter()
                run(key).block_until_ready()
                rate = batch * steps / (time.perf_counter() - start)
                ours[batch] = (compile_s, max(rate, ours.get(batch, (0, 0.0))[1]))
        if gymnax is not None:
            command = [gymnax, str(Path(__file__).with_name("gymnax_rollout.py")), json.dumps(SIZES), "3"]
            environment = os.environ | {"JAX_PLATFORMS": "cpu"}
            out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            for name, rows in json.loads(out.strip().splitlines()[-1]).items():
                for batch, (compile_s, rate) in rows.items():
                    best = theirs.setdefault(name, {}).get(int(batch), (0.0, 0.0))[1]
                    theirs[name][int(batch)] = (compile_s, max(rate, best))
    return ours, theirs


def vector_rate(env: gym.vector.VectorEnv, steps: int) -> float:
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(steps)]
    start = time.perf_counter()
    for action in actions:
        env.step(action)
    return env.num_envs * steps / (time.perf_counter() - start)


def measure_vectors(repeats: int) -> dict:
    made = {
        f"EnvRate VectorEnv.step, batch {n}": (
            gym.make_vec(
                "EnvRate/Alert-Symbols-v0",
                num_envs=n,
                vectorization_mode="vector_entry_point",
                link=LINK,
                num_ticks=10**4,
            ),
            steps,
        )
        for n, steps in ((1, 5000), (128, 5000), (4096, 500))
    }
    cartpole = gym.make_vec("CartPole-v1", num_envs=128, vectorization_mode="sync")
    made["SyncVectorEnv CartPole-v1, batch 128"] = (cartpole, 100)
    rates: dict[str, float] = {}
    for _ in range(repeats + 1):
        for name, (env, steps) in made.items():
            rates[name] = max(rates.get(name, 0.0), vector_rate(env, steps))
    return rates


def report(ours: dict, theirs: dict, vectors: dict, rollout_s: tuple[float, float]) -> str:
    lines = [
        "# Rollout speed",
        "",
        f"Python {platform.python_version()}, jax {jax.__version__}, gymnasium {gym.__version__}, "
        f"numpy {np.__version__}, {os.cpu_count()} CPU cores ({platform.machine()}), envrate {envrate.__version__}. "
        "Made by `benchmarks/rollout.py`.",
        "",
        "Steps per second (compile seconds, tracing included), random actions, one compiled scan. EnvRate: "
        "EnvRate/Alert-Symbols-v0 with bandwidth, buffer, delay, jitter and loss.",
        "",
        "| rollout | " + " | ".join(f"batch {batch}" for batch, _ in SIZES) + " |",
        "|---|" + "---:|" * len(SIZES),
    ]
    rows = {"EnvRate": ours} | {f"gymnax {name}": rates for name, rates in theirs.items()}
    for name, rates in rows.items():
        cells = (f"{rates[batch][1] / 1e6:.2f} M ({rates[batch][0]:.1f})" for batch, _ in SIZES)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    for name, rates in theirs.items():
        cells = (f"{ours[batch][1] / rates[batch][1]:.1f}x" for batch, _ in SIZES)
        lines.append(f"| EnvRate / {name} | " + " | ".join(cells) + " |")
    lines += ["", "| stepping from Python, to NumPy | steps per second |", "|---|---:|"]
    lines += [f"| {name} | {rate / 1e3:.0f} k |" for name, rate in vectors.items()]
    ratio = vectors["EnvRate VectorEnv.step, batch 128"] / vectors["SyncVectorEnv CartPole-v1, batch 128"]
    lines += [f"| ratio at batch 128 | {ratio:.1f}x |", ""]
    lines += [
        f"`envrate.rollout` of 16 environments x 1,250 ticks, reactive agent, to a Trace: {rollout_s[0]:.2f} s the "
        f"first time (imports and compilation included), {rollout_s[1]:.3f} s after that.",
        "",
    ]
    return "\n".join(lines)


def measure_rollout_call() -> tuple[float, float]:
    times = []
    for seed in (0, 1):
        start = time.perf_counter()
        envrate.rollout("EnvRate/Alert-Symbols-v0", "reactive", link="worked", num_envs=16, num_ticks=1250, seed=seed)
        times.append(time.perf_counter() - start)
    return times[0], times[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gymnax", help="interpreter of the environment that has gymnax")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    call = measure_rollout_call()
    text = report(*measure_rollouts(arguments.repeats, arguments.gymnax), measure_vectors(arguments.repeats), call)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text)
