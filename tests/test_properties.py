"""What must hold for every task, link and agent, by simulation through the real link; fixed seeds, 99.99 % bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import envrate as er
from envrate.channels import Exponential, GilbertElliott, TwoPoint, Uniform
from envrate.latents import MarkovChain

#: One-sided 99.99 % point of the normal law.
Z = 3.72


def random_setting(seed: int) -> tuple[er.Task, er.channels.Link, str]:
    """A task, a link and the name of an agent."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 5))
    row = rng.dirichlet(np.full(states, 2.0))
    sticky = 0.0 if rng.random() < 0.5 else float(rng.uniform(0.3, 0.9))
    matrix = sticky * np.eye(states) + (1 - sticky) * row
    response = [0, *rng.integers(0, 3, states - 1).tolist()]
    response[-1] = response[-1] or 1
    response = [{0: 0, **{a: i + 1 for i, a in enumerate(sorted(set(response) - {0}))}}[a] for a in response]
    task = er.Task(
        latent=MarkovChain(matrix), response=response, tick_ms=500, micro_turn_ms=100, horizon_ms=1000, reply="named",
        severity=er.Severity(float(rng.uniform(1, 20)), float(rng.uniform(1, 5)), float(rng.uniform(0.5, 2))),
    )  # fmt: skip
    jitter = [TwoPoint(0, 300, 0.4), Uniform(0, 250), Exponential(120.0)][rng.integers(3)]
    loss = [0.0, 0.2, GilbertElliott(0.1, 0.3)][rng.integers(3)]
    link = er.channels.Link(delay_ms=int(rng.integers(0, 400)), jitter=jitter, loss=loss)
    return task, link, ["reactive", "random", "always", "echo", "guess", "ideal"][rng.integers(6)]


def check(seed: int) -> None:
    task, link, agent = random_setting(seed)
    trace = er.rollout(task, agent, link=link, num_envs=30, num_ticks=100, seed=seed)
    assert isinstance(trace, er.Trace)
    levels = [0, 300, 600, 1000]
    frontier = er.frontier(trace, levels, resamples=100)
    split = er.split(trace, levels, readings=["output-only"])
    ticks = int(trace.ticks["scored"].sum())
    for level in levels:
        point, bound = frontier.at(level), split.at(level)
        assert point.credited <= task.demand().upper + 1e-9, (seed, agent, level)
        # Severity per tick is at most the largest weight; neighbours in a sticky chain err together.
        slack = Z * float(task.distortion.max()) * math.sqrt(4.0 / ticks)
        assert point.severity >= bound.severity - slack, (seed, agent, level)


@pytest.mark.parametrize("seed", range(5))
def test_no_agent_beats_the_demand_or_the_observer(seed: int) -> None:
    check(seed)


@pytest.mark.nightly
def test_no_agent_beats_the_demand_or_the_observer_in_fifty_settings() -> None:
    for seed in range(5, 55):
        check(seed)
