"""Compiled forward recursions of the auxiliary-channel bound. Importing this module imports numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@numba.njit(cache=True)
def log_outcome_likelihood(
    transition: FloatArray,
    initial: FloatArray,
    response: IntArray,
    first: FloatArray,
    later: FloatArray,
    outcome: IntArray,
    starts: Any,
    fold: IntArray,
) -> FloatArray:
    """Log q(y_t | y_1 ... y_{t-1}) in nats for each tick, by the forward recursion over the chain.

    Args:
        transition: (K, K) law of the latent.
        initial: (K,) law of the first latent of a sequence.
        response: (K,) f.
        first: (F, A, Y) channel of a sequence's first tick, per fold.
        later: (F, A, A, Y) channel given the previous and the present required response, per fold.
        outcome: (N,) y_t, -1 where it is not observed: then the tick only moves the chain on.
        starts: (N,) bool, the tick begins a sequence.
        fold: (N,) which channel a tick is scored with.

    Returns:
        (N,) log predictive probabilities, 0 where the outcome is not observed.
    """
    n = outcome.size
    states = initial.size
    belief = initial.copy()
    moved = np.empty(states)
    out = np.zeros(n)
    for t in range(n):
        y = outcome[t]
        h = fold[t]
        total = 0.0
        if starts[t]:
            for j in range(states):
                moved[j] = initial[j] if y < 0 else initial[j] * first[h, response[j], y]
                total += moved[j]
        else:
            for j in range(states):
                a = response[j]
                weight = 0.0
                if y < 0:
                    for i in range(states):
                        weight += belief[i] * transition[i, j]
                else:
                    for i in range(states):
                        weight += belief[i] * transition[i, j] * later[h, response[i], a, y]
                moved[j] = weight
                total += weight
        for j in range(states):
            belief[j] = moved[j] / total
        if y >= 0:
            out[t] = np.log(total)
    return out


@numba.njit(cache=True)
def filtered_symbols(
    transition: FloatArray,
    initial: FloatArray,
    response: IntArray,
    channel: FloatArray,
    outcome: IntArray,
    starts: Any,
) -> FloatArray:
    """(N, A) law of the required symbol given the outcomes up to its tick, by the forward recursion.

    Args:
        transition: (K, K) law of the latent.
        initial: (K,) law of the first latent of a sequence.
        response: (K,) f.
        channel: (A, Y) law of the outcome given the required symbol, no entry 0.
        outcome: (N,) y_t, -1 where it is not observed.
        starts: (N,) bool, the tick begins a sequence.
    """
    n = outcome.size
    states = initial.size
    belief = initial.copy()
    moved = np.empty(states)
    out = np.zeros((n, channel.shape[0]))
    for t in range(n):
        total = 0.0
        for j in range(states):
            if starts[t]:
                weight = initial[j]
            else:
                weight = 0.0
                for i in range(states):
                    weight += belief[i] * transition[i, j]
            if outcome[t] >= 0:
                weight *= channel[response[j], outcome[t]]
            moved[j] = weight
            total += weight
        for j in range(states):
            belief[j] = moved[j] / total
            out[t, response[j]] += belief[j]
    return out


@numba.njit(cache=True)
def kalman_log_likelihood(
    transition: FloatArray,
    noise: FloatArray,
    stationary: FloatArray,
    read_out: FloatArray,
    error: FloatArray,
    observed: FloatArray,
    starts: Any,
) -> FloatArray:
    """Log q(y_t | y_1 ... y_{t-1}) in nats of x' = F x + w, y = H x + v, by the Kalman filter.

    Args:
        transition: (n, n) F.
        noise: (n, n) covariance of w.
        stationary: (n, n) covariance of x, with which each sequence starts.
        read_out: (d, n) H.
        error: (d, d) covariance of v, positive definite.
        observed: (N, d) y.
        starts: (N,) bool.

    Returns:
        (N,) log predictive densities.
    """
    count, dim = observed.shape
    states = transition.shape[0]
    mean = np.zeros(states)
    cov = stationary.copy()
    out = np.empty(count)
    for t in range(count):
        if starts[t]:
            mean = np.zeros(states)
            cov = stationary.copy()
        else:
            mean = transition @ mean
            cov = transition @ cov @ transition.T + noise
        surprise = observed[t] - read_out @ mean
        spread = read_out @ cov @ read_out.T + error
        gain = np.linalg.solve(spread, read_out @ cov).T
        out[t] = -0.5 * (
            dim * np.log(2.0 * np.pi) + np.log(np.linalg.det(spread)) + surprise @ np.linalg.solve(spread, surprise)
        )
        mean = mean + gain @ surprise
        cov = cov - gain @ read_out @ cov
        cov = 0.5 * (cov + cov.T)
    return out
