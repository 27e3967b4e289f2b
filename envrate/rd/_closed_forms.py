"""R(D) in closed form for declared structures, bits per letter: microseconds, and exact to rounding."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from envrate import _checks


def hamming(pmf: ArrayLike, D: float) -> float:  # noqa: N803 - the field's symbol
    """R(D) of a discrete source where every error costs 1.

    Args:
        pmf: (K,) law of a source letter.
        D: probability of error allowed, at least 0.

    Returns:
        Bits per letter, exact; for a uniform source of K letters the Wolpaw rate at accuracy 1 - D.

    Raises:
        ValueError: no probability vector, or a negative D.

    Source: Erokhin 1958; Pinkston 1966; Berger 1971, section 2.8.
    """
    from envrate.rd._structured import hamming_rate

    if type(pmf) is np.ndarray and pmf.dtype == np.float64 and pmf.ndim == 1 and type(D) is float:
        rate = hamming_rate(pmf, D)
        if rate == rate:
            return float(rate)
    return float(hamming_rate(_checks.pmf("pmf", pmf), _checks.number("D", D, 0.0)))


def erasure(pmf: ArrayLike, D: float) -> float:  # noqa: N803
    """R(D) where a letter is reproduced rightly, or as "not known" at cost 1; a wrong letter is forbidden.

    Args:
        pmf: (K,) law of a source letter.
        D: probability of an erasure allowed, at least 0.

    Returns:
        H(X) - D max {H(r) : r(x) <= p(x) / D}, bits per letter. Only for a uniform source is that (1 - D) H(X), which
        is what a channel gives that erases every letter alike.

    Raises:
        ValueError: no probability vector, or a negative D.
    """
    from envrate.rd._structured import erasure_rate

    p = _checks.pmf("pmf", pmf)
    share = _checks.number("D", D, 0.0)
    if share >= 1.0:
        return 0.0
    if share == 0.0:
        p = p[p > 0]
        return float(-(p * np.log2(p)).sum())
    return float(erasure_rate(p, share))


def weighted_binary(p: float, D: float, *, false_alarm: float, miss: float) -> float:  # noqa: N803
    """R(D) of a binary source whose two errors cost differently.

    Args:
        p: probability of 1.
        D: mean cost allowed, at least 0.
        false_alarm: cost of 1 where 0 was due, > 0.
        miss: cost of 0 where 1 was due, > 0.

    Returns:
        Bits per letter; 0 from D = min(p miss, (1 - p) false_alarm) on. Equal costs c give h(p) - h(D / c).

    Raises:
        ValueError: an argument out of range.

    Source: the full-support condition (Berger 1971, chapter 2); its slope by a scalar root search.
    """
    from envrate.rd._structured import binary_rate

    p, D = _checks.number("p", p, 0.0, 1.0), _checks.number("D", D, 0.0)  # noqa: N806
    a = _checks.number("false_alarm", false_alarm, 0.0, open_low=True)
    b = _checks.number("miss", miss, 0.0, open_low=True)
    if min(p * b, (1 - p) * a) <= D:
        return 0.0
    return float(binary_rate(p, a, b, D))


def circulant(row: ArrayLike, D: float) -> float:  # noqa: N803
    """R(D) of a uniform source on a ring, d(x, y) = row[(y - x) mod K].

    Args:
        row: (K,) distortion by difference, at least 0; inf forbids a difference.
        D: mean distortion allowed, at least the row's minimum.

    Returns:
        log K less the entropy of the law e^{-s row} of the difference whose mean is D, bits per letter: the uniform
        output is optimal.

    Raises:
        ValueError: a row with NaN or negative entries, or D below its minimum.

    Source: Berger 1971, section 2.7 (balanced distortion, uniform source).
    """
    from envrate.rd._structured import circulant_slope

    costs = np.asarray(row, dtype=np.float64)
    if costs.ndim != 1 or costs.size == 0 or np.isnan(costs).any() or (costs < 0).any() or np.isinf(costs).all():
        raise ValueError(f"row: expected numbers >= 0, not all infinite, in one dimension, got {row!r:.200}")
    target = _checks.number("D", D, 0.0)
    least = float(costs.min())
    if target < least * (1 - 1e-12):
        raise ValueError(f"D: {target:.12g} is below D_min = {least:.12g}, the least entry of row")
    allowed = costs[np.isfinite(costs)] - least
    base = math.log2(costs.size)
    if target - least >= allowed.mean():
        return base - math.log2(allowed.size)
    if target <= least:
        return base - math.log2(int((allowed == 0).sum()))
    s = circulant_slope(allowed, target - least)
    law = np.exp(-s * allowed)
    return float(max(0.0, base - math.log2(law.sum()) - s * (target - least) / math.log(2.0)))
