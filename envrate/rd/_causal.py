"""Causal (nonanticipative) rates: what a system that may not wait for later letters needs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._types import Bracket

FloatArray = NDArray[np.float64]

LN2 = math.log(2.0)

#: Newton steps on one centre, and by how much the barrier falls from one centre to the next.
MAX_STEPS = 60
BARRIER_FALL = 0.2


def causal_gauss_markov(a: float, noise_variance: float, D: float) -> Bracket:  # noqa: N803 - the field's symbol
    """Causal rate of x' = a x + w under squared error, bits per letter: max(0, 1/2 log2(a^2 + noise_variance / D)).

    Args:
        a: any real; beyond 1 the process grows and no D is reached with less than log2|a| bits.
        noise_variance: of w, > 0.
        D: mean squared error, > 0.

    Source: Gorbunov and Pinsker 1974; Tatikonda, Sahai, Mitter 2004.
    """
    a = _checks.number("a", a)
    noise = _checks.number("noise_variance", noise_variance, 0.0, open_low=True)
    D = _checks.number("D", D, 0.0, open_low=True)  # noqa: N806
    rate = max(0.0, 0.5 * math.log2(a * a + noise / D))
    return Bracket(rate, rate, method="causal Gauss-Markov, closed form")


def causal_ornstein_uhlenbeck(D: float, *, variance: float = 1.0, timescale_ms: float = 1000.0) -> Bracket:  # noqa: N803
    """Causal rate of the Ornstein-Uhlenbeck process in continuous time, bits per second.

    Args:
        D: mean squared error, > 0.
        variance: of the process.
        timescale_ms: its correlation is exp(-lag / timescale).

    Returns:
        (variance / D - 1) / (timescale ln 2), the limit of `causal_gauss_markov` at a tick that goes to 0.
    """
    D = _checks.number("D", D, 0.0, open_low=True)  # noqa: N806
    variance = _checks.number("variance", variance, 0.0, open_low=True)
    timescale = _checks.number("timescale_ms", timescale_ms, 0.0, open_low=True)
    rate = max(0.0, (variance / D - 1.0) * 1000.0 / timescale / LN2)
    return Bracket(rate, rate, method="causal Ornstein-Uhlenbeck, closed form")


def causal_binary_markov(p: float, D: float) -> Bracket:  # noqa: N803
    """Causal rate of the binary symmetric Markov chain under Hamming distortion: h(p * D) - h(D) bits per letter.

    Args:
        p: probability of a change from letter to letter.
        D: largest error rate, in [0, 1/2].

    Source: Stavrou, Kourtellaris, Charalambous 2014; p * D = p (1 - D) + D (1 - p).
    """
    p = _checks.number("p", p, 0.0, 1.0)
    D = _checks.number("D", D, 0.0, 0.5)  # noqa: N806

    def h(x: float) -> float:
        return -sum(y * math.log2(y) for y in (x, 1.0 - x) if y > 0)

    rate = max(0.0, h(p * (1.0 - D) + D * (1.0 - p)) - h(D))
    return Bracket(rate, rate, method="causal binary symmetric Markov, closed form")


def causal_gauss_markov_vector(
    transition: ArrayLike,
    noise: ArrayLike,
    D: float,  # noqa: N803
    *,
    weight: ArrayLike | None = None,
    tol: float = 1e-10,
) -> Bracket:
    """Causal rate of the vector process x' = A x + w under squared error, bits per letter.

    Minimises over the error covariance P, with Q = A P A' + noise its prediction one letter on,

        1/2 log2 det(Q) / det(P)     subject to  P <= Q,  trace(weight P) <= D,

    the semidefinite program of Tanaka, Kim, Parrilo, Mitter 2017, eliminated down to P: the objective is convex, for
    det(Q) / det(P) = det(noise) det(P^-1 + A' noise^-1 A). The closed form called dynamic reverse water-filling is
    wrong in general for vectors (Stavrou, Tanaka, Tatikonda 2018) and is not used.

    Args:
        transition: (d, d) A; may be unstable.
        noise: (d, d) covariance of w, positive definite.
        D: weighted squared error, > 0.
        weight: (d, d) positive semidefinite; None is the identity.
        tol: width of the bracket, bits.

    Returns:
        Bracket by a barrier method: at a centre the value exceeds the minimum by at most (d + 1) times the barrier's
        weight (the Lagrange dual there), which is what is taken off for the lower end.

    Raises:
        ValueError: shapes that do not match, a noise covariance that is not positive definite.
    """
    a = _checks.finite_array("transition", transition, 2)
    w = _checks.finite_array("noise", noise, 2)
    d = len(a)
    if a.shape != (d, d) or w.shape != (d, d):
        raise ValueError(f"noise: expected two square matrices of one size, got {a.shape} and {w.shape}")
    if not np.allclose(w, w.T, atol=1e-12 * np.abs(w).max()):
        raise ValueError("noise: expected a symmetric matrix")
    smallest = float(np.linalg.eigvalsh(w)[0])
    if smallest <= 0:
        raise ValueError(f"noise: smallest eigenvalue {smallest:.6g}, expected a positive definite matrix")
    theta = np.eye(d) if weight is None else _checks.finite_array("weight", weight, 2)
    if theta.shape != (d, d) or not np.allclose(theta, theta.T) or np.linalg.eigvalsh(theta)[0] < -1e-12:
        raise ValueError(f"weight: expected a positive semidefinite ({d}, {d}) matrix, got shape {theta.shape}")
    D = _checks.number("D", D, 0.0, open_low=True)  # noqa: N806
    tol = _checks.number("tol", tol, 0.0, open_low=True)
    if float(np.abs(np.linalg.eigvals(a)).max()) < 1.0:
        from scipy.linalg import solve_discrete_lyapunov

        stationary = solve_discrete_lyapunov(a, w)
        if float(np.trace(theta @ stationary)) <= D:
            return Bracket(0.0, 0.0, method="D is at least the stationary variance")
    lower, upper = _barrier(a, w, theta, D, tol * LN2)
    return Bracket(max(0.0, lower / LN2), max(0.0, upper / LN2), method="causal Gauss-Markov, barrier method")


def _barrier(a: FloatArray, w: FloatArray, theta: FloatArray, D: float, tol: float) -> tuple[float, float]:  # noqa: N803
    """Bounds in nats on the minimum of 1/2 log det(Q) / det(P) under P <= Q and trace(theta P) <= D."""
    d = len(a)
    rows, columns = np.triu_indices(d)
    basis = np.zeros((len(rows), d, d))
    basis[np.arange(len(rows)), rows, columns] = 1.0
    basis[np.arange(len(rows)), columns, rows] = 1.0
    moved = a @ basis @ a.T  # how Q answers to P
    trace = np.einsum("ij,kij->k", theta, basis)

    def logdet(m: FloatArray) -> float:
        sign, value = np.linalg.slogdet(m)
        return float(value) if sign > 0 and np.linalg.eigvalsh(m)[0] > 0 else math.nan

    def value(p: FloatArray, mu: float) -> tuple[float, float]:
        """The objective, and the objective with its barriers; NaN outside."""
        q = a @ p @ a.T + w
        slack = D - float(np.trace(theta @ p))
        base = 0.5 * (logdet(q) - logdet(p))
        inside = math.log(slack) if slack > 0 else math.nan
        return base, base - mu * (logdet(q - p) + inside)

    # Small enough to satisfy both constraints.
    scale = min(0.5 * D / max(float(np.trace(theta)), 1e-300), 0.5 * float(np.linalg.eigvalsh(w)[0]))
    p, mu = scale * np.eye(d), 1.0
    lower, upper = -math.inf, math.inf
    while True:
        for _ in range(MAX_STEPS):
            q = a @ p @ a.T + w
            iq, ip, ig = np.linalg.inv(q), np.linalg.inv(p), np.linalg.inv(q - p)
            slack = D - float(np.trace(theta @ p))
            xq, xp, xg = iq @ moved, ip @ basis, ig @ (moved - basis)
            gradient = (
                0.5 * (np.trace(xq, axis1=1, axis2=2) - np.trace(xp, axis1=1, axis2=2))
                - mu * np.trace(xg, axis1=1, axis2=2)
                + mu * trace / slack
            )
            hessian = (
                0.5 * (np.einsum("kij,lji->kl", xp, xp) - np.einsum("kij,lji->kl", xq, xq))
                + mu * np.einsum("kij,lji->kl", xg, xg)
                + mu * np.outer(trace, trace) / slack**2
            )
            step = -np.linalg.solve(hessian, gradient)
            decrement = -float(gradient @ step)
            if decrement <= 1e-14:
                break
            change = np.einsum("k,kij->ij", step, basis)
            now, length = value(p, mu)[1], 1.0
            while length > 1e-12:
                trial = value(p + length * change, mu)[1]
                if not math.isnan(trial) and trial <= now - 0.1 * length * decrement + 1e-15 * abs(now):
                    break
                length *= 0.5
            else:
                break
            p = p + length * change
        reached, _ = value(p, mu)
        upper = min(upper, reached)
        # Off the exact centre the dual value is lower by about the decrement.
        lower = max(lower, reached - mu * (d + 1) - max(decrement, 0.0))
        if upper - lower <= tol or mu < 1e-15:
            return lower, upper
        mu *= BARRIER_FALL
