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
def innovations(
    transition: FloatArray, read_out: FloatArray, gains: FloatArray, age: IntArray, observed: FloatArray
) -> FloatArray:
    """(N, d) what each observation adds to its prediction, by a Kalman filter whose gains are known.

    Args:
        transition: (n, n) F of x' = F x + w.
        read_out: (d, n) H of y = H x + v.
        gains: (K, n, d) gain at the k-th tick of a sequence, the last one for all later ticks.
        age: (N,) ticks since the sequence began, 0 at its first one.
        observed: (N, d) y.
    """
    count, dim = observed.shape
    states = transition.shape[0]
    mean = np.zeros(states)
    moved = np.zeros(states)
    out = np.empty((count, dim))
    for t in range(count):
        for i in range(states):
            moved[i] = 0.0
            if age[t] > 0:
                for j in range(states):
                    moved[i] += transition[i, j] * mean[j]
        for k in range(dim):
            out[t, k] = observed[t, k]
            for i in range(states):
                out[t, k] -= read_out[k, i] * moved[i]
        gain = gains[min(age[t], gains.shape[0] - 1)]
        for i in range(states):
            mean[i] = moved[i]
            for k in range(dim):
                mean[i] += gain[i, k] * out[t, k]
    return out
