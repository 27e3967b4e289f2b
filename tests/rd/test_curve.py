"""The curve R(D): bounds between points, interpolation, inverse, plot, and the demand of tasks."""

from __future__ import annotations

import numpy as np
import pytest

import envrate as er
from envrate import rd


def h(x):
    return -x * np.log2(x) - (1 - x) * np.log2(1 - x)


@pytest.fixture(scope="module")
def binary():
    """Bernoulli(0.3), Hamming: R = h(0.3) - h(D)."""
    return rd.curve([0.7, 0.3], [[0, 1], [1, 0]])


def test_bounds_enclose_the_closed_form_between_points(binary):
    D = np.linspace(1e-4, 0.2999, 3001)
    lower, upper = binary.bounds(D)
    exact = h(0.3) - h(D)
    assert (lower <= exact + 1e-12).all() and (exact <= upper + 1e-12).all()
    assert (upper - lower).max() < 1e-3
    rate = binary.rate(D)
    assert (lower <= rate).all() and (rate <= upper).all()
    np.testing.assert_allclose(rate, exact, atol=4e-5)
    bracket = binary.bracket(0.1)
    assert bracket.lower <= h(0.3) - h(0.1) <= bracket.upper


def test_points_are_certified_and_span_the_curve(binary):
    assert binary.distortion[0] == 0.0 and binary.distortion[-1] == pytest.approx(0.3)
    assert (np.diff(binary.distortion) > 0).all()
    assert (binary.upper - binary.lower <= 1e-9).all()
    assert binary.upper[-1] == 0.0 and binary.slope[0] == np.inf
    assert binary.rate(0.0) == pytest.approx(h(0.3), abs=1e-9)
    assert binary.rate(0.9) == 0.0


def test_inverse_and_slope(binary):
    D = np.linspace(0.01, 0.29, 50)
    np.testing.assert_allclose(binary.distortion_at(h(0.3) - h(D)), D, atol=2e-6)
    np.testing.assert_allclose(binary.slope_at(D), np.log2((1 - D) / D), rtol=0.01)
    assert binary.distortion_at(5.0) == 0.0
    assert binary.distortion_at(0.0) == pytest.approx(0.3, abs=1e-6)
    assert binary.slope_at(0.5) == 0.0


def test_a_curve_without_slopes_still_bounds(binary):
    blind = rd.RDCurve(binary.distortion, binary.lower, binary.upper, np.full(len(binary.slope), np.nan))
    D = np.linspace(1e-4, 0.2999, 501)
    lower, upper = blind.bounds(D)
    exact = h(0.3) - h(D)
    assert (lower <= exact + 1e-12).all() and (exact <= upper + 1e-12).all()
    np.testing.assert_allclose(blind.distortion_at(h(0.3) - h(0.1)), 0.1, atol=1e-3)


def test_straight_pieces_and_rates_that_never_reach_zero():
    p = np.full(4, 0.25)
    d = np.array([[0, 3, 3, 3, 1.0], [3, 0, 3, 3, 1.0], [3, 3, 0, 3, 1.0], [3, 3, 3, 0, 1.0]])
    line = rd.curve(p, d)
    np.testing.assert_allclose(line.rate([0.4, 0.6]), [1.2, 0.8], atol=0.2)
    stuck = rd.curve([0.6, 0.4], [[0, 1, np.inf], [np.inf, np.inf, 0]])  # the two letters can never be confused
    np.testing.assert_allclose(stuck.rate([0.0, 0.1, 5.0]), h(0.4), atol=1e-9)


def test_a_source_that_costs_nothing_is_one_point():
    free = rd.curve([0.5, 0.5], [[0.0, 1.0], [0.0, 1.0]])
    assert len(free.distortion) == 1
    assert free.rate(0.0) == 0.0 and free.rate(1.0) == 0.0


def test_agrees_with_single_points_on_a_fine_grid():
    x = np.linspace(-8, 8, 120)
    p = np.exp(-np.abs(x))
    p /= p.sum()
    d = (x[:, None] - x) ** 2
    points = rd.curve(p, d, num=17)
    for k in (1, 8, 15):
        alone = rd.blahut_arimoto(p, d, D=float(points.distortion[k]))
        assert alone.lower <= points.upper[k] + 1e-12 and points.lower[k] <= alone.upper + 1e-12


def test_plot(binary, tmp_path):
    axes = binary.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert "bits/letter" in axes.get_ylabel()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: rd.curve([0.7, 0.3], [[0, 1], [1, 0]], num=1), "num: expected an integer >= 2"),
        (lambda c: rd.curve([0.7, 0.3], [[0, 1], [np.inf, np.inf]]), "distortion: row 1 is inf"),
        (lambda c: c.rate(-0.1), "D: -0.1 is below D_min = 0"),
        (lambda c: c.rate(np.nan), "D: entry"),
        (lambda c: c.distortion_at(-1.0), "rate: -1 is negative"),
    ],
)
def test_bad_input_is_named(binary, call, message):
    with pytest.raises(ValueError, match=message):
        call(binary)


def test_demand_curve_of_a_memoryless_task():
    # "alert": two equally likely responses at 2 Hz, all weights 1: R(D) = 2 (1 - h(D)) bits/s
    points = er.tasks.get("alert").demand_curve()
    assert points.rate_unit == "bits/s"
    assert points.rate(0.0) == pytest.approx(2.0, abs=1e-8)
    np.testing.assert_allclose(points.rate([0.1, 0.3]), 2 * (1 - h(np.array([0.1, 0.3]))), atol=1e-4)


def test_demand_curve_of_a_task_with_memory():
    # "hold": a binary symmetric Markov chain with p = 0.1, T = 500 ms; R(0) = 2 h(0.1), R is 0 from 1/2 on
    task = er.tasks.get("hold")
    points = task.demand_curve()
    lower, upper = points.bounds(0.0)
    assert lower - 1e-9 <= 2 * h(0.1) <= upper + 1e-9
    assert (points.lower <= points.upper).all()
    assert points.upper[-1] == 0.0
    alone = task.demand(0.1)
    low, high = points.bounds(0.1)
    assert low <= alone.upper and alone.lower <= high
