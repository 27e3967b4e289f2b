"""Newton polish of a block solution: Blahut-Arimoto's last digits, which it would need thousands of steps for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Newton steps of one polish; the method converges in 10 to 30.
MAX_STEPS = 40

#: Outcome blocks up to which the Newton system is formed; beyond, conjugate gradients use the Kronecker product.
DENSE = 300

#: Conjugate-gradient steps in one Newton step.
MAX_GRADIENT_STEPS = 150


def _dense_step(
    columns: FloatArray, weights: FloatArray, diagonal: FloatArray, target: FloatArray
) -> FloatArray:
    """Solves (B' diag(weights) B + diag(diagonal)) step = target."""
    scaled = columns * np.sqrt(weights)[:, None]
    system = scaled.T @ scaled
    system[np.diag_indices_from(system)] += diagonal + 1e-14
    return np.asarray(np.linalg.solve(system, target))


def _gradient_step(
    first: FloatArray,
    second: FloatArray,
    support: tuple[NDArray[np.intp], ...],
    weights: FloatArray,
    diagonal: FloatArray,
    target: FloatArray,
    most: int,
) -> tuple[FloatArray, int]:
    """The same by conjugate gradients with the exact diagonal as preconditioner; K is applied as K1 . K2'.

    Returns the step and the number of products spent, at most `most`.
    """
    full = np.zeros((first.shape[1], second.shape[1]))

    def apply(v: FloatArray) -> FloatArray:
        full[support] = v
        inner = (first @ full @ second.T) * weights
        return np.asarray((first.T @ inner @ second)[support] + diagonal * v)

    scale = ((first**2).T @ weights @ second**2)[support] + diagonal
    x = np.zeros_like(target)
    residual = target.copy()
    z = residual / scale
    direction = z.copy()
    rho = float(residual @ z)
    start = rho
    spent = 0
    while spent < most and rho > 1e-16 * start:
        spent += 1
        image = apply(direction)
        alpha = rho / float(direction @ image)
        x += alpha * direction
        residual -= alpha * image
        z = residual / scale
        rho, previous = float(residual @ z), rho
        direction = z + (rho / previous) * direction
    return x, spent


def _to_boundary(x: FloatArray, step: FloatArray) -> float:
    """The largest share of a step, up to 1, that leaves x positive."""
    steepest = float(np.max(-step / x))
    return 1.0 if steepest <= 0.99 else 0.99 / steepest


def polish(
    first: FloatArray, second: FloatArray, law: FloatArray, output: FloatArray, tol: float, effort: int
) -> tuple[FloatArray, float, float]:
    """Minimises -sum p log(K1 q K2') over laws q from a good start; returns q and nats lower <= V <= value.

    A primal-dual interior-point method in q and z, the slack of the dual constraint c(y) <= 1, on the outcomes that
    carry weight or come close to the constraint (Koenker and Mizera 2014 solve the same problem for mixtures).

    Args:
        first: (A1, Y1) kernel of the first half of the block.
        second: (A2, Y2) kernel of the second half.
        law: (A1, A2) law p of the source block.
        output: (Y1, Y2) law q to start from.
        tol: stop when value - lower is at most this.
        effort: conjugate-gradient steps in all, where the system is too large to form.
    """
    seen = law > 0

    def evaluate(q: FloatArray) -> tuple[float, float, FloatArray, FloatArray]:
        """Value, lower bound, c, r at q; an infinite value where q misses a source block altogether."""
        r = first @ q @ second.T
        if not (r[seen] > 0.0).all():
            return np.inf, -np.inf, np.zeros_like(q), r
        w = np.divide(law, r, out=np.zeros_like(law), where=seen)
        value = -float((law[seen] * np.log(r[seen])).sum())
        c = first.T @ w @ second
        return value, value - float(np.log(c.max())), c, r

    def support_of(q: FloatArray, c: FloatArray) -> NDArray[np.intp]:
        rank = np.maximum(q.ravel() / q.max(), np.exp(np.clip((c.ravel() - 1.0) * 300.0, -60.0, 0.0)))
        return np.flatnonzero(rank > 1e-6)

    size = output.size
    best, best_lower = output, -np.inf
    best_value, best_lower, c, _ = evaluate(output)
    if not np.isfinite(best_value):
        return best, best_lower, best_value
    for _ in range(4):
        support = support_of(best, c)
        cells = np.unravel_index(support, output.shape)
        dense = len(support) <= DENSE
        columns = (first[:, None, cells[0]] * second[None, :, cells[1]])[seen] if dense else None  # (N, S)
        x = np.maximum(best.ravel()[support], 1e-8 / size)
        x /= x.sum()
        z = np.maximum(1.0 - c.ravel()[support], 1e-6)
        full = np.zeros_like(output)
        for _ in range(MAX_STEPS):
            full[cells] = x
            r = first @ full @ second.T
            if not (r[seen] > 0.0).all():
                break  # the support is too small for some block; mixing below repairs that
            w = np.divide(law, r, out=np.zeros_like(law), where=seen)
            gradient = 1.0 - (first.T @ w @ second)[cells]
            mu = float(x @ z) / len(x)
            violation = float(np.abs(gradient - z).max())
            if (mu * len(x) < 0.01 * tol and violation < 1e-9) or effort <= 0:
                break
            goal = (0.1 if violation < 0.5 else 0.5) * mu / x
            weights = np.divide(w, r, out=np.zeros_like(law), where=seen)
            if columns is not None:
                step = _dense_step(columns, weights[seen], z / x, goal - gradient)
            else:
                most = min(MAX_GRADIENT_STEPS, effort)
                step, spent = _gradient_step(first, second, cells, weights, z / x, goal - gradient, most)
                effort -= spent
            step_z = goal - z - z / x * step
            x = x + _to_boundary(x, step) * step
            z = z + _to_boundary(z, step_z) * step_z
        q = np.zeros_like(output)
        q[cells] = x / x.sum()
        improved = False
        for eps in (0.0, 1e-11, 1e-9, 1e-7):
            mixed = (1.0 - eps) * q + eps / size
            value, lower, ratio, _ = evaluate(mixed)
            best_lower = max(best_lower, lower)
            if value < best_value:
                best_value, best, improved = value, mixed, True
            if np.isfinite(value) and (eps == 0.0 or not np.isfinite(best_value)):
                c = ratio
        if best_value - best_lower <= tol or not improved or effort <= 0:
            break
    return best, best_lower, best_value
