"""Estimators against published values, exact expectations and known informations."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from scipy.special import gammaln

from envrate.rd import estimators
from envrate.rd.estimators._counts import dirichlet_mean

LN2 = math.log(2.0)


@pytest.fixture(scope="module")
def oracles(shared_data):
    return json.loads((shared_data / "rd_oracles.json").read_text())


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("plug-in", "plugin"),
        ("miller-madow", "miller_madow (K observed=8)"),
        ("jackknife", "jackknife"),
        ("grassberger", "grassberger_2003"),
        ("chao-shen", "chao_shen"),
        ("shrink", "james_stein_shrink"),
        ("nsb", "NSB (K=11)"),
    ],
)
def test_entropy_of_the_documented_counts(oracles, method, key):
    # The example counts of the R package entropy; NSB = 2.187774463... nats, to 40 digits by quadrature.
    block = oracles["entropy_estimators"]
    found = estimators.entropy(block["counts"], method=method)
    assert found.value * LN2 == pytest.approx(float(block[key]), abs=1e-12)
    assert found.samples == 19 and found.kind == "estimate"


def test_nsb_of_the_r_manual():
    # R package entropy, manual: entropy.NSB of these counts is 2.187774.
    assert estimators.entropy([4, 2, 3, 0, 2, 4, 0, 0, 2, 1, 1]).value * LN2 == pytest.approx(2.187774, abs=5e-7)


def test_dirichlet_means(oracles):
    # Wolpert and Wolf 1995.
    block = oracles["entropy_estimators"]
    counts = np.array(block["counts"], float)
    for a, key in ((1.0, "dirichlet_posterior_mean a=1"), (0.5, "a=1/2"), (1 / 11, "a=1/K (Schurmann-Grassberger)")):
        assert dirichlet_mean(counts, a) == pytest.approx(float(block[key]), abs=1e-12)


def multinomial_tables(n, cells):
    for bars in itertools.combinations(range(n + cells - 1), cells - 1):
        edges = (-1, *bars, n + cells - 1)
        yield [b - a - 1 for a, b in itertools.pairwise(edges)]


def test_expected_estimates_of_mutual_information(oracles):
    # Exact expectation over all 2 x 2 tables of N samples.
    keys = {"plug-in": "E_plugin", "miller-madow": "E_miller_madow(observed cells)", "jackknife": "E_jackknife"}
    for row in oracles["mi_plugin_expectation"]["rows"]:
        if row["N"] > 10:
            continue
        log_p = np.log(np.array(row["P"], float).ravel())
        expected = dict.fromkeys(keys, 0.0)
        for table in multinomial_tables(row["N"], 4):
            t = np.array(table, float)
            weight = math.exp(gammaln(row["N"] + 1) - gammaln(t + 1).sum() + t @ log_p)
            for method in keys:
                value = estimators.mutual_information(t.reshape(2, 2), method=method).value
                expected[method] += weight * value * LN2
        for method, key in keys.items():
            assert expected[method] == pytest.approx(float(row[key]), abs=1e-12), (row["N"], method)


def test_corrections_reduce_the_bias_of_entropy():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(50))
    truth = -(p * np.log2(p)).sum()
    error = {}
    for method in ("plug-in", "miller-madow", "jackknife", "nsb", "chao-shen", "grassberger"):
        values = [estimators.entropy(rng.multinomial(60, p), method=method).value for _ in range(200)]
        error[method] = abs(np.mean(values) - truth)
    assert error["plug-in"] > 0.3
    for method in ("miller-madow", "jackknife", "nsb", "chao-shen", "grassberger"):
        assert error[method] < 0.6 * error["plug-in"], method
    assert error["nsb"] < 0.1


def test_entropy_of_one_cell_and_of_singles():
    assert estimators.entropy([5], method="nsb").value == 0.0
    assert math.isfinite(estimators.entropy([1, 1, 1], method="chao-shen").value)
    assert math.isfinite(estimators.entropy([1, 0, 0], method="jackknife").value)


def primes_sample():
    primes = [p for p in range(2, 120) if all(p % q for q in range(2, p))][:30]
    x = np.sqrt(primes) % 1.0
    return x, 0.7 * x + 0.3 * (np.cbrt(primes) % 1.0)


def test_ksg_oracle(oracles):
    # Tie-free sample of 30; KSG1 agrees with npeet_plus and infomeasure to 1e-12.
    x, y = primes_sample()
    for row in oracles["ksg"]["rows"]:
        for variant in (1, 2):
            found = estimators.ksg(x, y, k=row["k"], variant=variant, scale="none")
            assert found.value * LN2 == pytest.approx(float(row[f"KSG{variant}"]), abs=1e-12)
            # The k-d tree path gives the same, with a column that adds nothing to any distance.
            wide = np.column_stack([x, np.linspace(0.0, 1e-9, 30)])
            tree = estimators.ksg(wide, y, k=row["k"], variant=variant, scale="none")
            assert tree.value == pytest.approx(found.value, abs=1e-9)


def brute_ksg1(x, y, k):
    from scipy.special import digamma

    dx, dy = np.abs(x[:, None] - x), np.abs(y[:, None] - y)
    d = np.maximum(dx, dy)
    np.fill_diagonal(d, np.inf)
    radius = np.sort(d, axis=1)[:, k - 1]
    nx, ny = (dx < radius[:, None]).sum(1) - 1, (dy < radius[:, None]).sum(1) - 1
    return digamma(k) + digamma(len(x)) - (digamma(nx + 1) + digamma(ny + 1)).mean()


@pytest.mark.parametrize("seed", range(5))
def test_ksg_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_cauchy(200)
    y = rng.normal(size=200) + 0.5 * np.tanh(x)
    for k in (1, 3, 7):
        found = estimators.ksg(x, y, k=k, scale="none").value * LN2
        assert found == pytest.approx(brute_ksg1(x, y, k), abs=1e-12)


def test_ksg_of_correlated_gaussians(oracles):
    # I = -1/2 log2(1 - rho^2).
    rng = np.random.default_rng(1)
    for row in oracles["gauss_mi"]["rows"]:
        rho = float(row["rho"])
        x, e = rng.normal(size=(2, 4000))
        y = rho * x + math.sqrt(1 - rho * rho) * e
        for variant in (1, 2):
            assert estimators.ksg(x, y, variant=variant).value == pytest.approx(float(row["I"]), abs=0.06)


def test_ksg_does_not_depend_on_units():
    rng = np.random.default_rng(2)
    x = rng.normal(size=500)
    y = x + rng.normal(size=500)
    base = estimators.ksg(x, y).value
    assert estimators.ksg(1000 * x + 7, 0.001 * y).value == pytest.approx(base, abs=1e-9)
    copula = estimators.ksg(x, y, scale="copula").value
    assert estimators.ksg(np.exp(x), y**3, scale="copula").value == pytest.approx(copula, abs=1e-12)


def test_ksg_ties_are_refused_jittered_or_mixed():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, size=2000)
    y = x + 0.2 * rng.normal(size=2000)
    with pytest.raises(ValueError, match="x: column 0 repeats 1996 of 2000 values"):
        estimators.ksg(x, y)
    # I = h(Y) - h(noise), by quadrature of the mixture's density.
    grid = np.linspace(-2.0, 5.0, 20001)
    density = np.exp(-0.5 * ((grid[:, None] - np.arange(4)) / 0.2) ** 2).mean(1) / (0.2 * math.sqrt(2 * math.pi))
    truth = -np.trapezoid(density * np.log2(np.maximum(density, 1e-300)), grid)
    truth -= 0.5 * math.log2(2 * math.pi * math.e * 0.04)
    assert estimators.ksg(x, y, ties="mixed").value == pytest.approx(truth, abs=0.06)
    rounded = np.round(rng.normal(size=500), 3)
    first = estimators.ksg(rounded, rng.normal(size=500), ties="jitter", seed=5)
    assert abs(first.value) < 0.15 and "jitter" in first.method


def test_mixed_estimator_without_ties_is_ksg_1_up_to_log_n():
    from scipy.special import digamma

    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 400))
    shift = (math.log(400) - digamma(400)) / LN2
    mixed = estimators.ksg(x, y, ties="mixed").value
    assert mixed == pytest.approx(estimators.ksg(x, y).value + shift, abs=1e-12)


def test_mixed_estimator_of_two_discrete_columns_is_near_the_plug_in():
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, size=4000)
    y = np.where(rng.random(4000) < 0.1, 1 - x, x)
    table = np.histogram2d(x, y, bins=2)[0]
    plug_in = estimators.mutual_information(table, method="plug-in").value
    assert estimators.ksg(x, y, ties="mixed").value == pytest.approx(plug_in, abs=0.01)


def test_neural_estimate_says_what_it_is():
    pytest.importorskip("optax")
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(2, 4000))
    y = 0.8 * x + 0.6 * e
    found = estimators.neural(x, y, steps=400, batch=256)
    assert found.value == pytest.approx(-0.5 * math.log2(1 - 0.64), abs=0.12)
    assert "not a bound" in found.method and found.kind == "estimate"
    independent = estimators.neural(x, rng.normal(size=4000), steps=200, batch=256)
    assert abs(independent.value) < 0.08


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimators.entropy([1.5, 2]), "counts: expected whole numbers"),
        (lambda: estimators.entropy([0, 0]), "counts: expected at least one sample"),
        (lambda: estimators.entropy([1, 2], method="best"), "method: expected one of"),
        (lambda: estimators.mutual_information([1, 2]), "counts: expected 2 dimension"),
        (lambda: estimators.ksg([1.0, 2.0, 3.0], [1.0, 2.0]), "y: expected 3 samples"),
        (lambda: estimators.ksg([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]), "more than k"),
        (lambda: estimators.ksg(np.ones(10), np.arange(10.0)), "x: column 0 is constant"),
        (lambda: estimators.ksg(np.arange(9.0), np.arange(9.0), ties="mixed", variant=2), "variant"),
        (lambda: estimators.neural(np.arange(9.0), np.arange(9.0)), "at least 64"),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
