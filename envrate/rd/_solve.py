"""From checked arrays to a certified point of R(D): units, special cases, and the solvers in turn."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from envrate.rd._certificate import channel_of, lower_line, upper_point
from envrate.rd._interior_point import interior_point
from envrate.rd._kernels import is_toeplitz, kernel
from envrate.rd._structured import known_law

OK, NOT_CERTIFIED, NO_REPRODUCTION, BELOW_D_MIN, TRIVIAL = 0, 1, 2, 3, 4

LN2 = math.log(2.0)

#: Up to this many cells the interior-point method is the faster one.
SMALL = 300
#: Ways to solve, in the order in which they are tried.
METHODS = KNOWN, NEWTON, INTERIOR, SHARPER, SANDWICH = range(5)
#: Atoms from which Newton's method starts on a long alphabet.
ATOMS = 70


class Solution(NamedTuple):
    """A point of R(D) in bits, as `RDPoint` holds it, and a status."""

    lower: float
    upper: float
    distortion: float
    slope: float
    output: Any  # (M,)
    make_channel: Callable[[], Any]  # () -> (K, M)
    status: int


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _is_clean(p: Any, d: Any) -> bool:
    if d.shape[0] != p.shape[0] or d.shape[1] == 0:
        return False
    total = 0.0
    bad = 0
    for x in range(p.shape[0]):
        bad += 0 if p[x] >= 0.0 else 1
        total += p[x]
    for x in range(d.shape[0]):
        row = d[x]
        for y in range(d.shape[1]):
            bad += 0 if row[y] >= 0.0 else 1
    return bad == 0 and abs(total - 1.0) <= 1e-14


def is_clean(pmf: Any, distortion: Any) -> bool:
    """Whether both arrays are float64, contiguous, writeable, of the right shapes and values: no copy is needed."""
    return (
        pmf.dtype == np.float64
        and distortion.dtype == np.float64
        and pmf.ndim == 1
        and distortion.ndim == 2
        and pmf.flags.carray
        and distortion.flags.carray
        and bool(_is_clean(pmf, distortion))
    )


@njit(cache=True, error_model="numpy")
def _least(row: Any) -> float:
    """Minimum, over four strands that the processor can run side by side."""
    m = row.shape[0]
    a = b = c = e = np.inf
    y = 0
    while y + 4 <= m:
        a = row[y] if row[y] < a else a
        b = row[y + 1] if row[y + 1] < b else b
        c = row[y + 2] if row[y + 2] < c else c
        e = row[y + 3] if row[y + 3] < e else e
        y += 4
    while y < m:
        a = row[y] if row[y] < a else a
        y += 1
    return min(min(a, b), min(c, e))


@njit(cache=True, error_model="numpy")
def prepare(
    pmf: Any, distortion: Any, target: float, slope: float
) -> tuple[Any, Any, Any, float, float, bool, float, float, float, int, bool, int]:
    """The problem for letters that occur, each row shifted to a minimum of 0, in units of about D_max - D_min.

    Returns p (n,), d (n, M), d with 0 where forbidden, goal, slope in nats, whether the slope is fixed, D_min,
    D_max - D_min, the unit, the reproduction that is best alone, whether D is D_min, and a status. At D_min all but
    the nearest reproductions are forbidden, and the slope no longer matters. Arrays that need no change are not
    copied.
    """
    num_letters, m = distortion.shape
    least = np.zeros(num_letters)
    column = np.zeros(m)
    d_min = 0.0
    n = 0
    plain = True
    for x in range(num_letters):
        weight = pmf[x]
        if weight > 0.0:
            n += 1
            row = distortion[x]
            t = _least(row)
            least[x] = t
            if t == np.inf:
                return pmf, distortion, distortion, 0.0, 0.0, False, 0.0, 0.0, 1.0, 0, False, NO_REPRODUCTION
            plain = plain and t == 0.0
            d_min += weight * t
            for y in range(m):
                column[y] += weight * (row[y] - t)
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
            return pmf, distortion, distortion, goal, 0.0, fixed, d_min, d_max, 1.0, best, False, BELOW_D_MIN
        goal = 0.0
    if (fixed and slope == 0.0 and d_max < np.inf) or (not fixed and goal >= d_max) or d_max == 0.0:
        return pmf, distortion, distortion, goal, 0.0, fixed, d_min, d_max, 1.0, best, False, TRIVIAL
    unit = d_max
    if not unit < np.inf:  # each reproduction is forbidden somewhere: any finite unit will do
        unit = 0.0
        for x in range(num_letters):
            largest = 0.0
            if pmf[x] > 0.0:
                for y in range(m):
                    if distortion[x, y] < np.inf:
                        largest = max(largest, distortion[x, y] - least[x])
            unit += pmf[x] * largest
        if unit == 0.0:
            unit = 1.0
    at_d_min = (fixed and slope == np.inf) or (not fixed and goal <= 1e-15 * unit)
    p, d = pmf, distortion
    if n < num_letters or not plain or forbidden or at_d_min or not 1e-3 < unit < 1e3:
        p, d = np.empty(n), np.empty((n, m))
        inverse = 1.0 / unit
        i = 0
        for x in range(num_letters):
            if pmf[x] > 0.0:
                p[i] = pmf[x]
                t = least[x]
                row = distortion[x]
                for y in range(m):
                    d[i, y] = (row[y] - t) * inverse
                i += 1
    else:
        unit = 1.0
    if at_d_min:
        forbidden = True
        for x in range(n):
            for y in range(m):
                if d[x, y] > 0.0:
                    d[x, y] = np.inf
    finite = d
    if forbidden:
        finite = np.where(d == np.inf, 0.0, d)
    if at_d_min:
        return p, d, finite, 0.0, 1.0, True, d_min, d_max, unit, best, True, OK
    s = slope * LN2 * unit if fixed else 0.5 * unit / goal
    return p, d, finite, goal / unit, s, fixed, d_min, d_max, unit, best, False, OK


@njit(cache=True, error_model="numpy")
def certify(
    p: Any, finite: Any, a: Any, band: tuple[int, int], q: Any, s: float, goal: float, fixed: bool, tol: float
) -> tuple[float, float, float, float]:
    """Lower and upper bound in nats, the distortion they are at, and the share by which the channel is bent.

    The distortion is `goal`, or the channel's own at a fixed slope.
    """
    upper, distortion, share = upper_point(p, finite, a, band, q, s, np.inf if fixed else goal)
    at = distortion if fixed else goal
    return lower_line(p, a, band, q, 0.3 * tol, np.empty(q.shape[0])) - s * at, upper, at, share


def _by_newton(
    p: Any,
    d: Any,
    finite: Any,
    toeplitz: bool,
    goal: float,
    s: float,
    fixed: bool,
    tol: float,
    q: Any,
    a: Any,
    start: Any,
) -> tuple[float, tuple[int, int]]:
    """Newton's method from a Blahut-Arimoto warm-up, or from the law and slope `start` of a neighbour."""
    from envrate.rd._newton import newton, thin, warm_up

    if start is not None and 0.0 < start[1] < math.inf:
        q[:] = start[0]
        s, steps, band = newton(p, d, finite, toeplitz, goal, start[1], fixed, tol, q, a)
        if steps > 0:
            return float(s), band
        q[:] = 1.0 / len(q)
        s = 0.5 / goal
    s, done, band = warm_up(p, d, finite, toeplitz, goal, s, fixed, tol, q, a)
    if not done:
        thin(q, ATOMS)
        s, _, band = newton(p, d, finite, toeplitz, goal, s, fixed, tol, q, a)
    return float(s), band


def solve(
    pmf: Any, distortion: Any, target: float, slope: float, tol: float, start: tuple[Any, float] | None = None
) -> Solution:
    """R(D) at `target` (slope < 0), or at `slope` in bits per unit of distortion.

    `start` is the output law and the slope of a point nearby.

    A known law, Newton's method on large alphabets, the interior point twice, the sandwich, until one certifies.
    """
    num_letters, m = distortion.shape
    p, d, finite, goal, s, fixed, d_min, d_max, unit, best, at_d_min, status = prepare(pmf, distortion, target, slope)
    if status != OK:
        law = np.zeros(m)
        law[best] = 1.0
        nothing = partial(np.tile, law, (num_letters, 1))
        at = d_min + d_max if fixed else target
        if status == TRIVIAL:
            return Solution(0.0, 0.0, at, 0.0, law, nothing, OK)
        return Solution(0.0, math.inf, target, 0.0, law, nothing, status)
    if start is not None:
        start = (start[0], start[1] * unit * LN2)
    n = p.shape[0]
    tol_nats = LN2 * tol
    small = distortion.size <= SMALL
    toeplitz = not small and bool(math.isfinite(d[0, -1])) and is_toeplitz(d)
    law = np.empty(m)
    known = -1.0 if fixed else known_law(p, d, goal, toeplitz, law)
    best_lower, best_upper, best_at, best_s = -math.inf, math.inf, goal, s
    best_parts: tuple[Any, Any, float] | None = None
    best_law = law
    for method in METHODS[(0 if known > 0.0 else (2 if small else 1)) :]:
        if (method == NEWTON and small) or (method == SANDWICH and fixed):
            continue
        a, q, share = np.empty((n, m)), law, 0.0
        if method == SANDWICH:
            from envrate.rd._sandwich import sandwich

            q = np.empty(m)
            lower, upper, found = sandwich(p, d, finite, d_max / unit, best, goal, tol_nats, a, q)
            at = goal
        else:
            if method == KNOWN:
                found = known
                band = kernel(d, found, toeplitz, a, np.empty(n + m, np.int64), p.min())
            elif method == NEWTON:
                q = np.full(m, 1.0 / m)
                found, band = _by_newton(p, d, finite, toeplitz, goal, s, fixed, tol_nats, q, a, start)
            else:
                q = np.full(m, 1.0 / m)
                sharpness = 0.3 if method == INTERIOR else 0.02
                found, _ = interior_point(p, d, goal, s if fixed else -1.0, tol_nats * sharpness, q)
                band = kernel(d, found, False, a, np.empty(n + m, np.int64))
            if not found >= 0.0:
                continue
            lower, upper, at, share = certify(p, finite, a, band, q, found, goal, fixed, tol_nats)
        if upper - lower < best_upper - best_lower:
            best_lower, best_upper, best_at, best_s = lower, upper, at, found
            best_parts = (a, None if method == SANDWICH else q, share)
            best_law = q / q.sum()
            if upper - lower <= tol_nats:
                break
    if best_parts is None:  # no solver came to anything: the bracket is without end
        best_law = np.full(m, 1.0 / m)
        best_parts = (np.ones((n, m)), best_law, 0.0)
    lower = max(best_lower, 0.0) / LN2
    upper = max(best_upper / LN2, lower)
    at = d_min + unit * best_at if fixed and slope >= 0.0 else target
    steepness = math.inf if at_d_min else best_s / (unit * LN2)
    status = OK if upper - lower <= tol else NOT_CERTIFIED
    a, q, share = best_parts
    make_channel = partial(channel_of, a, q, share, pmf > 0.0, best_law)
    return Solution(lower, upper, at, steepness, best_law, make_channel, status)
