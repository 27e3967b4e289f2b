"""Dense kernels in Numba that need no BLAS: a call of a few microseconds must not wake a thread pool."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

#: Reassociation is allowed, so that sums vectorise; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _dot(a: Any, b: Any, n: int) -> float:
    t = 0.0
    for k in range(n):
        t += a[k] * b[k]
    return t


@njit(cache=True, error_model="numpy", fastmath=FAST)
def total(a: Any) -> float:
    """Sum; array expressions in Numba take long to compile."""
    t = 0.0
    for k in range(a.shape[0]):
        t += a[k]
    return t


@njit(cache=True, error_model="numpy")
def least(row: Any) -> float:
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


@njit(cache=True, error_model="numpy", fastmath=FAST)
def combine(a: Any, s: float, b: Any, out: Any) -> None:
    """Fills out = a + s b."""
    for k in range(out.shape[0]):
        out[k] = a[k] + s * b[k]


@njit(cache=True, error_model="numpy", fastmath=FAST)
def gram(a: Any, start: Any, stop: Any, lead: Any, h: Any, n: int) -> None:
    """Adds a a^T to the lower triangle of h, where row i of `a` is 0 outside [start, stop), which both ascend.

    Fills `lead` (n,): the first j at which row i of the triangle is not 0.
    """
    first = 0
    for i in range(n):
        low = start[i]
        while first < i and stop[first] <= low:
            first += 1
        lead[i] = first
        ai = a[i]
        j = first
        while j + 3 <= i:
            high = stop[j + 3]
            x, b0, b1, b2, b3 = ai[low:high], a[j][low:high], a[j + 1][low:high], a[j + 2][low:high], a[j + 3][low:high]
            t0 = t1 = t2 = t3 = 0.0
            for k in range(high - low):
                t = x[k]
                t0 += t * b0[k]
                t1 += t * b1[k]
                t2 += t * b2[k]
                t3 += t * b3[k]
            h[i, j] += t0
            h[i, j + 1] += t1
            h[i, j + 2] += t2
            h[i, j + 3] += t3
            j += 4
        while j <= i:
            high = stop[j]
            h[i, j] += _dot(ai[low:high], a[j][low:high], high - low)
            j += 1


@njit(cache=True, error_model="numpy", fastmath=FAST)
def cholesky(h: Any, lead: Any, first: int, n: int, floor: float) -> None:
    """Factors h = L L^T in its lower triangle; pivots below `floor` times their diagonal are lifted to that.

    Row i of h is 0 left of column lead(i), which ascends; so is the factor. Rows before `first` hold it already.
    """
    for i in range(first, n):
        begin = lead[i]
        hi = h[i][begin:]
        j = begin
        while j + 4 <= i:  # four columns at once: the entries of row i to the left of each are known up to j
            r0, r1, r2, r3 = h[j][begin:], h[j + 1][begin:], h[j + 2][begin:], h[j + 3][begin:]
            e = j - begin
            t0, t1, t2, t3 = hi[e], hi[e + 1], hi[e + 2], hi[e + 3]
            for k in range(e):
                x = hi[k]
                t0 -= x * r0[k]
                t1 -= x * r1[k]
                t2 -= x * r2[k]
                t3 -= x * r3[k]
            t0 /= r0[e]
            t1 = (t1 - t0 * r1[e]) / r1[e + 1]
            t2 = (t2 - t0 * r2[e] - t1 * r2[e + 1]) / r2[e + 2]
            t3 = (t3 - t0 * r3[e] - t1 * r3[e + 1] - t2 * r3[e + 2]) / r3[e + 3]
            hi[e] = t0
            hi[e + 1] = t1
            hi[e + 2] = t2
            hi[e + 3] = t3
            j += 4
        while j < i:
            hi[j - begin] = (hi[j - begin] - _dot(hi, h[j][begin:], j - begin)) / h[j, j]
            j += 1
        diagonal = h[i, i]
        d = diagonal - _dot(hi, hi, i - begin)
        if not d > floor * diagonal:
            d = floor * diagonal + 1e-300
        h[i, i] = math.sqrt(d)


@njit(cache=True, error_model="numpy", fastmath=FAST)
def solve_factored(h: Any, lead: Any, b: Any, n: int) -> None:
    """Solves L L^T x = b in place for the factor of `cholesky`."""
    for j in range(n):
        begin = lead[j]
        b[j] = (b[j] - _dot(h[j][begin:], b[begin:], j - begin)) / h[j, j]
    for j in range(n - 1, -1, -1):
        begin = lead[j]
        t = b[j] / h[j, j]
        b[j] = t
        hj, bj = h[j][begin:], b[begin:]
        for k in range(j - begin):
            bj[k] -= t * hj[k]
