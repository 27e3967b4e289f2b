"""Where Newton's method starts: Blahut-Arimoto passes, on a coarser grid first where there is one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from envrate.rd._certificate import lower_line, tilt_cost
from envrate.rd._kernels import EVERYWHERE, gradient, kernel, mean_distortion, output_of
from envrate.rd._linalg import least

PASSES = 6  # of Blahut-Arimoto at each slope
MOST_ROUNDS = 20
#: Rounds before the gap must fall fast, and how many in a row may then be slow: a smooth law on a grid needs a better
#: start, for its atoms are many.
ON_GRID, ELSEWHERE = (5, 2), (3, 1)
FAST_ENOUGH = 0.6  # from one round to the next
#: Letters rarer than this times the commonest, and still shrinking so fast, are left to Newton's method to add again.
RARE, SHRINKING = 0.03, 0.99
#: Letters per side that a coarser grid has, about.
COARSE = 100
#: A grid is too coarse where its step costs this times the goal: the start would be worse than none.
TOO_COARSE = 4.0
#: Share of the mass up to which every k-th letter may miss its k-th part where the law is smooth.
SMOOTH = 1e-5


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
    r, c, floor = np.empty(n), np.empty(m), np.empty(m)
    tries: Any = np.int64(1)  # not a literal, for which Numba would compile anew
    rarest = least(p)
    fewest, patience = ON_GRID if toeplitz else ELSEWHERE
    kernel_s = -1.0
    last_s = last_mean = 0.0
    smallest = np.inf
    slow = 0
    band = EVERYWHERE
    for round_number in range(MOST_ROUNDS):
        if s != kernel_s:
            band = kernel(d, s, toeplitz, a, work, rarest)
            kernel_s = s
        for _ in range(PASSES):
            gradient(p, a, band, q, r, c)
            for y in range(m):
                q[y] *= c[y]
        output_of(a, band, q, r)
        gap = 0.0
        for x in range(n):
            gap -= p[x] * math.log(r[x])
        gap -= lower_line(p, a, band, q, np.inf, tries, floor)
        mean = cost = 0.0
        if not fixed:
            mean, spread = mean_distortion(p, a, band, finite, q, r)
            cost = tilt_cost(mean, spread, goal, s, n)
        gap += cost
        if gap < 0.6 * tol:
            return s, True, band
        if gap < FAST_ENOUGH * smallest:
            smallest = gap
            slow = 0
        else:
            slow += 1
            if round_number >= fewest and slow >= patience:
                break
        if fixed or cost < 0.05 * tol:
            continue
        if not mean > 0.0:
            s *= 0.5
            continue
        power = most = (
            min(1.5, mean / (s * spread)) if spread > 0.0 else 1.0
        )  # as at a fixed law, whose D(s) is flatter
        if last_s > 0.0 and mean != last_mean and s != last_s:
            power = -math.log(s / last_s) / math.log(mean / last_mean)
            power = min(most, max(power, 0.05))
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
def coarser(p: Any, d: Any, goal: float) -> tuple[int, int, Any, Any]:
    """A Toeplitz problem on every k-th letter: k, the first reproduction taken, and its p and d; k = 1 for none.

    A smooth law is sampled, which loses next to nothing where k letters are short beside the kernel; another is summed
    over k letters.
    """
    n, m = d.shape
    k = min(n, m) // COARSE
    near = 0  # the nearest reproduction to the letter in the middle
    for y in range(m):
        if d[n // 2, y] < d[n // 2, near]:
            near = y
    while k > 1 and not (near + k < m and d[n // 2, near + k] - d[n // 2, near] <= TOO_COARSE * goal):
        k -= 1
    if k < 2:
        return 1, 0, p, d
    first = (n // 2) % k
    column = near % k
    rows = (n - first + k - 1) // k
    coarse = np.empty(rows)
    mass = 0.0
    for i in range(rows):
        coarse[i] = p[first + i * k]
        mass += coarse[i]
    if not abs(k * mass - 1.0) < SMOOTH:
        coarse[:] = 0.0
        for x in range(n):
            coarse[min(max((x - first + k // 2) // k, 0), rows - 1)] += p[x]
        mass = coarse.sum()
    coarse /= mass
    return k, column, coarse, d[first::k, column::k].copy()
