"""Bits per second of the input-device and brain-computer-interface fields, for comparison.

docs/numbers/neighbouring-rates.md says what each assumes; none of them knows what was demanded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from envrate import _checks
from envrate.scorers._outcome import outcomes
from envrate.trace import Trace

#: sqrt(2 pi e): the width of the interval that holds 96 % of a normal law, ISO 9241-411's effective width.
EFFECTIVE_WIDTH = 4.133
MS_PER_S = 1000.0


def wolpaw_rate(num_options: int, accuracy: float) -> float:
    """Bits per selection of a choice among equiprobable options with errors spread evenly.

    log2 N + P log2 P + (1 - P) log2((1 - P) / (N - 1)), and 0 where P <= 1 / N: the formula rises again below chance,
    where nothing is conveyed on purpose.

    Source: Wolpaw et al., IEEE Trans. Rehab. Eng. 8 (2000); it is R(1 - P) of a uniform source under Hamming
    distortion, so a lower bound on the mutual information.
    """
    n = _checks.integer("num_options", num_options, 2)
    p = _checks.number("accuracy", accuracy, 0.0, 1.0)
    if p <= 1.0 / n:
        return 0.0
    miss = 1.0 - p
    return math.log2(n) + p * math.log2(p) + (miss * math.log2(miss / (n - 1)) if miss > 0 else 0.0)


def achieved_bitrate(num_targets: int, correct: int, incorrect: int, seconds: float) -> float:
    """Bits per second log2(N - 1) max(correct - incorrect, 0) / t: each wrong selection costs one to undo it.

    Source: Nuyujukian et al., IEEE Trans. Biomed. Eng. 62 (2015).
    """
    n = _checks.integer("num_targets", num_targets, 2)
    right = _checks.integer("correct", correct, 0)
    wrong = _checks.integer("incorrect", incorrect, 0)
    t = _checks.number("seconds", seconds, 0.0, open_low=True)
    return math.log2(n - 1) * max(right - wrong, 0) / t


def fitts_throughput(amplitudes: ArrayLike, endpoint_deviations: ArrayLike, movement_times_s: ArrayLike) -> float:
    """Bits per second of pointing: mean over movements of log2(A / W_e + 1) / MT, with W_e = 4.133 SD(deviations).

    Args:
        amplitudes: (n,) distance moved along the task's axis.
        endpoint_deviations: (n,) signed distance from the target's centre where the movement ended, same unit.
        movement_times_s: (n,) seconds.

    Raises:
        ValueError: fewer than two movements, lengths that differ, a time that is not above 0, or endpoints that do not
            vary: the effective width would be 0.

    Source: ISO 9241-411; MacKenzie 2018, "Fitts' law", for the mean over a sequence at one amplitude and width.
    """
    a = _checks.finite_array("amplitudes", amplitudes, 1)
    x = _checks.finite_array("endpoint_deviations", endpoint_deviations, 1)
    mt = _checks.finite_array("movement_times_s", movement_times_s, 1)
    if not a.size == x.size == mt.size >= 2:
        raise ValueError(
            f"amplitudes: expected at least 2 movements, as many of each, got {a.size}, {x.size} and {mt.size}"
        )
    if (mt <= 0).any():
        raise ValueError(f"movement_times_s: expected times > 0, got {mt.min():g}")
    width = EFFECTIVE_WIDTH * float(x.std(ddof=1))
    if width == 0:
        raise ValueError("endpoint_deviations: they do not vary, so the effective width is 0; use more movements")
    return float(np.log2(a.mean() / width + 1.0) / mt.mean())


@dataclass(frozen=True)
class SelectionRates:
    """Wolpaw's rate and the achieved bitrate of a run, bits per second; NaN with a reason where not defined."""

    wolpaw: float
    achieved: float
    accuracy: float  # right answers in time over required responses
    num_options: int
    correct: int
    incorrect: int
    reason: str = ""


def selection_rates(trace: Trace, latency_ms: int | None = None) -> SelectionRates:
    """Both selection rates of a run on a task whose ticks all ask for one of N exchangeable options.

    Args:
        trace: a run.
        latency_ms: the allowed latency; None is the horizon. Answers later than this count as not given: not right
            for Wolpaw, and neither right nor wrong for the achieved bitrate.
    """
    none = SelectionRates(math.nan, math.nan, math.nan, 0, 0, 0)
    if trace.is_tracking or len(trace.header.strata) != 1:
        return _because(none, "needs one alphabet of discrete options")
    stratum = trace.header.strata[0]
    options = [a for a, p in enumerate(stratum.pmf) if p > 0]
    uniform = np.ptp([stratum.pmf[a] for a in options]) < 1e-9
    if 0 in options or len(options) < 2 or not uniform:
        return _because(none, "needs a selection due at every tick, among equiprobable options")
    latency = trace.header.horizon_ms if latency_ms is None else _checks.integer("latency_ms", latency_ms, 0)
    scored = trace.ticks["scored"]
    count = int(scored.sum())
    if count == 0:
        return _because(none, "no tick was scored")
    found = outcomes(trace)
    given = np.where(found.first_ms <= latency, found.first_value, 0)[scored]
    required = trace.ticks["required"][scored]
    right = int((given == required).sum())
    wrong = int(((given != required) & (given != 0)).sum())
    per_second = MS_PER_S / trace.header.tick_ms
    n = len(options)
    return SelectionRates(
        wolpaw=wolpaw_rate(n, right / count) * per_second,
        achieved=achieved_bitrate(n, right, wrong, count / per_second),
        accuracy=right / count,
        num_options=n,
        correct=right,
        incorrect=wrong,
    )


def _because(rates: SelectionRates, reason: str) -> SelectionRates:
    return SelectionRates(rates.wolpaw, rates.achieved, rates.accuracy, 0, 0, 0, reason)
