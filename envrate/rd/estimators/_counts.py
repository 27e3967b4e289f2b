"""Entropy and mutual information of discrete letters from counts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd.estimators._types import Estimate

FloatArray = NDArray[np.float64]

LN2 = math.log(2.0)


def _plug_in(counts: FloatArray) -> float:
    """Entropy of the frequencies."""
    n = counts.sum()
    seen = counts[counts > 0]
    return float(math.log(n) - (seen * np.log(seen)).sum() / n)


def _miller_madow(counts: FloatArray) -> float:
    """Plug-in plus (cells seen - 1) / 2N (Miller 1955)."""
    return _plug_in(counts) + ((counts > 0).sum() - 1) / (2.0 * float(counts.sum()))


def _jackknife(counts: FloatArray) -> float:
    """N H - (N - 1) times the mean of H with one sample left out (Zahl 1977)."""
    n = float(counts.sum())
    if n <= 1:
        return _plug_in(counts)
    total = float(_xlogx(counts).sum())
    seen = counts[counts > 0]
    # H of the counts with one sample of a cell left out, for all cells at once.
    left_out = math.log(n - 1) - (total - _xlogx(seen) + _xlogx(seen - 1)) / (n - 1)
    return n * _plug_in(counts) - (n - 1) / n * float((seen * left_out).sum())


def _xlogx(values: FloatArray) -> FloatArray:
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))


def _chao_shen(counts: FloatArray) -> float:
    """Horvitz-Thompson sum over the cells seen, with Good's coverage (Chao and Shen 2003)."""
    n = float(counts.sum())
    seen = counts[counts > 0]
    singles = float((seen == 1).sum())
    if singles == n:
        singles = n - 1  # else the coverage would be 0
    p = (1.0 - singles / n) * seen / n
    # 1 - (1 - p)^n without cancellation.
    return float(-(p * np.log(p) / -np.expm1(n * np.log1p(-np.minimum(p, 1.0 - 1e-16)))).sum())


def _grassberger(counts: FloatArray) -> float:
    """Entropy log N - sum n G(n) / N, G(n) = psi(n) + (-1)^n / 2 (psi((n + 1) / 2) - psi(n / 2)) (Grassberger 2003)."""
    from scipy.special import digamma

    n = float(counts.sum())
    seen = counts[counts > 0]
    sign = np.where(seen % 2 == 0, 1.0, -1.0)
    g = digamma(seen) + 0.5 * sign * (digamma((seen + 1) / 2) - digamma(seen / 2))
    return math.log(n) - float((seen * g).sum()) / n


def _shrink(counts: FloatArray) -> float:
    """Plug-in of the frequencies shrunk towards equal ones (Hausser and Strimmer 2009)."""
    n, k = float(counts.sum()), len(counts)
    p = counts / n
    spread = float(((1.0 / k - p) ** 2).sum())
    share = 1.0 if n <= 1 or spread == 0.0 else min(1.0, max(0.0, (1.0 - float((p**2).sum())) / ((n - 1) * spread)))
    return float(-_xlogx(share / k + (1.0 - share) * p).sum())


def dirichlet_mean(counts: FloatArray, a: float) -> float:
    """Posterior mean of the entropy in nats under a Dirichlet prior of `a` per cell (Wolpert and Wolf 1995)."""
    from scipy.special import digamma

    alpha = counts + a
    total = float(alpha.sum())
    return float(digamma(total + 1.0) - (alpha * digamma(alpha + 1.0)).sum() / total)


def _nsb(counts: FloatArray) -> float:
    """Posterior mean over a prior that is nearly flat in the entropy (Nemenman, Shafee, Bialek 2002), in nats.

    Dirichlet priors of b per cell are mixed so that their prior mean entropy, psi(K b + 1) - psi(b + 1), is uniform.
    On the scale of log b the integrand falls exponentially on both sides, so that the trapezoidal rule is as exact
    as rounding; the step is halved until it stands still.
    """
    from scipy.special import betaln, digamma, gammaln, polygamma

    n, k = float(counts.sum()), len(counts)
    if k == 1:
        return 0.0
    values, repeats = np.unique(counts, return_counts=True)

    def integrals(step: float) -> float:
        b = np.exp(np.arange(-45.0, 45.0 + step / 2, step))
        # betaln(b, n) - gammaln(n) = log Gamma(b) - log Gamma(b + n) without cancellation at large b.
        log_weight = betaln(k * b, n) - gammaln(n)
        mean = digamma(n + k * b + 1.0)
        for value, repeat in zip(values, repeats, strict=True):
            if value > 0:
                log_weight -= repeat * (betaln(b, value) - gammaln(value))
            mean -= repeat * (value + b) / (n + k * b) * digamma(value + b + 1.0)
        # d(prior mean) / db, at large b by the expansion of the trigamma function.
        far = (1.0 - 1.0 / k) / (2.0 * b**2) - (1.0 - 1.0 / k**2) / (6.0 * b**3)
        prior = np.where(b > 1e5, far, k * polygamma(1, k * b + 1.0) - polygamma(1, b + 1.0))
        log_weight += np.log(prior * b)
        weight = np.exp(log_weight - log_weight.max())
        return float((weight * mean).sum() / weight.sum())

    step, before = 0.5, math.nan
    while True:
        now = integrals(step)
        if abs(now - before) <= 1e-13 * max(1.0, abs(now)) or step < 1e-3:
            return now
        step, before = 0.5 * step, now


#: Estimators of the entropy, in nats of the counts of all K cells, empty ones included.
METHODS: dict[str, Callable[[FloatArray], float]] = {
    "plug-in": _plug_in,
    "miller-madow": _miller_madow,
    "jackknife": _jackknife,
    "nsb": _nsb,
    "chao-shen": _chao_shen,
    "grassberger": _grassberger,
    "shrink": _shrink,
}


def _checked(counts: ArrayLike, ndim: int) -> FloatArray:
    array = _checks.finite_array("counts", counts, ndim)
    if array.size == 0 or (array < 0).any() or (array != np.round(array)).any():
        raise ValueError("counts: expected whole numbers >= 0, at least one cell")
    if array.sum() < 1:
        raise ValueError("counts: expected at least one sample, got none")
    return array


def entropy(counts: ArrayLike, *, method: str = "nsb") -> Estimate:
    """Entropy in bits from counts.

    Args:
        counts: (K,) samples in each cell of the alphabet, empty cells included: "nsb" and "shrink" depend on K.
        method: "plug-in" (biased down by about (K - 1) / 2N nats), "miller-madow" (adds that with the cells seen),
            "jackknife" (removes the 1/N term, more variance), "nsb" (Bayesian, for N below K), "chao-shen" (unknown
            alphabet), "grassberger" (2003) or "shrink".

    Raises:
        ValueError: counts that are not whole numbers, none at all, or an unknown method.
    """
    array = _checked(counts, 1)
    _checks.choice("method", method, METHODS)
    return Estimate(METHODS[method](array) / LN2, method, int(array.sum()))


def mutual_information(counts: ArrayLike, *, method: str = "miller-madow") -> Estimate:
    """Mutual information in bits from a contingency table, H(X) + H(Y) - H(X, Y) of one entropy estimator.

    Args:
        counts: (Kx, Ky) samples in each cell.
        method: as in `entropy`. The jackknife leaves out one sample of the pair, which is the same difference.

    Raises:
        ValueError: counts that are not whole numbers, none at all, or an unknown method.
    """
    table = _checked(counts, 2)
    _checks.choice("method", method, METHODS)
    estimate = METHODS[method]
    value = estimate(table.sum(axis=1)) + estimate(table.sum(axis=0)) - estimate(table.ravel())
    return Estimate(value / LN2, method, int(table.sum()))
