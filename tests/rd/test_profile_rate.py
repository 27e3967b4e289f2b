"""Credited rate of a profile: special cases, certificates, degenerate and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from envrate import rd

BINARY = [[-1, 1], [0, -1]]  # class 0 miss, class 1 over-actuation
RESOLVED = [[-1, 1, 2], [0, -1, 3]]  # and "not known in time" of either symbol


def h(x: float) -> float:
    """Binary entropy in bits."""
    return 0.0 if x in (0.0, 1.0) else float(-x * np.log2(x) - (1 - x) * np.log2(1 - x))


def full_classes(symbols: int, outcomes: int) -> tuple[np.ndarray, int]:
    """A class per cell off the diagonal."""
    classes = np.full((symbols, outcomes), -1)
    off = [(a, y) for a in range(symbols) for y in range(outcomes) if a != y]
    for c, cell in enumerate(off):
        classes[cell] = c
    return classes, len(off)


def wolpaw(options: int, accuracy: float) -> float:
    """Wolpaw et al. 2000: log2 K + P log2 P + (1-P) log2((1-P)/(K-1)), 0 below chance."""
    if accuracy <= 1 / options:
        return 0.0
    error = 1 - accuracy
    tail = error * np.log2(error / (options - 1)) if error > 0 else 0.0
    return float(np.log2(options) + accuracy * np.log2(accuracy) + tail)


def dual_above(pmf, classes, multipliers, f) -> float:
    """F(q) - m.f with F(q) = -sum p log sum_y q exp(-m), from many Blahut-Arimoto steps: F(q) is above the dual's
    value at these multipliers for every q, so this is above any valid lower bound that they give."""
    pmf, m = np.asarray(pmf, float), np.append(np.asarray(multipliers), 0.0) * np.log(2)
    kernel = np.exp(-m[np.asarray(classes)])
    live = pmf > 0
    pmf, kernel = pmf[live], kernel[live]
    q = np.full(kernel.shape[1], 1 / kernel.shape[1])
    for _ in range(5000):
        q = q * ((pmf / (kernel @ q)) @ kernel)
    return float(-(pmf * np.log2(kernel @ q)).sum() - np.dot(multipliers, f))


@pytest.mark.parametrize("accuracy", [1.0, 0.99, 0.8, 0.5, 0.126, 0.125, 0.1, 0.0])
def test_exchangeable_options_give_the_wolpaw_rate(accuracy):
    classes = np.zeros((8, 8), int)
    np.fill_diagonal(classes, -1)
    got = rd.profile_rate(np.full(8, 0.125), classes, [1 - accuracy])
    assert got.rate == pytest.approx(wolpaw(8, accuracy), abs=1e-9)
    assert got.lower <= wolpaw(8, accuracy) + 1e-14 and wolpaw(8, accuracy) <= got.upper + 1e-14


@pytest.mark.parametrize("pmf", [[0.5, 0.5], [0.9, 0.1]])
@pytest.mark.parametrize("erased", [0.0, 0.1, 0.4, 0.9])
def test_erasure(pmf, erased):
    # fraction e of every symbol unheard and known to be unheard: (1-e) H(A), Cover & Thomas section 7.1.5
    p = np.array(pmf)
    got = rd.profile_rate(p, RESOLVED, [0.0, 0.0, *(erased * p)])
    assert got.rate == pytest.approx((1 - erased) * h(p[1]), abs=1e-9)


def test_z_channel_and_symmetric_channel():
    # I(A; Y) = H(Y) - H(Y | A) at the channel itself, which is the only one that meets these profiles with equality
    assert rd.profile_rate([0.5, 0.5], BINARY, [0.2, 0.0]).rate == pytest.approx(h(0.3) - 0.5 * h(0.4), abs=1e-9)
    assert rd.profile_rate([0.5, 0.5], BINARY, [0.1, 0.1]).rate == pytest.approx(1 - h(0.2), abs=1e-9)


def test_four_alerts_with_labels_swapped_in_pairs_leave_detection():
    # every alert detected, never rightly named, no false alarm: H(alert or not). Classes: 0 over-actuation,
    # a miss of a, 4 + a another alert than a.
    pmf = np.array([0.6, 0.1, 0.1, 0.1, 0.1])
    classes = np.zeros((5, 5), int)
    for a in range(1, 5):
        classes[a] = 4 + a
        classes[a, 0] = a
    np.fill_diagonal(classes, -1)
    f = [0.0] * 5 + [0.1] * 4
    assert rd.profile_rate(pmf, classes, f).rate == pytest.approx(h(0.4), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_outcomes_that_do_not_look_at_the_symbol_get_exactly_zero(seed):
    rng = np.random.default_rng(seed)
    symbols = int(rng.integers(2, 8))
    classes, count = full_classes(symbols, symbols + 1)
    pmf = rng.dirichlet(np.ones(symbols))
    constant = np.eye(symbols + 1)
    random = rng.dirichlet(np.ones(symbols + 1), size=5)
    f = np.zeros((len(constant) + len(random), count))
    for row, q in zip(f, np.vstack([constant, random]), strict=True):
        np.add.at(row, classes[classes >= 0], np.outer(pmf, q)[classes >= 0])
    got = rd.profile_rate(pmf, classes, f)
    assert (got.rate == 0.0).all() and (got.lower == 0.0).all()
    assert (got.upper <= 1e-9).all()


def test_perfect_agent_gets_the_entropy_and_slack_gets_nothing():
    pmf = np.array([0.5, 0.25, 0.25])
    classes, count = full_classes(3, 3)
    assert rd.profile_rate(pmf, classes, np.zeros(count)).rate == pytest.approx(1.5, abs=1e-9)
    assert rd.profile_rate(pmf, classes, np.ones(count)).rate == 0.0


@pytest.mark.parametrize("seed", range(12))
def test_certificate_holds_and_the_plane_is_below_the_rate_everywhere(seed):
    rng = np.random.default_rng(seed)
    symbols, outcomes = int(rng.integers(2, 6)), int(rng.integers(2, 7))
    pmf = rng.dirichlet(np.ones(symbols))
    num_classes = int(rng.integers(1, 6))
    classes = rng.integers(-1, num_classes, size=(symbols, outcomes))  # classes span rows and columns
    for a in range(symbols):
        classes[a, rng.integers(outcomes)] = -1
    f = rng.uniform(0, 0.3, size=(8, num_classes)) * (rng.random((8, num_classes)) < 0.8)
    got = rd.profile_rate(pmf, classes, f)
    assert (got.upper - got.lower <= 1e-9).all()
    assert (got.multipliers >= 0).all()
    for b in range(len(f)):
        assert got.lower[b] <= dual_above(pmf, classes, got.multipliers[b], f[b]) + 1e-12
        for other in range(len(f)):
            plane = got.lower[b] + got.multipliers[b] @ (f[b] - f[other])
            assert plane <= got.upper[other] + 1e-9


def test_information_of_any_channel_within_the_profile_is_above():
    rng = np.random.default_rng(5)
    pmf = rng.dirichlet(np.ones(4))
    classes, count = full_classes(4, 5)
    channels = rng.dirichlet(np.ones(5) * 0.4, size=(200, 4))
    joint = pmf[:, None] * channels
    f = np.zeros((200, count))
    for row, j in zip(f, joint, strict=True):
        np.add.at(row, classes[classes >= 0], j[classes >= 0])
    q = joint.sum(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.nansum(joint * np.log2(joint / (pmf[:, None] * q)), axis=(1, 2))
    got = rd.profile_rate(pmf, classes, f)
    assert (got.lower <= information + 1e-12).all()
    # every bound is met and the diagonal is what is left: nothing below the channel itself is consistent only
    # when it is a minimiser; the rate may be lower, never higher
    assert (got.upper <= information + 2e-9).all()


def test_zero_probability_symbols_change_nothing():
    got = rd.profile_rate([0.5, 0.0, 0.5], [[-1, 2, 1], [3, -1, 3], [0, 2, -1]], [0.2, 0.0, 0.0, 0.0])
    assert got.rate == pytest.approx(h(0.3) - 0.5 * h(0.4), abs=1e-9)


def test_tiny_probabilities_and_frequencies_stay_certified():
    p = np.array([0.6, 0.4 - 2e-15, 2e-15])
    classes, _ = full_classes(3, 3)
    got = rd.profile_rate(p / p.sum(), classes, [0.05, 0.02, 0.03, 0.04, 1e-16, 1e-16])
    assert got.upper - got.lower <= 1e-9
    got = rd.profile_rate([0.5, 0.5], BINARY, [[1e-300, 0.0], [1e-12, 1e-200]])
    np.testing.assert_allclose(got.rate, 1.0, atol=1e-9)


def test_batch_shape_is_kept():
    f = np.array([[[0.2, 0.0], [0.1, 0.1]], [[0.5, 0.0], [0.3, 0.3]], [[0.0, 0.0], [0.0, 0.5]]])
    got = rd.profile_rate([0.5, 0.5], BINARY, f)
    assert got.rate.shape == got.lower.shape == got.upper.shape == (3, 2)
    assert got.multipliers.shape == (3, 2, 2)
    one = rd.profile_rate([0.5, 0.5], BINARY, f[0, 0])
    assert np.ndim(one.rate) == 0 and one.rate == got.rate[0, 0]
    assert rd.profile_rate([0.5, 0.5], BINARY, np.zeros((0, 2))).rate.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.6], BINARY, [0.1, 0.1]), "pmf: sums to 1.1"),
        (([0.5, 0.5], BINARY, [0.1, -0.1]), r"frequencies: entry \[1\] is -0.1"),
        (([0.5, 0.5], BINARY, [0.1, np.nan]), r"frequencies: entry \[1\] is nan"),
        (([0.5, 0.5], BINARY, [0.1]), "classes: entries run from -1 to 1"),
        (([0.5, 0.5], [[-1, 0]], [0.1]), "classes: expected integers of shape"),
        (([0.5, 0.5], [[-1, 0.5], [1, -1]], [0.1]), "classes: expected integers"),
        (([0.5, 0.5], BINARY, 0.1), "frequencies: expected at least one axis"),
        (([0.5, 0.5], [[0, 0], [-1, 1]], [[0.5, 0.1], [0.1, 0.1]]), r"profile \[1\]: no channel meets the bounds"),
        (([0.5, 0.5], [[0, 0], [-1, -1]], [0.0]), "frequencies: no channel meets the bounds"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        rd.profile_rate(*arguments)
