"""Nearest neighbours of points in the plane under the maximum norm, and marginal counts (numba)."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@njit(cache=True, inline="always")
def _insert(near: FloatArray, found: int, d: float, dx: float, dy: float) -> int:
    """Puts a neighbour into the list of the k nearest, near (3, k): distance, along x, along y."""
    k = near.shape[1]
    place = found if found < k else k - 1
    while place > 0 and near[0, place - 1] > d:
        near[0, place], near[1, place], near[2, place] = near[0, place - 1], near[1, place - 1], near[2, place - 1]
        place -= 1
    near[0, place], near[1, place], near[2, place] = d, dx, dy
    return found + 1 if found < k else found


@njit(cache=True)
def _scan(
    x: FloatArray, y: FloatArray, below: int, above: int, first: int, last: int, i: int, near: FloatArray, found: int
) -> int:
    """Looks outwards in y from between `below` and `above` within the strip [first, last)."""
    k = near.shape[1]
    xi, yi = x[i], y[i]
    while True:
        down = yi - y[below] if below >= first else np.inf
        up = y[above] - yi if above < last else np.inf
        if down <= up:
            dy, j = down, below
            below -= 1
        else:
            dy, j = up, above
            above += 1
        if dy == np.inf or (found == k and dy >= near[0, k - 1]):
            return found
        dx = abs(x[j] - xi)
        d = dx if dx > dy else dy
        if found < k or d < near[0, k - 1]:
            found = _insert(near, found, d, dx, dy)


@njit(cache=True)
def neighbours(
    x: FloatArray, y: FloatArray, starts: IntArray, k: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The distance to the k-th neighbour and the extent of the k nearest along x and y.

    Args:
        x: (N,) points ordered by strips of x, and by y within a strip.
        y: (N,)
        starts: (S + 1,) first point of each strip.
        k: neighbours.

    With strips about as wide as the k-th distance a point looks at a few strips and a few points of each.
    """
    n, strips = len(x), len(starts) - 1
    radius, wide, high = np.empty(n), np.empty(n), np.empty(n)
    near = np.empty((3, k))
    left, right = np.empty(strips), np.empty(strips)
    for s in range(strips):
        left[s] = x[starts[s] : starts[s + 1]].min()
        right[s] = x[starts[s] : starts[s + 1]].max()
    for s in range(strips):
        for i in range(starts[s], starts[s + 1]):
            found = _scan(x, y, i - 1, i + 1, starts[s], starts[s + 1], i, near, 0)
            for side in (-1, 1):
                t = s + side
                while 0 <= t < strips:
                    gap = x[i] - right[t] if side < 0 else left[t] - x[i]
                    if found == k and gap >= near[0, k - 1]:
                        break
                    low, top = starts[t], starts[t + 1]
                    while low < top:
                        middle = (low + top) // 2
                        if y[middle] < y[i]:
                            low = middle + 1
                        else:
                            top = middle
                    found = _scan(x, y, low - 1, low, starts[t], starts[t + 1], i, near, found)
                    t += side
            radius[i] = near[0, k - 1]
            wide[i] = near[1].max()
            high[i] = near[2].max()
    return radius, wide, high


@njit(cache=True)
def within(ordered: FloatArray, values: FloatArray, radius: FloatArray, closed: bool) -> IntArray:
    """How many of `ordered` lie within `radius` of each value, the value itself left out.

    The test is on the difference itself, as in the search for neighbours, so that a neighbour at exactly the radius
    is never counted or lost by rounding.
    """
    n = len(ordered)
    out = np.empty(len(values), dtype=np.int64)
    for i in range(len(values)):
        v, r = values[i], radius[i]
        low, top = 0, n
        while low < top:  # first index that is not too far below
            middle = (low + top) // 2
            gap = v - ordered[middle]
            if gap > r or (gap == r and not closed):
                low = middle + 1
            else:
                top = middle
        first = low
        top = n
        while low < top:  # first index that is too far above
            middle = (low + top) // 2
            gap = ordered[middle] - v
            if gap < r or (gap == r and closed):
                low = middle + 1
            else:
                top = middle
        out[i] = low - first - 1
    return out
