"""R(D) between chords and tangents: the last resort, which also takes corners and straight pieces of the curve.

Two points of the curve on either side of D give a chord above it. The tangent with the chord's slope gives a lower
bound and a third point, which replaces one of the two; a straight piece ends it at once (the sandwich algorithm for
convex functions, Rote 1992). Every tangent is one problem at a fixed slope.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from envrate.rd._certificate import ALL, channel_of, lower_line, upper_point
from envrate.rd._interior_point import interior_point
from envrate.rd._kernels import kernel

MAX_TANGENTS = 80


def tangent(
    p: Any, d: Any, finite: Any, s: float, tol: float, q: Any, a: Any, channel: Any, output: Any
) -> tuple[float, float, float]:
    """The problem at slope s: a lower bound on min R + s D, and the rate and distortion of a channel near it."""
    n, m = d.shape
    floor = np.empty(m)
    best, rate, distortion = -np.inf, np.inf, np.inf
    work = np.empty(n + m, np.int64)
    start = q.copy()
    for sharpness in (0.3, 0.01, 1e-4):
        q[:] = start
        interior_point(p, d, 1.0, s, tol * sharpness, q)
        if not q.max() > 0.0:
            continue
        band = kernel(d, s, False, a, work)
        above, mean, _, _, _ = upper_point(p, finite, a, band, q, s, np.inf)
        below = lower_line(p, a, band, q, above + s * mean - 0.1 * tol, ALL, floor)
        if not above < np.inf:
            continue
        if above + s * mean - below < rate + s * distortion - best or rate == np.inf:
            best, rate, distortion = below, above, mean
            channel[:] = channel_of(a, finite, q, (0.0, 0.0), p, q)
            output[:] = q + floor
            output /= output.sum()
            start[:] = q
        if above + s * mean - below <= tol:
            break
    q[:] = start
    return best, rate, distortion


def sandwich(
    p: Any, d: Any, finite: Any, d_max: float, best: int, goal: float, tol: float, channel: Any, output: Any
) -> tuple[float, float, float]:
    """Lower and upper bound on R(goal) in nats and the slope; `channel` holds the upper bound.

    `output` is the law of the tangent that gives the lower bound. `d_max` is inf where no reproduction suits every
    letter; else `best` is the one that does with that mean distortion.
    """
    n, m = d.shape
    a = np.empty((n, m))
    q, law = np.empty(m), np.empty(m)
    trial = np.empty((n, m))
    left, right = np.empty((n, m)), np.zeros((n, m))
    # left end: R(D_min), only the nearest reproductions
    nearest = np.where(d > 0.0, np.inf, 0.0)
    q[:] = 1.0 / m
    v, left_rate, left_distortion = tangent(p, nearest, np.zeros((n, m)), 1.0, 0.1 * tol, q, a, left, law)
    # right end: a constant reproduction, or the least rate that the forbidden cells allow
    lower, slope = 0.0, 0.0
    output[:] = law
    if d_max < np.inf:
        right[:, best] = 1.0
        right_rate, right_distortion = 0.0, d_max
        output[:] = 0.0
        output[best] = 1.0
    else:
        q[:] = 1.0 / m
        v, right_rate, right_distortion = tangent(p, d, finite, 0.0, 0.1 * tol, q, a, right, law)
        lower = v
        output[:] = law
    upper = left_rate
    for _ in range(MAX_TANGENTS):
        share = 0.0
        if right_distortion > left_distortion:
            share = min(1.0, max(0.0, (goal - left_distortion) / (right_distortion - left_distortion)))
        upper = (1.0 - share) * left_rate + share * right_rate
        if upper - lower <= tol or not right_distortion > left_distortion or share >= 1.0:
            break
        s = (left_rate - right_rate) / (right_distortion - left_distortion)
        if not s > 0.0:
            break
        q[:] = 1.0 / m
        v, rate, distortion = tangent(p, d, finite, s, 0.1 * tol, q, a, trial, law)
        if v - s * goal > lower:
            lower, slope = v - s * goal, s
            output[:] = law
        if distortion <= goal:
            if not distortion > left_distortion:
                break
            left_rate, left_distortion = rate, distortion
            left[:] = trial
        else:
            if not distortion < right_distortion:
                break
            right_rate, right_distortion = rate, distortion
            right[:] = trial
    share = 0.0
    if right_distortion > left_distortion:
        share = min(1.0, max(0.0, (goal - left_distortion) / (right_distortion - left_distortion)))
    upper = (1.0 - share) * left_rate + share * right_rate
    for x in range(n):
        for y in range(m):
            channel[x, y] = (1.0 - share) * left[x, y] + share * right[x, y]
    return lower, upper, slope
