"""Closed forms for declared structures, and their detection by the general solver."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rd_certificates import bounds

from envrate import rd
from envrate.rd import _structured


@pytest.fixture(scope="module")
def oracles(shared_data):
    return json.loads((shared_data / "rd_oracles.json").read_text())


def h(x):
    return float(-x * np.log2(x) - (1 - x) * np.log2(1 - x))


def entropy(p):
    p = np.asarray(p)[np.asarray(p) > 0]
    return float(-(p * np.log2(p)).sum())


def test_hamming_oracles(oracles):
    # Erokhin 1958: theta = 1 - D, the k largest letters, alpha = (P_k / theta - 1) / (k - 1)
    block = oracles["hamming_general"]
    zipf = 1 / np.arange(1, 65)
    laws = {
        "p=[0.5,0.3,0.2]": np.array([0.5, 0.3, 0.2]),
        "p_i prop 1/(i+1), i=0..63 (Zipf-1, 64)": zipf / zipf.sum(),
        "uniform N=4 (Wolpaw ITR with P=1-D)": np.full(4, 0.25),
    }
    for name, p in laws.items():
        for row in block[name]:
            assert rd.hamming(p, float(row["D"])) == pytest.approx(float(row["R"]), abs=1e-12)
    for row in oracles["bernoulli_hamming"]["rows"]:
        p = float(row["p"])
        assert rd.hamming([1 - p, p], float(row["D"])) == pytest.approx(float(row["R"]), abs=1e-12)
    for row in oracles["wolpaw_fano"]["rows"]:
        assert rd.hamming(np.full(row["N"], 1 / row["N"]), 1 - row_accuracy(row)) == pytest.approx(
            float(row["B"]), abs=1e-12
        )


def row_accuracy(row):
    return float(row["P"])


def test_hamming_ends_and_zero_letters():
    p = np.array([0.5, 0.3, 0.2])
    assert rd.hamming(p, 0.0) == pytest.approx(entropy(p), abs=1e-14)
    assert rd.hamming(p, 0.5) == 0.0 and rd.hamming(p, 0.9) == 0.0
    assert rd.hamming([0.5, 0.0, 0.3, 0.2], 0.0) == pytest.approx(entropy(p), abs=1e-14)
    # for D <= (n-1) p_min: H - h(D) - D log2(n-1)
    assert rd.hamming(p, 0.2) == pytest.approx(entropy(p) - h(0.2) - 0.2, abs=1e-14)


def test_erasure_oracles(oracles):
    for row in oracles["erasure"]["rows"]:
        p = np.array(row["p"], float)
        assert rd.erasure(p, float(row["D"])) == pytest.approx(float(row["R"]), abs=1e-12)
    assert rd.erasure([0.7, 0.3], 0.0) == pytest.approx(h(0.3), abs=1e-14)
    assert rd.erasure([0.7, 0.3], 1.0) == 0.0
    # below (1-D) H(X), which is time sharing, unless the source is uniform
    assert rd.erasure([0.7, 0.3], 0.4) < 0.6 * h(0.3) - 0.04


def test_weighted_binary_oracles(oracles):
    for row in oracles["weighted_binary"]["rows"]:
        p, D = float(row["P(X=1)"]), float(row["D"])
        costs = {"false_alarm": float(row["d01(false alarm, x=0,y=1)"]), "miss": float(row["d10(miss, x=1,y=0)"])}
        assert rd.weighted_binary(p, D, **costs) == pytest.approx(float(row["R"]), abs=1e-12)
        assert rd.weighted_binary(p, float(row["Dmax"]), **costs) == 0.0
    assert rd.weighted_binary(0.3, 0.0, false_alarm=1.0, miss=2.0) == pytest.approx(h(0.3), abs=1e-14)
    # equal costs c: h(p) - h(D / c)
    assert rd.weighted_binary(0.3, 0.3, false_alarm=3.0, miss=3.0) == pytest.approx(h(0.3) - h(0.1), abs=1e-12)
    assert rd.weighted_binary(0.0, 0.0, false_alarm=1.0, miss=1.0) == 0.0


def test_circulant_contains_hamming_and_agrees_with_the_solver():
    # uniform Hamming: log2 K - h(D) - D log2(K - 1)
    row = np.array([0.0, 1, 1, 1])
    assert rd.circulant(row, 0.25) == pytest.approx(0.79248125036057809073, abs=1e-12)
    ring = np.minimum(np.arange(12), 12 - np.arange(12)) ** 1.5
    d = np.array([np.roll(ring, x) for x in range(12)])
    for D in (0.05, 0.5, 2.0):
        point = rd.blahut_arimoto(np.full(12, 1 / 12), d, D=D)
        assert point.lower - 1e-12 <= rd.circulant(ring, D) <= point.upper + 1e-12
    assert rd.circulant(ring, 0.0) == pytest.approx(np.log2(12))
    assert rd.circulant(ring, float(ring.mean())) == 0.0
    assert rd.circulant([1.0, 3.0], 1.5) == pytest.approx(1 - h(0.25), abs=1e-12)
    assert rd.circulant([0.0, np.inf, 1.0], 0.1) == pytest.approx(np.log2(3) - h(0.1), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_structures_are_detected_and_their_law_certifies_at_once(seed, monkeypatch):
    """With every iterative solver gone, only a law that is right can certify."""
    from envrate.rd import _solve

    def gone(*_):
        raise AssertionError("no solver should be needed")

    for solver in ("_by_coarser_grid", "_by_newton", "_by_interior_point"):
        monkeypatch.setattr(_solve, solver, gone)
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(7))
    erasing = np.full((7, 8), np.inf)
    np.fill_diagonal(erasing, 0.0)
    erasing[:, 7] = 2.5
    ring = rng.random(9)
    ring[0] = 0.0
    grid = np.linspace(-8, 8, 48)
    normal = np.exp(-0.5 * grid**2)
    for pmf, d, D, rate in (
        (p, 3.0 * (1 - np.eye(7)), 0.6, rd.hamming(p, 0.2)),
        (p, erasing, 1.0, rd.erasure(p, 0.4)),
        (p[:2] / p[:2].sum(), np.array([[0, 2.0], [1.0, 0]]), 0.05, None),
        (p[:2] / p[:2].sum(), np.array([[2.0, 0], [0, 1.0]]), 0.05, None),
        (np.full(9, 1 / 9), np.array([np.roll(ring, x) for x in range(9)]), 0.2, rd.circulant(ring, 0.2)),
        (normal / normal.sum(), (grid[:, None] - grid) ** 2, 0.25, 1.0),
    ):
        point = rd.blahut_arimoto(pmf, d, D=D)
        lower, information, mean = bounds(pmf, d, point)
        assert point.upper - point.lower <= 1e-9
        assert point.lower <= lower + 1e-11 and information <= point.upper + 1e-11 and mean <= D * (1 + 1e-11)
        if rate is not None:
            assert point.lower - 1e-9 <= rate <= point.upper + 1e-9


def test_what_only_looks_like_a_structure_is_solved_rightly():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(5))
    almost = 1 - np.eye(5)
    almost[2, 3] = 1.01
    assert not _structured._is_hamming(almost)
    point = rd.blahut_arimoto(p, almost, D=0.2)
    assert rd.hamming(p, 0.2) - 1e-9 <= point.upper and point.upper - point.lower <= 1e-9
    # a circulant distortion with a source that is not uniform
    ring = np.array([np.roll([0.0, 1, 2, 1], x) for x in range(4)])
    point = rd.blahut_arimoto(np.array([0.4, 0.3, 0.2, 0.1]), ring, D=0.3)
    assert point.upper - point.lower <= 1e-9 and point.upper < rd.circulant(ring[0], 0.3)


def test_difference_distortion_on_a_grid_is_seen_as_such():
    from envrate.rd._kernels import is_toeplitz, kernel

    x = np.linspace(-3, 3, 50)
    d = np.abs(x[:, None] - x[None, 10:30]) ** 1.3
    assert is_toeplitz(d)
    filled, plain = np.empty_like(d), np.empty_like(d)
    work = np.empty(70, np.int64)
    kernel(d, 2.0, True, filled, work)
    kernel(d, 2.0, False, plain, work)
    np.testing.assert_allclose(filled, plain, rtol=1e-11)
    np.testing.assert_allclose(plain, np.exp(-2.0 * d), rtol=1e-13)
    d[7, 9] += 1e-6
    assert not is_toeplitz(d)


@pytest.mark.parametrize("columns", [slice(None), slice(20, 380)])
def test_a_long_toeplitz_kernel_is_cut_to_a_band_that_passes_do_not_leave(columns):
    from envrate.rd._kernels import NEGLIGIBLE, gradient, kernel

    x = np.linspace(-14, 14, 400)
    d = (x[:, None] - x[None, columns]) ** 2
    m = d.shape[1]
    whole, cut = np.empty_like(d), np.empty_like(d)
    work = np.empty(400 + m, np.int64)
    everywhere = kernel(d, 5.0, False, whole, work)
    band = kernel(d, 5.0, True, cut, work, 1e-9)
    offsets = np.arange(m) - np.arange(400)[:, None]
    within = (offsets >= band[0]) & (offsets <= band[1])
    assert 0 < within.mean() < 0.4 and not cut[~within].any() and whole[~within].max() <= NEGLIGIBLE
    np.testing.assert_allclose(cut[within], whole[within], rtol=1e-11)
    p, q = np.full(400, 1 / 400), np.full(m, 1 / m)
    found = []
    for a, offsets_of in ((whole, everywhere), (cut, band)):
        r, c = np.empty(400), np.empty(m)
        gradient(p, a, offsets_of, q, r, c)
        found.append((r, c))
    np.testing.assert_allclose(found[0][1], (p / (whole @ q)) @ whole, rtol=1e-12)
    np.testing.assert_allclose(found[1][0], cut @ q, rtol=1e-12)
    np.testing.assert_allclose(found[1][1], (p / (cut @ q)) @ cut, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rd.hamming([0.7, 0.4], 0.1), "pmf: sums to 1.1"),
        (lambda: rd.hamming(np.array([0.7, 0.4]), 0.1), "pmf: sums to 1.1"),
        (lambda: rd.hamming(np.array([1.3, -0.3]), 0.1), "pmf: entry 1 is -0.3"),
        (lambda: rd.hamming(np.array([0.7, 0.3]), -0.1), "D: expected a number"),
        (lambda: rd.hamming(np.array([0.7, 0.3]), float("nan")), "D: expected a number"),
        (lambda: rd.erasure([0.7, 0.3], -1.0), "D: expected a number"),
        (lambda: rd.weighted_binary(1.3, 0.1, false_alarm=1.0, miss=1.0), "p: expected a number"),
        (lambda: rd.weighted_binary(0.3, 0.1, false_alarm=0.0, miss=1.0), "false_alarm: expected a number"),
        (lambda: rd.circulant([0.0, -1.0], 0.1), "row: expected numbers >= 0"),
        (lambda: rd.circulant([0.5, 1.0], 0.1), "D: 0.1 is below D_min = 0.5"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
