"""From checked arrays to a certified point of R(D): units, special cases, and the solvers in turn."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from envrate.rd._certificate import ALL, channel_of, lower_line, upper_point
from envrate.rd._interior_point import interior_point
from envrate.rd._kernels import is_toeplitz, kernel
from envrate.rd._linalg import least, total
from envrate.rd._prepare import (
    LN2,
    NOT_CERTIFIED,
    OK,
    TRIVIAL,
    prepare,
)
from envrate.rd._structured import known_law

#: Up to this many cells the interior-point method is the faster one.
SMALL = 300
#: Ways to solve, in the order in which they are tried.
METHODS = KNOWN, COARSER, NEWTON, INTERIOR, SHARPER, SANDWICH = range(6)


class Solution(NamedTuple):
    """A point of R(D) in bits, as `RDPoint` holds it, and a status."""

    lower: float
    upper: float
    distortion: float
    slope: float
    output: Any  # (M,)
    make_channel: Callable[[], Any]  # () -> (K, M)
    status: int


class Problem(NamedTuple):
    """What `prepare` makes of a problem, for the solvers."""

    p: Any  # (n,)
    d: Any  # (n, M)
    finite: Any  # (n, M): d with 0 where forbidden
    toeplitz: bool
    goal: float
    s: float  # nats per unit: the slope asked for, or one to start from
    fixed: bool  # whether it was asked for


#: Slope, lower and upper bound in nats, the distortion they are at, and the tilt and share that bend the channel.
Certified = tuple[float, float, float, float, float, float]
NOTHING: Certified = (-1.0, -math.inf, math.inf, math.inf, 0.0, 0.0)


@njit(cache=True, error_model="numpy")
def _certify(
    p: Any,
    finite: Any,
    a: Any,
    band: tuple[int, int],
    q: Any,
    s: float,
    goal: float,
    fixed: bool,
    tol: float,
    tries: int,
    law: Any,
) -> Certified:
    """Both bounds at the law q, which is normalised, and the slope of the kernel `a`; `law` is that of the lower."""
    scale = 1.0 / total(q)
    for y in range(q.shape[0]):
        q[y] *= scale
        law[y] = q[y]
    upper, at, tilt, share, dual = upper_point(p, finite, a, band, q, s, np.inf if fixed else goal)
    if not fixed:
        at = goal
    enough = upper + s * at - 0.3 * tol
    if dual < enough:
        floor = np.empty(q.shape[0])
        better = lower_line(p, a, band, q, enough, tries, floor)
        if better > dual:
            dual = better
            scale = 1.0 / (1.0 + total(floor))
            for y in range(q.shape[0]):
                law[y] = scale * (q[y] + floor[y])
    return s, dual - s * at, upper, at, tilt, share


@njit(cache=True, error_model="numpy")
def _at_slope(
    p: Any,
    d: Any,
    finite: Any,
    toeplitz: bool,
    goal: float,
    s: float,
    fixed: bool,
    tol: float,
    tries: int,
    q: Any,
    a: Any,
    law: Any,
) -> Certified:
    """Both bounds at the law q and the slope s."""
    band = kernel(d, s, toeplitz, a, np.empty(d.shape[0] + d.shape[1], np.int64), least(p))
    return _certify(p, finite, a, band, q, s, goal, fixed, tol, tries, law)


@njit(cache=True, error_model="numpy")
def _by_interior_point(
    p: Any,
    d: Any,
    finite: Any,
    toeplitz: bool,
    goal: float,
    s: float,
    fixed: bool,
    sharpness: float,
    tol: float,
    tries: int,
    q: Any,
    a: Any,
    law: Any,
) -> Certified:
    """The interior-point method, to `sharpness` times the tolerance."""
    for y in range(q.shape[0]):
        q[y] = 1.0 / q.shape[0]
    s, _ = interior_point(p, d, goal, s if fixed else -1.0, sharpness * tol, q)
    if not s >= 0.0:
        return NOTHING
    return _at_slope(p, d, finite, toeplitz, goal, s, fixed, tol, tries, q, a, law)


def _from_scratch(problem: Problem, tol: float, q: Any, a: Any) -> tuple[float, tuple[int, int]]:
    """Newton's method from a Blahut-Arimoto warm-up."""
    from envrate.rd._newton import ATOMS, newton
    from envrate.rd._warm_up import thin, warm_up

    q[:] = 1.0 / len(q)
    s, done, band = warm_up(*problem, tol, q, a)
    if not done:
        thin(q, ATOMS)
        s, _, band = newton(*problem[:5], s, problem.fixed, tol, q, a, False)
    return s, band


def _by_coarser_grid(problem: Problem, tol: float, q: Any, a: Any, law: Any) -> Certified:
    """The law of the problem on every k-th letter: as good where it is smooth, a start elsewhere."""
    from envrate.rd._warm_up import coarser

    k, first, p, d = coarser(problem.p, problem.d, 0.5 / problem.s if problem.fixed else problem.goal)
    if k < 2:
        return NOTHING
    coarse = np.empty(d.shape[1])
    s, _ = _from_scratch(problem._replace(p=p, d=d, finite=d), tol, coarse, np.empty(d.shape))
    if not 0.0 < s < math.inf:
        return NOTHING
    q[:] = 0.0
    q[first::k] = coarse
    return _at_slope(*problem[:5], s, problem.fixed, tol, 1, q, a, law)


def _by_newton(problem: Problem, tol: float, q: Any, a: Any, law: Any, start: tuple[Any, float] | None) -> Certified:
    """Newton's method from the law and slope of a neighbour, or from a warm-up."""
    from envrate.rd._newton import newton

    steps = -1
    if start is not None:
        q[:] = start[0]
        s, steps, band = newton(*problem[:5], start[1], problem.fixed, tol, q, a, True)
    if steps < 0:
        s, band = _from_scratch(problem, tol, q, a)
    if not s >= 0.0:
        return NOTHING
    return _certify(problem.p, problem.finite, a, band, q, s, problem.goal, problem.fixed, tol, ALL, law)


def solve(
    pmf: Any,
    distortion: Any,
    target: float,
    slope: float,
    tol: float,
    start: tuple[Any, float] | None = None,
    *,
    checked: bool = True,
    detect: bool = True,
) -> Solution:
    """R(D) at `target` (slope < 0), or at `slope` in bits per unit of distortion.

    `start` is the output law and the slope of a point nearby. Where the arrays are not `checked`, the status may be
    UNCLEAN; without `detect` no law is taken as known.

    A known law, a coarser grid and Newton's method on large alphabets, the interior point twice, the sandwich, until
    one certifies.
    """
    num_letters, m = distortion.shape
    p, d, finite, goal, s, fixed, d_min, d_max, unit, best, at_d_min, status = prepare(
        pmf, distortion, target, slope, checked
    )
    if status != OK:
        law = np.zeros(m)
        law[best] = 1.0
        nothing = partial(np.tile, law, (num_letters, 1))
        at = d_min + d_max if fixed else target
        if status == TRIVIAL:
            return Solution(0.0, 0.0, at, 0.0, law, nothing, OK)
        return Solution(0.0, math.inf, target, 0.0, law, nothing, status)
    n = p.shape[0]
    tol_nats = LN2 * tol
    small = distortion.size <= SMALL
    toeplitz = not small and bool(math.isfinite(d[0, -1])) and is_toeplitz(d)
    problem = Problem(p, d, finite, toeplitz, goal, s, fixed)
    if start is not None:
        start = (start[0], start[1] * unit * LN2) if 0.0 < start[1] < math.inf else None
    found, parts = NOTHING, None
    for method in METHODS:
        if (
            (method == KNOWN and (fixed or not detect))
            or (method == COARSER and (not toeplitz or start is not None))
            or (method == NEWTON and small)
            or (method == SANDWICH and fixed)
        ):
            continue
        a, q, law = np.empty((n, m)), np.empty(m), np.empty(m)
        if method == KNOWN:
            known = known_law(p, d, goal, toeplitz, q)
            trial = _at_slope(*problem[:5], known, fixed, tol_nats, ALL, q, a, law) if known >= 0.0 else NOTHING
        elif method == COARSER:
            trial = _by_coarser_grid(problem, tol_nats, q, a, law)
            start = (q, trial[0]) if trial[0] > 0.0 else None
        elif method == NEWTON:
            trial = _by_newton(problem, tol_nats, q, a, law, start)
        elif method == SANDWICH:
            from envrate.rd._sandwich import sandwich

            lower, upper, at_slope = sandwich(p, d, finite, d_max / unit, best, goal, tol_nats, a, law)
            trial = at_slope, lower, upper, goal, 0.0, 0.0
            law /= law.sum()
        else:
            sharpness = 0.3 if method == INTERIOR else 0.02
            trial = _by_interior_point(*problem, sharpness, tol_nats, ALL, q, a, law)
        if trial[2] - trial[1] < found[2] - found[1]:
            found, output = trial, law
            parts = a, finite, None if method == SANDWICH else q
            if trial[2] - trial[1] <= tol_nats:
                break
    if parts is None:  # no solver came to anything: the bracket is without end
        output = np.full(m, 1.0 / m)
        parts = np.ones((n, m)), finite, output
    lower = max(found[1], 0.0) / LN2
    upper = max(found[2] / LN2, lower)
    at = d_min + unit * found[3] if fixed and slope >= 0.0 else target
    steepness = math.inf if at_d_min else found[0] / (unit * LN2)
    status = OK if upper - lower <= tol else NOT_CERTIFIED
    make_channel = partial(channel_of, *parts, found[4:], pmf, output)
    return Solution(lower, upper, at, steepness, output, make_channel, status)
