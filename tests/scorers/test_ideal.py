"""Best decision rules against brute force over all rules, and against every agent."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from envrate import tasks
from envrate.latents import MarkovChain
from envrate.scorers._ideal import Scale, Situations, climb, least_severity, starting_costs
from envrate.scorers._posterior import NOTHING, Contexts, Patterns, contexts
from envrate.task import Severity, Task


def memoryless(pmf, **options):
    """A task with independent ticks, one state per symbol."""
    return Task(latent=MarkovChain((tuple(pmf),) * len(pmf)), response=tuple(range(len(pmf))), **options)


def random_contexts(rng, task, size):
    """An observer with `size` signals of random likelihoods, some of them from the tick's own packets."""
    likelihood = rng.dirichlet(np.full(size, 0.4), task.num_symbols)  # (A, n)
    joint = (task.pmf[:, None] * likelihood).T
    weight = joint.sum(axis=1)
    return Contexts(weight, joint / weight[:, None], rng.random(size) < 0.5)


def brute(scale, situations):
    """Largest C over every deterministic rule."""
    size = situations.joint.shape[1]
    rules = itertools.product(range(size), repeat=len(situations.joint))
    tables = np.stack([situations.table(np.array(rule), scale.task.pmf) for rule in rules])
    rates = scale.one_letter_rates(tables)
    assert np.isfinite(rates).mean() > 0.999
    return rates


@pytest.mark.parametrize("seed", range(15))
def test_ascent_finds_the_best_of_all_rules(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 4))
    task = memoryless(rng.dirichlet(np.full(size, 2.0)), severity=Severity(miss=20.0, wrong=5.0, over=1.0))
    situations = Situations.of(random_contexts(rng, task, 5 if size == 3 else 8), resolved=False)
    scale = Scale(task, False)
    best = float(scale.credited(climb(scale, situations, starting_costs(task))[0]))
    assert best == pytest.approx(brute(scale, situations).max(), abs=1e-6)


@pytest.mark.parametrize("seed", range(15))
def test_ascent_finds_the_best_of_all_rules_with_silences_resolved(seed):
    """What a lossy link leaves of a sticky chain, scored tick by tick."""
    rng = np.random.default_rng(seed)
    p, q = rng.uniform(0.05, 0.5, 2)
    sticky = Task(latent=MarkovChain(((1 - p, p), (q, 1 - q))), response=(0, 1))
    share = rng.dirichlet(np.ones(4))
    seen = contexts(sticky, Patterns(np.array([0, 1, 2, NOTHING]), np.array([NOTHING, NOTHING, 1, 1]), share))
    task = memoryless(sticky.pmf)
    situations, scale = Situations.of(seen, resolved=True), Scale(task, True)
    best = float(scale.credited(climb(scale, situations, starting_costs(task))[0]))
    assert best == pytest.approx(brute(scale, situations).max(), abs=1e-6)


def test_a_maximiser_is_a_bayes_rule_of_its_own_multipliers():
    rng = np.random.default_rng(1)
    task = memoryless((0.5, 0.3, 0.2))
    situations = Situations.of(random_contexts(rng, task, 40), resolved=False)
    scale = Scale(task, False)
    table = climb(scale, situations, starting_costs(task))[0]
    costs = scale.one_letter(table[None])[1][0]
    again = situations.table(situations.bayes(costs), task.pmf)
    assert again == pytest.approx(table, abs=1e-12)


@pytest.mark.parametrize("resolved", [False, True])
def test_no_agent_behind_the_link_is_better(resolved):
    """50 random observers and randomised agents: on populations there is no sampling noise to allow for."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        size = int(rng.integers(2, 5))
        task = memoryless(rng.dirichlet(np.full(size, 2.0)))
        seen = random_contexts(rng, task, 12)
        situations = Situations.of(seen, resolved=resolved)
        scale = Scale(task, resolved)
        agents = []
        for _ in range(4):
            choice = rng.dirichlet(np.full(size, 0.3), len(seen.weight))  # (n, A) a randomised rule
            table = np.zeros((size, size + 2))
            for y in range(size):
                given = seen.joint * choice[:, y : y + 1]
                if y == 0:
                    table[:, 0] += ((1 - situations.silence) @ given) / task.pmf
                    table[:, -1] += (situations.silence @ given) / task.pmf
                else:
                    table[:, y] += given.sum(axis=0) / task.pmf
            agents.append(table)
        ideal = float(scale.credited(climb(scale, situations, starting_costs(task), agents)[0]))
        assert ideal >= scale.credited(np.stack(agents)).max() - 1e-7
        # The link's information is a ceiling on both.
        assert ideal <= seen.information() + 1e-7 or resolved


def test_worked_example_has_the_erasure_and_the_z_channel():
    task = tasks.get("alert")
    seen = contexts(task, Patterns(np.array([0, NOTHING]), np.array([NOTHING] * 2), np.array([0.6, 0.4])))
    # H(.3) - .5 H(.4) = 0.395816 (Z-channel) and 0.6 (erasure), bits per tick.
    for resolved, bits in ((False, 0.3958155), (True, 0.6)):
        scale = Scale(task, resolved)
        best = climb(scale, Situations.of(seen, resolved=resolved), starting_costs(task))[0]
        assert float(scale.credited(best)) == pytest.approx(bits, abs=1e-6)


def test_a_blind_observer_gets_nothing():
    for pmf in ((0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5)):
        task = memoryless(pmf)
        blind = Contexts(np.ones(1), np.array([pmf]), np.zeros(1, bool))
        for resolved in (False, True):
            scale = Scale(task, resolved)
            found = climb(scale, Situations.of(blind, resolved=resolved), starting_costs(task))
            assert float(scale.credited(found[0])) == 0.0


def test_least_severity_is_the_smallest_expected_distortion():
    rng = np.random.default_rng(3)
    task = memoryless((0.6, 0.3, 0.1), severity=Severity(miss=20.0, wrong=5.0, over=1.0))
    seen = random_contexts(rng, task, 6)
    severity, _ = least_severity(seen, task.distortion)
    every = [
        sum(seen.joint[n] @ task.distortion[:, y] for n, y in enumerate(rule))
        for rule in itertools.product(range(3), repeat=6)
    ]
    assert severity == pytest.approx(min(every), abs=1e-12)


def test_a_sticky_source_is_told_by_its_neighbours():
    """One tick late on a binary chain: an echo is wrong with the flip probability, and nothing does better."""
    task = tasks.get("hold")
    seen = contexts(task, Patterns(np.array([1]), np.array([NOTHING]), np.array([1.0])))
    scale = Scale(task, False)
    tables = climb(scale, Situations.of(seen, resolved=False), starting_costs(task))
    assert tables[0][1, 1:3] == pytest.approx([0.9, 0.1], abs=1e-12)
    assert float(scale.credited(tables[0])) < task.demand().lower * task.tick_ms / 1000
