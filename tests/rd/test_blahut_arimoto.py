"""R(D) of discrete sources against closed forms and oracle values, at a distortion, at a slope and at the ends."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rd_certificates import bounds

from envrate import rd

HAMMING2 = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.fixture(scope="module")
def oracles(shared_data):
    return json.loads((shared_data / "rd_oracles.json").read_text())


def encloses(pmf, distortion, D, rate):
    """Certifies R(D), checks that the bracket holds `rate` and both bounds evaluated anew, and returns the point."""
    point = rd.blahut_arimoto(pmf, distortion, D=D)
    assert point.lower - 1e-12 <= rate <= point.upper + 1e-12
    assert point.upper - point.lower <= 1e-9
    assert point.distortion == D
    lower, information, mean = bounds(pmf, distortion, point)
    assert point.lower <= lower + 1e-11
    assert information <= point.upper + 1e-11
    assert mean <= D * (1 + 1e-11) + 1e-15
    return point


def h(x):
    return float(-x * np.log2(x) - (1 - x) * np.log2(1 - x))


def entropy(p):
    p = np.asarray(p)[np.asarray(p) > 0]
    return float(-(p * np.log2(p)).sum())


# -- oracle values ------------------------------------------------------------------------------------------------


def test_bernoulli_hamming(oracles):
    # R = h(p) - h(D); Shannon 1959, Cover & Thomas theorem 10.3.1
    for row in oracles["bernoulli_hamming"]["rows"]:
        p, D = float(row["p"]), float(row["D"])
        point = encloses([1 - p, p], HAMMING2, D, float(row["R"]))
        assert point.slope == pytest.approx(np.log2((1 - D) / D), rel=1e-5)


def test_hamming_on_larger_alphabets(oracles):
    # Erokhin 1958; Pinkston 1966
    block = oracles["hamming_general"]
    laws = {
        "p=[0.5,0.3,0.2]": np.array([0.5, 0.3, 0.2]),
        "p_i prop 1/(i+1), i=0..63 (Zipf-1, 64)": 1 / np.arange(1, 65),
        "uniform N=4 (Wolpaw ITR with P=1-D)": np.ones(4),
    }
    for name, p in laws.items():
        for row in block[name]:
            encloses(p / p.sum(), 1 - np.eye(len(p)), float(row["D"]), float(row["R"]))


def test_erasure(oracles):
    # H(X) - D max{H(r): r <= p / D}
    for row in oracles["erasure"]["rows"]:
        p = np.array(row["p"], float)
        d = np.full((len(p), len(p) + 1), np.inf)
        np.fill_diagonal(d, 0.0)
        d[:, -1] = 1.0
        encloses(p, d, float(row["D"]), float(row["R"]))


def test_weighted_binary(oracles):
    # V(s) in closed form from the full-support condition (Berger 1971, chapter 2)
    for row in oracles["weighted_binary"]["rows"]:
        p = float(row["P(X=1)"])
        false_alarm, miss = float(row["d01(false alarm, x=0,y=1)"]), float(row["d10(miss, x=1,y=0)"])
        d = np.array([[0.0, false_alarm], [miss, 0.0]])
        encloses([1 - p, p], d, float(row["D"]), float(row["R"]))


@pytest.mark.parametrize("block", ["ternary_asymmetric", "nonzero_Dmin_4x3"])
def test_small_matrices(oracles, block):
    # Newton in 40 digits on Blahut's conditions
    p, d = np.array(oracles[block]["p"], float), np.array(oracles[block]["d"], float)
    for row in oracles[block]["rows"]:
        point = encloses(p, d, float(row["D"]), float(row["R"]))
        np.testing.assert_allclose(point.output, np.array(row["q"], float), atol=2e-5)


def test_wolpaw_and_fano(oracles):
    for row in oracles["wolpaw_fano"]["rows"]:
        n = row["N"]
        encloses(np.full(n, 1 / n), 1 - np.eye(n), 1 - float(row["P"]), float(row["B"]))


def grid_source(row):
    """pmf and squared error on the grid that an oracle row describes."""
    if "source" in row:
        end = float(row["source"].split(",")[1])
        n = 400
        density = {
            14.0: lambda x: np.exp(-np.sqrt(2) * np.abs(x)),
            6.0: lambda x: np.exp(-((x + 1.2) ** 2) / 0.6) + 0.5 * np.exp(-((x - 1.5) ** 2) / 0.2),
            1.73: np.ones_like,
        }[end]
    else:
        n, end, density = row["n"], row["L"], lambda x: np.exp(-x * x / 2)
    x = np.linspace(-end, end, n)
    return density(x) / density(x).sum(), (x[:, None] - x) ** 2


def test_non_gaussian_sources_on_a_grid(oracles):
    # brackets of an independent solver, 1e-11 to 1e-13 wide
    for row in oracles["discretised_nongaussian_mse"]["rows"]:
        pmf, d = grid_source(row)
        point = rd.blahut_arimoto(pmf, d, D=row["D"])
        low, high = map(float, row["R_bracket"])
        assert point.lower <= high + 1e-12 and low <= point.upper + 1e-12
        assert point.upper - point.lower <= 1e-9


def test_gaussian_on_a_grid(oracles):
    # agrees with 0.5 log2(1 / D) where the grid is fine: error exp(-2 pi^2 D / h^2) (Poisson summation)
    for row in oracles["discretised_gaussian"]["rows"]:
        if row["pmf"] != "pdf" or row["n"] > 400:
            continue
        pmf, d = grid_source(row)
        point = rd.blahut_arimoto(pmf, d, D=row["D"])
        low, high = map(float, row["R_bracket"])
        assert point.lower <= high + 1e-12 and low <= point.upper + 1e-12
        if row["L"] >= 8 and (2 * row["L"] / (row["n"] - 1)) <= 0.85 * np.sqrt(row["D"]):
            assert point.rate == pytest.approx(0.5 * np.log2(1 / row["D"]), abs=1e-9)


# -- ends, slopes, degenerate input ---------------------------------------------------------------------------------


def test_at_d_min_the_rate_is_that_of_the_nearest_reproductions():
    p = np.array([0.5, 0.3, 0.2])
    assert rd.blahut_arimoto(p, 1 - np.eye(3), D=0.0).rate == pytest.approx(entropy(p), abs=1e-9)
    # letters 1 and 2 share their nearest reproduction, so they need not be told apart; D_min = 0.3 * 2 + 0.2 * 1
    d = np.array([[0.0, 5.0], [7.0, 2.0], [4.0, 1.0]])
    point = encloses(p, d, 0.8, 1.0)
    assert point.slope == np.inf
    assert rd.blahut_arimoto(p, d, slope=np.inf).distortion == pytest.approx(0.8, abs=1e-12)


def test_beyond_d_max_the_rate_is_zero_and_the_output_constant():
    point = rd.blahut_arimoto([0.7, 0.3], HAMMING2, D=0.4)
    assert point.rate == point.lower == point.upper == 0.0
    np.testing.assert_array_equal(point.output, [1, 0])
    assert rd.blahut_arimoto([0.7, 0.3], HAMMING2, D=0.3).rate == 0.0
    assert rd.blahut_arimoto([0.7, 0.3], HAMMING2, slope=0.0).distortion == pytest.approx(0.3)


@pytest.mark.parametrize("slope", [0.3, 1.0, 4.0, 20.0])
def test_at_a_slope_the_point_is_on_the_curve(slope):
    p, d = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 1, 4], [2, 0, 1], [5, 2, 0]])
    point = rd.blahut_arimoto(p, d, slope=slope)
    assert point.slope == pytest.approx(slope)
    assert point.upper - point.lower <= 1e-9
    assert rd.blahut_arimoto(p, d, D=point.distortion).rate == pytest.approx(point.rate, abs=2e-9)
    lower, information, mean = bounds(p, d, point)
    assert mean == pytest.approx(point.distortion, rel=1e-9)
    assert point.lower <= lower + 1e-11 and information <= point.upper + 1e-11


def test_bernoulli_at_a_slope():
    # slope = log2((1-D)/D) for the binary source
    slope = float(np.log2(0.9 / 0.1))
    point = rd.blahut_arimoto([0.7, 0.3], HAMMING2, slope=slope)
    assert point.distortion == pytest.approx(0.1, abs=1e-5)
    assert point.rate == pytest.approx(h(0.3) - h(point.distortion), abs=1e-9)


def test_a_straight_piece_of_the_curve_is_certified():
    # two letters, a reproduction each and one in between: R(D) touches a chord, where the slope does not tell D
    p = np.full(4, 0.25)
    d = np.array([[0, 3, 3, 3, 1.0], [3, 0, 3, 3, 1.0], [3, 3, 0, 3, 1.0], [3, 3, 3, 0, 1.0]])
    slopes = [rd.blahut_arimoto(p, d, D=D).slope for D in (0.3, 0.5, 0.7)]
    for D in np.linspace(0.01, 0.99, 15):
        point = rd.blahut_arimoto(p, d, D=float(D))
        lower, information, mean = bounds(p, d, point)
        assert point.lower <= lower + 1e-11 and information <= point.upper + 1e-11 and mean <= D * (1 + 1e-11)
    assert np.ptp(slopes) < 1e-6


def test_letters_of_zero_probability_change_nothing():
    p, d = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 1, 4], [2, 0, 1], [5, 2, 0]])
    plain = rd.blahut_arimoto(p, d, D=0.4)
    padded = rd.blahut_arimoto([0.5, 0.0, 0.3, 0.2, 0.0], d[[0, 2, 1, 2, 0]], D=0.4)
    assert padded.rate == pytest.approx(plain.rate, abs=1e-9)
    assert padded.channel.shape == (5, 3)
    np.testing.assert_allclose(padded.channel.sum(axis=1), 1.0)
    np.testing.assert_allclose(padded.channel[[0, 2, 3]], plain.channel, atol=1e-4)
    # a letter that never comes may even have no reproduction
    assert rd.blahut_arimoto([0.7, 0.3, 0.0], [[0, 1], [1, 0], [np.inf, np.inf]], D=0.1).rate == pytest.approx(
        h(0.3) - h(0.1), abs=1e-9
    )


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_units_of_distortion_do_not_matter(scale):
    p, d = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 1, 4], [2, 0, 1], [5, 2, 0]])
    assert rd.blahut_arimoto(p, scale * d, D=scale * 0.4).rate == pytest.approx(
        rd.blahut_arimoto(p, d, D=0.4).rate, abs=1e-9
    )


def test_tails_of_1e_15_and_rectangular_matrices():
    p = np.array([0.5, 0.3, 0.2 - 2e-15, 1e-15, 1e-15])
    d = np.random.default_rng(0).random((5, 9))
    point = rd.blahut_arimoto(p, d, D=0.3)
    assert point.upper - point.lower <= 1e-9
    assert point.channel.shape == (5, 9) and point.output.shape == (9,)


def test_a_tighter_tolerance_is_met():
    point = rd.blahut_arimoto(np.array([0.5, 0.3, 0.2]), 1 - np.eye(3), D=0.1, tol=1e-11)
    assert point.upper - point.lower <= 1e-11
    assert point.rate == pytest.approx(0.91647970363805309825, abs=1e-11)


def test_a_bracket_that_stays_wide_is_refused_with_its_ends(monkeypatch):
    from envrate.rd import _solve

    wide = _solve.Solution(0.5, 0.75, 0.1, 1.0, np.ones(2) / 2, lambda: np.eye(2), _solve.NOT_CERTIFIED)
    monkeypatch.setattr(_solve, "solve", lambda *_, **__: wide)
    with pytest.raises(ValueError, match=r"tol: certified only to \[0.5, 0.75\] bits, wider than tol=1e-09"):
        rd.blahut_arimoto(np.array([0.7, 0.3]), HAMMING2, D=0.1)


@pytest.mark.parametrize(
    ("pmf", "distortion", "options", "message"),
    [
        ([0.7, 0.4], HAMMING2, {"D": 0.1}, "pmf: sums to 1.1"),
        ([1.3, -0.3], HAMMING2, {"D": 0.1}, "pmf: entry 1 is -0.3"),
        ([0.7, np.nan], HAMMING2, {"D": 0.1}, r"pmf: entry \[1\] is nan"),
        ([0.7, 0.3], [[0, 1, 2]], {"D": 0.1}, r"distortion: expected shape \(2, M\)"),
        ([0.7, 0.3], [0, 1], {"D": 0.1}, r"distortion: expected shape \(2, M\)"),
        ([0.7, 0.3], [[0, -1], [1, 0]], {"D": 0.1}, r"distortion: entry \(0, 1\) is -1"),
        ([0.7, 0.3], [[0, np.nan], [1, 0]], {"D": 0.1}, r"distortion: entry \(0, 1\) is nan"),
        ([0.7, 0.3], [[0, 1], [np.inf, np.inf]], {"D": 0.1}, "distortion: row 1 is inf throughout"),
        ([0.7, 0.3], [[1, 2], [3, 1]], {"D": 0.5}, "D: 0.5 is below D_min = 1"),
        ([0.7, 0.3], HAMMING2, {"D": -0.1}, "D: expected a number"),
        ([0.7, 0.3], HAMMING2, {"D": np.nan}, "D: expected a number"),
        ([0.7, 0.3], HAMMING2, {"slope": -1.0}, "slope: expected a number"),
        ([0.7, 0.3], HAMMING2, {}, "D, slope: expected exactly one"),
        ([0.7, 0.3], HAMMING2, {"D": 0.1, "slope": 1.0}, "D, slope: expected exactly one"),
        ([0.7, 0.3], HAMMING2, {"D": 0.1, "tol": 0.0}, "tol: expected a number"),
    ],
)
@pytest.mark.parametrize("kind", [list, np.asarray])
def test_bad_input_is_named(pmf, distortion, options, message, kind):
    with pytest.raises(ValueError, match=message):
        rd.blahut_arimoto(kind(pmf), np.asarray(distortion, float), **options)
