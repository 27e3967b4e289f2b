"""The observer's posterior against a plain forward-backward pass, tick by tick."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic import chain_path, honest, trace, world

from envrate import tasks
from envrate.latents import GaussianProcess, MarkovChain
from envrate.scorers._posterior import NOTHING, Observer, Patterns, chain_of, contexts, memory, nearest_rows
from envrate.task import Task

STICKY = Task(
    latent=MarkovChain(((0.8, 0.15, 0.05), (0.1, 0.7, 0.2), (0.3, 0.1, 0.6))),
    response=(0, 1, 2),
    tick_ms=500,
    name="sticky",
)


def plain_nearest(w, cutoff, own):
    """Nearest delivered rows by looking at every pair."""
    out = np.full((2, len(w.tick)), -1)
    for t in range(len(w.tick)):
        same = (w.episode == w.episode[t]) & (w.delivered >= 0) & (w.delivered <= cutoff[t])
        if not own:
            same[t] = False
        rows = np.flatnonzero(same)
        before, after = rows[rows <= t], rows[rows > t]
        out[0, t] = before[-1] if before.size else -1
        if after.size and out[0, t] != t:
            out[1, t] = after[0]
    return out


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("latency", [0, 300, 900, 2000])
def test_nearest_rows_equal_a_plain_search(own, latency):
    w = world(STICKY, 300, seed=4, episodes=5, delay=(200, 900), late=0.3, loss=0.4)
    cutoff = w.onset + latency
    found = nearest_rows(w.episode, w.tick, w.onset, w.delivered, cutoff, own=own, limit=10**6)
    assert (np.stack(found) == plain_nearest(w, cutoff, own)).all()


def plain_posterior(task, latent, delivered, t, cutoff, length):
    """P(a_t | delivered packets) by forward-backward over the whole sequence."""
    chain = chain_of(task)
    evidence = np.ones((length, 3))
    for s in range(length):
        if 0 <= delivered[s] <= cutoff:
            evidence[s] = np.eye(3)[latent[s]]
    forward = chain.stationary * evidence[0]
    for s in range(1, t + 1):
        forward = (forward @ chain.matrix) * evidence[s]
    backward = np.ones(3)
    for s in range(length - 1, t, -1):
        backward = chain.matrix @ (evidence[s] * backward)
    law = forward * backward
    return np.bincount(chain.response, weights=law / law.sum(), minlength=3)


@pytest.mark.parametrize("latency", [300, 1100])
def test_contexts_hold_the_exact_posterior(latency):
    """Averaging the plain posteriors over all latents of a short run gives the contexts' joint law."""
    rng = np.random.default_rng(2)
    length = 6
    onset = np.arange(length) * 500
    delivered = np.where(rng.random(length) < 0.4, -1, onset + rng.choice([200, 700], length))
    chain = chain_of(STICKY)
    observer = Observer(STICKY, np.zeros(length, int), np.arange(length), onset, delivered, np.ones(length, bool))
    found = observer.contexts(latency)
    # Every latent sequence with its probability; the largest posterior and its entropy pin the joint law down.
    weight, peak, surprise = 0.0, 0.0, 0.0
    for code in range(3**length):
        z = [code // 3**k % 3 for k in range(length)]
        p = chain.stationary[z[0]] * np.prod([chain.matrix[i, j] for i, j in zip(z, z[1:], strict=False)])
        for t in range(length):
            law = plain_posterior(STICKY, z, delivered, t, onset[t] + latency, length)
            weight += p / length
            peak += p / length * law.max()
            surprise += p / length * -(law[law > 0] * np.log2(law[law > 0])).sum()
    entropy = -(STICKY.pmf * np.log2(STICKY.pmf)).sum()
    assert weight == pytest.approx(1.0, abs=1e-12)
    assert (found.weight * found.posterior.max(axis=1)).sum() == pytest.approx(peak, abs=1e-12)
    assert found.information() == pytest.approx(entropy - surprise, abs=1e-12)
    assert found.joint.sum(axis=0) == pytest.approx(STICKY.pmf, abs=1e-12)


def test_information_of_a_memoryless_link_is_the_share_delivered():
    task = tasks.get("alert")
    found = contexts(task, Patterns(np.array([0, NOTHING]), np.array([NOTHING] * 2), np.array([0.6, 0.4])))
    assert found.information() == pytest.approx(0.6, abs=1e-12)  # H(A) = 1 bit


def test_memory_ends_where_the_chain_has_forgotten():
    assert memory(tasks.get("alert")) == 1
    far = memory(STICKY)
    chain = chain_of(STICKY)
    assert np.abs(np.linalg.matrix_power(chain.matrix, far) - chain.stationary).max() < 1e-12
    # A chain with a period never forgets.
    assert memory(Task(latent=MarkovChain(((0.0, 1.0), (1.0, 0.0))), response=(0, 1))) == 4096


def test_patterns_of_a_periodic_chain_are_kept_apart():
    task = Task(latent=MarkovChain(((0.0, 1.0), (1.0, 0.0))), response=(0, 1))
    w = world(task, 200, seed=1, loss=0.9)
    found = Observer.of(trace(w, honest(w))).contexts(0)
    first = np.flatnonzero(w.delivered >= 0)[0]
    # Once anything is known, everything is.
    assert found.weight[found.posterior.max(axis=1) > 1 - 1e-12].sum() == pytest.approx(1 - first / 200, abs=1e-12)


def test_a_run_without_a_log_or_a_chain_has_no_observer():
    w = world(STICKY, 50, seed=1)
    with pytest.raises(ValueError, match="no link log"):
        Observer.of(trace(w, honest(w), link=False))
    from envrate._responses import Threshold

    task = Task(latent=GaussianProcess(), response=Threshold((1.0,), (0, 1)))
    with pytest.raises(ValueError, match="no Markov chain"):
        chain_of(task)


def test_sample_paths_of_the_tests_follow_the_law():
    chain = chain_of(STICKY)
    path = chain_path(chain.matrix, chain.stationary, 40_000, np.random.default_rng(0))
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (path[:-1], path[1:]), 1)
    assert pairs / pairs.sum(1, keepdims=True) == pytest.approx(chain.matrix, abs=0.02)
