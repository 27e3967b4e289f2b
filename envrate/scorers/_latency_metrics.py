"""Latency metrics of simultaneous translation, for a list of delays or for a whole Trace.

The delay d_i of target unit i is how much of the source had been read when it was emitted, in ms (or in words);
S is the source's length in the same unit, T the reference's length in target units, n the number of units emitted.

    AL    mean over i <= tau of d_i - (i - 1) S / T, tau the first i with d_i >= S   (Ma et al. 2019)
    LAAL  the same with max(n, T) for T                                               (Papi et al. 2022)
    DAL   the same over all i with n for T and d'_i = max(d_i, d'_{i-1} + S / n)      (Cherry & Foster 2019)
    AP    sum of d_i / (S T)                                                          (Cho & Esipova 2016)
    ATD   mean of end(target token) - end(source token paired with it)                (Kano et al. 2023)
    YAAL  LAAL's terms over the d_i < S only                                          (Polak et al. 2025)

All of them look at emissions alone: none asks whether the answer was right, and each but DAL and AP leaves some
emissions out. docs/numbers/latency-metrics.md says how that misleads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.trace import ACT, Trace

FloatArray = NDArray[np.float64]

#: Length of one token of speech in ATD, ms.
ATD_TOKEN_MS = 300.0


def _delays(delays: ArrayLike, source_length: float) -> FloatArray:
    array = _checks.finite_array("delays", delays, 1)
    if array.size == 0:
        raise ValueError("delays: expected at least one emission, got none; the metric is not defined for silence")
    _checks.number("source_length", source_length, 0.0, open_low=True)
    return array


def _lagging(d: FloatArray, step: float) -> FloatArray:
    """d_i - (i - 1) step."""
    return d - step * np.arange(d.size)


def _average_lagging(d: FloatArray, source_length: float, target_length: float) -> float:
    if d[0] > source_length:
        return float(d[0])
    reached = np.flatnonzero(d >= source_length)
    tau = int(reached[0]) + 1 if reached.size else d.size
    return float(_lagging(d, source_length / target_length)[:tau].mean())


def average_lagging(delays: ArrayLike, source_length: float, reference_length: int) -> float:
    """AL: how far the output lags behind an ideal one that keeps step with the source, up to the source's end.

    Args:
        delays: (n,) d_i, source read at each emission.
        source_length: S, in the delays' unit.
        reference_length: T, target units of the reference.

    Returns:
        AL in the delays' unit; d_1 where the first emission came after the source's end.

    Raises:
        ValueError: no emission, or a length that is not above 0.
    """
    d = _delays(delays, source_length)
    return _average_lagging(d, source_length, _checks.integer("reference_length", reference_length, 1))


def length_adaptive_average_lagging(delays: ArrayLike, source_length: float, reference_length: int) -> float:
    """LAAL: AL with max(n, T) for T, so that a longer output is not rewarded. Arguments as `average_lagging`."""
    d = _delays(delays, source_length)
    return _average_lagging(d, source_length, max(d.size, _checks.integer("reference_length", reference_length, 1)))


def differentiable_average_lagging(delays: ArrayLike, source_length: float) -> float:
    """DAL: every unit is charged at least S / n of time, so a burst at the end cannot hide a delay.

    wait-k on equal lengths gives k exactly, an offline system S.
    """
    d = _delays(delays, source_length)
    step = source_length / d.size
    # d'_i = max(d_i, d'_{i-1} + step) is a running maximum once the ramp is taken off.
    return float(np.maximum.accumulate(_lagging(d, step)).mean())


def average_proportion(delays: ArrayLike, source_length: float, reference_length: int) -> float:
    """AP: mean share of the source read per reference unit; no unit, 1 for an offline system of the right length."""
    d = _delays(delays, source_length)
    return float(d.sum() / (source_length * _checks.integer("reference_length", reference_length, 1)))


def yet_another_average_lagging(delays: ArrayLike, source_length: float, reference_length: int) -> float:
    """YAAL: lagging of the units emitted before the source's end, with max(n, T) for T.

    Returns:
        YAAL in the delays' unit; NaN where no unit came before the source's end (its authors drop such instances).
    """
    d = _delays(delays, source_length)
    target = max(d.size, _checks.integer("reference_length", reference_length, 1))
    early = d < source_length
    if not early[0]:
        return float("nan")
    return float(_lagging(d, source_length / target)[early].mean())


def average_token_delay(delays: ArrayLike, *, token: float = ATD_TOKEN_MS, compute: ArrayLike | None = None) -> float:
    """ATD for written output: each target token against the source token that a synchronous speaker would be at.

    The source between two emission moments is a chunk, cut into tokens of length `token`, the last one shorter.
    Target token i is paired with source token i less the tokens by which the target was ahead of the source when its
    chunk began, and with none later than what had been read. A written token has no length of its own.

    Args:
        delays: (n,) d_i, not decreasing.
        token: length of a source token in the delays' unit: 300 ms of speech.
        compute: (n,) extra time per token, for the computation-aware variant; None is none.

    Returns:
        ATD in the delays' unit.
    """
    d = _delays(delays, 1.0)
    if (np.diff(d) < 0).any() or d[0] < 0:
        raise ValueError("delays: expected values >= 0 in the order of emission, got a decrease")
    extra = np.zeros(d.size) if compute is None else _checks.finite_array("compute", compute, 1)
    if extra.size != d.size:
        raise ValueError(f"compute: expected {d.size} times, one per delay, got {extra.size}")
    moments, chunk, sizes = np.unique(d, return_inverse=True, return_counts=True)
    chunk_length = np.diff(moments, prepend=0.0)
    source_tokens = np.ceil(chunk_length / token).astype(np.int64)
    source_before = np.concatenate([[0], np.cumsum(source_tokens)])
    target_before = np.concatenate([[0], np.cumsum(sizes)])
    # Chunks do not share a token, so a source token ends a whole number of tokens into its chunk, or with it.
    starts = np.concatenate([[0.0], moments[:-1]])
    ends = [0.0]
    for start, length, count in zip(starts, chunk_length, source_tokens, strict=True):
        ends.extend(start + min(length, token * (k + 1)) for k in range(int(count)))
    order = np.arange(1, d.size + 1)
    ahead = np.maximum(0, target_before[chunk] - source_before[chunk])
    paired = np.minimum(order - ahead, source_before[chunk + 1])
    spoken = np.empty(d.size)
    previous = 0.0
    for i in range(d.size):
        previous = max(d[i], previous) + extra[i]
        spoken[i] = previous
    return float((spoken - np.asarray(ends)[paired]).mean())


@dataclass(frozen=True)
class LatencyMetrics:
    """Corpus means over episodes, each episode one utterance, as the tools of that field take them.

    `values` and `computation_aware` map a metric's name to its value, ms (AP has no unit); NaN where it is defined in
    no episode. `reasons` says why for each NaN and for each metric that left episodes out.
    """

    values: dict[str, float]
    computation_aware: dict[str, float]
    episodes: int  # with at least one required response
    silent: int  # of those, without an emission: left out, as those tools do
    reasons: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; NaN becomes None."""
        clean = [{k: None if np.isnan(v) else v for k, v in d.items()} for d in (self.values, self.computation_aware)]
        return {
            "unit": "ms",
            "values": clean[0],
            "computation_aware": clean[1],
            "episodes": self.episodes,
            "silent": self.silent,
            "reasons": dict(self.reasons),
        }


METRICS = ("AL", "LAAL", "DAL", "AP", "ATD", "YAAL")


def _one(d: FloatArray, source_length: float, reference_length: int, token: float | None) -> list[float]:
    return [
        average_lagging(d, source_length, reference_length),
        length_adaptive_average_lagging(d, source_length, reference_length),
        differentiable_average_lagging(d, source_length),
        average_proportion(d, source_length, reference_length),
        float("nan") if token is None else average_token_delay(np.maximum(d, 0.0), token=token),
        yet_another_average_lagging(d, source_length, reference_length),
    ]


def _means(rows: Sequence[list[float]]) -> dict[str, float]:
    table = np.asarray(rows, dtype=np.float64).reshape(len(rows), len(METRICS))
    defined = ~np.isnan(table)
    return {
        name: float(table[defined[:, k], k].mean()) if defined[:, k].any() else float("nan")
        for k, name in enumerate(METRICS)
    }


def latency_metrics(trace: Trace) -> LatencyMetrics:
    """AL, LAAL, DAL, AP, ATD and YAAL of a trace, for comparison with tools that report them.

    An episode is one utterance: its source lasts from reset to the end of its last tick, its reference is the ticks
    that required a response, its output every non-null response in time order. The delay of an emission is the source
    that had gone by when its computation began; the computation-aware figures take the moment of effect. ATD pairs the
    i-th emission with the i-th source token, here a tick, so it is defined only where each tick requires a response.

    Raises:
        ValueError: a tracking trace, whose output has no units.
    """
    if trace.is_tracking:
        raise ValueError("trace: latency metrics need discrete responses; a tracking run has no target units")
    t, r = trace.ticks, trace.responses
    acts = (r["kind"] == ACT) & (r["value"] != 0)
    paired = all(stratum.pmf[0] == 0 for stratum in trace.header.strata)
    token = float(trace.header.tick_ms) if paired else None
    plain: list[list[float]] = []
    aware: list[list[float]] = []
    episodes = silent = 0
    for episode in np.unique(t["episode"]):
        mine = t["episode"] == episode
        reference = int((t["required"][mine] != 0).sum())
        if reference == 0:
            continue
        episodes += 1
        rows = acts & (r["episode"] == episode)
        order = np.argsort(r["time_ms"][rows], kind="stable")
        done = r["time_ms"][rows][order].astype(np.float64)
        if done.size == 0:
            silent += 1
            continue
        length = float(t["onset_ms"][mine].max() + trace.header.tick_ms)
        begun = np.maximum.accumulate(done - r["compute_ms"][rows][order])
        plain.append(_one(np.minimum(begun, length), length, reference, token))
        aware.append(_one(done, length, reference, token))
    reasons: dict[str, str] = {}
    values, computation_aware = _means(plain), _means(aware)
    for k, name in enumerate(METRICS):
        left_out = silent + sum(np.isnan(row[k]) for row in plain)
        if np.isnan(values[name]):
            none = "no episode has an emission before its source's end"
            sparse = "it pairs each emission with a tick, and not every tick requires a response"
            reasons[name] = "no emission" if not plain else sparse if name == "ATD" else none
        elif left_out:
            reasons[name] = f"{left_out} of {episodes} episodes left out: no emission in them that it counts"
    return LatencyMetrics(values, computation_aware, episodes, silent, reasons)
