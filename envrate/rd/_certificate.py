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

from envrate.rd._linalg import FAST

#: Shares of the uniform law that are tried in turn.
POLISH = (1e-11, 0.0, 1e-13, 1e-10, 1e-9)


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _outputs(a: Any, q: Any, r: Any, mean: Any) -> None:
    """Computes r = A q / sum q and the row means of A."""
    n, m = a.shape
    total = 0.0
    for y in range(m):
        total += q[y]
    for x in range(n):
        ax = a[x]
        t = u = 0.0
        for y in range(m):
            t += ax[y] * q[y]
            u += ax[y]
        r[x] = t / total
        mean[x] = u / m


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _largest_c(a: Any, weight: Any, c: Any) -> float:
    """max_y of c = A^T weight."""
    n, m = a.shape
    for y in range(m):
        c[y] = 0.0
    x = 0
    while x + 4 <= n:
        a0, a1, a2, a3 = a[x], a[x + 1], a[x + 2], a[x + 3]
        w0, w1, w2, w3 = weight[x], weight[x + 1], weight[x + 2], weight[x + 3]
        for y in range(m):
            c[y] += w0 * a0[y] + w1 * a1[y] + w2 * a2[y] + w3 * a3[y]
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
def lower_line(p: Any, a: Any, q: Any, tol: float, c: Any) -> float:
    """The best -sum p log r - log max c over the shares of POLISH, in nats.

    Stops at the first share whose value is within `tol` of -sum p log r at q itself, which none can beat.
    """
    n = a.shape[0]
    r, mean, weight = np.empty(n), np.empty(n), np.empty(n)
    _outputs(a, q, r, mean)
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
        value -= math.log(_largest_c(a, weight, c))
        best = max(best, value)
        if best >= enough:
            break
    return best


@njit(cache=True, error_model="numpy", fastmath=FAST)
def upper_point(p: Any, d: Any, a: Any, q: Any, s: float, target: float, output: Any) -> tuple[float, float]:
    """Turns the kernel a into the channel q a / r, bent until its mean distortion is at most `target`.

    Returns an upper bound on its information (nats) and its distortion; `output` gets its output law. What is above
    the target goes to each letter's nearest reproductions, those at distance 0 (rows of d have minimum 0); as
    information is convex in the channel, the bound grows by at most that share of H(X). d holds 0 where a
    reproduction is forbidden, and a does too.
    """
    n, m = a.shape
    distortion = information = entropy = 0.0
    for y in range(m):
        output[y] = 0.0
    for x in range(n):
        row, dx = a[x], d[x]
        r = t = 0.0
        for y in range(m):
            e = q[y] * row[y]
            r += e
            t += e * dx[y]
        if not r > 0.0:
            return np.inf, np.inf
        inverse = 1.0 / r
        weight = p[x]
        for y in range(m):
            e = q[y] * row[y] * inverse
            row[y] = e
            output[y] += weight * e
        distortion += weight * inverse * t
        information -= weight * math.log(r)
        entropy -= weight * math.log(weight)
    information -= s * distortion
    for y in range(m):
        if output[y] > 0.0 and q[y] > 0.0:
            information -= output[y] * math.log(output[y] / q[y])
    if distortion > target * (1.0 + 1e-14):
        near = np.zeros(n)
        movable = 0.0
        for x in range(n):  # a letter whose nearest reproductions q starves stays as it is
            row, dx = a[x], d[x]
            t = 0.0
            for y in range(m):
                near[x] += row[y] if dx[y] == 0.0 else 0.0
                t += row[y] * dx[y]
            if near[x] > 0.0:
                movable += p[x] * t
        share = (distortion - target) / movable
        if not 0.0 <= share <= 1.0:
            return np.inf, np.inf
        information += share * max(entropy - information, 0.0)
        for x in range(n):
            if near[x] > 0.0:
                row, dx = a[x], d[x]
                inverse = 1.0 / near[x]
                for y in range(m):
                    change = share * row[y] * ((inverse if dx[y] == 0.0 else 0.0) - 1.0)
                    output[y] += p[x] * change
                    row[y] += change
        distortion = target
    return max(information, 0.0), distortion
