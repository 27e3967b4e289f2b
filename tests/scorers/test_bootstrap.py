"""Resampling weights, window lengths and BCa intervals."""

from __future__ import annotations

import numpy as np
import pytest

from envrate.scorers import _bootstrap


@pytest.mark.parametrize(("blocks", "window"), [(20, 1), (7, 3), (100, 10), (5, 9)])
def test_each_resample_is_as_long_as_the_run_and_each_block_as_likely(blocks, window):
    drawn = _bootstrap.weights(blocks, 4000, np.random.default_rng(0), window=window)
    assert drawn.shape == (4000, blocks) and (drawn >= 0).all() and (drawn == drawn.round()).all()
    assert (drawn.sum(axis=1) == blocks).all()
    # The variance of a count is at most the window: 5 standard errors of its mean over 4000 draws.
    np.testing.assert_allclose(drawn.mean(axis=0), 1.0, atol=5 * np.sqrt(max(1, window) / 4000))


def test_windows_keep_neighbours_together():
    drawn = _bootstrap.weights(60, 2000, np.random.default_rng(1), window=6)
    together = np.corrcoef(drawn.T)
    # Neighbours share 5 of 6 windows; far ones compete for the fixed total.
    assert together[10, 11] == pytest.approx(5 / 6, abs=0.08)
    assert together[10, 40] == pytest.approx(-6 / 54, abs=0.1)


def test_the_variance_of_a_mean_is_that_of_the_process():
    # AR(1) with a = .7 and unit variance: n Var(mean) tends to (1 + a) / (1 - a) = 5.67.
    from scipy.signal import lfilter

    rng = np.random.default_rng(2)
    estimates, windows = [], []
    for _ in range(20):
        x = lfilter([np.sqrt(1 - 0.49)], [1.0, -0.7], rng.normal(size=3200))[200:]
        window = _bootstrap.window_length(x[:, None])
        windows.append(window)
        drawn = _bootstrap.weights(3000, 400, rng, window=window)
        estimates.append(np.var(drawn @ x / 3000) * 3000)
    assert np.mean(estimates) == pytest.approx(5.67, rel=0.15)
    assert 10 <= np.median(windows) <= 60


def test_independent_series_draw_short_windows():
    x = np.random.default_rng(3).normal(size=(2000, 4))
    assert _bootstrap.window_length(x) <= 6
    assert _bootstrap.window_length(np.ones((500, 2))) == 1
    assert _bootstrap.window_length(np.ones((3, 1))) == 1


def test_the_longest_window_that_any_series_asks_for_wins():
    rng = np.random.default_rng(4)
    slow = np.repeat(rng.normal(size=100), 20)
    fast = rng.normal(size=2000)
    alone = _bootstrap.window_length(slow[:, None])
    assert alone > 20 and _bootstrap.window_length(np.stack([fast, slow], axis=1)) >= alone


def test_bca_agrees_with_scipy():
    # scipy.stats.bootstrap(method="BCa") is iid only and an independent implementation of Efron 1987.
    from scipy import stats

    data = np.random.default_rng(5).lognormal(size=60)
    expected = stats.bootstrap((data,), np.var, n_resamples=20000, method="BCa", random_state=6).confidence_interval
    drawn = _bootstrap.weights(60, 20000, np.random.default_rng(7))
    mean = drawn @ data / 60
    resampled = (drawn @ data**2 / 60 - mean**2)[:, None]
    left = np.array([np.var(np.delete(data, i)) for i in range(60)])
    low, high = _bootstrap.bca(np.array([np.var(data)]), resampled, (left.mean() - left)[:, None])
    assert low[0] == pytest.approx(expected.low, rel=0.05) and high[0] == pytest.approx(expected.high, rel=0.08)


def test_a_constant_statistic_has_an_interval_of_no_width():
    low, high = _bootstrap.bca(np.array([2.0]), np.full((500, 1), 2.0), np.zeros((20, 1)))
    assert low[0] == high[0] == 2.0


def test_at_a_boundary_the_upper_end_is_the_plain_percentile():
    # 60 % of the resamples equal the point 0: their ties stand for a share of one half, not for a bias.
    values = np.concatenate([np.zeros(600), np.linspace(0.001, 1.0, 400)])[:, None]
    low, high = _bootstrap.bca(np.zeros(1), values, np.zeros((100_000, 1)))  # so many blocks have normal tails
    assert low[0] == 0.0 and high[0] == pytest.approx(np.quantile(values, 0.975), abs=0.01)


def test_nan_resamples_are_left_out_until_they_are_most():
    some = np.random.default_rng(8).normal(size=(1000, 1))
    some[:100] = np.nan
    assert np.isfinite(_bootstrap.bca(np.zeros(1), some, np.ones((5, 1)))).all()
    some[:600] = np.nan
    assert np.isnan(_bootstrap.bca(np.zeros(1), some, np.ones((5, 1)))).all()
