"""Tracking: real-valued responses at squared error; distortion, credited throughput, Kalman observer, frontier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate.latents import Product
from envrate.scorers import _bootstrap
from envrate.scorers._information_tracking import values_in_force
from envrate.scorers._tally import check_latencies
from envrate.task import Task
from envrate.trace import Trace

if TYPE_CHECKING:
    from envrate.scorers._frontier import Frontier, Point

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Ticks before and after a tick that the observer takes into account.
REACH = 12
#: Fewer episodes than this are cut into blocks of ticks.
MIN_EPISODES = 20
#: Ticks per block.
BLOCK_TICKS = 50
#: Fewer scored ticks than this withhold the rate.
MIN_TICKS = 10


def _latencies(trace: Trace, latencies_ms: Sequence[int] | IntArray | None) -> IntArray:
    """Checked latencies; None takes every multiple of the micro-turn up to the horizon."""
    if not trace.is_tracking:
        raise ValueError("trace: its responses are symbols; expected a run on a tracking task")
    if latencies_ms is None:
        return np.arange(0, trace.header.horizon_ms + 1, trace.header.micro_turn_ms)
    return np.asarray(check_latencies(latencies_ms, trace.header), dtype=np.int64)


def squared_errors(trace: Trace, latencies_ms: IntArray) -> FloatArray:
    """(N, L) |z_t - y(t + l)|^2 of the scored ticks; before the first response y is the mean, 0."""
    scored = trace.ticks["scored"]
    columns = []
    for latency in latencies_ms:
        answer, _ = values_in_force(trace, int(latency))
        columns.append(((trace.ticks["required"] - answer) ** 2).sum(axis=1)[scored])
    return np.stack(columns, axis=1)


def tracking_distortion(trace: Trace, latencies_ms: Sequence[int] | IntArray | None = None) -> FloatArray:
    """D(l) = mean |z(t) - y(t + l)|^2 over the scored ticks t, where y is the response in force at onset + l.

    Args:
        trace: a tracking run.
        latencies_ms: allowed latencies; None takes every multiple of the micro-turn up to the horizon.

    Returns:
        (L,) raw distortion, summed over outputs; NaN where no tick was scored.
    """
    latencies = _latencies(trace, latencies_ms)
    errors = squared_errors(trace, latencies)
    return np.asarray(errors.mean(axis=0)) if len(errors) else np.full(len(latencies), np.nan)


def tracking_rate(task: Task, distortion: ArrayLike) -> FloatArray:
    """C = R(D) of the task's Gaussian process in bits/s at each distortion: the least rate that agrees with it.

    Args:
        task: a tracking task.
        distortion: any shape, squared error summed over outputs; NaN gives NaN, 0 gives infinity.

    Returns:
        Rates, same shape, within 1e-6 bits/s of `Task.demand`.
    """
    from envrate._demand_gaussian import rates

    array = np.asarray(distortion, dtype=np.float64)
    return rates(task, array.ravel()).reshape(array.shape)


def credited(task: Task, distortion: FloatArray) -> FloatArray:
    """C in bits/s at each distortion: R(max(D, D*)), at most the demand: quadrature may put it a hair above."""
    return np.minimum(tracking_rate(task, np.maximum(distortion, task.tolerance)), task.demand(task.tolerance).upper)


def kalman_distortion(trace: Trace, latencies_ms: Sequence[int] | IntArray | None = None) -> FloatArray:
    """(L,) mean squared error of the best estimate of z_t from all values that the link had delivered by onset + l.

    The exact conditional variance of a Gaussian given the delivered ticks from 12 before to 12 after t (for a Markov
    process that is all there is to know); ticks count as delivered when an observation showed them.
    """
    latencies = _latencies(trace, latencies_ms)
    t, law, tick_ms = trace.ticks, trace.task.latent, trace.header.tick_ms
    order = np.lexsort((t["tick"], t["episode"]))
    episode, onset, delivered = (t[name][order] for name in ("episode", "onset_ms", "delivered_ms"))
    scored = t["scored"][order]
    n = len(order)
    shifts = np.arange(-REACH, REACH + 1)
    index = np.clip(np.arange(n)[:, None] + shifts, 0, n - 1)
    there = (np.arange(n)[:, None] + shifts == index) & (episode[index] == episode[:, None])
    when = np.where(there & (delivered[index] >= 0), delivered[index], np.iinfo(np.int64).max)
    weight = 1 << np.arange(len(shifts), dtype=np.int64)
    parts = law.processes if isinstance(law, Product) else (law,)
    known: dict[int, float] = {}
    out = []
    for latency in latencies:
        seen = (when <= (onset + latency)[:, None]) @ weight
        values, back = np.unique(seen[scored], return_inverse=True)
        for code in values.tolist():
            if code not in known:
                at = shifts[(code & weight) > 0]
                known[code] = sum(
                    float(np.trace(part.output_covariance)) * _left(part.correlation(2 * REACH + 1, tick_ms), at)
                    for part in parts
                )
        left = np.array([known[code] for code in values.tolist()])
        out.append(float(left[back].mean()) if len(left) else math.nan)
    return np.asarray(out)


def _left(correlation: FloatArray, at: IntArray) -> float:
    """Variance of a unit process at 0 given its values at the shifts `at`."""
    if not len(at):
        return 1.0
    if (at == 0).any():
        return 0.0
    inside = correlation[np.abs(at[:, None] - at[None, :])]
    cross = correlation[np.abs(at)]
    explained = float(cross @ np.linalg.lstsq(inside, cross, rcond=None)[0])
    return max(0.0, 1.0 - explained)


def _blocks(trace: Trace, errors: FloatArray) -> FloatArray:
    """(B, L) block means of the errors: episodes, or runs of ticks where episodes are few."""
    scored = trace.ticks["scored"]
    episode, tick = trace.ticks["episode"][scored], trace.ticks["tick"][scored]
    label = episode if len(np.unique(episode)) >= MIN_EPISODES else episode * (1 << 32) + tick // BLOCK_TICKS
    values, back = np.unique(label, return_inverse=True)
    sums = np.zeros((len(values), errors.shape[1]))
    np.add.at(sums, back, errors)
    return sums / np.bincount(back)[:, None]


@dataclass(frozen=True)
class Distortions:
    """Squared errors of a tracking run within each latency, least over the lags up to it, with resamples."""

    raw: FloatArray  # (L,) at each lag itself
    best: FloatArray  # (L,)
    draws: FloatArray  # (R, L)
    influence: FloatArray  # (B, L)


def distortions(trace: Trace, latencies_ms: IntArray, *, seed: int, resamples: int) -> Distortions:
    """Errors and their resamples; at least one tick has to be scored."""
    errors = squared_errors(trace, latencies_ms)
    raw, blocks = errors.mean(axis=0), _blocks(trace, errors)
    weights = _bootstrap.weights(len(blocks), resamples, np.random.default_rng(seed))
    place = np.array([int(np.argmin(raw[: k + 1])) for k in range(len(raw))])
    return Distortions(
        raw=raw,
        best=np.minimum.accumulate(raw),
        draws=np.minimum.accumulate(weights @ blocks / len(blocks), axis=1),
        influence=(blocks - blocks.mean(axis=0))[:, place] / max(1, len(blocks) - 1),
    )


def too_few(trace: Trace) -> str:
    """Why no rate can be had of a tracking run; empty where one can."""
    scored = int(trace.ticks["scored"].sum())
    return f"{scored} ticks, expected at least {MIN_TICKS}" if scored < MIN_TICKS else ""


def tracking_frontier(
    trace: Trace, latencies_ms: Sequence[int] | IntArray | None = None, *, seed: int = 0, resamples: int = 2000
) -> Frontier:
    """The frontier of a tracking run; see `envrate.scorers.frontier`.

    The answer for time t may be read off at any lag up to l, so the distortion within l is the least over the lags up
    to l, and C(l) = R(max(D(l), D*)): a task that tolerates D* credits no bits beyond it (`rate_equivalent` has R(D(l))
    itself). The gap is to R(D*), and the system keeps up when D(l) is shown to be at most D*.
    """
    from envrate.scorers._frontier import NO, NOT_SHOWN, OUTPUT_ONLY, YES, Frontier, Point

    latencies = _latencies(trace, latencies_ms)
    task, demand = trace.task, trace.header.demand
    events = int(trace.ticks["scored"].sum())
    censored = len(trace) - events
    if reason := too_few(trace):
        points = [_withheld(int(level), events, censored, reason) for level in latencies]
        return Frontier(header=trace.header, points=tuple(points), notes=trace.header.notes, method="Gaussian R(D)")
    found = distortions(trace, latencies, seed=seed, resamples=resamples)
    best = found.best
    low, high = _bootstrap.bca(best, found.draws, found.influence)
    low, high = np.clip(low, 0.0, best), np.maximum(high, best)
    rate, rate_low, rate_high, raw_rate = (credited(task, d) for d in (best, high, low, found.raw))
    equivalent = tracking_rate(task, best)
    points = []
    for k, level in enumerate(latencies):
        keeps = YES if high[k] <= task.tolerance else NO if low[k] > task.tolerance else NOT_SHOWN
        points.append(
            Point(
                latency_ms=int(level),
                reading=OUTPUT_ONLY,
                credited=float(rate[k]),
                credited_low=float(rate_low[k]),
                credited_high=float(rate_high[k]),
                gap=demand.upper - float(rate[k]),
                gap_low=demand.upper - float(rate_high[k]),
                gap_high=demand.upper - float(rate_low[k]),
                detection=math.nan,
                identification=math.nan,
                severity=float(best[k]),
                rate_equivalent=float(equivalent[k]),
                keeps_up=keeps,
                events=events,
                censored=censored,
                reason="",
                raw=float(raw_rate[k]),
                severity_low=float(low[k]),
                severity_high=float(high[k]),
            )
        )
    notes = (*trace.header.notes, f"the demand is R(D*) at D* = {task.tolerance:g}, and no bits beyond it are credited")
    return Frontier(header=trace.header, points=tuple(points), notes=notes, method="Gaussian R(D)")


def _withheld(latency_ms: int, events: int, censored: int, reason: str) -> Point:
    from envrate.scorers._frontier import NOT_SHOWN, OUTPUT_ONLY, Point

    names = ("credited", "credited_low", "credited_high", "gap", "gap_low", "gap_high")
    others = ("detection", "identification", "severity", "rate_equivalent")
    nothing = {name: math.nan for name in (*names, *others)}
    return Point(
        latency_ms=latency_ms,
        reading=OUTPUT_ONLY,
        keeps_up=NOT_SHOWN,
        events=events,
        censored=censored,
        reason=reason,
        **nothing,
    )
