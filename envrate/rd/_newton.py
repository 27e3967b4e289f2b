"""Active-set Newton method for R(D): fast where the output law has few atoms, as on a fine grid.

At a slope s the output law minimises F(q) = -sum_x p(x) log (A q)(x), the mixture-weight problem, whose Newton model is
a nonnegative least-squares problem on the support (Wang 2007, the constrained Newton method; Lawson & Hanson 1974).
The slope follows the target distortion by Newton's method in (q, s) together. Blahut-Arimoto passes give the start.
Nothing here is trusted: the caller evaluates both bounds, and takes the interior-point method where they are wide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from envrate.rd._certificate import lower_line
from envrate.rd._kernels import EVERYWHERE, gradient, kernel, mean_distortion, output_of
from envrate.rd._linalg import FAST, skyline_cholesky, skyline_gram, skyline_solve

PASSES = 6  # of Blahut-Arimoto at each slope of the warm-up
MOST_ROUNDS = 20
#: Rounds before the gap must fall fast: a smooth law on a grid needs a better start, for its atoms are many.
ROUNDS_ON_GRID, ROUNDS_ELSEWHERE = 5, 3
#: Letters rarer than this times the commonest, and still shrinking so fast, are left to Newton's method to add again.
RARE, SHRINKING = 0.03, 0.99
MAX_STEPS = 60
PROXIMAL = 1e-7
#: How far beyond the first letter that reaches 0 others are dropped with it, step by step: coarse at first.
LOOSE = (20.0, 3.0, 3.0, 3.0, 1.0 + 1e-12)


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
def _bend(root: Any, row: Any, bi: Any, bdi: Any, start: int, stop: int) -> float:
    """Derivative of c with the slope at one letter: sum_x (p / r) A (mean distortion of row x - d)."""
    t = 0.0
    for x in range(start, stop):
        t += bi[x] * row[x] - root[x] * bdi[x]
    return t


@njit(cache=True, error_model="numpy")
def _entropy(p: Any) -> float:
    total = 0.0
    for x in range(p.shape[0]):
        total -= p[x] * math.log(p[x])
    return total


@njit(cache=True, error_model="numpy")
def _off_target(mean: float, goal: float, s: float, entropy: float) -> float:
    """What a mean distortion beside the goal adds to the gap; see `upper_point` for the side above."""
    if mean > goal:
        return (mean - goal) * max(s, entropy / goal)
    return s * (goal - mean)


@njit(cache=True, error_model="numpy")
def warm_up(
    p: Any, d: Any, finite: Any, toeplitz: bool, goal: float, s: float, fixed: bool, tol: float, q: Any, a: Any
) -> tuple[float, bool, tuple[int, int]]:
    """Blahut-Arimoto passes from q; between them the slope moves towards the goal.

    Returns the slope, whether that was enough, and the band of the kernel `a`; goes on as long as the gap falls fast.
    Without a grid, letters on their way out are dropped.
    """
    n, m = d.shape
    work = np.empty(n + m, np.int64)
    r, c = np.empty(n), np.empty(m)
    entropy = _entropy(p)
    rarest = p.min()
    fewest = ROUNDS_ON_GRID if toeplitz else ROUNDS_ELSEWHERE
    last_s = last_mean = 0.0
    last_gap = np.inf
    band = EVERYWHERE
    for round_number in range(MOST_ROUNDS):
        band = kernel(d, s, toeplitz, a, work, rarest)
        for _ in range(PASSES):
            gradient(p, a, band, q, r, c)
            for y in range(m):
                q[y] *= c[y]
        output_of(a, band, q, r)
        mean = 0.0 if fixed else mean_distortion(p, a, band, finite, q, r)
        value = 0.0
        for x in range(n):
            value -= p[x] * math.log(r[x])
        gap = value - lower_line(p, a, band, q, np.inf, c)
        if not fixed:
            gap += _off_target(mean, goal, s, entropy)
        if gap < 0.6 * tol:
            return s, True, band
        if round_number >= fewest and not gap < 0.6 * last_gap:
            break
        last_gap = gap
        if fixed:
            continue
        if not mean > 0.0:
            s *= 0.5
            continue
        power = 1.0
        if last_s > 0.0 and mean != last_mean and s != last_s:
            power = -math.log(s / last_s) / math.log(mean / last_mean)
            power = min(1.5, max(power, 0.05))
        last_s, last_mean = s, mean
        s *= min(4.0, max(0.25, (mean / goal) ** power))
    if not toeplitz:
        rare = RARE * q.max()
        for y in range(m):
            if q[y] < rare and c[y] < SHRINKING:
                q[y] = 0.0
    return s, False, band


@njit(cache=True, error_model="numpy")
def thin(q: Any, most: int) -> None:
    """Moves the mass of q to its local maxima and to about `most` letters between them, each to the nearest.

    A smooth law on a fine grid is as good on a coarser one; the Newton steps add the letters that are missed.
    """
    m = q.shape[0]
    if np.count_nonzero(q) <= most:
        return
    keep = np.zeros(m, np.bool_)
    for y in range(m):
        keep[y] = (y == 0 or q[y] > q[y - 1]) and (y == m - 1 or q[y] >= q[y + 1])
    stride = m / most
    for k in range(most):
        keep[int((k + 0.5) * stride)] = True
    left = np.full(m, -1)
    last = -1
    for y in range(m):
        if keep[y]:
            last = y
        left[y] = last
    last = -1
    for y in range(m - 1, -1, -1):
        if keep[y]:
            last = y
        else:
            target = left[y]
            if target < 0 or (last >= 0 and last - y < y - target):
                target = last
            q[target] += q[y]
            q[y] = 0.0


@njit(cache=True, error_model="numpy")
def _nonnegative(
    h: Any, rhs: Any, x: Any, k: int, lead: Any, loose: float, passive: Any, factor: Any, leads: Any
) -> int:
    """Minimises x'Hx/2 - rhs'x over x >= 0 by dropping letters from the passive set; x is start and result.

    Each step goes as far towards the unconstrained minimum as one letter allows, and drops the letters that reach 0
    within `loose` >= 1 times that. Row i of H is 0 left of lead(i). Returns the size of the passive set; its letters
    are listed in `passive`, its Cholesky factor is in `factor` and `leads`.
    """
    size = 0
    for i in range(k):
        passive[size] = i
        size += 1
    z = np.empty(k)
    while size > 0:
        first = 0
        for i in range(size):
            hi = h[passive[i]]
            while passive[first] < lead[passive[i]]:
                first += 1
            leads[i] = first
            for j in range(first, i + 1):
                factor[i, j] = hi[passive[j]]
            z[i] = rhs[passive[i]]
        skyline_cholesky(factor, leads, size, 1e-12)
        skyline_solve(factor, leads, z, size)
        reach = 1.0
        for i in range(size):
            if not z[i] > 0.0:
                reach = min(reach, x[passive[i]] / max(x[passive[i]] - z[i], 1e-300))
        if reach == 1.0:
            for i in range(k):
                x[i] = 0.0
            for i in range(size):
                x[passive[i]] = z[i]
            return size
        kept = 0
        for i in range(size):
            old = x[passive[i]]
            if z[i] > 0.0 or old > loose * reach * (old - z[i]):
                x[passive[i]] = max(old + reach * (z[i] - old), 0.0)
                passive[kept] = passive[i]
                kept += 1
            else:
                x[passive[i]] = 0.0
        size = kept
    return size


@njit(cache=True, error_model="numpy")
def newton(
    p: Any, d: Any, finite: Any, toeplitz: bool, goal: float, s: float, fixed: bool, tol: float, q: Any, a: Any
) -> tuple[float, int, tuple[int, int]]:
    """Newton steps from the slope s and the law q (M,), which is overwritten; `a` is room for the kernel.

    Returns the slope, the number of steps, negative where they were not enough, and the kernel's band; `a` is the
    kernel at that slope.
    """
    n, m = d.shape
    work = np.empty(n + m, np.int64)
    r, c, c_polished = np.empty(n), np.empty(m), np.empty(m)
    rz, row = np.empty(n), np.empty(n)
    root = np.sqrt(p)
    rarest = p.min()
    band = EVERYWHERE
    last_s = -1.0
    settled = False
    entropy = _entropy(p)
    low, high = 0.0, np.inf  # slopes on either side of the goal
    halvings = 0
    for step in range(MAX_STEPS):
        if s != last_s:
            band = kernel(d, s, toeplitz, a, work, rarest)
            last_s = s
        gradient(p, a, band, q, r, c)
        if settled:
            base = 0.0
            for x in range(n):
                base -= p[x] * math.log(r[x])
            gap = base - lower_line(p, a, band, q, 0.3 * tol, c_polished)
            if not fixed:
                gap += _off_target(mean_distortion(p, a, band, finite, q, r), goal, s, entropy)
            if gap < 0.5 * tol:
                return s, step, band
        # support: letters in use, and local maxima of c above 1
        count = 0
        largest_q = q.max()
        support = np.empty(m, np.int64)
        for y in range(m):
            used = q[y] > 1e-14 * largest_q
            if not used:
                q[y] = 0.0
                left = y == 0 or c[y] >= c[y - 1]
                right = y == m - 1 or c[y] >= c[y + 1]
                used = c[y] > 1.0 and left and right
            if used:
                support[count] = y
                count += 1
        if count == 0:
            return s, -step - 1, band
        # columns of the kernel on the support, weighted by sqrt(p) / r, and those of the kernel times d
        b, bd = np.zeros((count, n)), np.zeros((count, n))
        start, stop, lead = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
        for i in range(count):
            start[i] = max(support[i] - band[1], 0)
            stop[i] = min(support[i] - band[0] + 1, n)
        low_i = high_i = 0
        second = 0.0
        for x in range(n):
            while low_i < count and stop[low_i] <= x:
                low_i += 1
            while high_i < count and start[high_i] <= x:
                high_i += 1
            scale = root[x] / r[x]
            ax, dx = a[x], finite[x]
            for i in range(low_i, high_i):
                y = support[i]
                t = ax[y] * scale
                b[i, x] = t
                t *= dx[y]
                bd[i, x] = t
                second += root[x] * q[y] * t * dx[y]
        h = np.zeros((count, count))
        skyline_gram(b, start, stop, lead, h, count)
        rhs, z = np.empty(count), np.empty(count)
        for i in range(count):
            rhs[i] = 2.0 * c[support[i]] - 1.0
            z[i] = q[support[i]]
            ridge = PROXIMAL * h[i, i]  # neighbours on a fine grid are nearly the same letter: stay near q there
            h[i, i] += ridge
            rhs[i] += ridge * z[i]
        old = z.copy()
        passive, factor = np.empty(count, np.int64), np.empty((count, count))
        leads = np.empty(count, np.int64)
        size = _nonnegative(h, rhs, z, count, lead, LOOSE[min(step, 4)], passive, factor, leads)
        if size == 0:
            return s, -step - 1, band
        # line search on F + sum q along q -> z
        mass = 0.0
        for i in range(count):
            mass += z[i] - old[i]
        base = 0.0
        _combine(b, z, start, stop, rz)
        for x in range(n):
            rz[x] *= r[x] / root[x]
            base -= p[x] * math.log(r[x])
        share = 1.0
        decrement = 0.0  # how far F is from its minimum at this slope
        for x in range(n):
            decrement += 0.5 * p[x] * (rz[x] / r[x] - 1.0) ** 2
        for _ in range(30):
            value = share * mass
            for x in range(n):
                value -= p[x] * math.log((1.0 - share) * r[x] + share * rz[x])
            if value <= base + 4e-15 * (1.0 + abs(base)):
                break
            share *= 0.5
        change = 0.0
        for i in range(count):
            new = old[i] + share * (z[i] - old[i])
            change += abs(new - old[i])
            q[support[i]] = new
        if fixed:
            ds = 0.0
            miss = 0.0
        else:
            # derivative of c with the slope on the support, row means, and the mean distortion at the old q
            _combine(bd, old, start, stop, row)
            mean = 0.0
            variance = second
            for x in range(n):
                mean += root[x] * row[x]
                variance -= row[x] * row[x]
            g = np.empty(count)
            for i in range(count):
                g[i] = _bend(root, row, b[i], bd[i], start[i], stop[i])
            moved = goal - mean
            x2 = np.empty(size)
            for i in range(count):
                moved += g[i] * share * (z[i] - old[i])
            for i in range(size):
                x2[i] = g[passive[i]]
            skyline_solve(factor, leads, x2, size)
            bend = variance
            for i in range(size):
                bend += g[passive[i]] * x2[i]
            if not bend > 0.0:
                return s, -step - 1, band
            miss = s * abs(moved)  # after this step of q, to first order
            ds = 0.0
            if share == 1.0 and decrement < max(0.03 * miss * miss, 1e-13):  # else the slope waits for q
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
        settled = decrement < 1e-6 and miss < 1e-3
    band = kernel(d, s, toeplitz, a, work, rarest)
    return s, -MAX_STEPS, band
