"""Information: the mutual-information rate between required responses and outcomes, whatever the agent's coding.

Bounded from below by an auxiliary channel q: (1/n) [log q(y^n | a^n) - log q(y^n)] has the rate as its ceiling for
every q, with equality where q is the truth. The second term sums over all latents by the forward recursion over the
known law. Source: Arnold, Loeliger, Vontobel, Kavcic and Zeng, IEEE Trans. Inform. Theory 52 (2006).

q is counted on one half of the run and used on the other (cross-fitting): a channel fitted on the ticks that it is
used on would find information in noise.

A run whose required responses happen to be more surprising than the law makes them on average carries more than the
rate. Their surprise has a known mean, the entropy rate, so it serves as a control variate (Glynn and Szechtman 2002):
what it explains of the estimate is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.scorers._outcome import outcomes
from envrate.scorers._posterior import Chain, chain_of, has_link_log
from envrate.trace import WRONG_UNKNOWN, Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MS_PER_S = 1000.0
#: Added to each count of the memoryless channel (Krichevsky and Trofimov 1981).
SMOOTHING = 0.5
#: Weight, in ticks, of the memoryless channel in the estimate of the one with memory.
SHRINKAGE = 2.0
#: Blocks for the standard error: consecutive ticks, so that it holds with memory too.
BLOCKS = 50
#: Two-sided 95 % of a normal law.
Z95 = 1.959963984540054
MIN_TICKS = 20
READINGS = ("output-only", "resolved")


@dataclass(frozen=True)
class Information:
    """Lower bound on the mutual-information rate, bits per second, with a 95 % interval of the estimate.

    `rate` is the larger of the two channels' bounds and may come out below 0 where there is nothing to find: it is
    not clipped. NaN has a `reason`.
    """

    rate: float
    low: float
    high: float
    channel: str  # "memoryless" or "one-step": the auxiliary channel that gave the larger bound
    memoryless: float
    one_step: float
    ticks: int
    reason: str = ""

    def headline(self, credited: float) -> tuple[float, str]:
        """The best lower bound that is known, and what gave it: C is one too.

        Args:
            credited: C of the same run at the same latency in the same reading, bits/s; NaN where it cannot be had.
        """
        candidates = {"credited": credited, self.channel or "memoryless": self.rate}
        known = {name: rate for name, rate in candidates.items() if not np.isnan(rate)}
        if not known:
            return float("nan"), ""
        name = max(known, key=lambda key: known[key])
        return known[name], name

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; NaN becomes None."""
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in vars(self).items()}


def information(trace: Trace, latency_ms: int | None = None, *, reading: str = "output-only") -> Information:
    """I(l) of a run, from below.

    Args:
        trace: a run on a task whose letters are Markov, or one without a task: its ticks are then taken as independent,
            with each stratum's nominal law, and the rates of strata add.
        latency_ms: l; None is the horizon.
        reading: in the resolved reading, silence before anything about the tick was delivered is a symbol of its own,
            by the link's log. What an agent says it does not know is left out here: it could carry a code.

    Raises:
        ValueError: a tracking trace (see `tracking_information`), or intervals of a Gaussian process with memory.
    """
    _checks.choice("reading", reading, READINGS)
    latency = trace.header.horizon_ms if latency_ms is None else latency_ms
    latency = _checks.integer("latency_ms", latency, 0, trace.header.horizon_ms, "ms")
    t = trace.ticks
    if reading == "resolved" and not has_link_log(trace):
        return _nothing("no link log, so there is no resolved reading")
    found = outcomes(trace)
    outcome = np.where(found.first_ms <= latency, found.first_value, 0)
    width = max(len(s.pmf) for s in trace.header.strata)
    outcome = np.where(outcome == WRONG_UNKNOWN, width, outcome)
    if reading == "resolved":
        outcome = np.where((outcome == 0) & (found.delivered_ms > latency), width + 1, outcome)
    order = np.lexsort((t["tick"], t["episode"]))
    columns = (t["required"], outcome, t["episode"], t["scored"])
    required, outcome, episode, scored = (column[order] for column in columns)
    if trace.header.task is not None:
        chain = chain_of(trace.task)
        per_second = MS_PER_S / trace.header.tick_ms
        rate = trace.task.demand().mid / per_second
        return information_of(chain, required, outcome, episode, scored, per_second=per_second, entropy_rate=rate)
    return _nominal(trace, required, outcome, episode, scored, t["stratum"][order])


def _nothing(reason: str, ticks: int = 0) -> Information:
    nan = float("nan")
    return Information(nan, nan, nan, "", nan, nan, ticks, reason)


def _nominal(
    trace: Trace, required: IntArray, outcome: IntArray, episode: IntArray, scored: BoolArray, stratum: IntArray
) -> Information:
    """The rates of the strata of a run without a task, added up; per second of the run's exposure."""
    if trace.header.duration_ms == 0:
        return _nothing("the run states no duration, so there is no rate per second")
    parts = []
    for index, source in enumerate(trace.header.strata):
        mine = scored & (stratum == index)
        if mine.any():
            pmf = np.asarray(source.pmf)
            chain = Chain(np.tile(pmf, (pmf.size, 1)), pmf, np.arange(pmf.size))
            per_second = mine.sum() * MS_PER_S / trace.header.duration_ms
            parts.append(
                information_of(chain, required[mine], outcome[mine], episode[mine], np.ones(mine.sum(), bool),
                               per_second=per_second, one_step=False)
            )
    good = [part for part in parts if not part.reason]
    if len(good) < len(parts) or not parts:
        return _nothing(next((part.reason for part in parts if part.reason), "no tick was scored"))
    rate = sum(part.rate for part in good)
    half = float(np.sqrt(sum((part.high - part.rate) ** 2 for part in good)))
    nan = float("nan")
    return Information(rate, rate - half, rate + half, "memoryless", rate, nan, sum(part.ticks for part in good))


def information_of(
    chain: Chain,
    required: IntArray,
    outcome: IntArray,
    episode: IntArray,
    scored: BoolArray,
    *,
    per_second: float = 1.0,
    one_step: bool = True,
    entropy_rate: float | None = None,
) -> Information:
    """The bound for columns of ticks in order of time.

    Args:
        chain: the law.
        required: (N,) a_t.
        outcome: (N,) y_t >= 0, any finite alphabet.
        episode: (N,) sequences; each starts anew from the stationary law.
        scored: (N,) ticks that count; the others only move the chain on.
        per_second: ticks per second.
        one_step: whether to try the channel with one step of memory, q(y_t | a_{t-1}, a_t).
        entropy_rate: of the required responses, bits per tick, where they are known to follow the law; None leaves the
            control variate out.
    """
    ticks = int(scored.sum())
    if ticks < MIN_TICKS:
        return _nothing(f"{ticks} ticks, at least {MIN_TICKS} are needed", ticks)
    _, outcome = np.unique(outcome, return_inverse=True)
    outcome = outcome.reshape(-1).astype(np.int64)
    starts = np.append(True, episode[1:] != episode[:-1])
    fold = _folds(episode, starts)
    first, later = _channels(chain, required, outcome, starts, scored, fold)
    bounds = {"memoryless": _gains(chain, required, outcome, starts, scored, fold, first, None)}
    if one_step:
        bounds["one-step"] = _gains(chain, required, outcome, starts, scored, fold, first, later)
    if entropy_rate is not None:
        surprise = _surprise(chain, required, starts) - entropy_rate
        before = np.where(starts, 0.0, np.append(0.0, surprise[:-1]))  # an echo conveys it a tick later
        controls = np.column_stack([surprise, before])[scored]
        bounds = {name: _controlled(gain, controls) for name, gain in bounds.items()}
    means = {name: float(gain.mean()) * per_second for name, gain in bounds.items()}
    best = max(means, key=lambda name: means[name])
    half = Z95 * _standard_error(bounds[best]) * per_second
    return Information(
        rate=means[best],
        low=means[best] - half,
        high=means[best] + half,
        channel=best,
        memoryless=means["memoryless"],
        one_step=means.get("one-step", float("nan")),
        ticks=ticks,
    )


def _folds(episode: IntArray, starts: BoolArray) -> IntArray:
    """(N,) 0 or 1: alternate episodes, or the halves of a single one."""
    count = int(starts.sum())
    if count >= 2:
        return (np.cumsum(starts) - 1) % 2
    return (np.arange(len(episode)) >= len(episode) // 2).astype(np.int64)


def _channels(
    chain: Chain, required: IntArray, outcome: IntArray, starts: BoolArray, scored: BoolArray, fold: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Smoothed channels (2, A, Y) and (2, A, A, Y); entry h is to be used on fold h and comes from the other one."""
    symbols, kinds = int(chain.response.max()) + 1, int(outcome.max()) + 1
    previous = np.append(0, required[:-1])
    first = np.empty((2, symbols, kinds))
    later = np.empty((2, symbols, symbols, kinds))
    for h in range(2):
        mine = scored & (fold != h)
        single = np.zeros((symbols, kinds))
        np.add.at(single, (required[mine], outcome[mine]), 1.0)
        first[h] = (single + SMOOTHING) / (single.sum(1, keepdims=True) + SMOOTHING * kinds)
        mine &= ~starts
        pairs = np.zeros((symbols, symbols, kinds))
        np.add.at(pairs, (previous[mine], required[mine], outcome[mine]), 1.0)
        later[h] = (pairs + SHRINKAGE * first[h]) / (pairs.sum(-1, keepdims=True) + SHRINKAGE)
    return first, later


def _gains(
    chain: Chain,
    required: IntArray,
    outcome: IntArray,
    starts: BoolArray,
    scored: BoolArray,
    fold: IntArray,
    first: FloatArray,
    later: FloatArray | None,
) -> FloatArray:
    """(n,) log q(y_t | a) - log q(y_t | y^{t-1}) of each scored tick, bits."""
    from envrate.scorers._information_kernels import log_outcome_likelihood

    previous = np.append(0, required[:-1])
    memoryless = first[fold, required, outcome]
    if later is None:
        told = memoryless
        later = np.repeat(first[:, None], first.shape[1], axis=1)
    else:
        told = np.where(starts, memoryless, later[fold, previous, required, outcome])
    predicted = log_outcome_likelihood(
        chain.matrix,
        chain.stationary,
        chain.response,
        np.ascontiguousarray(first),
        np.ascontiguousarray(later),
        np.where(scored, outcome, -1),
        starts,
        fold,
    )
    return np.asarray((np.log(told[scored]) - predicted[scored]) / np.log(2.0))


def _surprise(chain: Chain, required: IntArray, starts: BoolArray) -> FloatArray:
    """(N,) -log p(a_t | a_1 ... a_{t-1}) in bits under the law."""
    from envrate.scorers._information_kernels import log_outcome_likelihood

    symbols = int(chain.response.max()) + 1
    itself = np.eye(symbols)[None]
    later = np.repeat(itself[:, None], symbols, axis=1)
    fold = np.zeros(len(required), dtype=np.int64)
    law = chain.matrix, chain.stationary, chain.response
    return -np.asarray(log_outcome_likelihood(*law, itself, later, required, starts, fold)) / np.log(2.0)


def _controlled(gain: FloatArray, controls: FloatArray) -> FloatArray:
    """(n,) the gains less what controls (n, k) of mean 0 explain of them."""
    share = np.linalg.lstsq(controls - controls.mean(axis=0), gain - gain.mean(), rcond=None)[0]
    return np.asarray(gain - controls @ share)


def _standard_error(gain: FloatArray) -> float:
    """Standard error of the mean, from the means of consecutive blocks."""
    blocks = min(BLOCKS, len(gain) // 2)
    means = np.array([part.mean() for part in np.array_split(gain, blocks)])
    return float(means.std(ddof=1) / np.sqrt(blocks))
