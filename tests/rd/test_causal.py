"""Causal rates against the oracles and against an independent solver of the semidefinite program."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from envrate import rd


@pytest.fixture(scope="module")
def oracles(shared_data):
    return json.loads((shared_data / "rd_oracles.json").read_text())


def test_scalar_gauss_markov(oracles):
    # R = max(0, 1/2 log2(a^2 + sw2 / D)), also for a growing process.
    for row in oracles["nrdf_scalar"]["rows"]:
        bracket = rd.causal_gauss_markov(float(row["a"]), float(row["sw2"]), float(row["D"]))
        assert bracket.mid == pytest.approx(float(row["R_na"]), abs=1e-12)
    for row in oracles["ar1"]["rows"]:
        a = float(row["a"])
        bracket = rd.causal_gauss_markov(a, 1 - a * a, float(row["D"]))
        assert bracket.mid == pytest.approx(float(row["R_na=.5log2(a^2+sw2/D)"]), abs=1e-12)
    assert rd.causal_gauss_markov(0.5, 0.75, 2.0).upper == 0.0


def test_causal_is_at_least_the_rate_with_delay(oracles):
    for row in oracles["ar1"]["rows"]:
        a, D = float(row["a"]), float(row["D"])
        free = rd.gaussian_process("ou", D, tick_ms=-1000 * math.log(a))
        assert rd.causal_gauss_markov(a, 1 - a * a, D).mid >= free.mid


def test_ornstein_uhlenbeck(oracles):
    for row in oracles["ou_causal"]["rows"]:
        D = float(row["D"])
        assert rd.causal_ornstein_uhlenbeck(D).mid == pytest.approx(float(row["R_na"]), rel=1e-12)
        a = math.exp(-1e-3)
        sampled = rd.causal_gauss_markov(a, -math.expm1(-2e-3), D).mid / 1e-3
        assert sampled == pytest.approx(float(row["sampled dt=1e-3"]), rel=1e-12)


def test_binary_markov(oracles):
    # h(p * D) - h(D).
    for row in oracles["bsms_nrdf"]["rows"]:
        bracket = rd.causal_binary_markov(float(row["p"]), float(row["D"]))
        assert bracket.mid == pytest.approx(float(row["R_na"]), abs=1e-12)


def test_binary_markov_lies_above_the_rate_with_delay():
    bracket = rd.markov([[0.9, 0.1], [0.1, 0.9]], [0, 1], 1 - np.eye(2), 0.1, n_max=4)
    assert rd.causal_binary_markov(0.1, 0.1).mid >= bracket.lower


def test_vector_gauss_markov(oracles):
    # The rows of D = 0.2 and 0.4 are interior; at 0.8 the constraint P <= A P A' + W is active, known to 8 digits.
    block = oracles["nrdf_vector"]
    for row in block["rows"]:
        digits = 5e-9 if row["D_total"] == "0.8" else 1e-9
        bracket = rd.causal_gauss_markov_vector(block["A"], block["W"], float(row["D_total"]))
        assert bracket.width <= 1e-10
        assert bracket.lower - digits <= float(row["R_na"]) <= bracket.upper + digits


def test_vector_reduces_to_scalar_rates():
    # One dimension, and two independent ones at a common slope: both at D / 2 by symmetry.
    one = rd.causal_gauss_markov_vector([[0.9]], [[0.19]], 0.1)
    assert one.mid == pytest.approx(rd.causal_gauss_markov(0.9, 0.19, 0.1).mid, abs=1e-9)
    two = rd.causal_gauss_markov_vector(0.9 * np.eye(2), 0.19 * np.eye(2), 0.2)
    assert two.mid == pytest.approx(2 * one.mid, abs=1e-9)


def test_vector_of_an_unstable_system_needs_its_unstable_modes():
    # No error is reached with less than sum log2 |unstable eigenvalue| (data-rate theorem).
    a = np.array([[2.0, 0.3], [0.0, 0.5]])
    bracket = rd.causal_gauss_markov_vector(a, np.eye(2), 1e6)
    assert bracket.lower == pytest.approx(1.0, abs=1e-4)
    assert bracket.lower >= 1.0 - 1e-9


def test_vector_against_an_independent_solver():
    # The program as its authors write it, in cvxpy (Tanaka, Kim, Parrilo, Mitter 2017).
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(5)
    for d in (2, 3):
        a = rng.normal(size=(d, d)) * 0.6
        root = rng.normal(size=(d, d))
        w = root @ root.T + 0.1 * np.eye(d)
        for D in (0.3, 2.0):
            p, pi = cvxpy.Variable((d, d), symmetric=True), cvxpy.Variable((d, d), symmetric=True)
            q = a @ p @ a.T + w
            constraints = [
                p << q,
                cvxpy.trace(p) <= D,
                cvxpy.bmat([[p - pi, p @ a.T], [a @ p, q]]) >> 0,
            ]
            objective = -0.5 * cvxpy.log_det(pi) + 0.5 * np.linalg.slogdet(w)[1]
            problem = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
            problem.solve(solver="CLARABEL")
            bracket = rd.causal_gauss_markov_vector(a, w, D)
            assert bracket.mid == pytest.approx(problem.value / math.log(2), abs=2e-6)


def test_vector_with_a_weight_and_at_rest():
    a, w = np.diag([0.9, 0.2]), np.diag([0.19, 0.96])
    # Only the first component counts: the second is left at its stationary variance for nothing.
    bracket = rd.causal_gauss_markov_vector(a, w, 0.1, weight=np.diag([1.0, 0.0]))
    assert bracket.mid == pytest.approx(rd.causal_gauss_markov(0.9, 0.19, 0.1).mid, abs=1e-8)
    assert rd.causal_gauss_markov_vector(a, w, 2.0 + 1e-9).upper == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rd.causal_gauss_markov(0.5, 0.0, 0.1), "noise_variance"),
        (lambda: rd.causal_binary_markov(0.1, 0.7), "D: expected a number in"),
        (lambda: rd.causal_gauss_markov_vector(np.eye(2), np.diag([1.0, 0.0]), 0.1), "noise: smallest eigenvalue 0"),
        (lambda: rd.causal_gauss_markov_vector(np.eye(2), np.eye(3), 0.1), "noise: expected two square"),
        (lambda: rd.causal_gauss_markov_vector(np.eye(2), np.eye(2), 0.1, weight=np.diag([1.0, -1.0])), "weight"),
        (lambda: rd.causal_ornstein_uhlenbeck(0.0), "D"),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
