"""R(D) of sources with memory: the oracle brackets, closed forms, causal schemes and brute force."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envrate import rd
from envrate.rd._blocks import Blocks
from envrate.rd._chain import function_of_chain
from envrate.rd._contexts import given_letters, unconditional
from envrate.rd._markov import _problem, solve_at
from envrate.rd._markov_upper import PastOutcome

HAMMING = 1.0 - np.eye(2)


def h(p):
    return -sum(x * np.log2(x) for x in (p, 1 - p) if x > 0)


def sticky(p):
    return [[1 - p, p], [p, 1 - p]]


@pytest.fixture(scope="module")
def rows(shared_data):
    return json.loads((shared_data / "rd_oracles.json").read_text())["bsms_block_bracket"]["rows"]


def test_block_rates_meet_the_oracle(rows):
    # R_n certified to about 1e-9 by an independent program (Kronecker Blahut-Arimoto with a dual gap).
    for row in rows:
        low, high = map(float, row["R_n_bracket"])
        bracket = rd.block_rate(sticky(float(row["p"])), [0, 1], HAMMING, float(row["D"]), row["n"])
        assert bracket.width <= 1e-8, row
        assert bracket.lower <= high + 1e-12 and low <= bracket.upper + 1e-12, row


def test_conditional_bounds_meet_the_oracle(rows):
    # Gray's conditional bound; the oracle's own are valid but a little loose in places, so ours may be higher.
    for row in rows:
        p, n = float(row["p"]), row["n"]
        problem = _problem(sticky(p), [0, 1], HAMMING, float(row["D"]))
        condition = given_letters(problem.source, problem.letters, n, h(p), 8)
        low, high, _ = solve_at(problem.cost, problem.target, Blocks(problem.cost[None], n), condition, 1e-9)
        gray = float(row["gray_conditional_lower=R_{X^n|X0}/n"])
        assert condition.memory < 1e-12
        assert low / math.log(2) >= gray - 2e-9, row
        assert high - low <= 1e-8, row


def test_brackets_of_the_process_lie_within_the_oracle(rows):
    for row in rows:
        if row["n"] != 8:
            continue
        bracket = rd.markov(sticky(float(row["p"])), [0, 1], HAMMING, float(row["D"]), n_max=8)
        assert bracket.lower >= float(row["gray_conditional_lower=R_{X^n|X0}/n"]) - 1e-4
        assert bracket.upper <= float(row["R_n_bracket"][1]) + 1e-4
        assert bracket.lower <= bracket.upper


def test_exact_below_the_critical_distortion(shared_data):
    # Gray 1970: R(D) = h(p) - h(D) for D <= D_c.
    for row in json.loads((shared_data / "rd_oracles.json").read_text())["bsms"]["rows"]:
        p, critical = float(row["p"]), float(row["Dc"])
        for share, key in ((1.0, "R(Dc)"), (0.5, "R(Dc/2)")):
            bracket = rd.markov(sticky(p), [0, 1], HAMMING, share * critical * (1 - 1e-15))
            assert bracket.width <= 1e-15
            assert bracket.mid == pytest.approx(float(row[key]), abs=1e-12)
    # Flipping every second letter turns p into 1 - p and keeps Hamming distortion.
    assert rd.markov(sticky(0.75), [0, 1], HAMMING, 0.01).mid == pytest.approx(h(0.25) - h(0.01), abs=1e-12)


def test_shannon_bound_is_tight_below_the_critical_distortion_without_the_closed_form():
    # The general machinery at D < D_c: the lower end is h(p) - h(D) itself, the upper one lies above.
    p, D = 0.25, 0.02
    problem = _problem(sticky(p), [0, 1], HAMMING, D)
    condition = unconditional(problem.source, problem.letters, 6, h(p))
    low, _, _ = solve_at(problem.cost, problem.target, Blocks(problem.cost[None], 6), condition, 1e-10)
    assert low / math.log(2) - condition.memory == pytest.approx(h(p) - h(D), abs=1e-9)


def test_one_letter_channel_with_past_outcome_is_the_causal_rate(shared_data):
    # R_na(D) = h(p*D) - h(D) (Stavrou, Kourtellaris, Charalambous 2014).
    for row in json.loads((shared_data / "rd_oracles.json").read_text())["bsms_nrdf"]["rows"]:
        p, D = float(row["p"]), float(row["D"])
        source = function_of_chain(sticky(p), [0, 1])
        past = PastOutcome(source, np.arange(2), Blocks(HAMMING[None], 1))
        slope = math.log((1 - D) / D)  # at this slope the optimal backward channel is a BSC(D)
        kernel = np.exp(-slope * HAMMING)
        d, rate = past.point(slope, kernel / kernel.sum(1, keepdims=True), 1e-13)
        assert d == pytest.approx(D, abs=1e-7)
        assert rate / math.log(2) == pytest.approx(float(row["R_na"]), abs=1e-6)


def test_points_with_past_outcome_are_reached_by_the_scheme_itself():
    # Simulate the fitted one-letter scheme by its exact joint law: distortion and I(A; Y | past Y) agree.
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    source = function_of_chain(transition, [0, 1])
    past = PastOutcome(source, np.arange(2), Blocks(HAMMING[None], 1))
    slope = 1.5
    kernel = np.exp(-slope * HAMMING)
    d, rate = past.point(slope, kernel / kernel.sum(1, keepdims=True), 1e-12)
    joint, output = past._warm
    channel = kernel[None] * output[:, :, 0][:, None, :]
    channel /= channel.sum(-1, keepdims=True)  # (y0, a, y)
    law = np.einsum("zg,za,gay->gay", joint, transition, channel)
    assert (law * HAMMING).sum() == pytest.approx(d, abs=1e-6)
    given = law / law.sum(axis=2, keepdims=True) / law.sum(axis=1, keepdims=True) * law.sum(axis=(1, 2), keepdims=True)
    assert (law * np.log(given)).sum() == pytest.approx(rate, abs=1e-6)
    # The joint law is stationary.
    after = np.einsum("zg,za,gay->ay", joint, transition, channel)
    assert np.allclose(after, joint, atol=1e-6)


def test_zero_distortion_gives_the_entropy_rate():
    bracket = rd.markov([[0.8, 0.2], [0.3, 0.7]], [0, 1], HAMMING, 0.0)
    rate = rd.entropy_rate([[0.8, 0.2], [0.3, 0.7]], [0, 1])
    assert bracket.lower == pytest.approx(rate.mid, abs=1e-9)
    assert bracket.upper == pytest.approx(rate.mid, abs=1e-9)


def test_distortion_that_a_constant_meets_costs_nothing():
    bracket = rd.markov([[0.8, 0.2], [0.3, 0.7]], [0, 1], HAMMING, 0.4)
    assert bracket.lower == bracket.upper == 0.0


def test_memoryless_sources_agree_with_the_closed_form():
    # Unequal rows after lumping none: Bernoulli(0.3) with Hamming distortion, R = h(0.3) - h(D).
    bracket = rd.markov([[0.7, 0.3], [0.7, 0.3]], [0, 1], HAMMING, 0.1)
    assert bracket.lower == pytest.approx(h(0.3) - h(0.1), abs=1e-9)
    assert bracket.width < 1e-9


def test_least_distortion_above_zero_is_taken_off():
    # A row whose least distortion is 1 shifts D by its probability.
    transition, shifted = [[0.8, 0.2], [0.3, 0.7]], HAMMING + np.array([[1.0], [0.0]])
    plain = rd.markov(transition, [0, 1], HAMMING, 0.1, n_max=4)
    moved = rd.markov(transition, [0, 1], shifted, 0.1 + 0.6, n_max=4)
    assert moved.lower == pytest.approx(plain.lower, abs=1e-6)
    assert moved.upper == pytest.approx(plain.upper, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(0.05, 0.9))
def test_brackets_of_random_sources_are_in_order_and_shrink(seed, states, share):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(states, 0.6), size=states) + 0.01
    transition /= transition.sum(1, keepdims=True)
    response = np.arange(states) % 2
    distortion = np.array([[0.0, 1.0, 0.6], [2.0, 0.0, 0.6]])
    pmf = function_of_chain(transition, response).pmf
    D = share * float((pmf @ distortion).min())
    short = rd.markov(transition, response, distortion, D, n_max=1, tol=1e-6)
    long = rd.markov(transition, response, distortion, D, n_max=4, tol=1e-6)
    assert 0.0 <= short.lower <= long.lower + 1e-9
    assert long.lower <= long.upper <= short.upper + 1e-9
    # Independent upper bound: R_2 lies above the lower end, the entropy rate above the bracket.
    assert long.lower <= rd.block_rate(transition, response, distortion, D, 2).upper + 1e-9
    assert long.upper <= rd.entropy_rate(transition, response).upper + 1e-9


def test_a_straight_piece_is_met_by_its_chord():
    # Erasure of a fair bit: R = 1 - D, all of it at one slope; the blocks' solver alone, without Blahut-Arimoto.
    cost = np.array([[0.0, np.inf, 1.0], [np.inf, 0.0, 1.0]])
    source = function_of_chain([[0.5, 0.5], [0.5, 0.5]], [0, 1])
    for n in (1, 3):
        condition = unconditional(source, np.arange(2), n, 1.0)
        for D in (0.1, 0.4, 0.8):
            low, high, _ = solve_at(cost, D, Blocks(cost[None], n), condition, 1e-9)
            assert low / math.log(2) == pytest.approx(1 - D, abs=2e-9)
            assert high / math.log(2) == pytest.approx(1 - D, abs=2e-9)


def test_budget_is_said():
    bracket = rd.markov(sticky(0.1), [0, 1], HAMMING, 0.1, tol=1e-9, n_max=2)
    assert "n_max = 2" in bracket.method and "blocks of 2" in bracket.method
    bracket = rd.markov(sticky(0.1), [0, 1], HAMMING, 0.1, tol=1e-9, time_budget_s=0.0)
    assert "time budget" in bracket.method
    # A pass over two letters of a binary chain and two outcomes: 2 * 2 * (2 + 2) multiply-adds, and a table of 2^2 2^2.
    bracket = rd.markov(sticky(0.1), [0, 1], HAMMING, 0.1, tol=1e-9, max_work=31)
    assert "blocks of 1:" in bracket.method and "stopped by max_work = 31" in bracket.method
    bracket = rd.markov(sticky(0.1), [0, 1], HAMMING, 0.1, tol=1e-9, max_work=32)
    assert "blocks of 2:" in bracket.method


def test_the_default_does_not_depend_on_the_clock(monkeypatch):
    """The same blocks and the same bracket however slow the machine seems."""
    from envrate.rd import _markov

    arguments = ([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], [0, 1, 2], 1 - np.eye(3), 0.2)
    first = rd.markov(*arguments, tol=1e-6)
    clock = iter(range(0, 10**9, 10**6))
    monkeypatch.setattr(_markov.time, "perf_counter", lambda: float(next(clock)))
    assert rd.markov(*arguments, tol=1e-6) == first
    assert "stopped by max_work" in first.method


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"distortion": HAMMING + 0.5, "D": 0.1}, "below D_min = 0.5"),
        ({"distortion": [[0, 1]]}, "distortion: expected 2 rows"),
        ({"distortion": [[0, -1], [1, 0]]}, "distortion: entry"),
        ({"distortion": [[np.inf, np.inf], [1, 0]]}, "row 0 is infinite"),
        ({"D": -0.1}, "D: expected a number"),
        ({"D": float("nan")}, "D: expected a number"),
        ({"transition": [[0.5, 0.4], [0.5, 0.5]]}, "transition: row 0"),
    ],
)
def test_bad_input_names_the_argument(kwargs, message):
    arguments = {"transition": sticky(0.1), "response": [0, 1], "distortion": HAMMING, "D": 0.1} | kwargs
    with pytest.raises(ValueError, match=message):
        rd.markov(**arguments)
