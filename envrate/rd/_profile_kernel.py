"""Interior-point kernel of `profile_rate`; see there for the problem and its certificate.

The dual of the credited rate, in nats, with u one number per required symbol and m one multiplier per class:

    maximise  sum_a p(a) u(a) - sum_c f(c) m(c)
    subject to  G(y) = sum_a p(a) exp(u(a) - m(class(a, y))) <= 1  for every outcome y,   m >= 0

(Gallager 1968, theorem 9.4.1, with a vector of distortions.) The multipliers of the constraints G are the output law
q, and q(y) p(a) exp(u(a) - m) is the joint law of the optimal channel. A primal-dual Newton method follows the
central path; every iterate has G < 1 and is a valid lower bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

FREE, FORBIDDEN = -1, -2
CONVERGED, NOT_CONVERGED, INFEASIBLE = 0, 1, 2

MAX_ITERATIONS = 120
#: Bounds that are exceeded by less than this, relatively, are met: frequencies are sums of rounded products.
ROUNDING = 1e-12
#: Multiplier of a forbidden cell, in nats: exp(-40) = 4e-18 is lost from the lower bound.
FORBIDDING = 40.0


@njit(cache=True, error_model="numpy")
def _cholesky_solve(h: Any, b: Any, n: int) -> None:
    """Solves h x = b in place (lower triangle of h, solution in b); tiny pivots are lifted."""
    for j in range(n):
        diagonal = h[j, j]
        d = diagonal
        for k in range(j):
            d -= h[j, k] * h[j, k]
        floor = 1e-15 * diagonal
        if not d > floor:
            d = floor + 1e-300
        d = math.sqrt(d)
        h[j, j] = d
        inverse = 1.0 / d
        for i in range(j + 1, n):
            t = h[i, j]
            for k in range(j):
                t -= h[i, k] * h[j, k]
            h[i, j] = t * inverse
        t = b[j]
        for k in range(j):
            t -= h[j, k] * b[k]
        b[j] = t * inverse
    for j in range(n - 1, -1, -1):
        t = b[j]
        for i in range(j + 1, n):
            t -= h[i, j] * b[i]
        b[j] = t / h[j, j]


@njit(cache=True, error_model="numpy")
def _local_problem(p: Any, classes: Any, f: Any, cell: Any, local: Any, rows: Any, most: Any) -> tuple[int, int]:
    """Fills `cell` (rows, Y) with local class numbers, FREE or FORBIDDEN; returns the numbers of rows and classes.

    Rows of probability 0 are left out; a class that even its whole rows cannot fill binds nothing and is free.
    """
    num_rows, num_outcomes, num_classes = 0, classes.shape[1], f.shape[0]
    for a in range(p.shape[0]):
        if p[a] > 0.0:
            rows[num_rows] = a
            num_rows += 1
    most[:] = 0.0
    seen = np.full(num_classes, -1)
    for i in range(num_rows):
        for y in range(num_outcomes):
            c = classes[rows[i], y]
            if c >= 0 and seen[c] != i:
                seen[c] = i
                most[c] += p[rows[i]]
    count = 0
    for c in range(num_classes):
        if f[c] >= most[c]:
            local[c] = FREE
        elif f[c] == 0.0:
            local[c] = FORBIDDEN
        else:
            local[c] = count
            count += 1
    for i in range(num_rows):
        for y in range(num_outcomes):
            c = classes[rows[i], y]
            cell[i, y] = FREE if c < 0 else local[c]
    return num_rows, count


@njit(cache=True, error_model="numpy")
def _independent_fits(pr: Any, cell: Any, bound: Any, q: Any, mass: Any, num_rows: int, num_classes: int) -> bool:
    """Whether outcomes drawn from q whatever is required stay within every bound: then the rate is 0."""
    mass[:num_classes] = 0.0
    for y in range(q.shape[0]):
        if q[y] > 0.0:
            for i in range(num_rows):
                c = cell[i, y]
                if c >= 0:
                    mass[c] += pr[i] * q[y]
                elif c == FORBIDDEN and pr[i] * q[y] > 1e-15:
                    return False
    for c in range(num_classes):
        if mass[c] > bound[c]:
            return False
    return True


@njit(cache=True, error_model="numpy")
def _primal(pr: Any, cell: Any, bound: Any, joint: Any, mass: Any, num_rows: int, num_classes: int) -> float:
    """Repairs `joint` (rows, Y) into a channel within the bounds; returns its mutual information in nats, or inf."""
    num_outcomes = joint.shape[1]
    mass[:num_classes] = 0.0
    for i in range(num_rows):
        total = 0.0
        for y in range(num_outcomes):
            total += joint[i, y]
        if not total > 0.0:
            return np.inf
        for y in range(num_outcomes):
            joint[i, y] *= pr[i] / total
            if cell[i, y] >= 0:
                mass[cell[i, y]] += joint[i, y]
    for i in range(num_rows):  # what a class has too much of goes to the row's free cells
        excess, free = 0.0, 0.0
        best = -1
        for y in range(num_outcomes):
            c = cell[i, y]
            if c == FREE:
                free += joint[i, y]
                if best < 0 or joint[i, y] > joint[i, best]:
                    best = y
            elif c >= 0 and mass[c] > bound[c]:
                keep = joint[i, y] * (bound[c] / mass[c])
                excess += joint[i, y] - keep
                joint[i, y] = keep
        if excess == 0.0:
            continue
        if best >= 0 and free > 0.0:
            for y in range(num_outcomes):
                if cell[i, y] == FREE:
                    joint[i, y] *= 1.0 + excess / free
        elif best >= 0:
            joint[i, best] = excess
        else:  # no free cell: into the room that other classes have
            for y in range(num_outcomes):
                c = cell[i, y]
                if c >= 0 and mass[c] < bound[c] and excess > 0.0:
                    moved = min(excess, bound[c] - mass[c])
                    joint[i, y] += moved
                    mass[c] += moved
                    excess -= moved
            if excess > 1e-15 * pr[i]:
                return np.inf
    information = 0.0
    for y in range(num_outcomes):
        q = 0.0
        for i in range(num_rows):
            q += joint[i, y]
        for i in range(num_rows):
            if joint[i, y] > 0.0:
                information += joint[i, y] * math.log(joint[i, y] / (pr[i] * q))
    return max(information, 0.0)


@njit(cache=True, error_model="numpy")
def _forbid(p: Any, classes: Any, local: Any, rows: Any, u: Any, m: Any, out: Any, num_rows: int) -> float:
    """Writes the multipliers per class to `out` and returns V, so that V - out . f' <= R(f') for every f'."""
    top = 0.0
    for i in range(num_rows):
        top = max(top, math.log(p[rows[i]]) + u[i])
    for c in range(out.shape[0]):
        out[c] = m[local[c]] if local[c] >= 0 else (FORBIDDING + top if local[c] == FORBIDDEN else 0.0)
    worst = 0.0
    for y in range(classes.shape[1]):
        g = 0.0
        for i in range(num_rows):
            c = classes[rows[i], y]
            g += p[rows[i]] * math.exp(u[i] - (out[c] if c >= 0 else 0.0))
        worst = max(worst, g)
    value = -math.log(worst)
    for i in range(num_rows):
        value += p[rows[i]] * u[i]
    return value


@njit(cache=True, error_model="numpy")
def solve(p: Any, classes: Any, f: Any, tol: float, out: Any) -> tuple[float, float, int]:
    """Lower and upper bound in nats and a status for one profile; the multipliers in nats go to `out` (C,)."""
    num_symbols, num_outcomes = classes.shape
    rows = np.empty(num_symbols, np.int64)
    local = np.empty(f.shape[0], np.int64)
    cell = np.empty((num_symbols, num_outcomes), np.int64)
    most = np.empty(f.shape[0])  # the largest frequency each class can have
    num_rows, num_classes = _local_problem(p, classes, f, cell, local, rows, most)
    n = num_rows + num_classes

    pr = np.empty(num_rows)
    entropy = 0.0
    for i in range(num_rows):
        pr[i] = p[rows[i]]
        entropy -= pr[i] * math.log(pr[i])
        allowed = False
        for y in range(num_outcomes):
            allowed = allowed or cell[i, y] != FORBIDDEN
        if not allowed:
            return np.inf, np.inf, INFEASIBLE
    bound = np.empty(num_classes)
    m = np.empty(num_classes)
    for c in range(f.shape[0]):
        if local[c] >= 0:
            bound[local[c]] = f[c] * (1.0 + ROUNDING)
            m[local[c]] = max(0.5, math.log(most[c] / f[c]))

    mass = np.empty(num_classes + 1)
    q = np.zeros(num_outcomes)
    for y in range(num_outcomes):  # constant outcomes: exactly 0
        q[:] = 0.0
        q[y] = 1.0
        if _independent_fits(pr, cell, bound, q, mass, num_rows, num_classes):
            out[:] = 0.0
            return 0.0, 0.0, CONVERGED

    u = np.full(num_rows, -0.3)
    z = np.empty(num_classes)
    weights = 1.0  # a class counts by its bound on the central path, so that tiny ones stay in scale
    for c in range(num_classes):
        z[c] = bound[c]
        weights += bound[c]
    q[:] = 1.0 / num_outcomes
    s = np.empty(num_outcomes)
    eu = np.empty(num_rows)
    em = np.empty(num_classes)
    w = np.empty((num_rows, num_outcomes))  # p exp(u - m)
    joint = np.empty((num_rows, num_outcomes))
    h = np.empty((n, n))
    step = np.empty(n)
    gradient = np.empty(n)
    u_new, m_new = np.empty(num_rows), np.empty(num_classes)
    lower, upper = 0.0, np.inf
    alpha = 0.0
    out[:] = 0.0

    for i in range(num_rows):
        eu[i] = pr[i] * math.exp(u[i])
    for c in range(num_classes):
        em[c] = math.exp(-m[c])
    for y in range(num_outcomes):
        g = 0.0
        for i in range(num_rows):
            c = cell[i, y]
            w[i, y] = eu[i] if c == FREE else (eu[i] * em[c] if c >= 0 else 0.0)
            g += w[i, y]
        s[y] = 1.0 - g

    for _ in range(MAX_ITERATIONS):
        # bounds at this point
        value, tight = 0.0, 1.0
        for i in range(num_rows):
            value += pr[i] * u[i]
        for c in range(num_classes):
            value -= bound[c] * m[c]
        gap = 0.0
        for y in range(num_outcomes):
            gap += q[y] * s[y]
            tight = min(tight, s[y])
        for c in range(num_classes):
            gap += z[c] * m[c]
        value -= math.log1p(-tight)
        if value > entropy + 1e-6:
            return value, np.inf, INFEASIBLE
        if value < 1e-2 and value < gap:
            total = 0.0
            for y in range(num_outcomes):
                total += q[y]
            for y in range(num_outcomes):
                joint[0, y] = q[y] / total
            if _independent_fits(pr, cell, bound, joint[0], mass, num_rows, num_classes):
                out[:] = 0.0
                return 0.0, 0.0, CONVERGED
        if gap < tol:
            for i in range(num_rows):
                for y in range(num_outcomes):
                    joint[i, y] = q[y] * w[i, y]
            upper = min(upper, _primal(pr, cell, bound, joint, mass, num_rows, num_classes))
            if upper - value <= tol:
                break

        # Newton step towards the point of the central path with complementarity mu
        sigma = 0.3 if alpha < 0.5 else (0.1 if alpha < 0.9 else 0.01)
        mu = sigma * gap / weights
        mu_y = mu / num_outcomes
        for i in range(n):
            for j in range(i + 1):
                h[i, j] = 0.0
        for i in range(num_rows):
            step[i] = pr[i]
        for c in range(num_classes):
            k = num_rows + c
            step[k] = mu * bound[c] / m[c] - bound[c]
            h[k, k] = z[c] / m[c]
        for y in range(num_outcomes):
            gradient[:] = 0.0
            for i in range(num_rows):
                c = cell[i, y]
                if c == FORBIDDEN:
                    continue
                gradient[i] = w[i, y]
                t = q[y] * w[i, y]
                h[i, i] += t
                if c >= 0:
                    k = num_rows + c
                    gradient[k] -= w[i, y]
                    h[k, k] += t
                    h[k, i] -= t
            ratio = q[y] / s[y]
            weight = mu_y / s[y]
            for i in range(n):
                t = gradient[i]
                if t != 0.0:
                    step[i] -= weight * t
                    t *= ratio
                    for j in range(i + 1):
                        h[i, j] += t * gradient[j]
        _cholesky_solve(h, step, n)

        # longest step that keeps everything positive
        alpha = 1.0
        for c in range(num_classes):
            d = step[num_rows + c]
            if d < 0.0:
                alpha = min(alpha, -0.995 * m[c] / d)
            dz = mu * bound[c] / m[c] - z[c] - z[c] * d / m[c]
            if dz < 0.0:
                alpha = min(alpha, -0.995 * z[c] / dz)
        for y in range(num_outcomes):
            slope = 0.0
            for i in range(num_rows):
                c = cell[i, y]
                if c != FORBIDDEN:
                    slope += w[i, y] * (step[i] - (step[num_rows + c] if c >= 0 else 0.0))
            dq = (mu_y - q[y] * s[y] + q[y] * slope) / s[y]
            joint[0, y] = dq
            if dq < 0.0:
                alpha = min(alpha, -0.995 * q[y] / dq)
        while True:
            inside = True
            for i in range(num_rows):
                u_new[i] = u[i] + alpha * step[i]
                eu[i] = pr[i] * math.exp(u_new[i])
            for c in range(num_classes):
                m_new[c] = m[c] + alpha * step[num_rows + c]
                em[c] = math.exp(-m_new[c])
            for y in range(num_outcomes):
                g = 0.0
                for i in range(num_rows):
                    c = cell[i, y]
                    g += eu[i] if c == FREE else (eu[i] * em[c] if c >= 0 else 0.0)
                if not 1.0 - g >= 0.005 * s[y]:  # also where g overflowed
                    inside = False
                    break
            if inside or alpha < 1e-10:
                break
            alpha *= 0.7
        if not inside:
            break
        for y in range(num_outcomes):
            q[y] += alpha * joint[0, y]
            g = 0.0
            for i in range(num_rows):
                c = cell[i, y]
                w[i, y] = eu[i] if c == FREE else (eu[i] * em[c] if c >= 0 else 0.0)
                g += w[i, y]
            s[y] = 1.0 - g
        for c in range(num_classes):
            d = step[num_rows + c]
            z[c] += alpha * (mu * bound[c] / m[c] - z[c] - z[c] * d / m[c])
            m[c] = m_new[c]
            z[c] = max(z[c], 0.1 * mu * bound[c] / m[c])  # a slack far below the path blocks every later step
        for i in range(num_rows):
            u[i] = u_new[i]
    lower = _forbid(p, classes, local, rows, u, m, out, num_rows)
    for c in range(f.shape[0]):
        lower -= out[c] * f[c]
    if lower <= 1e-12:
        lower = 0.0
        out[:] = 0.0
    if not upper - lower <= tol:  # a rate near 0 may be had from outcomes that hardly look at the symbol
        total = q.sum()
        for i in range(num_rows):
            for y in range(num_outcomes):
                joint[i, y] = q[y] / total if cell[i, y] != FORBIDDEN else 0.0
        upper = min(upper, _primal(pr, cell, bound, joint, mass, num_rows, num_classes))
    upper = max(upper, lower)
    return lower, upper, CONVERGED if upper - lower <= tol else NOT_CONVERGED


@njit(cache=True, error_model="numpy")
def solve_batch(
    p: Any, classes: Any, f: Any, tol: float, lower: Any, upper: Any, multipliers: Any, status: Any
) -> None:
    """`solve` for each row of f (B, C); results go to lower, upper, status (B,) and multipliers (B, C)."""
    for b in range(f.shape[0]):
        lower[b], upper[b], status[b] = solve(p, classes, f[b], tol, multipliers[b])
