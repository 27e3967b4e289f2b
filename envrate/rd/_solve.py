"""One call from checked arrays to a certified point of R(D): units, special cases, solvers in turn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from envrate.rd._certificate import best_lower_bound, channel_at, kernel
from envrate.rd._interior_point import interior_point

OK, NOT_CERTIFIED, NO_REPRODUCTION, BELOW_D_MIN = 0, 1, 2, 3

LN2 = math.log(2.0)


@njit(cache=True, error_model="numpy")
def _is_clean(p: Any, d: Any) -> bool:
    if d.shape[0] != p.shape[0] or d.shape[1] == 0:
        return False
    total = 0.0
    for x in range(p.shape[0]):
        if not p[x] >= 0.0:
            return False
        total += p[x]
    if not abs(total - 1.0) <= 1e-14:
        return False
    for x in range(d.shape[0]):
        for y in range(d.shape[1]):
            if not d[x, y] >= 0.0:
                return False
    return True


def is_clean(pmf: Any, distortion: Any) -> bool:
    """Whether both arrays are float64, contiguous, of the right shapes and values, so that they need no copy."""
    return (
        pmf.dtype == np.float64
        and distortion.dtype == np.float64
        and pmf.ndim == 1
        and distortion.ndim == 2
        and pmf.flags.c_contiguous
        and distortion.flags.c_contiguous
        and bool(_is_clean(pmf, distortion))
    )


@njit(cache=True, error_model="numpy")
def solve(
    pmf: Any, distortion: Any, target: float, slope: float, tol: float
) -> tuple[float, float, float, float, float, Any, Any, int]:
    """R(D) at `target` (slope < 0) or at `slope` in bits per unit of distortion.

    Returns rate, lower, upper (bits), distortion, slope (bits per unit), output (M,), channel (K, M) and a status.
    """
    num_letters, m = distortion.shape
    output = np.zeros(m)
    channel = np.zeros((num_letters, m))

    # letters that occur; rows shifted to a minimum of 0; distortion in units of D_max - D_min
    n = 0
    for x in range(num_letters):
        n += pmf[x] > 0.0
    p = np.empty(n)
    d = np.empty((n, m))
    d_min = 0.0
    i = 0
    for x in range(num_letters):
        if pmf[x] > 0.0:
            least = np.inf
            for y in range(m):
                least = min(least, distortion[x, y])
            if least == np.inf:
                return 0.0, 0.0, 0.0, 0.0, 0.0, output, channel, NO_REPRODUCTION
            for y in range(m):
                d[i, y] = distortion[x, y] - least
            p[i] = pmf[x]
            d_min += p[i] * least
            i += 1
    d_max = np.inf
    best = 0
    for y in range(m):
        mean = 0.0
        for x in range(n):
            mean += p[x] * d[x, y]
        if mean < d_max:
            d_max = mean
            best = y
    fixed = slope >= 0.0
    excess = target - d_min
    if not fixed and excess < 0.0:
        if excess < -1e-12 * d_min:
            return 0.0, 0.0, np.inf, target, 0.0, output, channel, BELOW_D_MIN
        excess = 0.0
    if (fixed and slope == 0.0) or (not fixed and excess >= d_max) or d_max == 0.0:
        output[best] = 1.0
        for x in range(num_letters):
            channel[x, best] = 1.0
        reached = target if not fixed else d_min + d_max
        return 0.0, 0.0, 0.0, reached, 0.0, output, channel, OK

    scale = d_max
    if not d_max < np.inf:  # every reproduction is forbidden somewhere: any finite unit will do
        scale = 0.0
        for x in range(n):
            largest = 0.0
            for y in range(m):
                if d[x, y] < np.inf:
                    largest = max(largest, d[x, y])
            scale += p[x] * largest
        if scale == 0.0:
            scale = 1.0
    at_d_min = (fixed and slope == np.inf) or (not fixed and excess == 0.0)
    for x in range(n):
        for y in range(m):
            if at_d_min and d[x, y] > 0.0:
                d[x, y] = np.inf
            d[x, y] /= scale
    goal = excess / scale
    s = slope * LN2 * scale if fixed else -1.0
    if at_d_min:
        goal, s = 0.0, 1.0

    q = np.full(m, 1.0 / m)
    a = np.empty((n, m))
    c = np.empty(m)
    compact = np.empty((n, m))
    tol_nats = tol * LN2
    lower, upper, reached = -np.inf, np.inf, goal
    final_s = s
    for attempt in range(3):
        final_s, _ = interior_point(p, d, goal, s, tol_nats * 0.1 ** (attempt + 0.5), q)
        kernel(d, final_s, a)
        upper, reached = channel_at(p, d, a, q, np.inf if fixed else goal, compact, output)
        if not fixed:
            reached = goal
        lower = best_lower_bound(p, a, q, c, 0.03 * tol_nats, -np.inf) - final_s * reached
        if upper - lower <= tol_nats:
            break
    i = 0
    for x in range(num_letters):
        if pmf[x] > 0.0:
            channel[x] = compact[i]
            i += 1
        else:
            channel[x] = output
    lower = max(lower, 0.0) / LN2
    upper = max(upper / LN2, lower)
    distance = d_min + reached * scale if fixed else target
    steepness = np.inf if at_d_min else final_s / (scale * LN2)
    status = OK if upper - lower <= tol else NOT_CERTIFIED
    return 0.5 * (lower + upper), lower, upper, distance, steepness, output, channel, status
