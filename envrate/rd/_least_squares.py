"""Nonnegative least squares on a banded Hessian: the model that each Newton step of R(D) solves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from envrate.rd._linalg import cholesky, solve_factored

#: How often letters that were dropped may come back, and how steep the descent towards them must be.
RETURNS = 4
STEEP = 1e-10


@njit(cache=True, error_model="numpy")
def _drop(x: Any, z: Any, loose: float, passive: Any, size: int) -> tuple[int, int]:
    """Goes from x towards z on the passive set as far as one letter allows, and drops those that reach 0.

    Returns the new size and the first place where the set changed; both are `size` where nothing was dropped and z is
    the new x.
    """
    reach = 1.0
    for i in range(size):
        if not z[i] > 0.0:
            reach = min(reach, x[passive[i]] / max(x[passive[i]] - z[i], 1e-300))
    if reach == 1.0:
        for i in range(size):
            x[passive[i]] = z[i]
        return size, size
    kept = 0
    same = size
    for i in range(size):
        y = passive[i]
        old = x[y]
        if z[i] > 0.0 or old > loose * reach * (old - z[i]):
            x[y] = max(old + reach * (z[i] - old), 0.0)
            passive[kept] = y
            kept += 1
        else:
            x[y] = 0.0
            same = min(same, i)
    return kept, same


@njit(cache=True, error_model="numpy")
def _take_back(h: Any, rhs: Any, x: Any, k: int, passive: Any, size: int, merged: Any) -> tuple[int, int]:
    """Adds the letters outside the passive set towards which the model falls, the steepest of each run.

    Returns the new size and the first place where the set changed.
    """
    slope = np.zeros(k)
    j = 0
    for i in range(k):
        if j < size and passive[j] == i:
            j += 1
            continue
        t = rhs[i]
        for taken in range(size):
            y = passive[taken]
            t -= (h[i, y] if y < i else h[y, i]) * x[y]
        slope[i] = t
    j = 0
    count = 0
    same = size
    for i in range(k):
        if j < size and passive[j] == i:
            j += 1
        elif not (
            slope[i] > STEEP and (i == 0 or slope[i] >= slope[i - 1]) and (i == k - 1 or slope[i] >= slope[i + 1])
        ):
            continue
        elif same == size:
            same = min(count, size)
        merged[count] = i
        count += 1
    if count == size:
        return size, size
    passive[:count] = merged[:count]
    return count, same


@njit(cache=True, error_model="numpy")
def nonnegative(
    h: Any, rhs: Any, x: Any, k: int, lead: Any, loose: float, passive: Any, factor: Any, leads: Any
) -> int:
    """Minimises x'Hx/2 - rhs'x over x >= 0, nearly; x (k,) is start and result (Lawson & Hanson 1974, chapter 23).

    Each step goes as far towards the unconstrained minimum on the passive set as one letter allows, and drops the
    letters that reach 0 within `loose` >= 1 times that; at the minimum those outside come back a few times. Row i of
    H is 0 left of lead(i), and only its lower triangle is read. Returns the size of the passive set; its letters are
    listed in `passive`, its Cholesky factor is in `factor` and `leads`.
    """
    size = k
    for i in range(k):
        passive[i] = i
    z = np.empty(k)
    merged = np.empty(k, np.int64)
    returns = 0
    same = 0  # rows of the factor that still hold
    while size > 0:
        first = 0
        for i in range(size):
            hi = h[passive[i]]
            z[i] = rhs[passive[i]]
            while passive[first] < lead[passive[i]]:
                first += 1
            if i >= same:
                leads[i] = first
                for j in range(first, i + 1):
                    factor[i, j] = hi[passive[j]]
        cholesky(factor, leads, same, size, 1e-12)
        solve_factored(factor, leads, z, size)
        kept, same = _drop(x, z, loose, passive, size)
        if kept < size:
            size = kept
            continue
        if returns == RETURNS:
            return size
        returns += 1
        more, same = _take_back(h, rhs, x, k, passive, size, merged)
        if more == size:
            return size
        size = more
    return size
