"""Remote and conditional rate-distortion against the oracles and against each other."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envrate import rd

HAMMING = 1.0 - np.eye(2)


@pytest.fixture(scope="module")
def oracles(shared_data):
    return json.loads((shared_data / "rd_oracles.json").read_text())


def symmetric(p):
    return np.array([[0.5 * (1 - p), 0.5 * p], [0.5 * p, 0.5 * (1 - p)]])


def test_remote_binary(oracles):
    # A fair bit seen through a BSC: R = 1 - h((D - eps) / (1 - 2 eps)).
    for row in oracles["remote"]["bsc_hamming"]["rows"]:
        point = rd.remote(symmetric(float(row["eps"])), HAMMING, float(row["D"]))
        assert point.upper - point.lower <= 1e-9
        assert point.lower - 1e-12 <= float(row["R"]) <= point.upper + 1e-12


def test_remote_gaussian(oracles):
    for row in oracles["remote"]["gauss"]["rows"]:
        bracket = rd.remote_gaussian(float(row["sx2"]), float(row["n2"]), float(row["D"]))
        assert bracket.mid == pytest.approx(float(row["R"]), abs=1e-12)
    assert rd.remote_gaussian(1.0, 0.25, 1.5).upper == 0.0
    assert rd.remote_gaussian(1.0, 0.0, 0.25).mid == pytest.approx(1.0, abs=1e-15)


def test_side_information(oracles):
    # Both ends: h(p0) - h(D). Decoder only: Wyner and Ziv's envelope.
    for row in oracles["side_information_dsbs"]["rows"]:
        p, D = float(row["p0"]), float(row["D"])
        bracket = rd.conditional(symmetric(p), HAMMING, D)
        assert bracket.width <= 1e-9
        assert bracket.mid == pytest.approx(float(row["R_cond=h(p0)-h(D)"]), abs=1e-9)
        assert rd.binary_wyner_ziv(p, D).mid == pytest.approx(float(row["R_WZ"]), abs=1e-12)
        assert rd.binary_wyner_ziv(p, D).mid >= bracket.lower - 1e-12


def test_a_clear_view_is_the_plain_problem():
    p = np.array([0.5, 0.3, 0.2])
    d = np.array([[0, 1, 4], [2, 0, 1], [5, 2, 0.0]])
    plain = rd.blahut_arimoto(p, d, D=0.2)
    clear = rd.remote(np.diag(p), d, 0.2)
    assert clear.rate == pytest.approx(plain.rate, abs=1e-9)
    blank = rd.conditional(p[:, None], d, 0.2)
    assert blank.lower - 1e-9 <= plain.rate <= blank.upper + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(2, 3), st.floats(0.1, 0.8))
def test_conditional_lies_between_its_bounds(seed, letters, sides, share):
    # R_X - I(X; S) <= R_{X|S} <= R_X (Gray 1973).
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.ones(letters * sides)).reshape(letters, sides)
    d = rng.uniform(0.1, 2.0, size=(letters, letters))
    np.fill_diagonal(d, 0.0)
    p = joint.sum(1)
    D = share * float((p @ d).min())
    plain = rd.blahut_arimoto(p, d, D=D)
    given_side = rd.conditional(joint, d, D)
    product = p[:, None] * joint.sum(0)
    information = float((joint * np.log2(joint / product)).sum())
    assert given_side.width <= 2e-9
    assert plain.lower - information - 1e-9 <= given_side.upper
    assert given_side.lower <= plain.upper + 1e-9


def test_split_of_the_budget_at_a_common_slope():
    # Two parts with Hamming distortion: at slope s each has its own R_s(D_s); the best split of a fine grid agrees.
    joint = np.array([[0.45, 0.1], [0.05, 0.4]])
    weights = joint.sum(0)

    def h(x):
        return -sum(y * np.log2(y) for y in (x, 1 - x) if y > 0)

    def part(q, d):
        return max(0.0, h(q) - h(d)) if d < min(q, 1 - q) else 0.0

    D = 0.06
    grid = np.linspace(0, D / weights[0], 4001)
    best = min(
        weights[0] * part(0.1, d) + weights[1] * part(0.2, (D - weights[0] * d) / weights[1]) for d in grid
    )
    assert rd.conditional(joint, HAMMING, D).mid == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rd.remote(symmetric(0.1), HAMMING, 0.05), "D"),
        (lambda: rd.remote([[0.5, 0.6]], HAMMING, 0.05), "joint: sums to 1.1"),
        (lambda: rd.conditional(symmetric(0.1), HAMMING[:1], 0.05), "distortion: expected 2 rows"),
        (lambda: rd.conditional(symmetric(0.1), HAMMING + 0.2, 0.05), "below D_min = 0.2"),
        (lambda: rd.remote_gaussian(1.0, 1.0, 0.5), "D_min = 0.5"),
        (lambda: rd.binary_wyner_ziv(0.7, 0.1), "p: expected"),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
