"""Sources and distortions whose optimal output law is known: closed forms, and the law and slope for a certificate.

Every `*_law` fills q and returns the slope s in nats per unit of distortion, or -1 where the structure is not there;
the caller evaluates both bounds at (q, s), so nothing here has to be trusted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

#: Relative difference up to which entries of a distortion matrix count as the same number.
SAME = 1e-12
#: Newton steps for a scalar slope; bisection takes over where a step leaves the bracket.
SCALAR_STEPS = 200


# -- Hamming distortion: Erokhin 1958, Pinkston 1966 ------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _erokhin(ascending: Any, D: float) -> tuple[int, float, float]:  # noqa: N803
    """Number k of letters that are reproduced, their probability, and alpha = exp(-s); D below D_max."""
    n = ascending.shape[0]
    theta = 1.0 - D
    total = 0.0
    for i in range(n - 1, -1, -1):
        total += ascending[i]
    for k in range(n, 1, -1):
        alpha = (total / theta - 1.0) / (k - 1)
        if ascending[n - k] > theta * alpha:
            return k, total, alpha
        total -= ascending[n - k]
    return 1, total, 1.0


@njit(cache=True, error_model="numpy")
def hamming_rate(p: Any, D: float) -> float:  # noqa: N803
    """R(D) in bits, exact; NaN where p is no probability vector or D is not >= 0."""
    n = p.shape[0]
    total = largest = 0.0
    for i in range(n):
        if not p[i] >= 0.0:
            return np.nan
        total += p[i]
        largest = max(largest, p[i])
    if not abs(total - 1.0) <= 1e-9 or not D >= 0.0:
        return np.nan
    if D >= 1.0 - largest:
        return 0.0
    theta = 1.0 - D
    ascending = np.sort(p)
    k, mass, alpha = _erokhin(ascending, D)
    value = 0.0
    for i in range(n - 1, n - 1 - k, -1):
        if ascending[i] > 0.0:
            value -= ascending[i] * math.log(ascending[i] / theta)
    if alpha > 0.0:
        value += (D - (1.0 - mass)) * math.log(alpha)
    return max(value / math.log(2.0), 0.0)


@njit(cache=True, error_model="numpy")
def _is_hamming(d: Any) -> bool:
    n, m = d.shape
    if n != m or n < 2:
        return False
    w = d[0, 1]
    if not 0.0 < w < np.inf:
        return False
    for x in range(n):
        for y in range(m):
            if not abs(d[x, y] - (0.0 if x == y else w)) <= SAME * w:
                return False
    return True


@njit(cache=True, error_model="numpy")
def _hamming_law(p: Any, d: Any, goal: float, q: Any) -> float:
    w = d[0, 1]
    k, _, alpha = _erokhin(np.sort(p), goal / w)
    if k < 2 or not 0.0 < alpha < 1.0:
        return -1.0
    for y in range(p.shape[0]):
        q[y] = max(p[y] / (1.0 - goal / w) - alpha, 0.0) / (1.0 - alpha)
    return float(-math.log(alpha) / w)


# -- erasure: each letter, or "not known" at a constant price -------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _erased(p: Any, share: float) -> float:
    """The theta with sum_x min(p(x) / share, theta) = 1."""
    ascending = np.sort(p)
    n = p.shape[0]
    used = 0.0
    for i in range(n):
        theta = (1.0 - used / share) / (n - i)
        if ascending[i] >= share * theta:
            return float(theta)
        used += ascending[i]
    return float(ascending[n - 1] / share)


@njit(cache=True, error_model="numpy")
def erasure_rate(p: Any, share: float) -> float:
    """R(D) in bits with cost 1 per erasure: H(X) - D max {H(r) : r <= p / D}; 0 < D < 1."""
    theta = _erased(p, share)
    value = 0.0
    for x in range(p.shape[0]):
        if p[x] > 0.0:
            r = min(p[x] / share, theta)
            value += share * r * math.log(r) - p[x] * math.log(p[x])
    return max(value / math.log(2.0), 0.0)


@njit(cache=True, error_model="numpy")
def _is_erasure(d: Any) -> bool:
    n, m = d.shape
    if m != n + 1:
        return False
    w = d[0, n]
    if not 0.0 < w < np.inf:
        return False
    for x in range(n):
        if d[x, x] != 0.0 or not abs(d[x, n] - w) <= SAME * w:
            return False
        for y in range(n):
            if y != x and d[x, y] != np.inf:
                return False
    return True


@njit(cache=True, error_model="numpy")
def _erasure_law(p: Any, d: Any, goal: float, q: Any) -> float:
    n = p.shape[0]
    share = goal / d[0, n]
    theta = _erased(p, share)
    if not 0.0 < theta < 1.0:
        return -1.0
    for x in range(n):
        q[x] = max(p[x] - share * theta, 0.0)
    q[n] = share
    return float(-math.log(theta) / d[0, n])


# -- weighted binary: P(X = 1) = p, a false alarm costs a, a miss costs b --------------------------------------------


@njit(cache=True, error_model="numpy")
def _binary_distortion(p: float, a: float, b: float, s: float) -> float:
    """D(s) = (1-p) b / (e^{sb} - 1) + p a / (e^{sa} - 1) - (a+b) / (e^{s(a+b)} - 1), full support."""
    return (1 - p) * b / math.expm1(s * b) + p * a / math.expm1(s * a) - (a + b) / math.expm1(s * (a + b))


@njit(cache=True, error_model="numpy")
def binary_slope(p: float, a: float, b: float, D: float) -> float:  # noqa: N803
    """Slope s in nats with D(s) = D, for 0 < D < min(p b, (1-p) a), by regula falsi in log s within a bracket."""
    if a == b:
        return math.log((a - D) / D) / a
    low = high = 1.0 / max(a, b)
    for _ in range(200):
        if _binary_distortion(p, a, b, low) > D:
            break
        low *= 0.5
    for _ in range(200):
        if _binary_distortion(p, a, b, high) < D:
            break
        high *= 2.0
    f_low = math.log(_binary_distortion(p, a, b, low) / D)
    f_high = math.log(_binary_distortion(p, a, b, high) / D)
    s = low
    for _ in range(SCALAR_STEPS):
        s = low + (high - low) * f_low / (f_low - f_high)
        value = math.log(_binary_distortion(p, a, b, s) / D)
        if abs(value) < 4e-16 or not low < s < high:
            break
        if value > 0.0:  # halving the other end's value keeps both ends moving (Illinois)
            low, f_low, f_high = s, value, 0.5 * f_high
        else:
            high, f_high, f_low = s, value, 0.5 * f_low
    return s


@njit(cache=True, error_model="numpy")
def binary_rate(p: float, a: float, b: float, D: float) -> float:  # noqa: N803
    """R(D) in bits: V(s) - s D with V from the full-support condition (Berger 1971, chapter 2); D below D_max."""
    entropy = -p * math.log(p) - (1 - p) * math.log1p(-p)
    if D == 0.0:
        return entropy / math.log(2.0)
    s = binary_slope(p, a, b, D)
    value = entropy + (1 - p) * math.log(-math.expm1(-s * b)) + p * math.log(-math.expm1(-s * a))
    value -= math.log(-math.expm1(-s * (a + b))) + s * D
    return max(value / math.log(2.0), 0.0)


@njit(cache=True, error_model="numpy")
def _binary_law(p: Any, d: Any, goal: float, q: Any) -> float:
    """Two letters, two reproductions, each letter with one of its own."""
    one = 1 if d[0, 0] == 0.0 and d[1, 1] == 0.0 else 0
    a, b = d[0, one], d[1, 1 - one]
    if not (0.0 < a < np.inf and 0.0 < b < np.inf) or d[0, 1 - one] != 0.0 or d[1, one] != 0.0:
        return -1.0
    s = binary_slope(p[1], a, b, goal)
    u, v = math.exp(-s * a), math.exp(-s * b)
    # lambda = A^-T 1 and q = A^-1 (p / lambda) with A = [[1, u], [v, 1]]
    r0 = p[0] * (1.0 - u * v) / (1.0 - v)
    r1 = p[1] * (1.0 - u * v) / (1.0 - u)
    q[1 - one] = max((r0 - u * r1) / (1.0 - u * v), 0.0)
    q[one] = max((r1 - v * r0) / (1.0 - u * v), 0.0)
    return s


# -- uniform source, circulant distortion: the uniform output is optimal at each slope --------------------------------


@njit(cache=True, error_model="numpy")
def circulant_slope(row: Any, D: float) -> float:  # noqa: N803
    """Slope s in nats with sum d e^{-s d} / sum e^{-s d} = D over the row of a circulant distortion, minimum 0."""
    low, high = 0.0, 1.0
    mean = 0.0
    for _ in range(1100):
        mean = _circulant_mean(row, high)
        if mean <= D:
            break
        low = high
        high *= 2.0
    s = high
    for _ in range(SCALAR_STEPS):
        mean = weight = square = 0.0
        for k in range(row.shape[0]):
            e = math.exp(-s * row[k]) if row[k] < np.inf else 0.0
            if e > 0.0:
                weight += e
                mean += e * row[k]
                square += e * row[k] * row[k]
        mean /= weight
        if mean > D:
            low = s
        else:
            high = s
        # Newton in log D, which is nearly linear in s
        variance = square / weight - mean * mean
        new = s + mean * math.log(mean / D) / variance if variance > 0.0 and mean > 0.0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - s) <= 4e-16 * s:
            break
        s = new
    return s


@njit(cache=True, error_model="numpy")
def _circulant_mean(row: Any, s: float) -> float:
    mean = weight = 0.0
    for k in range(row.shape[0]):
        e = math.exp(-s * row[k]) if row[k] < np.inf else 0.0
        if e > 0.0:
            weight += e
            mean += e * row[k]
    return mean / weight


@njit(cache=True, error_model="numpy")
def _is_circulant(p: Any, d: Any) -> bool:
    n, m = d.shape
    if n != m:
        return False
    for x in range(n):
        if not abs(p[x] * n - 1.0) <= SAME:
            return False
    for x in range(1, n):
        for y in range(m):
            before = d[x - 1, y - 1 if y > 0 else m - 1]
            if d[x, y] != before and not abs(d[x, y] - before) <= SAME * before:
                return False
    return True


# -- squared error on a grid -----------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _gaussian_law(p: Any, d: Any, goal: float, q: Any) -> float:
    """For d = (x - y)^2 on a grid: the normal law of variance less D, which is optimal for a normal source."""
    n = p.shape[0]
    unit = d[0, 1]
    if not unit > 0.0 or n < 8 or d.shape[1] != n:
        return -1.0
    for k in range(2, n):
        if not abs(d[0, k] - unit * k * k) <= 1e-9 * d[0, k] or not abs(d[k, 0] - d[0, k]) <= 1e-9 * d[0, k]:
            return -1.0
    mean = second = 0.0
    for x in range(n):
        mean += p[x] * x
        second += p[x] * x * x
    variance = second - mean * mean - goal / unit
    if not variance > 0.0:
        return -1.0
    total = 0.0
    for y in range(n):
        q[y] = math.exp(-0.5 * (y - mean) ** 2 / variance)
        total += q[y]
    for y in range(n):
        q[y] /= total
    return 0.5 / goal


@njit(cache=True, error_model="numpy")
def known_law(p: Any, d: Any, goal: float, toeplitz: bool, q: Any) -> float:
    """Fills q with the optimal law where the structure tells it, and returns the slope; -1 where it does not.

    For squared error on a grid the law is a guess that is exact for normal sources.
    """
    n, m = d.shape
    if n == 2 and m == 2:
        return _binary_law(p, d, goal, q)
    if _is_hamming(d):
        return _hamming_law(p, d, goal, q)
    if _is_circulant(p, d):
        q[:] = 1.0 / m
        return circulant_slope(d[0], goal)
    if _is_erasure(d):
        return _erasure_law(p, d, goal, q)
    if toeplitz:
        return _gaussian_law(p, d, goal, q)
    return -1.0
