"""Interior-point method for R(D): the robust way, taken when the fast one does not certify.

The dual of R(D) in nats (Gallager 1968, theorem 9.4.1; Berger 1971, theorem 2.5.3), with v one number per letter:

    maximise  sum_x p(x) log(v(x) / p(x)) - s D   subject to   G(y) = sum_x v(x) exp(-s d(x, y)) <= 1,   s >= 0

The multipliers of G are the output law q, that of s >= 0 is the distortion left over: so the iterates meet the
target D as they converge, also where R(D) is a line segment and the slope alone does not tell q. At a fixed slope
this is the mixture-weight problem of Koenker & Mizera (2014); steps are Mehrotra's predictor and corrector.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from envrate.rd._linalg import FAST, cholesky, gram, solve_factored

MAX_ITERATIONS = 80


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _weights(v: Any, d: Any, s: float, w: Any, slack: Any) -> float:
    """Fills w = v exp(-s d) and slack = 1 - G; returns the smallest slack. d is inf where forbidden."""
    n, m = d.shape
    for y in range(m):
        slack[y] = 1.0
    for x in range(n):
        scale = v[x]
        for y in range(m):
            e = -s * d[x, y]
            t = scale * math.exp(e) if e > -690.0 else 0.0
            w[x, y] = t
            slack[y] -= t
    least = 1.0
    for y in range(m):
        least = min(least, slack[y])
    return least


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _times(w: Any, d: Any, step: Any, ds: float, out: Any) -> None:
    """out(y) = sum_x w(x, y) (step(x) - ds d(x, y)): minus the change of the slack."""
    n, m = d.shape
    for y in range(m):
        out[y] = 0.0
    for x in range(n):
        t = step[x]
        if ds == 0.0:
            for y in range(m):
                out[y] += w[x, y] * t
        else:
            for y in range(m):
                if w[x, y] > 0.0:
                    out[y] += w[x, y] * (t - ds * d[x, y])


@njit(cache=True, error_model="numpy")
def interior_point(p: Any, d: Any, target: float, slope: float, tol: float, q: Any) -> tuple[float, int]:
    """Solves for the distortion `target`, or at the fixed `slope` if that is >= 0; q (M,) is start and result.

    Returns the slope s in nats and the number of iterations, negative where the method got stuck. Rows of d have
    minimum 0. The caller evaluates the bounds.
    """
    n, m = d.shape
    fixed = slope >= 0.0
    size = n if fixed else n + 1
    s = slope if fixed else 1.0 / max(target, 1e-12)
    z = target
    v, new_v = np.ones(n), np.empty(n)
    w, new_w = np.empty((n, m)), np.empty((n, m))
    slack, new_slack = np.empty(m), np.empty(m)
    scaled = np.zeros((size, m))
    h = np.empty((size, size))
    dense, full = np.zeros(size, np.int64), np.empty(size, np.int64)
    for x in range(size):
        full[x] = m
    step = np.zeros(size)
    mass, lean = np.empty(n), np.empty(n)
    dq, d_slack = np.empty(m), np.empty(m)
    row_term, column_term = np.empty(n), np.empty(m)
    for y in range(m):
        q[y] = max(q[y], 0.1 / m)
    _weights(v, d, s, w, slack)
    for x in range(n):  # start: v = p / (A q), shrunk until it is feasible
        v[x] = p[x] / np.dot(w[x], q)
    least = _weights(v, d, s, w, slack)
    v *= 0.95 / (1.0 - least)
    _weights(v, d, s, w, slack)
    least_sigma = 0.0
    count = m if fixed else m + 1
    for iteration in range(MAX_ITERATIONS):
        gap = 0.0 if fixed else z * s
        residual = 0.0
        for y in range(m):
            gap += q[y] * slack[y]
        moment = 0.0
        distortion = 0.0
        for x in range(size):
            for k in range(x + 1):
                h[x, k] = 0.0
        if not fixed:
            scaled[n] = 0.0
        for x in range(n):
            t_mass = t_lean = 0.0
            for y in range(m):
                t = w[x, y]
                t_mass += q[y] * t
                if not fixed and t > 0.0:
                    t_lean += q[y] * t * d[x, y]
                    moment += q[y] * t * d[x, y] * d[x, y]
                    scaled[n, y] -= t * d[x, y]
            mass[x], lean[x] = t_mass, t_lean
            distortion += t_lean
            residual += abs(p[x] - t_mass)
        if gap < tol and residual < tol and (fixed or s * abs(target - distortion - z) < tol):
            return s, iteration
        if not gap >= 0.0:
            return s, -iteration - 1
        if residual > gap:  # feasibility must not lag behind, or the next steps are short
            least_sigma = 1.0
        for x in range(n):
            h[x, x] = mass[x]
            if not fixed:
                h[n, x] = -lean[x]
            for y in range(m):
                scaled[x, y] = w[x, y] * math.sqrt(q[y] / slack[y])
        if not fixed:
            h[n, n] = moment + z / s
            for y in range(m):
                scaled[n, y] *= math.sqrt(q[y] / slack[y])
        gram(scaled, dense, full, dense, h, size)
        cholesky(h, dense, 0, size, 1e-15)

        mu = gap / count
        sigma = 0.0
        row_term[:] = 0.0
        column_term[:] = 0.0
        slope_term = 0.0
        dz = ds = 0.0
        alpha = beta = 1.0
        for corrector in range(2):
            for y in range(m):
                dq[y] = (sigma * mu - q[y] * slack[y] - column_term[y]) / slack[y]
            if not fixed:
                step[n] = distortion - target + z + (sigma * mu - z * s - slope_term) / s
            for x in range(n):
                t = p[x] - mass[x] - row_term[x]
                for y in range(m):
                    t -= w[x, y] * dq[y]
                    if not fixed and w[x, y] > 0.0:
                        step[n] += w[x, y] * d[x, y] * dq[y]
                step[x] = t
            solve_factored(h, dense, step, size)
            if not fixed:
                ds = step[n]
                dz = (sigma * mu - z * s - slope_term - z * ds) / s
            _times(w, d, step, ds, d_slack)
            for y in range(m):
                dq[y] += q[y] * d_slack[y] / slack[y]
                d_slack[y] = -d_slack[y]
            alpha = beta = 1.0
            for x in range(n):
                if step[x] < 0.0:
                    alpha = min(alpha, -0.995 / step[x])
            for y in range(m):
                if d_slack[y] < 0.0:
                    alpha = min(alpha, -0.995 * slack[y] / d_slack[y])
                if dq[y] < 0.0:
                    beta = min(beta, -0.995 * q[y] / dq[y])
            if not fixed:
                if ds < 0.0:
                    alpha = min(alpha, -0.995 * s / ds)
                if dz < 0.0:
                    beta = min(beta, -0.995 * z / dz)
            if corrector == 0:
                after = 0.0 if fixed else (z + beta * dz) * (s + alpha * ds)
                for y in range(m):
                    after += (q[y] + beta * dq[y]) * (slack[y] + alpha * d_slack[y])
                sigma = (after / gap) ** 3
                sigma = min(1.0, max(sigma, least_sigma))
                for x in range(n):
                    row_term[x] = 0.0
                    for y in range(m):
                        row_term[x] += w[x, y] * dq[y]
                    row_term[x] *= step[x]
                for y in range(m):
                    column_term[y] = dq[y] * d_slack[y]
                slope_term = dz * ds
        inside = False
        while alpha > 1e-9:
            for x in range(n):
                new_v[x] = v[x] * (1.0 + alpha * step[x])
            if _weights(new_v, d, s + alpha * ds, new_w, new_slack) > 0.0:
                inside = True
                for y in range(m):
                    if new_slack[y] < 0.002 * slack[y]:
                        inside = False
                        break
            if inside:
                break
            alpha *= 0.7
            beta *= 0.7
        if not inside:
            return s, -iteration - 1
        least_sigma = 0.0 if alpha > 0.5 else 0.1
        s += alpha * ds
        z += beta * dz
        for y in range(m):
            q[y] += beta * dq[y]
        v[:] = new_v
        w, new_w = new_w, w
        slack, new_slack = new_slack, slack
    return s, -MAX_ITERATIONS
