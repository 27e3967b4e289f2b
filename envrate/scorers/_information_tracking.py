"""Information of a tracking run: the linear-Gaussian auxiliary channel, with the Kalman filter's likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.latents import GaussianProcess
from envrate.scorers._information import MIN_TICKS, MS_PER_S, Z95, Information, _folds, _nothing, _standard_error
from envrate.trace import ACT, Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Variance below this share of the latent's makes the channel's density degenerate.
MIN_NOISE = 1e-9
#: The filter's covariance has settled when a tick changes it by less than this share; ticks after which it must have.
SETTLED, MAX_SETTLING = 1e-14, 4096


def tracking_information(trace: Trace, latency_ms: int | None = None) -> Information:
    """I(l) of a tracking run, bits per second, from below.

    The answer for the tick that began at time t is the value in force at t + l. The auxiliary channel is
    y = b + G z + noise, fitted by least squares on the other half of the run; q(y^n) comes from the Kalman filter over
    the latent's own state space.

    Args:
        trace: a tracking run.
        latency_ms: l; None is the horizon.

    Returns:
        The bound, withheld with a reason where the kernel has no state space of finite order or nothing was said.

    Raises:
        ValueError: a trace of symbols, or one without a task.
    """
    if not trace.is_tracking:
        raise ValueError("trace: its responses are symbols; use information(trace)")
    latency = trace.header.horizon_ms if latency_ms is None else latency_ms
    latency = _checks.integer("latency_ms", latency, 0, trace.header.horizon_ms, "ms")
    law = trace.task.latent
    if not isinstance(law, GaussianProcess) or law.state_order is None:
        return _nothing("the latent's kernel has no state space of finite order, so its Kalman likelihood is not exact")
    t = trace.ticks
    order = np.lexsort((t["tick"], t["episode"]))
    answer, given = values_in_force(trace, latency)
    kept = (t["scored"] & given)[order]
    episode = t["episode"][order][kept]
    tick = t["tick"][order][kept]
    # A gap breaks a sequence: what follows starts anew from the stationary law.
    starts = np.append(True, (np.diff(episode) != 0) | (np.diff(tick) != 1))[: len(episode)]
    return linear_gaussian_information(
        law,
        t["required"][order][kept],
        answer[order][kept],
        episode,
        starts,
        tick_ms=trace.header.tick_ms,
    )


def values_in_force(trace: Trace, latency_ms: int) -> tuple[FloatArray, BoolArray]:
    """(N, d) the value that was in force at each tick's onset + l, and (N,) whether there was one yet."""
    t, r = trace.ticks, trace.responses
    acts = np.flatnonzero(r["kind"] == ACT)
    values = np.asarray(r["value"], dtype=np.float64).reshape(len(r["time_ms"]), -1)
    span = int(max(r["time_ms"].max(initial=0), t["onset_ms"].max(initial=0) + latency_ms)) + 1
    order = acts[np.lexsort((r["time_ms"][acts], r["episode"][acts]))]
    keys = r["episode"][order] * span + r["time_ms"][order]
    wanted = t["episode"] * span + t["onset_ms"] + latency_ms
    place = np.searchsorted(keys, wanted, side="right") - 1
    given = place >= 0
    given[given] = r["episode"][order[place[given]]] == t["episode"][given]
    out = np.zeros(t["required"].shape)
    out[given] = values[order[place[given]]]
    return out, given


def linear_gaussian_information(
    law: GaussianProcess, latent: FloatArray, answer: FloatArray, episode: IntArray, starts: BoolArray, *, tick_ms: int
) -> Information:
    """The bound for columns of ticks in order of time.

    Args:
        law: a process with a state space of finite order.
        latent: (N, d) z_t.
        answer: (N, e) y_t.
        episode: (N,) which half of the run a tick belongs to goes by these.
        starts: (N,) the tick begins a sequence without gaps.
        tick_ms: the tick.
    """
    n = len(latent)
    if n < max(MIN_TICKS, 4 * (latent.shape[1] + answer.shape[1]) if n else MIN_TICKS):
        return _nothing(f"{n} ticks, at least {MIN_TICKS} are needed", n)
    space = law.state_space(tick_ms)
    d, p = law.num_outputs, len(space.transition)
    covariance = law.output_covariance
    transition: FloatArray = np.kron(np.eye(d), space.transition).astype(np.float64)
    noise: FloatArray = np.kron(covariance, space.noise).astype(np.float64)
    stationary: FloatArray = np.kron(covariance, space.stationary).astype(np.float64)
    read = np.kron(np.eye(d), space.output.reshape(1, p))
    fold = _folds(episode, np.append(True, episode[1:] != episode[:-1]))
    gains = np.empty(n)
    for h in range(2):
        other, mine = fold != h, fold == h
        design = np.column_stack([np.ones(int(other.sum())), latent[other]])
        solution, *_ = np.linalg.lstsq(design, answer[other], rcond=None)
        offset, gain = solution[0], solution[1:].T  # (e,), (e, d)
        left = answer[other] - design @ solution
        error = left.T @ left / max(1, len(left) - design.shape[1])
        floor = MIN_NOISE * max(float(np.trace(covariance)) / d, np.finfo(float).tiny)
        error = 0.5 * (error + error.T) + floor * np.eye(len(error))
        y = answer[mine] - offset
        told = _gaussian_log_density(y - latent[mine] @ gain.T, error)
        begins = starts[mine].copy()
        begins[:1] = True
        begins[1:] |= np.diff(np.flatnonzero(mine)) > 1
        predicted = kalman_log_likelihood(transition, noise, stationary, gain @ read, error, y, begins)
        gains[mine] = (told - predicted) / np.log(2.0)
    per_second = MS_PER_S / tick_ms
    rate, half = float(gains.mean()) * per_second, Z95 * _standard_error(gains) * per_second
    return Information(rate, rate - half, rate + half, "linear-Gaussian", rate, float("nan"), n)


def kalman_log_likelihood(
    transition: FloatArray,
    noise: FloatArray,
    stationary: FloatArray,
    read_out: FloatArray,
    error: FloatArray,
    observed: FloatArray,
    starts: BoolArray,
) -> FloatArray:
    """(N,) log q(y_t | y_1 ... y_{t-1}) in nats of x' = F x + w, y = H x + v, by the Kalman filter.

    Args:
        transition: (n, n) F.
        noise: (n, n) covariance of w.
        stationary: (n, n) covariance of x, with which each sequence starts.
        read_out: (d, n) H.
        error: (d, d) covariance of v, positive definite.
        observed: (N, d) y.
        starts: (N,) the tick begins a sequence; the first one does.
    """
    from envrate.scorers._information_kernels import innovations

    begun = np.flatnonzero(starts)
    age = np.arange(len(observed)) - begun[np.cumsum(starts) - 1]
    # The covariances do not depend on the data, and settle: only the first few ticks of a sequence differ.
    gains, spreads = [], []
    covariance = stationary
    for _ in range(min(MAX_SETTLING, int(age.max()) + 1)):
        spread = read_out @ covariance @ read_out.T + error
        gain = np.linalg.solve(spread, read_out @ covariance).T
        gains.append(gain)
        spreads.append(spread)
        after = covariance - gain @ read_out @ covariance
        following = transition @ after @ transition.T + noise
        settled = np.abs(following - covariance).max() <= SETTLED * np.abs(stationary).max()
        covariance = 0.5 * (following + following.T)
        if settled:
            break
    surprise = innovations(transition, read_out, np.stack(gains), age, observed)
    stage = np.minimum(age, len(gains) - 1)
    inverse = np.linalg.inv(np.stack(spreads))
    logdet = np.linalg.slogdet(np.stack(spreads))[1]
    square = np.einsum("td,tde,te->t", surprise, inverse[stage], surprise)
    return np.asarray(-0.5 * (observed.shape[1] * np.log(2.0 * np.pi) + logdet[stage] + square))


def _gaussian_log_density(x: FloatArray, covariance: FloatArray) -> FloatArray:
    """(N,) log density of rows of x under a centred normal law, nats."""
    _, logdet = np.linalg.slogdet(covariance)
    solved = np.linalg.solve(covariance, x.T).T
    return np.asarray(-0.5 * (x.shape[1] * np.log(2.0 * np.pi) + logdet + (x * solved).sum(axis=1)))
