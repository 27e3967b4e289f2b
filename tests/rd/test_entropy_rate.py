"""Entropy rates against closed forms, exhaustive enumeration and the oracle table."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envrate import rd
from envrate.rd._chain import hidden_markov, lumped, recurrent_class, stationary_law


def h(p):
    return -sum(x * np.log2(x) for x in (p, 1 - p) if x > 0)


def block_entropies(transition, emission, n):
    """(H(Y_n | Y^{n-1}, S_0), H(Y_n | Y^{n-1})) in bits by enumeration: Cover and Thomas, theorem 4.5.1."""
    p, e = np.asarray(transition), np.asarray(emission)
    pi = stationary_law(p)

    def entropy(start, length):
        total = 0.0
        for word in itertools.product(range(e.shape[1]), repeat=length):
            v = start
            for y in word:
                v = (v @ p) * e[:, y]
            q = v.sum()
            total -= q * np.log2(q) if q > 0 else 0.0
        return total

    upper = entropy(pi, n) - entropy(pi, n - 1)
    points = np.eye(len(pi))
    lower = sum(w * (entropy(s, n) - entropy(s, n - 1)) for w, s in zip(pi, points, strict=True))
    return lower, upper


def test_oracle_table(shared_data):
    # Birch 1962 bounds; the Gilbert-Elliott row is known to 8 digits only.
    for row in json.loads((shared_data / "rd_oracles.json").read_text())["hmm_entropy_rate"]["rows"]:
        bracket = rd.hidden_markov_entropy_rate(row["P"], row["E"])
        low, high = float(row["H_lower"]), float(row["H_upper"])
        slack = 1e-11 + max(0.0, high - low)
        assert bracket.width <= 1e-12, row["name"]
        assert low - slack <= bracket.lower <= bracket.upper <= high + slack, row["name"]
        if "closed_form" in row:
            assert bracket.mid == pytest.approx(float(row["closed_form"]), abs=1e-12)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_binary_symmetric_chain_is_exact(p):
    # H = h(p): one transition is one coin.
    bracket = rd.entropy_rate([[1 - p, p], [p, 1 - p]], [0, 1])
    assert bracket.lower == bracket.upper == pytest.approx(h(p), abs=1e-14)


def test_memoryless_states_give_the_entropy():
    bracket = rd.entropy_rate([[0.25, 0.25, 0.5]] * 3, [0, 0, 1])
    assert bracket.lower == bracket.upper == 1.0
    assert "memoryless" in bracket.method


def test_unifilar_source():
    # The even process: from A emit 0 and stay or emit 1 and go to B; from B emit 1 and return. pi = (2/3, 1/3),
    # so H = 2/3 h(1/2) (Weiss 1973). As a function of the chain of edges the letter with the state fixes the next.
    edges = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]
    bracket = rd.entropy_rate(edges, [0, 1, 1])
    assert bracket.lower == bracket.upper == pytest.approx(2 / 3, abs=1e-14)


def test_unifilar_only_backwards_in_time():
    # The same process reversed: its rate is the same, and only the reversed chain is unifilar.
    source = hidden_markov([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]], np.eye(2)[[0, 1, 1]])
    bracket = rd.entropy_rate(source.reversed.transition, [0, 1, 1])
    assert bracket.lower == bracket.upper == pytest.approx(2 / 3, abs=1e-14)


def test_deterministic_cycle_has_rate_zero():
    bracket = rd.entropy_rate([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [0, 0, 1])
    assert bracket.lower == bracket.upper == 0.0


def test_transient_states_do_not_count():
    bracket = rd.entropy_rate([[0.2, 0.3, 0.5], [0, 0.9, 0.1], [0, 0.1, 0.9]], [0, 0, 1])
    assert bracket.mid == pytest.approx(h(0.1), abs=1e-14)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_encloses_the_two_sided_bounds_of_enumeration(states, letters, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(states, 0.7), size=states)
    e = rng.dirichlet(np.full(letters, 0.5), size=states)
    if (np.linalg.matrix_power(p, 50) < 1e-6).any():
        return
    bracket = rd.hidden_markov_entropy_rate(p, e, tol=1e-6, max_nodes=200_000)
    low, high = block_entropies(p, e, 6)
    assert bracket.width <= 1e-6 or "stopped" in bracket.method  # chains that forget slowly use up the contexts
    # Both pairs enclose the rate, so they overlap; the tree of contexts is the tighter one here.
    assert low - 1e-9 <= bracket.upper and bracket.lower <= high + 1e-9


def test_lumping_leaves_the_law_of_the_letters():
    p = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.4, 0.15, 0.45]])
    source = hidden_markov(p, np.eye(2)[[0, 1, 1]])
    small = lumped(source)
    assert small.num_states == 2
    assert np.allclose(small.transition, [[0.5, 0.5], [0.4, 0.6]], atol=1e-15)
    assert np.allclose(small.stationary @ small.emission, source.stationary @ source.emission, atol=1e-15)


def test_a_limit_on_contexts_is_said_and_still_encloses():
    full = rd.hidden_markov_entropy_rate([[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.1, 0.9]])
    short = rd.hidden_markov_entropy_rate([[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.1, 0.9]], max_nodes=200)
    assert "stopped" in short.method and short.width > 1e-12
    assert short.lower <= full.lower <= full.upper <= short.upper


def test_stationary_law_has_small_relative_error():
    # Birth-death chain: detailed balance gives pi_i proportional to (up / down)^i.
    up, down, k = 0.001, 0.4, 6
    p = np.diag(np.full(k - 1, up), 1) + np.diag(np.full(k - 1, down), -1)
    p += np.diag(1 - p.sum(1))
    expected = (up / down) ** np.arange(k)
    assert np.allclose(stationary_law(p), expected / expected.sum(), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("transition", "response", "message"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], [0, 1], "transition: row 0 sums to 0.9"),
        ([[1.0, 0.0], [0.0, 1.0]], [0, 1], "several closed classes"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 1, 1], "response: expected 2 letters"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, -1], "response"),
        ([[np.nan, 0.5], [0.5, 0.5]], [0, 1], "transition"),
    ],
)
def test_bad_input_names_the_argument(transition, response, message):
    with pytest.raises(ValueError, match=message):
        rd.entropy_rate(transition, response)


def test_closed_class_is_found():
    assert recurrent_class(np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])).tolist() == [1, 2]
