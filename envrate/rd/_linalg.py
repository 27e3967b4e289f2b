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
def gram(a: Any, h: Any, n: int, m: int) -> None:
    """Adds a a^T to the lower triangle of h; a is (n, m), row-major."""
    for i in range(n):
        ai = a[i]
        j = 0
        while j + 3 <= i:
            b0, b1, b2, b3 = a[j], a[j + 1], a[j + 2], a[j + 3]
            t0 = t1 = t2 = t3 = 0.0
            for k in range(m):
                x = ai[k]
                t0 += x * b0[k]
                t1 += x * b1[k]
                t2 += x * b2[k]
                t3 += x * b3[k]
            h[i, j] += t0
            h[i, j + 1] += t1
            h[i, j + 2] += t2
            h[i, j + 3] += t3
            j += 4
        while j <= i:
            h[i, j] += _dot(ai, a[j], m)
            j += 1


@njit(cache=True, error_model="numpy", fastmath=FAST)
def cholesky(h: Any, n: int, floor: float) -> None:
    """Factors h = L L^T in its lower triangle; pivots below `floor` times their diagonal are lifted to that."""
    for i in range(n):
        hi = h[i]
        j = 0
        while j + 4 <= i:  # four columns at once: the entries of row i to the left of each are known up to j
            r0, r1, r2, r3 = h[j], h[j + 1], h[j + 2], h[j + 3]
            t0, t1, t2, t3 = hi[j], hi[j + 1], hi[j + 2], hi[j + 3]
            for k in range(j):
                x = hi[k]
                t0 -= x * r0[k]
                t1 -= x * r1[k]
                t2 -= x * r2[k]
                t3 -= x * r3[k]
            t0 /= r0[j]
            t1 = (t1 - t0 * r1[j]) / r1[j + 1]
            t2 = (t2 - t0 * r2[j] - t1 * r2[j + 1]) / r2[j + 2]
            t3 = (t3 - t0 * r3[j] - t1 * r3[j + 1] - t2 * r3[j + 2]) / r3[j + 3]
            hi[j] = t0
            hi[j + 1] = t1
            hi[j + 2] = t2
            hi[j + 3] = t3
            j += 4
        while j < i:
            hi[j] = (hi[j] - _dot(hi, h[j], j)) / h[j, j]
            j += 1
        diagonal = hi[i]
        d = diagonal - _dot(hi, hi, i)
        if not d > floor * diagonal:
            d = floor * diagonal + 1e-300
        hi[i] = math.sqrt(d)


@njit(cache=True, error_model="numpy", fastmath=FAST)
def solve_factored(h: Any, b: Any, n: int) -> None:
    """Solves L L^T x = b in place."""
    for j in range(n):
        b[j] = (b[j] - _dot(h[j], b, j)) / h[j, j]
    for j in range(n - 1, -1, -1):
        t = b[j] / h[j, j]
        b[j] = t
        hj = h[j]
        for k in range(j):
            b[k] -= t * hj[k]


@njit(cache=True, error_model="numpy")
def finite(a: Any, n: int) -> bool:
    """Whether the first n entries are finite."""
    for k in range(n):
        if not np.isfinite(a[k]):
            return False
    return True
