"""Both bounds on R(D) from an output law and a slope, and the channel that holds the upper one.

With A = exp(-s d), r = A q and c(y) = sum_x p(x) A(x, y) / r(x), in nats:

    lower   R(D) >= -sum_x p(x) log r(x) - log max_y c(y) - s D       for every q and s >= 0  (Gallager 1968, 9.4.1)
    upper   R(D) <= I(X; Y) of any channel whose mean distortion is at most D

A letter of tiny probability can keep max c far from 1 long after R is exact, because q starves it. So the lower bound
is taken at q mixed with a little of the uniform law, which costs no more than the share mixed in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from envrate.rd._linalg import FAST

#: Shares of the uniform law that are tried, largest last.
POLISH = (0.0, 1e-13, 1e-11, 1e-10, 1e-9)


@njit(cache=True, error_model="numpy", fastmath=FAST)
def kernel(d: Any, s: float, a: Any) -> None:
    """a = exp(-s d) with 0 for what underflows (denormals are four times slower) and for d = inf."""
    n, m = d.shape
    for x in range(n):
        for y in range(m):
            e = -s * d[x, y]
            a[x, y] = math.exp(e) if e > -690.0 else 0.0


@njit(cache=True, error_model="numpy", fastmath=FAST)
def lower_bound(p: Any, a: Any, q: Any, share: float, c: Any) -> float:
    """-sum p log r - log max c at q mixed with `share` of the uniform law, in nats; fills c (M,)."""
    n, m = a.shape
    total = 0.0
    for y in range(m):
        total += q[y]
        c[y] = 0.0
    keep, floor = (1.0 - share) / total, share / m
    value = 0.0
    for x in range(n):
        ax = a[x]
        t = mean = 0.0
        for y in range(m):
            t += ax[y] * q[y]
            mean += ax[y]
        r = keep * t + floor * mean
        if not r > 0.0:
            return -np.inf
        value -= p[x] * math.log(r)
        t = p[x] / r
        for y in range(m):
            c[y] += t * ax[y]
    return value - math.log(c.max())


@njit(cache=True, error_model="numpy")
def best_lower_bound(p: Any, a: Any, q: Any, c: Any, tol: float, start: float) -> float:
    """The largest `lower_bound` over the shares of POLISH, stopped once another share changes little."""
    best = start
    for share in POLISH:
        value = lower_bound(p, a, q, share, c)
        if value > best:
            best = value
        if share > tol:
            break
    return best


@njit(cache=True, error_model="numpy")
def channel_at(p: Any, d: Any, a: Any, q: Any, target: float, channel: Any, output: Any) -> tuple[float, float]:
    """Writes the channel q A / r, bent until its mean distortion is at most `target`; its information and distortion.

    What is above the target goes to each letter's nearest reproductions (those at distance 0: rows of d have
    minimum 0). `output` gets the channel's own output law.
    """
    n, m = a.shape
    distortion = 0.0
    for y in range(m):
        output[y] = 0.0
    for x in range(n):
        r = 0.0
        for y in range(m):
            channel[x, y] = q[y] * a[x, y]
            r += channel[x, y]
        if not r > 0.0:
            return np.inf, np.inf
        for y in range(m):
            channel[x, y] /= r
            if channel[x, y] > 0.0:
                distortion += p[x] * channel[x, y] * d[x, y]
    if distortion > target:
        share = (distortion - target) / distortion
        for x in range(n):
            near = 0.0
            best = 0
            for y in range(m):
                if d[x, y] == 0.0:
                    near += q[y]
                    best = y
            for y in range(m):
                t = 0.0
                if d[x, y] == 0.0:
                    t = q[y] / near if near > 0.0 else (1.0 if y == best else 0.0)
                channel[x, y] = (1.0 - share) * channel[x, y] + share * t
        distortion = target
    for x in range(n):
        for y in range(m):
            output[y] += p[x] * channel[x, y]
    information = 0.0
    for x in range(n):
        for y in range(m):
            if channel[x, y] > 0.0:
                information += p[x] * channel[x, y] * math.log(channel[x, y] / output[y])
    return max(information, 0.0), distortion
