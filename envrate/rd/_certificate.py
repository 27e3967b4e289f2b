"""Both bounds on R(D) from an output law and a slope, and the channel that holds the upper one.

With A = exp(-s d), r = A q and c(y) = sum_x p(x) A(x, y) / r(x), in nats:

    lower   R(D) >= -sum_x p(x) log r(x) - log max_y c(y) - s D       for every q and s >= 0  (Gallager 1968, 9.4.1)
    upper   R(D) <= I(X; Y) of any channel whose mean distortion is at most D, here q A / r, whose output law is q c

A letter of tiny probability can keep max c far from 1 long after R is exact, because q starves it. So the lower bound
is taken at q mixed with a little of the uniform law, which costs no more than the share mixed in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from envrate.rd._kernels import inside
from envrate.rd._linalg import FAST

FloatArray = NDArray[np.float64]

#: Shares of the uniform law that are tried in turn.
POLISH = (1e-11, 0.0, 1e-13, 1e-10, 1e-9)


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _outputs(a: Any, band: tuple[int, int], q: Any, r: Any, mean: Any) -> None:
    """Computes r = A q / sum q and the row means of A."""
    n, m = a.shape
    total = 0.0
    for y in range(m):
        total += q[y]
    for x in range(n):
        start, stop = inside(band, x, x, m)
        ax, qx = a[x][start:stop], q[start:stop]
        t = u = 0.0
        for y in range(stop - start):
            t += ax[y] * qx[y]
            u += ax[y]
        r[x] = t / total
        mean[x] = u / m


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _largest_c(a: Any, band: tuple[int, int], weight: Any, c: Any) -> float:
    """max_y of c = A^T weight."""
    n, m = a.shape
    for y in range(m):
        c[y] = 0.0
    x = 0
    while x + 4 <= n:
        start, stop = inside(band, x, x + 3, m)
        a0, a1, a2, a3 = a[x][start:stop], a[x + 1][start:stop], a[x + 2][start:stop], a[x + 3][start:stop]
        cx = c[start:stop]
        w0, w1, w2, w3 = weight[x], weight[x + 1], weight[x + 2], weight[x + 3]
        for y in range(stop - start):
            cx[y] += w0 * a0[y] + w1 * a1[y] + w2 * a2[y] + w3 * a3[y]
        x += 4
    while x < n:
        for y in range(m):
            c[y] += weight[x] * a[x, y]
        x += 1
    top = 0.0
    for y in range(m):
        top = max(top, c[y])
    return top


@njit(cache=True, error_model="numpy")
def lower_line(p: Any, a: Any, band: tuple[int, int], q: Any, tol: float, c: Any) -> float:
    """The best -sum p log r - log max c over the shares of POLISH, in nats.

    Stops at the first share whose value is within `tol` of -sum p log r at q itself, which none can beat.
    """
    n = a.shape[0]
    r, mean, weight = np.empty(n), np.empty(n), np.empty(n)
    _outputs(a, band, q, r, mean)
    enough = -tol
    for x in range(n):
        enough -= p[x] * math.log(r[x])
    best = -np.inf
    for share in POLISH:
        value = 0.0
        for x in range(n):
            t = (1.0 - share) * r[x] + share * mean[x]
            if t > 0.0:
                value -= p[x] * math.log(t)
                weight[x] = p[x] / t
            else:
                value = -np.inf
                break
        if value == -np.inf:
            continue
        value -= math.log(_largest_c(a, band, weight, c))
        best = max(best, value)
        if best >= enough:
            break
    return best


@njit(cache=True, error_model="numpy", fastmath=FAST)
def upper_point(
    p: Any, d: Any, a: Any, band: tuple[int, int], q: Any, s: float, target: float
) -> tuple[float, float, float]:
    """An upper bound on R in nats, the distortion it is at, and the share by which the channel q A / r is bent.

    Where its mean distortion is above `target`, the channel is mixed with that which gives each letter its nearest
    reproductions (at distance 0: rows of d have minimum 0) until it meets the target. Information is convex in the
    channel and at most H(X), so the bound grows by no more than that share of H(X). d holds 0 where a reproduction
    is forbidden.
    """
    n, m = a.shape
    c = np.zeros(m)
    distortion = information = entropy = 0.0
    for x in range(n):
        start, stop = inside(band, x, x, m)
        ax, dx, qx, cx = a[x][start:stop], d[x][start:stop], q[start:stop], c[start:stop]
        r = t = 0.0
        for y in range(stop - start):
            e = qx[y] * ax[y]
            r += e
            t += e * dx[y]
        if not r > 0.0:
            return np.inf, np.inf, 0.0
        weight = p[x] / r
        for y in range(stop - start):
            cx[y] += weight * ax[y]
        distortion += weight * t
        information -= p[x] * math.log(r)
        entropy -= p[x] * math.log(p[x])
    information -= s * distortion
    for y in range(m):
        if q[y] * c[y] > 0.0:
            information -= q[y] * c[y] * math.log(c[y])
    information = max(information, 0.0)
    if distortion <= target:
        return information, distortion, 0.0
    share = (distortion - target) / distortion
    return information + share * max(entropy - information, 0.0), target, share


def channel_of(
    a: FloatArray, q: FloatArray | None, share: float, live: NDArray[np.bool_], law: FloatArray
) -> FloatArray:
    """(K, M) channel q A / r bent by `share`; letters that do not occur get the output law.

    A is exactly 1 at the nearest reproductions. Without q, `a` (n, M) is the channel of the letters that occur.
    """
    rows = a
    if q is not None:
        rows = a * q
        rows /= rows.sum(axis=1, keepdims=True)
        if share > 0.0:
            near = np.where(a == 1.0, q, 0.0)
            lost = ~(near.sum(axis=1) > 0.0)
            near[lost] = (a[lost] == 1.0).astype(float)
            rows = (1.0 - share) * rows + share * near / near.sum(axis=1, keepdims=True)
    if live.all():
        return rows
    full = np.tile(law, (live.size, 1))
    full[live] = rows
    return full
