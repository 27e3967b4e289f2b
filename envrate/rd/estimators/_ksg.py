"""Mutual information of real-valued samples from nearest neighbours."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd.estimators._types import Estimate

FloatArray = NDArray[np.float64]

SCALES = ("none", "standard", "copula")
TIES = ("error", "jitter", "mixed")

#: Size of the jitter relative to each column's standard deviation.
JITTER = 1e-10

#: Strips of x, times sqrt(N / k), in the search for neighbours.
STRIPS = 0.7


def ksg(
    x: ArrayLike,
    y: ArrayLike,
    *,
    k: int = 3,
    variant: int = 1,
    scale: str = "standard",
    ties: str = "error",
    seed: int = 0,
) -> Estimate:
    """Mutual information in bits by Kraskov, Stoegbauer and Grassberger 2004, maximum norm.

    Args:
        x: (N,) or (N, dx) samples.
        y: (N,) or (N, dy) samples.
        k: neighbours.
        variant: 1 counts points strictly within the k-th distance, psi(k) + psi(N) - <psi(nx + 1) + psi(ny + 1)>;
            2 counts within the rectangle of the k nearest, psi(k) - 1/k + psi(N) - <psi(nx) + psi(ny)>.
        scale: mutual information does not depend on units, the estimate does. "none"; "standard" divides each column
            by its standard deviation; "copula" replaces it by the normal scores of its ranks, so that no monotone
            change of a column matters.
        ties: what to do when a value occurs twice in a column, which breaks the estimate's assumptions. "error";
            "jitter" adds seeded noise of 1e-10 standard deviations; "mixed" is the estimator of Gao, Kannan, Oh and
            Viswanath 2017 for mixtures of discrete and continuous parts (variant 1 only).
        seed: of the jitter.

    Returns:
        Estimate; it can be below 0, and needs about exp(information) samples or more.

    Raises:
        ValueError: lengths that do not match, too few samples, a constant column, or ties under "error".
    """
    a, b = _columns("x", x), _columns("y", y)
    n = len(a)
    if len(b) != n:
        raise ValueError(f"y: expected {n} samples, as many as x, got {len(b)}")
    k = _checks.integer("k", k, 1)
    if n <= k + 1:
        raise ValueError(f"x: expected more than k + 1 = {k + 1} samples, got {n}")
    variant = _checks.integer("variant", variant, 1, 2)
    _checks.choice("scale", scale, SCALES)
    _checks.choice("ties", ties, TIES)
    if ties == "mixed" and variant == 2:
        raise ValueError('ties: "mixed" goes with variant 1, got variant 2')
    a, b = _scaled("x", a, scale), _scaled("y", b, scale)
    if ties != "mixed":
        rng = np.random.default_rng(seed)
        a, b = _without_ties("x", a, ties, rng), _without_ties("y", b, ties, rng)
    value = _mixed(a, b, k) if ties == "mixed" else _plain(a, b, k, variant)
    name = "mixed" if ties == "mixed" else f"KSG{variant}"
    return Estimate(value / math.log(2.0), f"{name}, k = {k}, scale {scale}, ties {ties}", n)


def _columns(name: str, value: ArrayLike) -> FloatArray:
    array = _checks.finite_array(name, value)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"{name}: expected shape (N,) or (N, d), got {array.shape}")
    return array.reshape(len(array), -1).copy()


def _scaled(name: str, columns: FloatArray, scale: str) -> FloatArray:
    spread = columns.std(axis=0)
    if (spread == 0).any():
        raise ValueError(f"{name}: column {int(np.argmin(spread))} is constant; its information with anything is 0")
    if scale == "standard":
        return np.asarray((columns - columns.mean(axis=0)) / spread)
    if scale == "copula":
        from scipy.special import ndtri

        out = np.empty_like(columns)
        for j in range(columns.shape[1]):
            values, label, counts = np.unique(columns[:, j], return_inverse=True, return_counts=True)
            rank = np.cumsum(counts) - 0.5 * (counts - 1)  # ties share their middle rank
            out[:, j] = ndtri((rank[label.ravel()] - 0.5) / len(columns))
        return out
    return columns


def _without_ties(name: str, columns: FloatArray, ties: str, rng: np.random.Generator) -> FloatArray:
    for j in range(columns.shape[1]):
        ordered = np.sort(columns[:, j])
        repeated = int((ordered[1:] == ordered[:-1]).sum())
        if repeated and ties == "error":
            raise ValueError(
                f"{name}: column {j} repeats {repeated} of {len(columns)} values; choose ties=\"mixed\" for data with "
                "a discrete part, or \"jitter\" if the repeats come from rounding"
            )
        if repeated:
            columns[:, j] += JITTER * columns[:, j].std() * rng.standard_normal(len(columns))
    return columns


def _plain(a: FloatArray, b: FloatArray, k: int, variant: int) -> float:
    """KSG 1 or 2 in nats."""
    from scipy.special import digamma

    n = len(a)
    if a.shape[1] == b.shape[1] == 1:
        from envrate.rd.estimators._ksg_kernel import neighbours, within

        # Strips of x with equal counts, about as wide as the k-th distance; ordered by y within a strip.
        by_x = np.argsort(a[:, 0], kind="stable")
        strips = max(1, int(STRIPS * math.sqrt(n / k)))
        starts = np.linspace(0, n, strips + 1).astype(np.int64)
        label = np.repeat(np.arange(strips), np.diff(starts))
        order = by_x[np.lexsort((b[by_x, 0], label))]
        x, y = a[order, 0], b[order, 0]
        radius, wide, high = neighbours(x, y, starts, k)
        closed = variant == 2
        nx = within(a[by_x, 0], x, wide if closed else radius, closed)
        ny = within(np.sort(b[:, 0]), y, high if closed else radius, closed)
    else:
        nx, ny = _tree_counts(a, b, k, variant)
    # Counts are small integers: the digamma of each is looked up.
    table = np.concatenate([[0.0], digamma(np.arange(1, n + 2))])
    if variant == 1:
        return float(table[k] + table[n] - (table[nx + 1] + table[ny + 1]).mean())
    return float(table[k] - 1.0 / k + table[n] - (table[nx] + table[ny]).mean())


def _tree_counts(a: FloatArray, b: FloatArray, k: int, variant: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Marginal counts by k-d trees, for more columns."""
    from scipy.spatial import cKDTree

    both = np.hstack([a, b])
    distance, index = cKDTree(both).query(both, k=k + 1, p=np.inf)
    if variant == 1:
        rx = ry = np.nextafter(distance[:, -1], 0.0)
    else:
        rx = np.abs(a[index[:, 1:]] - a[:, None]).max(axis=(1, 2))
        ry = np.abs(b[index[:, 1:]] - b[:, None]).max(axis=(1, 2))
    nx = cKDTree(a).query_ball_point(a, rx, p=np.inf, return_length=True) - 1
    ny = cKDTree(b).query_ball_point(b, ry, p=np.inf, return_length=True) - 1
    return nx.astype(np.int64), ny.astype(np.int64)


def _mixed(a: FloatArray, b: FloatArray, k: int) -> float:
    """Gao, Kannan, Oh and Viswanath 2017 in nats: where the k-th neighbour is at distance 0, all copies count.

    As in the authors' program: digammas of counts strictly within the radius, the point itself included, which on
    data without ties is KSG 1.
    """
    from scipy.spatial import cKDTree
    from scipy.special import digamma

    n = len(a)
    both = np.hstack([a, b])
    tree = cKDTree(both)
    radius = tree.query(both, k=k + 1, p=np.inf)[0][:, -1]
    copies = np.flatnonzero(radius == 0.0)
    inside = np.full(n, k)
    inside[copies] = tree.query_ball_point(both[copies], 0.0, p=np.inf, return_length=True)
    radius = np.where(radius > 0.0, np.nextafter(radius, 0.0), 0.0)
    nx = cKDTree(a).query_ball_point(a, radius, p=np.inf, return_length=True)
    ny = cKDTree(b).query_ball_point(b, radius, p=np.inf, return_length=True)
    return float((digamma(inside) + math.log(n) - digamma(nx) - digamma(ny)).mean())
