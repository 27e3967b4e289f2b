"""From the arrays of a problem to what the solvers take: letters that occur, rows from 0, units, special cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from envrate.rd._linalg import FAST, least

OK, NOT_CERTIFIED, NO_REPRODUCTION, BELOW_D_MIN, TRIVIAL, UNCLEAN = range(6)

LN2 = math.log(2.0)


def is_plain(pmf: Any, distortion: Any) -> bool:
    """Whether both are float64 arrays, contiguous, writeable and of the right shapes, so that no copy is needed."""
    return (
        type(pmf) is np.ndarray
        and type(distortion) is np.ndarray
        and pmf.dtype == np.float64
        and distortion.dtype == np.float64
        and pmf.ndim == 1
        and distortion.ndim == 2
        and pmf.flags.carray
        and distortion.flags.carray
        and distortion.shape[0] == pmf.shape[0]
        and distortion.shape[1] > 0
    )


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _add_rows(d: Any, x: int, w: Any, column: Any) -> int:
    """Adds w(x) d(x, .) of four rows to `column`; returns how many entries are not >= 0."""
    m = column.shape[0]
    d0, d1, d2, d3 = d[x], d[x + 1], d[x + 2], d[x + 3]
    w0, w1, w2, w3 = w[x], w[x + 1], w[x + 2], w[x + 3]
    bad = 0
    for y in range(m):
        t0, t1, t2, t3 = d0[y], d1[y], d2[y], d3[y]
        column[y] += w0 * t0 + w1 * t1 + w2 * t2 + w3 * t3
        bad += 0 if (t0 >= 0.0) & (t1 >= 0.0) & (t2 >= 0.0) & (t3 >= 0.0) else 1
    return bad


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _add_row(row: Any, weight: float, least: float, column: Any) -> int:
    """`_add_rows` of one row less its minimum; nothing is added where the weight is 0."""
    bad = 0
    for y in range(column.shape[0]):
        column[y] += weight * (row[y] - least) if weight > 0.0 else 0.0
        bad += 0 if row[y] >= 0.0 else 1
    return bad


@njit(cache=True, error_model="numpy")
def _survey(pmf: Any, distortion: Any, lowest: Any, column: Any) -> tuple[bool, bool]:
    """Fills each row's minimum and column = sum_x p(x) (d(x, .) - least(x)).

    Returns whether all entries are >= 0 and pmf sums to 1, and whether each row has minimum 0.
    """
    n, m = distortion.shape
    total = 0.0
    bad = 0
    guess = 0  # where a row has its 0: one further than in the row before
    plain = True
    for x in range(n):
        bad += 0 if pmf[x] >= 0.0 else 1
        total += pmf[x]
        row = distortion[x]
        if guess < m and row[guess] == 0.0:
            lowest[x] = 0.0
        else:
            lowest[x] = least(row)
            guess = 0
            while guess < m and row[guess] != 0.0:
                guess += 1
        guess += 1
        plain = plain and lowest[x] == 0.0
    x = 0
    while x < n:
        if plain and x + 4 <= n and min(min(pmf[x], pmf[x + 1]), min(pmf[x + 2], pmf[x + 3])) > 0.0:
            bad += _add_rows(distortion, x, pmf, column)
            x += 4
        else:
            bad += _add_row(distortion[x], pmf[x], lowest[x], column)
            x += 1
    return bad == 0 and abs(total - 1.0) <= 1e-14, plain


@njit(cache=True, error_model="numpy")
def prepare(
    pmf: Any, distortion: Any, target: float, slope: float, checked: bool
) -> tuple[Any, Any, Any, float, float, bool, float, float, float, int, bool, int]:
    """The problem for letters that occur, each row shifted to a minimum of 0, in units of about D_max - D_min.

    Returns p (n,), d (n, M), d with 0 where forbidden, goal, slope in nats, whether the slope is fixed, D_min,
    D_max - D_min, the unit, the reproduction that is best alone, whether D is D_min, and a status. At D_min all but
    the nearest reproductions are forbidden, and the slope no longer matters. Arrays that need no change are not
    copied. Unless they are `checked`, a look at each entry comes with it.
    """
    num_letters, m = distortion.shape
    lowest, column = np.empty(num_letters), np.zeros(m)
    clean, plain = _survey(pmf, distortion, lowest, column)
    if not (clean or checked):
        return pmf, distortion, distortion, 0.0, 0.0, False, 0.0, 0.0, 1.0, 0, False, UNCLEAN
    d_min = 0.0
    n = 0
    for x in range(num_letters):
        if pmf[x] > 0.0:
            n += 1
            d_min += pmf[x] * lowest[x]
            if lowest[x] == np.inf:
                return pmf, distortion, distortion, 0.0, 0.0, False, 0.0, 0.0, 1.0, 0, False, NO_REPRODUCTION
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
                        largest = max(largest, distortion[x, y] - lowest[x])
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
                t = lowest[x]
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
        finite = np.empty(d.shape)
        for x in range(d.shape[0]):
            for y in range(m):
                finite[x, y] = d[x, y] if d[x, y] < np.inf else 0.0
    if at_d_min:
        return p, d, finite, 0.0, 1.0, True, d_min, d_max, unit, best, True, OK
    s = slope * LN2 * unit if fixed else 0.5 * unit / goal
    return p, d, finite, goal / unit, s, fixed, d_min, d_max, unit, best, False, OK
