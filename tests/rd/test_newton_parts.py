"""Parts of the Newton solver for R(D): the certificate's bounds, the banded algebra, the nonnegative model, grids."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from envrate.rd._certificate import ALL, channel_of, lower_line, upper_point
from envrate.rd._kernels import EVERYWHERE, is_toeplitz
from envrate.rd._least_squares import nonnegative
from envrate.rd._linalg import cholesky, gram, solve_factored
from envrate.rd._warm_up import coarser


def information(p, channel):
    """I(X; Y) in nats, from its definition."""
    joint = p[:, None] * channel
    used = joint > 0
    return float((joint[used] * np.log((channel / joint.sum(axis=0))[used])).sum())


def random_law(seed, letters=9, reproductions=7, passes=40):
    """A problem with rows from 0, a slope, its kernel, and the law after a few Blahut-Arimoto steps."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(letters))
    d = rng.random((letters, reproductions)) * rng.uniform(0.1, 3)
    d -= d.min(axis=1, keepdims=True)
    s = rng.uniform(1, 6)
    a = np.exp(-s * d)
    q = np.full(reproductions, 1 / reproductions)
    for _ in range(passes):
        q *= a.T @ (p / (a @ q))
    return p, d, s, a, q


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("miss", [-0.02, -1e-4, 0.0, 1e-6, 1e-3, 0.02])
def test_upper_bound_holds_for_the_channel_that_is_returned(seed, miss):
    """Near the channel's own distortion it is tilted, at a cost of second order; further away it is mixed."""
    p, d, s, a, q = random_law(seed)
    rows = a * q / (a @ q)[:, None]
    own = float(p @ (rows * d).sum(axis=1))
    target = own * (1 + miss)
    upper, at, tilt, share, dual = upper_point(p, d, a, EVERYWHERE, q, s, target)
    r = a @ q
    assert dual == pytest.approx(-(p @ np.log(r)) - np.log((a.T @ (p / r)).max()), abs=1e-13)
    channel = channel_of(a, d, q, (tilt, share), p, q)
    assert channel.min() >= 0 and channel.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert float(p @ (channel * d).sum(axis=1)) == pytest.approx(at, rel=1e-12)
    assert at <= target * (1 + 1e-12)
    assert information(p, channel) <= upper + 1e-12
    spread = float(p @ (rows * d * d).sum(axis=1) - p @ (rows * d).sum(axis=1) ** 2)
    if abs(own - target) <= s / 300 * spread:
        assert upper <= -(p @ np.log(a @ q)) - s * target + (own - target) ** 2 / spread + 1e-13
        assert share == 0
    assert (tilt > 1e-12) == (miss < 0 and share == 0)


@pytest.mark.parametrize("seed", range(20))
def test_lower_bound_is_the_dual_at_the_law_with_what_was_added(seed):
    """-sum p log r - log max c at q + floor (Gallager 1968, theorem 9.4.1); the added law mends a letter left out."""
    p, _, _, a, q = random_law(seed, passes=4000)
    p = np.append(p * (1 - 1e-11), 1e-11)  # a letter that no reproduction in use reaches
    a = np.block([[a, np.zeros((9, 1))], [np.full((1, 7), 1e-12), np.ones((1, 1))]])
    q = np.append(q, 0.0)
    floor = np.empty(8)
    one = lower_line(p, a, EVERYWHERE, q, np.inf, 1, floor)
    best = lower_line(p, a, EVERYWHERE, q, np.inf, ALL, floor)
    r = a @ (q + floor)
    assert best == pytest.approx(-(p @ np.log(r)) - np.log((a.T @ (p / r)).max()), abs=1e-13)
    assert best > one + 0.5


def banded_problem(seed):
    """Columns of a kernel on a grid, weighted: (k, n) with their first and last nonzero entries."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 40)), 60
    b = np.exp(-(((np.sort(rng.random(k))[:, None] - np.linspace(0, 1, n)) / rng.uniform(0.03, 0.3)) ** 2))
    b = np.where(b < 1e-6, 0.0, b * (rng.random(n) + 0.5))
    start = np.array([np.flatnonzero(row)[0] for row in b])
    stop = np.array([np.flatnonzero(row)[-1] + 1 for row in b])
    return b, np.minimum.accumulate(start[::-1])[::-1].copy(), np.maximum.accumulate(stop), rng.normal(1, 1, n)


@pytest.mark.parametrize("seed", range(20))
def test_banded_products_and_factors(seed):
    b, start, stop, target = banded_problem(seed)
    k = len(b)
    h, lead = np.zeros((k, k)), np.empty(k, np.int64)
    gram(b, start, stop, lead, h, k)
    full = b @ b.T
    assert h == pytest.approx(np.tril(full), abs=1e-12)
    assert all((full[i, : lead[i]] == 0).all() for i in range(k))
    h[np.diag_indices(k)] += 1e-3
    full = full + 1e-3 * np.eye(k)
    factor = h.copy()
    cholesky(factor, lead, 0, k, 1e-15)
    again = factor.copy()
    again[k // 2 :] = h[k // 2 :]  # the rows above hold the factor already
    cholesky(again, lead, k // 2, k, 1e-15)
    assert np.tril(again) == pytest.approx(np.tril(factor), abs=0)
    x = b @ target
    solve_factored(factor, lead, x, k)
    assert full @ x == pytest.approx(b @ target, abs=1e-8)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("loose", [1 + 1e-12, 3.0, 20.0])
def test_nonnegative_model_against_lawson_and_hanson(seed, loose):
    """It may stop short of the minimum, but it goes down, stays >= 0 and is stationary on its passive set."""
    b, start, stop, target = banded_problem(seed)
    k = len(b)
    h, lead = np.zeros((k, k)), np.empty(k, np.int64)
    gram(b, start, stop, lead, h, k)
    h[np.diag_indices(k)] += 1e-6
    full = np.tril(h) + np.tril(h, -1).T
    rhs = b @ target

    def model(x):
        return 0.5 * x @ full @ x - rhs @ x

    x = np.full(k, 0.1)
    before = model(x)
    passive = np.empty(k, np.int64)
    size = nonnegative(h, rhs, x, k, lead, loose, passive, np.empty((k, k)), np.empty(k, np.int64))
    lower = np.linalg.cholesky(full)
    least = model(nnls(lower.T, np.linalg.solve(lower, rhs))[0])
    assert (x >= 0).all() and (np.delete(x, passive[:size]) == 0).all()
    assert (full @ x - rhs)[passive[:size]] == pytest.approx(0, abs=1e-7)
    assert least - 1e-9 <= model(x) <= before
    assert model(x) <= least + (0.02 if loose < 2 else 0.1) * abs(least)


@pytest.mark.parametrize(("n", "m", "shift"), [(400, 400, 0), (401, 350, 37), (250, 249, 0)])
def test_coarser_grid_keeps_the_law_and_the_nearest_reproductions(n, m, shift):
    """A smooth law keeps its moments, any law its mass, and a letter in the middle a reproduction at distance 0."""
    x = np.arange(n)
    d = ((x[:, None] - np.arange(m) - shift) / 20.0) ** 2
    assert is_toeplitz(d)
    middle = 0.5 * (n - 1)
    smooth = np.exp(-0.5 * ((x - middle) / (n / 16)) ** 2)
    rough = np.random.default_rng(n).random(n)
    for p, tolerance in ((smooth / smooth.sum(), 1e-6), (rough / rough.sum(), 0.02)):
        k, first, coarse, thin = coarser(p, d, 1.0)
        assert k == n // 100 or k == m // 100
        assert coarse.sum() == pytest.approx(1, abs=1e-12)
        assert thin.min() == 0 and is_toeplitz(thin)
        at = x[(n // 2) % k :: k]
        assert thin == pytest.approx(d[at][:, first::k], abs=0)
        assert coarse @ at == pytest.approx(p @ x, rel=tolerance)
        assert coarse @ (at - middle) ** 2 == pytest.approx(p @ (x - middle) ** 2, rel=10 * tolerance)
    assert coarser(p, d, 1e-4)[0] == 1  # the next letter is dearer than that by far
