"""Compiled search for the plane that bounds a profile's rate best: blocks with additive costs, many profiles at once.

The problem is that of `_blocks`: at multipliers m >= 0 in nats,

    V(m) = min over laws q of the outcome block of  - sum_a p(a) log r(a),    r(a) = sum_y q(y) exp(- m . cost(a, y)),

and the plane V(m)/n - m . f bounds the rate of profile f for every m. With

    c(y) = sum_a p(a)/r(a) exp(- m . cost(a, y)),

V is at least the value at q less log max c, whatever q (Gallager 1968, theorem 9.4.1).

The steps in q are Blahut-Arimoto's q c, over-relaxed to q c^k with k doubled as long as the value falls (after
Salakhutdinov and Roweis 2003); those in m follow the slope f - cost(m) on the logarithmic scale, with a stride per
class that shrinks where the sign turns (Riedmiller and Braun 1993), for V has kinks. Every evaluation is a certified
plane, and the best one is kept. The last digits come from Newton steps on the outcomes that carry weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

#: Floor of a weight: every source block keeps an outcome, so that no logarithm or ratio fails.
SMALLEST = 1e-60
#: Largest power of c in one step.
MAX_POWER = 1024
#: Largest multiplier in nats: beyond it a cell is as good as forbidden.
LARGEST = 60.0
#: Over-relaxed steps between two moves of the multipliers.
STEPS_PER_MOVE = 4
#: Most outcomes in Newton's system, and rounds and steps of that.
DENSE, NEWTON_ROUNDS, NEWTON_STEPS = 160, 4, 30
#: Weights of the uniform law that are tried where a bound is evaluated after Newton's steps.
MIXED = (0.0, 1e-11, 1e-9, 1e-7)


@njit(cache=True, error_model="numpy")
def letter_kernel(classes: Any, m: Any) -> Any:
    """(A, Y) exp(-m) of each cell's class; an infinite multiplier forbids."""
    kernel = np.ones(classes.shape)
    for a in range(classes.shape[0]):
        for y in range(classes.shape[1]):
            if classes[a, y] >= 0:
                kernel[a, y] = np.exp(-m[classes[a, y]])
    return kernel


@njit(cache=True, error_model="numpy")
def power(matrix: Any, n: int) -> Any:
    """The n-th Kronecker power; the first letter moves slowest."""
    rows, columns = matrix.shape
    out = np.ones((1, 1))
    for _ in range(n):
        longer = np.empty((out.shape[0] * rows, out.shape[1] * columns))
        for i in range(out.shape[0]):
            for a in range(rows):
                for j in range(out.shape[1]):
                    for y in range(columns):
                        longer[i * rows + a, j * columns + y] = out[i, j] * matrix[a, y]
        out = longer
    return out


@njit(cache=True, error_model="numpy")
def evaluate(first: Any, second: Any, law: Any, q: Any, c: Any) -> tuple[float, float]:
    """Value and certified lower bound at q, nats; c is filled. An infinite value where q misses a source block."""
    r = np.dot(first, np.dot(q, second.T))
    value = 0.0
    for i in range(r.shape[0]):
        for j in range(r.shape[1]):
            if law[i, j] > 0.0:
                if r[i, j] <= 0.0:
                    return np.inf, -np.inf
                value -= law[i, j] * np.log(r[i, j])
                r[i, j] = law[i, j] / r[i, j]
            else:
                r[i, j] = 0.0
    c[:] = np.dot(first.T, np.dot(r, second))
    return value, value - np.log(c.max())


@njit(cache=True, error_model="numpy")
def over_relaxed(first: Any, second: Any, law: Any, q: Any, c: Any, steps: int, tol: float) -> tuple[float, float]:
    """Value and lower bound after up to `steps` steps from q, which is changed in place with its c."""
    value, lower = evaluate(first, second, law, q, c)
    trial, c_trial = np.empty_like(q), np.empty_like(q)
    k = 1
    for _ in range(steps):
        if value - lower <= tol:
            break
        total = 0.0
        for i in range(q.shape[0]):
            for j in range(q.shape[1]):
                x, base, left = q[i, j], min(max(c[i, j], 0.05), 20.0), k
                while left > 0:
                    if left & 1:
                        x *= base
                    base *= base
                    left >>= 1
                trial[i, j] = max(x, SMALLEST)
                total += trial[i, j]
        if not np.isfinite(total):  # a large power of a large c
            k = max(1, k // 4)
            continue
        trial /= total
        reached, bound = evaluate(first, second, law, trial, c_trial)
        lower = max(lower, bound)
        if reached <= value + 1e-13:
            q[:], c[:] = trial, c_trial
            value, k = reached, min(2 * k, MAX_POWER)
        else:
            k = max(1, k // 4)
    return value, lower


@njit(cache=True, error_model="numpy")
def _count(joint: Any, classes: Any, letters: int, weight: float, out: Any) -> None:
    """Adds the expected number of cells of each class in a joint law (A**k, Y**k) of half a block."""
    for i in range(joint.shape[0]):
        for j in range(joint.shape[1]):
            a, y = i, j
            for _ in range(letters):
                cell = classes[a % classes.shape[0], y % classes.shape[1]]
                if cell >= 0:
                    out[cell] += weight * joint[i, j]
                a //= classes.shape[0]
                y //= classes.shape[1]


@njit(cache=True, error_model="numpy")
def add_costs(first: Any, second: Any, law: Any, q: Any, classes: Any, n: int, weight: float, out: Any) -> None:
    """Adds `weight` times the cost per block of the channel q exp(- m . cost) / r to out (C,)."""
    right = np.dot(q, second.T)
    w = np.dot(first, right)
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            w[i, j] = law[i, j] / w[i, j] if law[i, j] > 0.0 else 0.0
    _count(np.dot(w, right.T) * first, classes, (n + 1) // 2, weight, out)
    _count(np.dot(w.T, np.dot(first, q)) * second, classes, n // 2, weight, out)


@njit(cache=True, error_model="numpy")
def _reach(x: Any, step: Any) -> float:
    """The largest share of a step, up to 1, that leaves x positive."""
    steepest = np.max(-step / x)
    return 1.0 if steepest <= 0.99 else 0.99 / steepest


@njit(cache=True, error_model="numpy")
def newton(first: Any, second: Any, law: Any, q: Any, c: Any, value: float, lower: float, tol: float) -> Any:
    """Value and lower bound after Newton steps from a good q, which is changed in place.

    A primal-dual interior-point method in q and z, the slack of c(y) <= 1, on the outcomes that carry weight or come
    close to the constraint (Koenker and Mizera 2014 solve the same problem for mixtures).
    """
    columns = second.shape[1]
    seen = np.flatnonzero(law.copy().reshape(-1) > 0.0)
    p = law.copy().reshape(-1)[seen]
    mixed, c_mixed = np.empty_like(q), np.empty_like(q)
    for _ in range(NEWTON_ROUNDS):
        flat, c_flat = q.copy().reshape(-1), c.copy().reshape(-1)
        rank = np.maximum(flat / flat.max(), np.exp(np.minimum(np.maximum((c_flat - 1.0) * 300.0, -60.0), 0.0)))
        support = np.flatnonzero(rank > 1e-6)
        if len(support) > DENSE:  # the heaviest; what is missing shows as c > 1 and joins in the next round
            support = np.argsort(-rank)[:DENSE]
        size = len(support)
        block = np.empty((len(seen), size))
        for i in range(len(seen)):
            row, column = seen[i] // law.shape[1], seen[i] % law.shape[1]
            for s in range(size):
                block[i, s] = first[row, support[s] // columns] * second[column, support[s] % columns]
        x = np.maximum(flat[support], 1e-8 / flat.size)
        x /= x.sum()
        z = np.maximum(1.0 - c_flat[support], 1e-6)
        for _ in range(NEWTON_STEPS):
            r = np.dot(block, x)
            if r.min() <= 0.0:
                break  # the support is too small for some block; mixing below repairs that
            gradient = 1.0 - np.dot(block.T, p / r)
            mu = np.dot(x, z) / size
            violation = np.abs(gradient - z).max()
            if mu * size < 0.1 * tol and violation < 0.1 * tol:
                break
            goal = (0.1 if violation < 0.5 else 0.5) * mu / x
            scaled = block * (np.sqrt(p) / r).reshape(-1, 1)
            system = np.dot(scaled.T, scaled)
            for s in range(size):
                system[s, s] += z[s] / x[s] + 1e-14
            step = np.linalg.solve(system, goal - gradient)
            step_z = goal - z - z / x * step
            x = x + _reach(x, step) * step
            z = z + _reach(z, step_z) * step_z
        law_of_x = np.zeros(flat.size)
        law_of_x[support] = x / x.sum()
        improved = False
        for eps in MIXED:
            mixed[:] = ((1.0 - eps) * law_of_x + eps / flat.size).reshape(q.shape)
            reached, bound = evaluate(first, second, law, mixed, c_mixed)
            lower = max(lower, bound)
            if reached < value:
                value, improved = reached, True
                q[:], c[:] = mixed, c_mixed
        if value - lower <= tol or not improved:
            break
    return value, lower


@njit(cache=True, error_model="numpy")
def _alternate(classes: Any, n: int, laws: Any, weights: Any, f: Any, m: Any, q: Any, rounds: int) -> None:
    """Single steps of q and m in turn, from which the pair comes close to the saddle where V has a kink."""
    c = np.empty_like(q[0])
    for _ in range(rounds):
        kernel = letter_kernel(classes, m)
        first, second = power(kernel, (n + 1) // 2), power(kernel, n // 2)
        costs = np.zeros(len(f))
        for g in range(len(weights)):
            evaluate(first, second, laws[g], q[g], c)
            add_costs(first, second, laws[g], q[g], classes, n, weights[g], costs)
            q[g] = np.maximum(q[g] * c, SMALLEST)
        for i in range(len(f)):
            if f[i] > 0.0:
                m[i] = min(max(m[i] + np.log(max(costs[i] / n, 1e-300) / f[i]), 0.0), LARGEST)


@njit(cache=True, error_model="numpy", nogil=True)
def climb(
    classes: Any, n: int, laws: Any, weights: Any, f: Any, m: Any, q: Any, rounds: int, moves: int, stride: float,
    steps: int, tol: float,
) -> float:
    """The best plane of a profile on blocks of n letters under one condition: V(m)/n, certified, nats per letter.

    Args:
        classes: (A, Y) class of each cell, -1 without a bound.
        n: letters per block.
        laws: (G, A**n1, A**n2) law of the block in each case.
        weights: (G,) probability of each case.
        f: (C,) profile; a frequency of 0 takes an infinite multiplier.
        m: (C,) multipliers to start from; those of the plane come back in it.
        q: (G, Y**n1, Y**n2) laws of the outcome block to start from; those at the multipliers returned come back.
        rounds: of single steps in q and m before the first move.
        moves: of the multipliers.
        stride: of the first move, as a share of the slope on the logarithmic scale.
        steps: in q at the best of the multipliers.
        tol: nats per letter, of the certificate.
    """
    _alternate(classes, n, laws, weights, f, m, q, rounds)
    strides, before = np.full(len(f), stride), np.zeros(len(f))
    c = np.empty_like(q)
    best, intercept, best_m = -np.inf, 0.0, m.copy()
    for move in range(moves + 1):
        last = move == moves
        if last:
            m[:] = best_m
        kernel = letter_kernel(classes, m)
        first, second = power(kernel, (n + 1) // 2), power(kernel, n // 2)
        bound, costs = 0.0, np.zeros(len(f))
        for g in range(len(weights)):
            count, enough = (steps, tol * n) if last else (STEPS_PER_MOVE, 0.0)
            value, lower = over_relaxed(first, second, laws[g], q[g], c[g], count, enough)
            if last and value - lower > enough:
                value, lower = newton(first, second, laws[g], q[g], c[g], value, lower, 0.5 * enough)
            bound += weights[g] * lower
            if not last:
                add_costs(first, second, laws[g], q[g], classes, n, weights[g], costs)
        plane = bound / n
        for i in range(len(f)):
            if f[i] > 0.0:
                plane -= m[i] * f[i]
        if plane > best:
            best, intercept = plane, bound / n
            best_m[:] = m
        if last:
            break
        for i in range(len(f)):
            if f[i] > 0.0:
                slope = np.log(max(costs[i] / n, 1e-300) / f[i])
                strides[i] = 0.4 * strides[i] if slope * before[i] < 0.0 else min(1.5, 1.3 * strides[i])
                before[i] = slope
                m[i] = min(max(m[i] + strides[i] * min(max(slope, -1.0), 1.0), 0.0), LARGEST)
    return intercept
