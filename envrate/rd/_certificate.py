"""Both bounds on R(D) from an output law and a slope, and the channel that holds the upper one.

With A = exp(-s d), r = A q and c(y) = sum_x p(x) A(x, y) / r(x), in nats:

    lower   R(D) >= -sum_x p(x) log r(x) - log max_y c(y) - s D       for every q and s >= 0  (Gallager 1968, 9.4.1)
    upper   R(D) <= I(X; Y) of any channel whose mean distortion is at most D, here q A / r, whose output law is q c

A letter of tiny probability can keep max c far from 1 long after R is exact, because q starves it. So the lower bound
is taken at q mixed with a little of another law, which costs no more than the share mixed in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from envrate.rd._kernels import UNDERFLOW, gradient, inside
from envrate.rd._linalg import FAST, combine, total

FloatArray = NDArray[np.float64]

#: Shares of the uniform law that are tried in turn.
POLISH = (1e-11, 0.0, 1e-13, 1e-10, 1e-9)
#: How often a law of the letters' own is tried, after the first of them.
LOCAL = 2
#: Numbers of laws that are tried: while a solver runs, and in the end.
SOME, ALL = 1 + LOCAL, LOCAL + len(POLISH)


@njit(cache=True, error_model="numpy")
def _dual(p: Any, a: Any, band: tuple[int, int], q: Any, floor: Any, law: Any, r: Any, c: Any) -> float:
    """-sum p log r - log max c at law = q + floor, whatever it sums to; fills law, r and c."""
    combine(q, 1.0, floor, law)
    gradient(p, a, band, law, r, c)
    value = top = 0.0
    for x in range(p.shape[0]):
        if not r[x] > 0.0:
            return -np.inf
        value -= p[x] * math.log(r[x])
    for y in range(c.shape[0]):
        top = max(top, c[y])
    return value - math.log(top)


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _smoothed(p: Any, a: Any, band: tuple[int, int], out: Any) -> None:
    """Fills out = A^T (p / A 1): the output law of the channel that the uniform law gives."""
    n, m = a.shape
    for y in range(m):
        out[y] = 0.0
    for x in range(n):
        start, stop = inside(band, x, x, m)
        ax, part = a[x][start:stop], out[start:stop]
        t = 0.0
        for y in range(stop - start):
            t += ax[y]
        t = p[x] / t
        for y in range(stop - start):
            part[y] += t * ax[y]


@njit(cache=True, error_model="numpy")
def lower_line(p: Any, a: Any, band: tuple[int, int], q: Any, enough: float, tries: int, floor: Any) -> float:
    """The best -sum p log r - log max c, in nats, over q with a little of another law added.

    Tried in turn until the value is `enough`: a uniform law; on top of it, twice, as much of the source's own law as
    c is above 1 there, for the letters that Newton's method has not placed yet; and other uniform laws. `floor` is
    left at what was added if it was not uniform, else at 0.
    """
    n, m = p.shape[0], q.shape[0]
    mass = total(q)
    r, c, law = np.empty(n), np.empty(m), np.empty(m)
    trial, scale = np.empty(m), np.empty(m)
    best = -np.inf
    for k in range(tries):
        local = 0 < k <= LOCAL
        if k == 1:
            _smoothed(p, a, band, scale)
        uniform = POLISH[max(k - LOCAL, 0)] * mass / m
        for y in range(m):
            trial[y] = trial[y] + mass * scale[y] * min(max(mass * c[y] - 1.0, 0.0), 1.0) if local else uniform
        value = _dual(p, a, band, q, trial, law, r, c)
        if value > best or k == 0:
            best = value
            for y in range(m):
                floor[y] = trial[y] if local else 0.0
        if best >= enough:
            break
    return best


@njit(cache=True, error_model="numpy")
def tilt_cost(mean: float, spread: float, goal: float, s: float, letters: int) -> float:
    """How much a mean distortion beside the goal adds to the gap; see `upper_point`."""
    miss = abs(mean - goal)
    if -UNDERFLOW * miss < s * spread:
        return miss * miss / spread
    return miss * (max(s, math.log(letters) / goal) if mean > goal else s)


@njit(cache=True, error_model="numpy", fastmath=FAST)
def upper_point(
    p: Any, d: Any, a: Any, band: tuple[int, int], q: Any, s: float, target: float
) -> tuple[float, float, float, float, float]:
    """An upper bound on R in nats, the distortion it is at, and the tilt and the share by which the channel is bent.

    And -sum p log r - log max c, which comes with it: see `lower_line`.

    The channel is Q = q A / r; d holds 0 where a reproduction is forbidden. Where its mean distortion D misses
    `target`, it is

    - tilted, Q (1 - t (d - E[d | x])) with t = (D - target) / V and V = E Var(d | x), which meets the target: with
      log(1 + u) <= u, its information is at most -sum p log r - s target + (D - target)^2 / V. A is 0 beyond
      d = 300 / s, so that no entry is negative if |t| <= s / 300;
    - or, from above, mixed with the channel that gives each letter its nearest reproductions (at distance 0: rows of
      d have minimum 0). Information is convex in the channel and at most H(X), so the bound grows by no more than
      that share of H(X).
    """
    n, m = a.shape
    c = np.zeros(m)
    distortion = spread = line = 0.0
    for x in range(n):
        start, stop = inside(band, x, x, m)
        ax, dx, qx, cx = a[x][start:stop], d[x][start:stop], q[start:stop], c[start:stop]
        r = t = u = 0.0
        for y in range(stop - start):
            e = qx[y] * ax[y]
            r += e
            e *= dx[y]
            t += e
            u += e * dx[y]
        if not r > 0.0:
            return np.inf, np.inf, 0.0, 0.0, -np.inf
        weight = p[x] / r
        for y in range(stop - start):
            cx[y] += weight * ax[y]
        distortion += weight * t
        spread += weight * (u - t * t / r)
        line -= p[x] * math.log(r)
    information = line - s * distortion
    top = 0.0
    for y in range(m):
        top = max(top, c[y])
        if q[y] > 0.0 and c[y] > 0.0:
            u = c[y] - 1.0
            information -= q[y] * c[y] * (u - 0.5 * u * u if abs(u) < 1e-6 else math.log(c[y]))
    information = max(information, 0.0)
    dual = line - math.log(top)
    miss = distortion - target
    if 0.0 < -UNDERFLOW * abs(miss) < s * spread:
        tilted = max(line + math.log(total(q)) - s * target + miss * miss / spread, 0.0)
        if miss > 0.0 or tilted < information:
            return tilted, target, miss / spread, 0.0, dual
    if miss <= 0.0:
        return information, distortion, 0.0, 0.0, dual
    entropy = 0.0
    for x in range(n):
        entropy -= p[x] * math.log(p[x])
    share = miss / distortion
    return information + share * max(entropy - information, 0.0), target, 0.0, share, dual


def channel_of(
    a: FloatArray, d: FloatArray, q: FloatArray | None, bend: tuple[float, ...], pmf: FloatArray, law: FloatArray
) -> FloatArray:
    """(K, M) channel q A / r bent by the tilt and the share `bend`; letters that do not occur get the output law.

    A is exactly 1 at the nearest reproductions, d is 0 where forbidden. Without q, `a` (n, M) is the channel of the
    letters that occur.
    """
    rows = a
    if q is not None:
        tilt, share = bend
        rows = a * q
        rows /= rows.sum(axis=1, keepdims=True)
        if tilt != 0.0:
            rows *= 1.0 - tilt * (d - (rows * d).sum(axis=1, keepdims=True))
        if share > 0.0:
            near = np.where(a == 1.0, q, 0.0)
            lost = ~(near.sum(axis=1) > 0.0)
            near[lost] = (a[lost] == 1.0).astype(float)
            rows = (1.0 - share) * rows + share * near / near.sum(axis=1, keepdims=True)
    live = pmf > 0.0
    if live.all():
        return rows
    full = np.tile(law, (live.size, 1))
    full[live] = rows
    return full
