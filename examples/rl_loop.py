"""Reinforcement learning through `gym.make_vec`, with nothing but NumPy: from noise to the ideal observer's frontier.

    python examples/rl_loop.py [--updates 60] [--out rl_loop.png]

The task is Watch: rare events of two kinds, to be answered once, at their onset. A policy maps the newest token to a
response; it is a table of logits, trained by REINFORCE with a mean baseline. Which tick a response is for is
arithmetic: the observation tells how old each packet is. The frontier before and after training is drawn between the
agent that never speaks and the ideal observer, who decides at each allowed latency with everything the link delivered.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import envrate as er

ID = "EnvRate/Watch-Symbols-v0"
LINK = er.channels.Link(delay_ms=150, jitter=er.channels.Uniform(0, 400), loss=0.05)
TASK = er.tasks.get("watch")
TOKENS = TASK.latent.num_states + 1  # the last one: nothing arrived
NUM_ENVS, NUM_TICKS, RATE = 128, 60, 3.0
LOOK_BACK = TASK.horizon_ms // TASK.micro_turn_ms + 1  # a miss is paid a horizon after its onset


def named_tick(age_ms: Any, step: Any) -> Any:
    """How many ticks before the current one the packet's tick is."""
    now = step * TASK.micro_turn_ms
    return now // TASK.tick_ms - (now - age_ms) // TASK.tick_ms


def episode(envs: gym.vector.VectorEnv, logits: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """The policy gradient of one episode in every environment, and the mean return."""
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    observation, _ = envs.reset()
    tokens, choices, rewards = [], [], []
    over = False
    while not over:
        token = observation["signal"][:, -1] % TOKENS  # -1, nothing, becomes the last
        choice = (rng.random(len(token))[:, None] > shares[token].cumsum(axis=1)[:, :-1]).sum(axis=1)
        back = named_tick(np.maximum(observation["age_ms"][:, -1], 0), len(tokens))
        action = np.stack([choice, np.minimum(back, TASK.ticks_nameable - 1)], axis=1)
        observation, reward, _, truncated, _ = envs.step(action)
        tokens.append(token), choices.append(choice), rewards.append(reward)
        over = bool(truncated[0])
    token, choice, reward = np.array(tokens), np.array(choices), np.array(rewards, dtype=np.float64)
    summed = np.cumsum(np.vstack([np.zeros_like(reward[:1]), reward]), axis=0)
    ahead = np.minimum(np.arange(len(reward)) + LOOK_BACK, len(reward))
    gain = summed[ahead] - summed[:-1]
    gradient = np.zeros_like(logits)
    for t in range(TOKENS):
        seen = token == t
        if seen.any():
            advantage = gain[seen] - gain[seen].mean()
            chosen = np.eye(logits.shape[1])[choice[seen]]
            gradient[t] = (advantage[:, None] * (chosen - shares[t])).mean(axis=0)
    return gradient, float(reward.sum(axis=0).mean())


def agent_of(logits: np.ndarray) -> Any:
    """The trained table as an agent for `rollout`: a sampled response to the newest token."""
    table = jnp.asarray(logits, jnp.float32)

    def policy(observation: Any, state: Any) -> tuple[Any, Any]:
        key, step = state
        token = observation["signal"][:, -1] % TOKENS
        choice = jax.random.categorical(jax.random.fold_in(key, step), table[token]).astype(jnp.int32)
        back = named_tick(jnp.maximum(observation["age_ms"][:, -1], 0), step)
        action = jnp.stack([choice, jnp.minimum(back, TASK.ticks_nameable - 1)], axis=1)
        return action, (key, step + 1)

    policy.init = lambda num_envs, seed: (jax.random.key(seed), jnp.int32(0))  # type: ignore[attr-defined]
    return policy


def score(agent: Any, latencies_ms: list[int] | None = None) -> er.Frontier:
    trace = er.rollout(ID, agent, link=LINK, num_envs=32, num_ticks=1000, seed=1)
    return er.frontier(trace, latencies_ms, resamples=300)


def train(updates: int) -> tuple[np.ndarray, list[float]]:
    envs = gym.make_vec(
        ID, num_envs=NUM_ENVS, vectorization_mode="vector_entry_point", link=LINK, num_ticks=NUM_TICKS
    )
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    logits, returns = np.zeros((TOKENS, TASK.num_symbols)), []
    for _ in range(updates):
        gradient, gained = episode(envs, logits, rng)
        logits += RATE * gradient / max(1.0, float(np.abs(gradient).max()))
        returns.append(gained)
    envs.close()
    return logits, returns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--out", default="rl_loop.png")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    start = time.perf_counter()
    logits, returns = train(arguments.updates)
    levels = list(range(0, TASK.horizon_ms + 1, 2 * TASK.micro_turn_ms))
    ideal = [(ms, score(er.agents.IdealObserver(TASK, ms), [ms]).at(ms).credited) for ms in levels]
    runs = {
        "never": score("never"),
        "before training": score(agent_of(np.zeros_like(logits))),
        "after training": score(agent_of(logits)),
    }
    style = {"reading": "output-only", "ideal": ideal, "labels": list(runs), "title": "Watch, learned"}
    er.plots.frontier(list(runs.values()), arguments.out, **style)
    figures = {name: one.at(TASK.horizon_ms).credited for name, one in runs.items()} | {"ideal observer": ideal[-1][1]}
    if arguments.json:
        result = {"returns": [returns[0], returns[-1]], "credited": figures, "demand": runs["never"].demand.lower}
        print(json.dumps(result | {"seconds": round(time.perf_counter() - start, 1), "figure": arguments.out}))
        return
    print(f"mean return per episode: {returns[0]:.1f} before, {returns[-1]:.1f} after {arguments.updates} updates")
    for name, rate in figures.items():
        print(f"{name:>16}: {rate:.4f} bits/s of {runs['never'].demand.lower:.4f} within {TASK.horizon_ms} ms")
    print(f"{arguments.out} drawn, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
