"""The kernel exp(-s d) and one pass of Blahut-Arimoto over it, in Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from envrate.rd._linalg import FAST

#: exp(-300) is far below any rounding that matters and far above the denormals, which are four times slower.
UNDERFLOW = -300.0

#: Entries up to this of a Toeplitz kernel are left out at its far corners (its rows have maximum 1). Both bounds stay
#: valid to n times that: the channel is one all the same, and c changes by no more. Less where letters are so rare
#: that only such entries reach them: at the optimum A q >= p.
NEGLIGIBLE = 1e-18
#: The band of a kernel that has none: offsets y - x between which entries may differ from 0.
EVERYWHERE = (-(1 << 40), 1 << 40)

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the low bits
_MAGIC_BITS = 0x4338000000000000


@njit(cache=True, error_model="numpy")
def exp_into(x: Any, scale: float, out: Any, work: Any) -> None:
    """Fills out = exp(scale * x), 0 below exp(-300); scale * x <= 0. `work` is an int64 array of the same length.

    Branch-free so that it vectorises: Cody & Waite's reduction, a polynomial of degree 12 on [-ln2/2, ln2/2], and
    the exponent added through the integer view; relative error 2e-14.
    """
    n = x.shape[0]
    floats = work.view(np.float64)
    for k in range(n):
        e = scale * x[k]
        e = e if e > UNDERFLOW else UNDERFLOW
        out[k] = e
        floats[k] = e * _LOG2E + _MAGIC
    for k in range(n):
        t = floats[k] - _MAGIC
        r = (out[k] - t * _LN2_HIGH) - t * _LN2_LOW
        y = 2.08767569878681e-09
        y = y * r + 2.505210838544172e-08
        y = y * r + 2.755731922398589e-07
        y = y * r + 2.7557319223985893e-06
        y = y * r + 2.48015873015873e-05
        y = y * r + 1.984126984126984e-04
        y = y * r + 1.388888888888889e-03
        y = y * r + 8.333333333333333e-03
        y = y * r + 4.1666666666666664e-02
        y = y * r + 1.6666666666666666e-01
        y = y * r + 0.5
        y = y * r + 1.0
        out[k] = y * r + 1.0
        work[k] = (work[k] - _MAGIC_BITS + 1023) << 52
    for k in range(n):
        t = out[k] * floats[k]
        out[k] = t if t > 1e-130 else 0.0


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _difference(a: Any, b: Any, n: int) -> float:
    """Sum of |a(k+1) - b(k)| over the first n."""
    t = 0.0
    for k in range(n):
        t += abs(a[k + 1] - b[k])
    return t


@njit(cache=True, error_model="numpy")
def is_toeplitz(d: Any) -> bool:
    """Whether finite d depends on the difference of its indices only: a difference distortion on a grid."""
    n, m = d.shape
    if n < 8 or m < 8:
        return False
    tolerance = 1e-13 * (abs(d[0, m - 1]) + abs(d[n - 1, 0]))
    for x in range(1, n):
        if not _difference(d[x], d[x - 1], m - 1) <= tolerance * m:
            return False
    return True


@njit(cache=True, error_model="numpy", inline="always")
def inside(band: tuple[int, int], x: int, until: int, m: int) -> tuple[int, int]:
    """Columns start, stop that the band leaves to the rows x to `until`."""
    start = min(max(x + band[0], 0), m)
    return start, max(min(until + band[1] + 1, m), start)


@njit(cache=True, error_model="numpy")
def kernel(d: Any, s: float, toeplitz: bool, a: Any, work: Any, rarest: float = 0.0) -> tuple[int, int]:
    """Fills a = exp(-s d); d >= 0, inf where forbidden. `work` is int64 of length n + m.

    `rarest` is the least probability of a letter, which bounds what a Toeplitz kernel may leave out; 0: nothing.

    Returns the band: the first and last y - x at which entries are not 0.
    """
    n, m = d.shape
    if not toeplitz:
        for x in range(n):
            exp_into(d[x], -s, a[x], work[:m])
        return EVERYWHERE
    line = np.empty(n + m - 1)
    for k in range(n):
        line[n - 1 - k] = d[k, 0]
    for k in range(1, m):
        line[n - 1 + k] = d[0, k]
    exps = np.empty(n + m - 1)
    exp_into(line, -s, exps, work[: n + m - 1])
    cut = min(NEGLIGIBLE, 1e-3 * rarest)
    first, last = 0, n + m - 2
    while first < last and not exps[first] > cut:
        first += 1
    while last > first and not exps[last] > cut:
        last -= 1
    band = first - (n - 1), last - (n - 1)
    for x in range(n):
        start, stop = inside(band, x, x, m)
        ax = a[x]
        for y in range(start):
            ax[y] = 0.0
        part, source = ax[start:stop], exps[n - 1 - x + start : n - 1 - x + stop]
        for y in range(stop - start):
            part[y] = source[y]
        part = ax[stop:]
        for y in range(m - stop):
            part[y] = 0.0
    return band


@njit(cache=True, error_model="numpy", fastmath=FAST)
def output_of(a: Any, band: tuple[int, int], q: Any, r: Any) -> None:
    """Fills r = A q."""
    n, m = a.shape
    for x in range(n):
        start, stop = inside(band, x, x, m)
        ax, qx = a[x][start:stop], q[start:stop]
        t = 0.0
        for y in range(stop - start):
            t += ax[y] * qx[y]
        r[x] = t


@njit(cache=True, error_model="numpy", fastmath=FAST)
def gradient(p: Any, a: Any, band: tuple[int, int], q: Any, r: Any, c: Any) -> None:
    """Fills r = A q and c = A^T (p / r), reading A once; four rows at a time."""
    n, m = a.shape
    for y in range(m):
        c[y] = 0.0
    x = 0
    while x + 4 <= n:
        start, stop = inside(band, x, x + 3, m)
        a0, a1, a2, a3 = a[x][start:stop], a[x + 1][start:stop], a[x + 2][start:stop], a[x + 3][start:stop]
        qx, cx = q[start:stop], c[start:stop]
        r0 = r1 = r2 = r3 = 0.0
        for y in range(stop - start):
            t = qx[y]
            r0 += a0[y] * t
            r1 += a1[y] * t
            r2 += a2[y] * t
            r3 += a3[y] * t
        r[x], r[x + 1], r[x + 2], r[x + 3] = r0, r1, r2, r3
        w0, w1, w2, w3 = p[x] / r0, p[x + 1] / r1, p[x + 2] / r2, p[x + 3] / r3
        for y in range(stop - start):
            cx[y] += w0 * a0[y] + w1 * a1[y] + w2 * a2[y] + w3 * a3[y]
        x += 4
    while x < n:
        ax = a[x]
        t = 0.0
        for y in range(m):
            t += ax[y] * q[y]
        r[x] = t
        t = p[x] / t
        for y in range(m):
            c[y] += t * ax[y]
        x += 1


@njit(cache=True, error_model="numpy", fastmath=FAST)
def mean_distortion(p: Any, a: Any, band: tuple[int, int], d: Any, q: Any, r: Any) -> tuple[float, float]:
    """E d of the channel q A / r, and the mean variance of d at a letter; d holds 0 where it is forbidden."""
    n, m = a.shape
    mean = spread = 0.0
    for x in range(n):
        start, stop = inside(band, x, x, m)
        ax, dx, qx = a[x][start:stop], d[x][start:stop], q[start:stop]
        t = u = 0.0
        for y in range(stop - start):
            e = ax[y] * qx[y] * dx[y]
            t += e
            u += e * dx[y]
        t /= r[x]
        mean += p[x] * t
        spread += p[x] * (u / r[x] - t * t)
    return mean, spread
