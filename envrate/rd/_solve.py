"""One call from checked arrays to a certified point of R(D): units, special cases, solvers in turn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from envrate.rd._certificate import lower_line, upper_point
from envrate.rd._interior_point import interior_point
from envrate.rd._kernels import is_toeplitz, kernel
from envrate.rd._newton import newton, thin, warm_up
from envrate.rd._sandwich import sandwich

OK, NOT_CERTIFIED, NO_REPRODUCTION, BELOW_D_MIN = 0, 1, 2, 3

LN2 = math.log(2.0)

#: Up to this many reproductions the interior-point method is the faster one.
SMALL = 12
#: Atoms from which Newton's method starts on a long alphabet.
ATOMS = 100


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
        least = 0.0
        for y in range(d.shape[1]):
            least = min(least, d[x, y]) if d[x, y] == d[x, y] else -1.0
        if not least >= 0.0:
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
def attempt(
    p: Any, d: Any, finite: Any, toeplitz: bool, goal: float, s: float, fixed: bool, tol: float, method: int, q: Any, a: Any
) -> float:
    """Runs one solver from the slope s and the law q; returns the slope and leaves q and the kernel a."""
    n, m = d.shape
    if method == 0:
        s, done = warm_up(p, d, finite, toeplitz, goal, s, fixed, tol, q, a)
        if done:
            return s
        thin(q, ATOMS)
        s, _ = newton(p, d, finite, toeplitz, goal, s, fixed, tol, q, a)
        return s
    s, _ = interior_point(p, d, goal, s if fixed else -1.0, tol * 0.1 ** (method - 0.5), q)
    kernel(d, s, toeplitz, a, np.empty(n + m, np.int64))
    return s


@njit(cache=True, error_model="numpy")
def solve(
    pmf: Any, distortion: Any, target: float, slope: float, tol: float
) -> tuple[float, float, float, float, float, Any, Any, int]:
    """R(D) at `target` (slope < 0) or at `slope` in bits per unit of distortion.

    Returns rate, lower, upper (bits), distortion, slope (bits per unit), output (M,), channel (K, M) and a status.
    """
    num_letters, m = distortion.shape
    output = np.zeros(m)
    channel = np.empty((num_letters, m))

    # letters that occur; rows shifted to a minimum of 0
    n = 0
    for x in range(num_letters):
        n += pmf[x] > 0.0
    p = np.empty(n)
    d = np.empty((n, m))
    d_min = 0.0
    forbidden = False
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
    column = np.zeros(m)
    for x in range(n):
        weight = p[x]
        for y in range(m):
            column[y] += weight * d[x, y]
    best = 0
    for y in range(m):
        if column[y] < column[best]:
            best = y
    d_max = column[best]
    for y in range(m):
        forbidden = forbidden or column[y] == np.inf
    fixed = slope >= 0.0
    excess = target - d_min
    if not fixed and excess < 0.0:
        if excess < -1e-12 * d_min:
            return 0.0, 0.0, np.inf, target, 0.0, output, channel, BELOW_D_MIN
        excess = 0.0
    if (fixed and slope == 0.0 and d_max < np.inf) or (not fixed and excess >= d_max) or d_max == 0.0:
        output[best] = 1.0
        channel[:] = 0.0
        for x in range(num_letters):
            channel[x, best] = 1.0
        return 0.0, 0.0, 0.0, d_min + d_max if fixed else target, 0.0, output, channel, OK

    # distortion in units of D_max - D_min
    scale = d_max
    if not scale < np.inf:  # each reproduction is forbidden somewhere: any finite unit will do
        scale = 0.0
        for x in range(n):
            largest = 0.0
            for y in range(m):
                if d[x, y] < np.inf:
                    largest = max(largest, d[x, y])
            scale += p[x] * largest
        if scale == 0.0:
            scale = 1.0
    at_d_min = (fixed and slope == np.inf) or (not fixed and excess <= 1e-15 * scale)
    inverse = 1.0 / scale
    for x in range(n):
        for y in range(m):
            t = d[x, y] * inverse
            if at_d_min and t > 0.0:
                t = np.inf
                forbidden = True
            d[x, y] = t
    finite = d
    if forbidden:
        finite = d.copy()
        for x in range(n):
            for y in range(m):
                if finite[x, y] == np.inf:
                    finite[x, y] = 0.0
    toeplitz = not forbidden and is_toeplitz(d)
    goal = excess * inverse
    s = slope * LN2 * scale if fixed else 0.5 / goal
    if at_d_min:
        goal, s, fixed = 0.0, 1.0, True

    a = np.empty((n, m))
    q = np.empty(m)
    compact = channel if n == num_letters else np.empty((n, m))
    tol_nats = tol * LN2
    lower = reached = 0.0
    upper = np.inf
    best_s = s
    start = 1 if m <= SMALL else 0
    certified = False
    for method in range(1 if m <= SMALL else 0, 3):
        q[:] = 1.0 / m
        found = attempt(p, d, finite, toeplitz, goal, s, fixed, tol_nats, method, q, a)
        if not found >= 0.0:
            continue
        limit = np.inf if fixed and not at_d_min else goal
        above, distance, value = upper_point(p, finite, a, q, found, limit, compact, output)
        if not above < np.inf:
            continue
        if not fixed:
            distance = goal
        below = lower_line(p, a, q, value - 0.3 * tol_nats, column) - found * distance
        if not upper - lower <= above - below or above - below <= tol_nats:
            lower, upper, reached, best_s = below, above, distance, found
        if above - below <= tol_nats:
            certified = True
            break
    if not certified and not fixed:
        below, above, found = sandwich(p, d, finite, d_max * inverse, best, goal, tol_nats, a, q)
        if above - below < upper - lower:
            lower, upper, best_s = below, above, found
            compact[:] = a
            output[:] = q
    if compact is not channel:
        i = 0
        for x in range(num_letters):
            if pmf[x] > 0.0:
                channel[x] = compact[i]
                i += 1
            else:
                channel[x] = output
    lower = max(lower, 0.0) / LN2
    upper = max(upper / LN2, lower)
    if slope >= 0.0:
        target = d_min + reached * scale
    steepness = np.inf if at_d_min else best_s / (scale * LN2)
    status = OK if upper - lower <= tol else NOT_CERTIFIED
    return 0.5 * (lower + upper), lower, upper, target, steepness, output, channel, status
