"""Active-set Newton method for R(D): fast where the output law has few atoms, as on a fine grid.

At a slope s the output law minimises F(q) = -sum_x p(x) log (A q)(x), the mixture-weight problem, whose Newton model is
a nonnegative least-squares problem on the support (Wang 2007, the constrained Newton method). The slope follows the
target distortion by Newton's method in (q, s) together. Nothing here is trusted: the caller evaluates both bounds, and
takes the interior-point method where they are wide.

F is taken at q with a little of the uniform law added: else letters of probability 1e-100, which are worth nothing, are
pursued to the end of the alphabet, and r is 0 where q has lost them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from envrate.rd._certificate import POLISH, SOME, lower_line, tilt_cost
from envrate.rd._kernels import EVERYWHERE, gradient, kernel, mean_distortion, output_of
from envrate.rd._least_squares import nonnegative
from envrate.rd._linalg import FAST, gram, least, solve_factored

MAX_STEPS = 60
#: The bounds are not tried before F is within this times the tolerance of its minimum on the support.
SETTLED = 10.0
PROXIMAL = 1e-9
#: Atoms from which Newton's method starts on a long alphabet.
ATOMS = 70
#: How far beyond the first letter that reaches 0 others are dropped with it, step by step: coarse at first.
LOOSE = (20.0, 3.0, 3.0, 3.0, 1.0 + 1e-12)


@njit(cache=True, error_model="numpy")
def _support(q: Any, c: Any, stride: int, support: Any) -> int:
    """Lists the letters in use and those to be tried: local maxima of c above 1, and in wide gaps every `stride`-th.

    Where the support leaves a gap, c is largest at its far end, for there the law has decayed most: local maxima alone
    would walk through the gap letter by letter. Letters that are not in use are set to 0. Returns their number.
    """
    m = q.shape[0]
    rare = 1e-14 * q.max()
    count = 0
    last = -1
    for y in range(m):
        if not q[y] > rare:
            q[y] = 0.0
            if not (c[y] > 1.0 and (y == 0 or c[y] >= c[y - 1]) and (y == m - 1 or c[y] >= c[y + 1])):
                continue
        if y - last > 2 * stride:
            for between in range(last + stride, y - stride + 1, stride):
                if c[between] > 1.0:
                    support[count] = between
                    count += 1
        last = y
        support[count] = y
        count += 1
    return count


@njit(cache=True, error_model="numpy")
def _columns(
    root: Any, r: Any, a: Any, d: Any, q: Any, support: Any, start: Any, stop: Any, b: Any
) -> tuple[float, float]:
    """Fills b, the kernel's columns on the support times sqrt(p) / r; returns the mean distortion and its variance."""
    count = support.shape[0]
    low = high = 0
    mean = spread = 0.0
    for x in range(root.shape[0]):
        while low < count and stop[low] <= x:
            low += 1
        while high < count and start[high] <= x:
            high += 1
        scale = root[x] / r[x]
        ax, dx = a[x], d[x]
        t = u = 0.0
        for i in range(low, high):
            y = support[i]
            e = ax[y] * scale
            b[i, x] = e
            e *= q[y] * dx[y]
            t += e
            u += e * dx[y]
        mean += root[x] * t
        spread += root[x] * u - t * t
    return mean, spread


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _combine(b: Any, z: Any, start: Any, stop: Any, out: Any) -> None:
    """Fills out = b^T z, where row i of b is 0 outside [start, stop)."""
    out[:] = 0.0
    for i in range(z.shape[0]):
        t = z[i]
        bi, part = b[i][start[i] : stop[i]], out[start[i] : stop[i]]
        for x in range(part.shape[0]):
            part[x] += t * bi[x]


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _add_product(h: Any, lead: Any, x: Any, out: Any) -> None:
    """Adds H x to out; only the lower triangle of H is read, where row i is 0 left of lead(i)."""
    for i in range(x.shape[0]):
        hi, xi = h[i], x[i]
        t = hi[i] * xi
        for j in range(lead[i], i):
            t += hi[j] * x[j]
            out[j] += hi[j] * xi
        out[i] += t


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _line_search(p: Any, r: Any, new: Any, mass: float) -> tuple[float, float]:
    """The share of the way r -> new that F + sum q allows, and how far F is from its minimum at this slope."""
    base = decrement = 0.0
    for x in range(p.shape[0]):
        base -= p[x] * math.log(r[x])
        decrement += 0.5 * p[x] * (new[x] / r[x] - 1.0) ** 2
    share = 1.0
    for _ in range(30):
        value = share * mass
        for x in range(p.shape[0]):
            value -= p[x] * math.log((1.0 - share) * r[x] + share * new[x])
        if value <= base + 4e-15 * (1.0 + abs(base)):
            break
        share *= 0.5
    return share, decrement


@njit(cache=True, error_model="numpy")
def _bend(root: Any, d: Any, support: Any, start: Any, stop: Any, b: Any, old: Any, g: Any) -> None:
    """Fills g, the derivative of c with the slope on the support: sum_x (p / r) A (mean distortion of x - d)."""
    count = support.shape[0]
    g[:] = 0.0
    bd = np.empty(count)
    low = high = 0
    for x in range(root.shape[0]):
        while low < count and stop[low] <= x:
            low += 1
        while high < count and start[high] <= x:
            high += 1
        dx = d[x]
        row = 0.0
        for i in range(low, high):
            t = b[i, x] * dx[support[i]]
            bd[i] = t
            row += t * old[i]
        for i in range(low, high):
            g[i] += b[i, x] * row - root[x] * bd[i]


@njit(cache=True, error_model="numpy")
def newton(
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
    settled: bool,
) -> tuple[float, int, tuple[int, int]]:
    """Newton steps from the slope s and the law q (M,), which is overwritten; `a` is room for the kernel.

    `settled` says that the start may be good enough already. Returns the slope, the number of steps, negative where
    they were not enough, and the kernel's band; `a` is the kernel at that slope.
    """
    n, m = d.shape
    work = np.empty(n + m, np.int64)
    r, c = np.empty(n), np.empty(m)
    full, unused = np.empty(m), np.empty(m)
    tries: Any = np.int64(SOME)  # not a literal, for which Numba would compile anew
    rz = np.empty(n)
    everything = np.empty(m, np.int64)
    root = np.sqrt(p)
    rarest = least(p)
    stride = max(2, m // ATOMS) if toeplitz or m > 2 * ATOMS else m
    floor = min(POLISH[0], 0.01 * tol) / m
    band = EVERYWHERE
    last_s = -1.0
    low, high = 0.0, np.inf  # slopes on either side of the goal
    halvings = 0
    for step in range(MAX_STEPS):
        if s != last_s:
            band = kernel(d, s, toeplitz, a, work, rarest)
            last_s = s
        for y in range(m):
            full[y] = q[y] + floor
        gradient(p, a, band, full, r, c)
        if settled:
            gap = 0.0
            for x in range(n):
                gap -= p[x] * math.log(r[x])
            gap -= lower_line(p, a, band, q, gap - 0.3 * tol, tries, unused)
            if not fixed:
                mean, spread = mean_distortion(p, a, band, finite, q, r)
                gap += tilt_cost(mean, spread, goal, s, n)
            if gap < 0.5 * tol:
                output_of(a, band, q, rz)
                for x in range(n):
                    if rz[x] < 0.5 * r[x]:  # a letter that only the floor reaches
                        q[:] = full
                        break
                return s, step, band
        count = _support(q, c, stride, everything)
        if count == 0:
            return s, -step - 1, band
        support = everything[:count]
        start, stop, lead = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
        old = np.empty(count)
        for i in range(count):
            start[i] = max(support[i] - band[1], 0)
            stop[i] = min(support[i] - band[0] + 1, n)
            old[i] = q[support[i]]
        b = np.zeros((count, n))
        mean, spread = _columns(root, r, a, finite, q, support, start, stop, b)
        h = np.zeros((count, count))
        gram(b, start, stop, lead, h, count)
        rhs, z = np.empty(count), old.copy()
        for i in range(count):
            h[i, i] += PROXIMAL * h[i, i]  # neighbours on a fine grid are nearly the same letter: stay near q there
            rhs[i] = c[support[i]] - 1.0
        _add_product(h, lead, old, rhs)
        passive, leads, factor = np.empty(count, np.int64), np.empty(count, np.int64), np.empty((count, count))
        size = nonnegative(h, rhs, z, count, lead, LOOSE[min(step, 4)], passive, factor, leads)
        if size == 0:
            return s, -step - 1, band
        mass = 0.0
        for i in range(count):
            z[i] -= old[i]
            mass += z[i]
        _combine(b, z, start, stop, rz)
        for x in range(n):
            rz[x] = r[x] + rz[x] * r[x] / root[x]
        share, decrement = _line_search(p, r, rz, mass)
        for i in range(count):
            q[support[i]] = old[i] + share * z[i] if share < 1.0 else max(old[i] + z[i], 0.0)
        cost = 0.0 if fixed else tilt_cost(mean, spread, goal, s, n)
        miss = s * abs(goal - mean)
        if cost > 0.1 * tol and share == 1.0 and decrement < max(0.03 * miss * miss, 1e-3 * tol):  # else s waits for q
            g = np.empty(count)
            _bend(root, finite, support, start, stop, b, old, g)
            moved = goal - mean  # what is left after this step of q, to first order
            x2 = np.empty(size)
            for i in range(count):
                moved += g[i] * z[i]
            for i in range(size):
                x2[i] = g[passive[i]]
            solve_factored(factor, leads, x2, size)
            bend = spread
            for i in range(size):
                bend += g[passive[i]] * x2[i]
            if not bend > 0.0:
                return s, -step - 1, band
            if moved < 0.0:
                low = max(low, s)
            else:
                high = min(high, s)
            ds = min(0.7 * s, max(-0.4 * s, -moved / bend))
            if not low < s + ds < high and high < np.inf and low > 0.0:
                if halvings < 3:
                    ds = math.sqrt(low * high) - s
                    halvings += 1
                else:  # an end was taken from a q that was not good enough
                    low, high = 0.0, np.inf
                    halvings = 0
            else:
                halvings = 0
            shrink = 1.0
            for i in range(size):
                y = support[passive[i]]
                if q[y] + ds * x2[i] < 0.0:
                    shrink = min(shrink, 0.9 * q[y] / (-ds * x2[i]))
            for i in range(size):
                q[support[passive[i]]] += shrink * ds * x2[i]
            s += ds
            cost = 0.0
        settled = decrement < SETTLED * tol and cost < tol
    band = kernel(d, s, toeplitz, a, work, rarest)
    return s, -MAX_STEPS, band
