"""From checked arrays to a certified point of R(D): units, special cases, and the solvers in turn."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from envrate.rd._certificate import lower_line, upper_point
from envrate.rd._interior_point import interior_point
from envrate.rd._kernels import is_toeplitz, kernel

OK, NOT_CERTIFIED, NO_REPRODUCTION, BELOW_D_MIN, TRIVIAL = 0, 1, 2, 3, 4

LN2 = math.log(2.0)

#: Up to this many cells the interior-point method is the faster one, and all is done in one compiled call.
SMALL = 300
#: Atoms from which Newton's method starts on a long alphabet.
ATOMS = 100


class Solution(NamedTuple):
    """A point of R(D) in bits, as `RDPoint` holds it, and a status."""

    lower: float
    upper: float
    distortion: float
    slope: float
    output: Any  # (M,)
    channel: Any  # (K, M)
    status: int


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
def prepare(
    pmf: Any, distortion: Any, target: float, slope: float
) -> tuple[Any, Any, Any, float, float, bool, float, float, float, int, bool, int]:
    """The problem in units of D_max - D_min, for letters that occur, each row shifted to a minimum of 0.

    Returns p (n,), d (n, M), d with 0 where forbidden, goal, slope in nats, whether the slope is fixed, D_min,
    D_max - D_min, the unit, the reproduction that is best alone, whether D is D_min, and a status. At D_min all but
    the nearest reproductions are forbidden, and the slope no longer matters.
    """
    num_letters, m = distortion.shape
    n = 0
    for x in range(num_letters):
        n += pmf[x] > 0.0
    p = np.empty(n)
    d = np.empty((n, m))
    column = np.zeros(m)
    d_min = 0.0
    i = 0
    for x in range(num_letters):
        if pmf[x] > 0.0:
            least = np.inf
            for y in range(m):
                least = min(least, distortion[x, y])
            if least == np.inf:
                return p, d, d, 0.0, 0.0, False, 0.0, 0.0, 1.0, 0, False, NO_REPRODUCTION
            p[i] = pmf[x]
            for y in range(m):
                t = distortion[x, y] - least
                d[i, y] = t
                column[y] += pmf[x] * t
            d_min += p[i] * least
            i += 1
    best = 0
    forbidden = False
    for y in range(m):
        if column[y] < column[best]:
            best = y
        forbidden = forbidden or column[y] == np.inf
    d_max = column[best]
    fixed = slope >= 0.0
    goal = target - d_min
    if not fixed and goal < 0.0:
        if goal < -1e-12 * d_min:
            return p, d, d, goal, 0.0, fixed, d_min, d_max, 1.0, best, False, BELOW_D_MIN
        goal = 0.0
    if (fixed and slope == 0.0 and d_max < np.inf) or (not fixed and goal >= d_max) or d_max == 0.0:
        return p, d, d, goal, 0.0, fixed, d_min, d_max, 1.0, best, False, TRIVIAL
    unit = d_max
    if not unit < np.inf:  # each reproduction is forbidden somewhere: any finite unit will do
        unit = 0.0
        for x in range(n):
            largest = 0.0
            for y in range(m):
                if d[x, y] < np.inf:
                    largest = max(largest, d[x, y])
            unit += p[x] * largest
        if unit == 0.0:
            unit = 1.0
    at_d_min = (fixed and slope == np.inf) or (not fixed and goal <= 1e-15 * unit)
    inverse = 1.0 / unit
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
    if at_d_min:
        return p, d, finite, 0.0, 1.0, True, d_min, d_max, unit, best, True, OK
    s = slope * LN2 * unit if fixed else 0.5 * unit / goal
    return p, d, finite, goal * inverse, s, fixed, d_min, d_max, unit, best, False, OK


@njit(cache=True, error_model="numpy")
def certify(
    p: Any, finite: Any, a: Any, q: Any, s: float, goal: float, fixed: bool, tol: float, channel: Any, output: Any
) -> tuple[float, float, float]:
    """Lower and upper bound in nats and the distortion they are at: `goal`, or the channel's own at a fixed slope.

    `output` gets q, which gives the lower bound; the channel's own law is the same to rounding and the tolerance.
    """
    above, distortion, value = upper_point(p, finite, a, q, s, np.inf if fixed else goal, channel, output)
    if not above < np.inf:
        return -np.inf, np.inf, goal
    at = distortion if fixed else goal
    lower = lower_line(p, a, q, value - 0.3 * tol, output) - s * at
    total = q.sum()
    for y in range(q.shape[0]):
        output[y] = q[y] / total
    return lower, above, at


@njit(cache=True, error_model="numpy")
def spread(pmf: Any, output: Any, channel: Any) -> None:
    """Moves the rows of letters that occur to their places; the others get the output law."""
    i = 0
    for x in range(pmf.shape[0]):
        i += pmf[x] > 0.0
    for x in range(pmf.shape[0] - 1, -1, -1):
        if pmf[x] > 0.0:
            i -= 1
            channel[x] = channel[i]
        else:
            channel[x] = output


def _by_newton(
    p: Any, d: Any, finite: Any, goal: float, s: float, fixed: bool, tol: float, q: Any, a: Any, start: Any
) -> float:
    """Newton's method from a Blahut-Arimoto warm-up, or from the law and slope `start` of a neighbour."""
    from envrate.rd._newton import newton, thin, warm_up

    toeplitz = bool(math.isfinite(d[0, -1])) and is_toeplitz(d)
    if start is not None and 0.0 < start[1] < math.inf:
        q[:] = start[0]
        s, steps = newton(p, d, finite, toeplitz, goal, start[1], fixed, tol, q, a)
        if steps > 0:
            return float(s)
        q[:] = 1.0 / len(q)
        s = 0.5 / goal
    s, done = warm_up(p, d, finite, toeplitz, goal, s, fixed, tol, q, a)
    if not done:
        thin(q, ATOMS)
        s, _ = newton(p, d, finite, toeplitz, goal, s, fixed, tol, q, a)
    return float(s)


def solve(
    pmf: Any, distortion: Any, target: float, slope: float, tol: float, start: tuple[Any, float] | None = None
) -> Solution:
    """R(D) at `target` (slope < 0), or at `slope` in bits per unit of distortion.

    `start` is the output law and the slope of a point nearby.

    Newton's method on large alphabets, then the interior point twice, then the sandwich, until one certifies.
    """
    num_letters, m = distortion.shape
    p, d, finite, goal, s, fixed, d_min, d_max, unit, best, at_d_min, status = prepare(pmf, distortion, target, slope)
    if status == TRIVIAL:
        channel = np.zeros((num_letters, m))
        channel[:, best] = 1.0
        return Solution(0.0, 0.0, d_min + d_max if fixed else target, 0.0, channel[0].copy(), channel, OK)
    if status != OK:
        return Solution(0.0, math.inf, target, 0.0, np.zeros(m), np.zeros((num_letters, m)), status)
    if start is not None:
        start = (start[0], start[1] * unit * LN2)
    n = p.shape[0]
    tol_nats = LN2 * tol
    kept = Solution(-math.inf, math.inf, goal, s, np.zeros(m), np.zeros((num_letters, m)), NOT_CERTIFIED)
    for method in range(1 if distortion.size <= SMALL else 0, 4):
        a, q = np.empty((n, m)), np.full(m, 1.0 / m)
        channel, output = np.empty((num_letters, m)), np.empty(m)
        if method == 3:
            if fixed:
                break
            from envrate.rd._sandwich import sandwich

            lower, upper, found = sandwich(p, d, finite, d_max / unit, best, goal, tol_nats, channel[:n], output)
            at = goal
        else:
            if method == 0:
                found = _by_newton(p, d, finite, goal, s, fixed, tol_nats, q, a, start)
            else:
                found, _ = interior_point(p, d, goal, s if fixed else -1.0, tol_nats * (0.3, 0.02)[method - 1], q)
                kernel(d, found, False, a, np.empty(n + m, np.int64))
            if not found >= 0.0:
                continue
            lower, upper, at = certify(p, finite, a, q, found, goal, fixed, tol_nats, channel[:n], output)
        if upper - lower < kept.upper - kept.lower:
            kept = Solution(lower, upper, at, found, output, channel, NOT_CERTIFIED)
            if upper - lower <= tol_nats:
                break
    if n < num_letters:
        spread(pmf, kept.output, kept.channel)
    lower = max(kept.lower, 0.0) / LN2
    upper = max(kept.upper / LN2, lower)
    at = d_min + unit * kept.distortion if slope >= 0.0 else target
    steepness = math.inf if at_d_min else kept.slope / (unit * LN2)
    status = OK if upper - lower <= tol else NOT_CERTIFIED
    return Solution(lower, upper, at, steepness, kept.output, kept.channel, status)
