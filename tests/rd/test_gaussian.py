"""Gaussian rates against the oracles, large Toeplitz covariances and limits."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import toeplitz

from envrate import rd
from envrate.rd._spectra import CORRELATIONS, continuous, sampled


@pytest.fixture(scope="module")
def oracles(shared_data):
    return json.loads((shared_data / "rd_oracles.json").read_text())


def test_scalar(oracles):
    # R = 1/2 log2(s2 / D).
    for row in oracles["gauss_scalar"]["rows"]:
        assert rd.gaussian(float(row["s2"]), float(row["D"])).mid == pytest.approx(float(row["R"]), abs=1e-12)
    assert rd.gaussian(1.0, 2.0).upper == 0.0


def test_vector(oracles):
    # Reverse water-filling (Kolmogorov 1956), in a rotated basis.
    rng = np.random.default_rng(0)
    for row in oracles["gauss_vector"]["rows"]:
        eigenvalues = np.array(row["eig"], float)
        basis = np.linalg.qr(rng.normal(size=(len(eigenvalues),) * 2))[0]
        covariance = basis @ np.diag(eigenvalues) @ basis.T
        covariance = 0.5 * (covariance + covariance.T)
        bracket = rd.gaussian_vector(covariance, float(row["D_total"]))
        assert bracket.mid == pytest.approx(float(row["R_total"]), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8), st.floats(1e-6, 0.999))
def test_water_level_fills_to_the_distortion(variances, share):
    values = np.array(variances)
    theta = rd._gaussian.water_level(values, share * values.sum())
    assert np.minimum(values, theta).sum() == pytest.approx(share * values.sum(), rel=1e-12)


def test_first_order_autoregression(oracles):
    # AR(1) of variance 1 is "ou" at a tick with a = exp(-tick / timescale); Berger 1971, section 4.5.
    for row in oracles["ar1"]["rows"]:
        a, rate = float(row["a"]), float(row["R"])
        bracket = rd.gaussian_process("ou", float(row["D"]), tick_ms=-1000.0 * math.log(a))
        assert bracket.mid == pytest.approx(rate, abs=1e-12)
        assert bracket.lower - 1e-13 <= rate <= bracket.upper + 1e-13


def test_ornstein_uhlenbeck_in_continuous_time(oracles):
    # D / s2 = 1 - (2 / pi)(atan u - u / (1 + u^2)), R = g (u - atan u) / (pi ln 2) bits per unit of time.
    for row in oracles["ou"]["rows"]:
        bracket = rd.gaussian_process("ou", float(row["D"]))
        assert bracket.mid == pytest.approx(float(row["R_bits_per_time"]), rel=1e-12)
        # Time and variance scale out.
        scaled = rd.gaussian_process("ou", 3.0 * float(row["D"]), timescale_ms=500.0, variance=3.0)
        assert scaled.mid == pytest.approx(2.0 * bracket.mid, rel=1e-12)


def test_quadrature_in_continuous_time_encloses_the_closed_form():
    for D in (0.01, 0.1, 0.5, 0.9):
        closed = rd.gaussian_process("ou", D).mid
        bracket = rd.gaussian_process(None, D, spectrum=lambda w: 2.0 / (1.0 + w * w))
        assert bracket.lower <= closed <= bracket.upper
        assert bracket.width < 1e-6 * max(1.0, closed)


@pytest.mark.parametrize("kernel", sorted(CORRELATIONS))
@pytest.mark.parametrize("tick_ms", [200.0, 400.0, 700.0])
def test_sampled_process_against_a_large_covariance(kernel, tick_ms):
    # R of n samples, over n, tends to the process's rate like 1 / n: two sizes extrapolate it.
    D = 0.1
    rates = []
    for n in (300, 600):
        covariance = toeplitz(CORRELATIONS[kernel](np.arange(n) * tick_ms / 1000.0))
        rates.append(rd.gaussian_vector(covariance, D * n).mid / n)
    bracket = rd.gaussian_process(kernel, D, tick_ms=tick_ms)
    assert bracket.width < 1e-12
    assert bracket.mid == pytest.approx(2 * rates[1] - rates[0], abs=3e-5)


@pytest.mark.parametrize("kernel", sorted(CORRELATIONS))
def test_a_short_tick_tends_to_continuous_time(kernel):
    per_second = rd.gaussian_process(kernel, 0.1)
    tick = rd.gaussian_process(kernel, 0.1, tick_ms=2.0)
    assert tick.mid * 500.0 == pytest.approx(per_second.mid, rel=3e-4)


@pytest.mark.parametrize("kernel", sorted(CORRELATIONS))
@pytest.mark.parametrize("ratio", [0.05, 0.3, 0.49, 0.51, 2.0])
def test_spectrum_with_aliasing_is_the_sum_over_lags(kernel, ratio):
    w = np.linspace(0.0, math.pi, 7)
    table = CORRELATIONS[kernel](ratio * np.arange(4000))
    direct = table[0] + 2.0 * np.cos(np.outer(w, np.arange(1, 4000))) @ table[1:]
    assert np.allclose(sampled(kernel, ratio)(w), direct, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kernel", sorted(CORRELATIONS))
def test_continuous_spectrum_is_the_kernels_transform(kernel):
    # c(t) = (1 / pi) int S cos(w t) dw.
    w = np.linspace(0.0, 4000.0, 2_000_001)
    s = continuous(kernel, 1.0)(w)
    for lag in (0.0, 0.7):
        value = np.trapezoid(s * np.cos(w * lag), w) / math.pi
        assert value == pytest.approx(float(CORRELATIONS[kernel](np.array(lag))), abs=3e-4)


def test_functions_tables_and_spectra_agree_with_names():
    tick = 300.0
    named = rd.gaussian_process("matern32", 0.2, tick_ms=tick)
    function = rd.gaussian_process(lambda lag: CORRELATIONS["matern32"](lag / 1000.0), 0.2, tick_ms=tick)
    table = rd.gaussian_process(CORRELATIONS["matern32"](np.arange(200) * 0.3), 0.2, tick_ms=tick)
    spectrum = rd.gaussian_process(None, 0.2, tick_ms=tick, spectrum=sampled("matern32", 0.3))
    for other in (function, table, spectrum):
        assert other.mid == pytest.approx(named.mid, abs=1e-11)


def test_independent_outputs_share_one_water_level():
    # Two outputs of white noise are a vector of two letters.
    bracket = rd.gaussian_process((1.0,), 1.0, tick_ms=1.0, variance=[4.0, 0.5])
    assert bracket.mid == pytest.approx(rd.gaussian_vector(np.diag([4.0, 0.5]), 1.0).mid, abs=1e-12)
    twice = rd.gaussian_process("rbf", 0.2, tick_ms=500.0, variance=[1.0, 1.0])
    assert twice.mid == pytest.approx(2.0 * rd.gaussian_process("rbf", 0.1, tick_ms=500.0).mid, abs=1e-11)


def test_spectra_with_several_humps():
    # A comb with a gap: constant spectrum 2 on half the band is a vector whose half the components are 0.
    def spectrum(w):
        return np.where((w > 1.0) & (w < 2.0), 3.0, 0.0) + np.where(w > 2.5, 1.0, 0.0)

    d = 0.2
    bracket = rd.gaussian_process(None, d, tick_ms=1.0, spectrum=spectrum)
    scale = (3.0 + (math.pi - 2.5)) / math.pi
    widths = np.array([1.0, math.pi - 2.5]) / math.pi
    levels = np.array([3.0, 1.0]) / scale
    theta = d / widths.sum()  # all of it above the water
    assert theta < levels.min()
    assert bracket.mid == pytest.approx(float((0.5 * widths * np.log2(levels / theta)).sum()), abs=1e-9)


def test_nothing_is_needed_from_the_variance_on():
    assert rd.gaussian_process("rbf", 1.0, tick_ms=10.0).upper == 0.0
    assert rd.gaussian_vector(np.eye(2), 2.0).upper == 0.0


def test_agreement_with_blahut_arimoto():
    # Sampling the density is exact but for exp(-2 pi^2 D / h^2); here h <= 0.8 sqrt(D).
    found = rd.gaussian_agreement()
    assert found.largest_difference < 1e-10
    assert ((found.upper - found.lower) <= 1e-10).all()
    assert rd.gaussian_agreement([1.0], variance=4.0).closed_form[0] == 1.0
    # Too coarse a grid is seen: h = 0.34 at D = 0.1 shifts the rate by 1.2e-7.
    coarse = rd.gaussian_agreement([0.1], points=48)
    assert coarse.largest_difference == pytest.approx(1.156e-7, rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rd.gaussian(0.0, 1.0), "variance"),
        (lambda: rd.gaussian(1.0, 0.0), "D: expected"),
        (lambda: rd.gaussian_vector([[1, 2], [2, 1]], 0.1), "covariance: smallest eigenvalue -1"),
        (lambda: rd.gaussian_vector([[1, 0.5], [0.2, 1]], 0.1), "expected a symmetric matrix"),
        (lambda: rd.gaussian_process("linear", 0.1), "kernel: expected one of"),
        (lambda: rd.gaussian_process((1.0, 0.9, 0.1), 0.1, tick_ms=1.0), "positive semidefinite"),
        (lambda: rd.gaussian_process(lambda lag: np.exp(-lag), 0.1), "tick_ms: expected a tick"),
        (lambda: rd.gaussian_process(lambda lag: 2 * np.exp(-lag), 0.1, tick_ms=1.0), "1 at lag 0"),
        (lambda: rd.gaussian_process(np.cos, 0.1, tick_ms=1.0), "died out"),
        (lambda: rd.gaussian_process(None, 0.1), "kernel: expected a kernel or a spectrum"),
        (lambda: rd.gaussian_process(None, 0.1, tick_ms=1.0, spectrum=lambda w: np.cos(w)), "expected values >= 0"),
        (lambda: rd.gaussian_process("ou", 0.1, variance=-1.0), "variance"),
        (lambda: rd.gaussian_agreement([2.0]), "distortions"),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
