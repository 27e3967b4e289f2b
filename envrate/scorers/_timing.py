"""Strata of other benchmarks that are not scored by a profile: timing by a lag window, open answers by their share.

**Lag window** (`Stratum.method == "lag-window"`). The stratum's ticks are decision slots of `header.tick_ms` each, one
row per slot, required 1 where an event falls into the slot, else 0. A response names the slot in which it was made.
With Y_s(m1, m2) = 1 if the run responded in one of the slots s + m1 ... s + m2, the timing rate within l is the
largest credited rate of the binary source (required, Y) over 0 <= m1 <= m2 <= l / tick_ms. Its law is the stratum's
pmf, (1/2, 1/2) for a nominal demand, with the conditional frequencies P(Y = 0 | event) and P(Y = 1 | no event)
inside; so rare events weigh as much as the many slots without one. Y looks at responses only. The window is chosen on
the other half of the items (even and odd ones, in order of episode), and the counts of both halves are then added, so
that the choice among windows earns nothing.

**Share** (`method == "share"`). One row per open-ended answer, required 1; the rate is one nominal bit times the share
answered right, right meaning that the first response names symbol 1. Rows with required 0 are controls: the same
response held against another item's reference. With controls the share is corrected for chance as
(share - controls) / (1 - controls), at least 0, so that a constant answer earns nothing.

A lag of m slots counts as m * tick_ms: time within a slot is not resolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.scorers._outcome import _finder, outcomes
from envrate.trace import ACT, Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Fewer events (answers, in a share stratum) than this withhold the rate.
MIN_EVENTS = 10


@dataclass(frozen=True)
class StratumRate:
    """Rates of one stratum at each allowed latency; leading axis B where bootstrap weights were given.

    Args:
        bits: (L,) or (B, L) bits per slot, or per answer in a share stratum; NaN where `reason` says why.
        per_second: the same in bits/s: times `count`, over the run's exposure (`header.duration_ms`).
        demand: nominal bits per slot or answer.
        demand_per_second: the same in bits/s.
        count: slots, or answers, that were scored.
        events: slots with an event, or answers.
        reason: why `bits` is NaN; empty where it is a number.
        windows: (2, L, 2) lags m1, m2 in slots, used for the even and for the odd items; empty in a share stratum
            and where weights were given.
    """

    bits: FloatArray
    per_second: FloatArray
    demand: float
    demand_per_second: float
    count: int
    events: int
    reason: str = ""
    windows: IntArray | None = None


def items(trace: Trace) -> IntArray:
    """(E,) episodes that have a scored tick, rising: the axis of bootstrap weights."""
    return np.unique(trace.ticks["episode"][trace.ticks["scored"]])


def binary_rate(pmf: Sequence[float], miss: ArrayLike, false_alarm: ArrayLike) -> FloatArray:
    """Credited rate of a binary source: the least I(A; Y) with P(0|1) <= miss and P(1|0) <= false_alarm.

    The information of a binary channel falls in both error rates until they sum to 1, where it is 0; so the least is
    at the bounds, or 0 where they sum to 1 or more.

    Args:
        pmf: (2,) law of the required symbol.
        miss: P(Y = 0 | A = 1), any shape.
        false_alarm: P(Y = 1 | A = 0), broadcast against `miss`.

    Returns:
        Bits per letter, NaN where a frequency is.
    """
    p0, p1 = _checks.pmf("pmf", pmf)
    alpha, beta = np.broadcast_arrays(np.asarray(miss, dtype=np.float64), np.asarray(false_alarm, dtype=np.float64))
    spoken = p1 * (1 - alpha) + p0 * beta
    rate = _binary_entropy(spoken) - p1 * _binary_entropy(alpha) - p0 * _binary_entropy(beta)
    return np.where(alpha + beta >= 1.0, 0.0, np.maximum(rate, 0.0))


def _binary_entropy(p: FloatArray) -> FloatArray:
    inside = np.clip(p, 1e-300, 1.0)
    other = np.clip(1.0 - p, 1e-300, 1.0)
    return np.asarray(-(p * np.log2(inside) + (1.0 - p) * np.log2(other)))


def stratum_rate(
    trace: Trace, stratum: int, latencies_ms: Sequence[int] | IntArray, *, weights: ArrayLike | None = None
) -> StratumRate:
    """`timing_rate` or `share_rate`, by the stratum's method.

    Raises:
        ValueError: the stratum is scored by its profile, or as the two functions.
    """
    method = trace.header.strata[stratum].method
    if method == "profile":
        raise ValueError(f"stratum: {trace.header.strata[stratum].name!r} is scored by its profile")
    function = timing_rate if method == "lag-window" else share_rate
    return function(trace, stratum, latencies_ms, weights=weights)


def timing_rate(
    trace: Trace, stratum: int, latencies_ms: Sequence[int] | IntArray, *, weights: ArrayLike | None = None
) -> StratumRate:
    """Timing of events in slots by the label-free lag window; see the module.

    Args:
        trace: slots in `ticks`, rows of responses that name their slot.
        stratum: index into `trace.header.strata`; its pmf has two symbols.
        latencies_ms: (L,) allowed latencies.
        weights: (E,) or (B, E) weights of the items `items(trace)`, how often each was drawn by a bootstrap. The
            window is chosen anew for each draw; which half an item belongs to stays.

    Raises:
        ValueError: an alphabet other than {0, 1}, or weights of another length.
    """
    law = trace.header.strata[stratum].pmf
    if len(law) != 2:
        raise ValueError(f"stratum: a lag window needs the symbols 0 and 1, got {len(law)} of them")
    latencies = np.atleast_1d(np.asarray(latencies_ms, dtype=np.int64))
    widest = np.maximum(latencies, 0) // trace.header.tick_ms
    counts = _lag_counts(trace, stratum, int(widest.max(initial=0)))
    draw = _weights(weights, len(items(trace)))
    slots, events = int(counts.sizes.sum()), int(counts.sizes[:, 1].sum())
    reason = _few(events, "events") or _few(slots - events, "slots without an event")
    if not reason and not all(half.any() for half in counts.halves):
        reason = "one item only; choosing the window needs another half of the items"
    bits = np.full((len(draw), len(latencies)), np.nan)
    windows = np.zeros((2, len(latencies), 2), dtype=np.int64)
    if not reason:
        bits, windows = _cross_fitted(counts, law, draw, widest)
    demand = float(_binary_entropy(np.asarray(law[1])))
    return _result(trace, bits, weights, demand, slots, events, reason, windows)


@dataclass(frozen=True)
class _LagCounts:
    """Sufficient statistics of a lag-window stratum."""

    windows: IntArray  # (W, 2) m1, m2
    spoken: FloatArray  # (E, W, 2) slots with Y = 1, by required symbol
    sizes: FloatArray  # (E, 2) scored slots by required symbol
    halves: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # each (E,), of the items that have slots here


def _lag_counts(trace: Trace, stratum: int, widest: int) -> _LagCounts:
    """Counts of slots with a response in their window, per item and window of lags up to `widest`."""
    t, r = trace.ticks, trace.responses
    rows = np.flatnonzero(t["stratum"] == stratum)
    rows = rows[np.lexsort((t["onset_ms"][rows], t["episode"][rows]))]
    episode, number = t["episode"][rows], t["tick"][rows]
    n = len(rows)
    # Last row of each item, by row: a window never looks beyond its item.
    last = np.searchsorted(episode, episode, side="right") - 1
    spoke = np.zeros(n, dtype=bool)
    named = (r["kind"] == ACT) & (r["value"] != 0)
    slot = _finder(episode, number)(r["episode"][named], r["tick"][named])
    spoke[slot[slot >= 0]] = True
    # upcoming[s]: the first slot from s on in which there was a response; n if none.
    upcoming = np.full(n + 1, n, dtype=np.int64)
    upcoming[:n] = np.minimum.accumulate(np.where(spoke, np.arange(n), n)[::-1])[::-1]
    scored = np.flatnonzero(t["scored"][rows])
    axis = items(trace)
    item = np.searchsorted(axis, episode[scored])
    required = t["required"][rows][scored]
    cell = item * 2 + required
    sizes = np.bincount(cell, minlength=2 * len(axis)).reshape(-1, 2).astype(np.float64)
    windows = np.array([(m1, m2) for m2 in range(widest + 1) for m1 in range(m2 + 1)], dtype=np.int64)
    spoken = np.empty((len(axis), len(windows), 2))
    for w, (m1, m2) in enumerate(windows.tolist()):
        hit = upcoming[np.minimum(scored + m1, n)] <= np.minimum(scored + m2, last[scored])
        spoken[:, w] = np.bincount(cell[hit], minlength=2 * len(axis)).reshape(-1, 2)
    here = sizes.sum(axis=1) > 0
    rank = np.cumsum(here) - 1
    return _LagCounts(windows, spoken, sizes, (here & (rank % 2 == 0), here & (rank % 2 == 1)))


def _cross_fitted(
    counts: _LagCounts, law: Sequence[float], draw: FloatArray, widest: IntArray
) -> tuple[FloatArray, IntArray]:
    """(B, L) rate with the window of each half chosen on the other, and the windows (2, L, 2) of the first draw."""
    spoken, sizes, rates = [], [], []
    for members in counts.halves:
        weight = draw[:, members]
        spoken.append(np.tensordot(weight, counts.spoken[members], axes=(1, 0)))  # (B, W, 2)
        sizes.append(weight @ counts.sizes[members])  # (B, 2)
        rates.append(np.nan_to_num(_rate_of(law, spoken[-1], sizes[-1][:, None]), nan=0.0))
    bits = np.empty((len(draw), len(widest)))
    chosen = np.empty((2, len(widest), 2), dtype=np.int64)
    rows = np.arange(len(draw))
    for level, limit in enumerate(widest):
        allowed = counts.windows[:, 1] <= limit
        total = np.zeros((len(draw), 2))
        for half in (0, 1):  # where several windows are best, the one that ends first
            best = np.argmax(np.where(allowed, rates[1 - half], -1.0), axis=1)
            total += spoken[half][rows, best]
            chosen[half, level] = counts.windows[best[0]]
        bits[:, level] = _rate_of(law, total, sizes[0] + sizes[1])
    return bits, chosen


def _rate_of(law: Sequence[float], spoken: FloatArray, sizes: FloatArray) -> FloatArray:
    """Credited rate from counts whose last axis is the required symbol; NaN where a symbol never came up."""
    unknown = np.full(np.broadcast_shapes(spoken.shape, sizes.shape), np.nan)
    share = np.divide(spoken, sizes, out=unknown, where=sizes > 0)
    return binary_rate(law, 1.0 - share[..., 1], share[..., 0])


def share_rate(
    trace: Trace, stratum: int, latencies_ms: Sequence[int] | IntArray, *, weights: ArrayLike | None = None
) -> StratumRate:
    """Open-ended answers: one nominal bit times the share right, corrected for chance by the controls; see the module.

    Args:
        trace: one row of `ticks` per answer (required 1) and per control (required 0).
        stratum: index into `trace.header.strata`.
        latencies_ms: (L,) allowed latencies; an answer later than that is not right.
        weights: (E,) or (B, E) weights of the items `items(trace)`.

    Raises:
        ValueError: weights of another length.
    """
    t = trace.ticks
    found = outcomes(trace)
    axis = items(trace)
    rows = np.flatnonzero((t["stratum"] == stratum) & t["scored"])
    latencies = np.atleast_1d(np.asarray(latencies_ms, dtype=np.int64))
    right = (found.first_value[rows] == 1)[:, None] & (found.first_ms[rows][:, None] <= latencies)
    cell = np.searchsorted(axis, t["episode"][rows]) * 2 + (t["required"][rows] != 0)
    size = np.bincount(cell, minlength=2 * len(axis)).reshape(-1, 2).astype(np.float64)
    hits = np.stack([np.bincount(cell, column, 2 * len(axis)).reshape(-1, 2) for column in right.T])  # (L, E, 2)
    draw = _weights(weights, len(axis))
    answers = int(size[:, 1].sum())
    reason = _few(answers, "answers")
    bits = np.full((len(draw), len(latencies)), np.nan)
    if not reason:
        total = draw @ size  # (B, 2)
        got = np.einsum("be,leq->blq", draw, hits)
        share = np.divide(got, total[:, None], out=np.zeros_like(got), where=total[:, None] > 0)
        chance, open_ = share[..., 0], 1.0 - share[..., 0]
        excess = np.maximum(share[..., 1] - chance, 0.0)
        bits = np.divide(excess, open_, out=np.zeros_like(excess), where=open_ > 0)
        bits[total[:, 1] == 0] = np.nan
    return _result(trace, bits, weights, 1.0, answers, answers, reason, None)


def _weights(weights: ArrayLike | None, count: int) -> FloatArray:
    """(B, E) weights; all ones without any."""
    if weights is None:
        return np.ones((1, count))
    array = np.atleast_2d(_checks.finite_array("weights", weights))
    if array.ndim != 2 or array.shape[1] != count or (array < 0).any():
        raise ValueError(f"weights: expected numbers >= 0 of shape (B, {count}), one per item, got shape {array.shape}")
    return array


def _few(count: int, what: str) -> str:
    return "" if count >= MIN_EVENTS else f"{count} {what}, expected at least {MIN_EVENTS}"


def _result(
    trace: Trace,
    bits: FloatArray,
    weights: ArrayLike | None,
    demand: float,
    count: int,
    events: int,
    reason: str,
    windows: IntArray | None,
) -> StratumRate:
    """The rate in both units, without the axis of draws where no weights were given."""
    single = weights is None or np.ndim(weights) == 1
    bits = bits[0] if single else bits
    seconds = trace.header.duration_ms / 1000.0
    scale = count / seconds if seconds > 0 else np.nan
    return StratumRate(
        bits=bits,
        per_second=bits * scale,
        demand=demand,
        demand_per_second=demand * scale,
        count=count,
        events=events,
        reason=reason or ("" if seconds > 0 else "the run has no exposure, so no rate per second"),
        windows=windows if weights is None and not reason else None,
    )
