"""Steps per second of gymnax environments with random actions, scanned and vmapped, as its users run them.

Runs in an environment of its own (see rollout.py) and prints one JSON line: {"name": {"batch": [compile s, steps/s]}}.
"""

import json
import sys
import time

import gymnax
import jax
import jax.numpy as jnp


def measure(name: str, batch: int, steps: int, repeats: int) -> tuple[float, float]:
    env, params = gymnax.make(name)
    space = env.action_space(params)

    @jax.jit
    def run(key):
        key, reset_key = jax.random.split(key)
        obs, state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, batch), params)

        def body(carry, _):
            key, state, total = carry
            key, action_key, step_key = jax.random.split(key, 3)
            actions = jax.vmap(space.sample)(jax.random.split(action_key, batch))
            obs, state, reward, *_ = jax.vmap(env.step, (0, 0, 0, None))(
                jax.random.split(step_key, batch), state, actions, params
            )
            seen = obs.reshape(batch, -1).sum(1).astype(jnp.float32)
            return (key, state, total + reward.astype(jnp.float32) + seen), None

        total = jnp.zeros(batch, jnp.float32)
        return jax.lax.scan(body, (key, state, total), None, length=steps)[0][2]

    start = time.perf_counter()
    compiled = run.lower(jax.random.key(0)).compile()
    compile_s = time.perf_counter() - start
    best = min(_timed(compiled, i) for i in range(repeats))
    return compile_s, batch * steps / best


def _timed(run, seed: int) -> float:
    start = time.perf_counter()
    run(jax.random.key(seed)).block_until_ready()
    return time.perf_counter() - start


if __name__ == "__main__":
    sizes = json.loads(sys.argv[1])
    result = {
        name: {str(batch): measure(name, batch, steps, int(sys.argv[2])) for batch, steps in sizes}
        for name in ("Catch-bsuite", "MemoryChain-bsuite")
    }
    print(json.dumps(result))
