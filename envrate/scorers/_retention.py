"""Retention: how much of what was asked later had been taken in, above what could have been guessed.

A probe asks for g(z_t). Part of the answer can be had without ever having observed tick t: from its neighbours and
from the law. That part is the chance level c, exact by forward recursion; retention is (P(right) - c) / (1 - c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate.scorers._outcome import NOT_PROBED, RIGHT, outcomes
from envrate.scorers._posterior import Chain, chain_of, memory, nearest_rows
from envrate.task import Task
from envrate.trace import Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Ticks that could be guessed better than this say nothing about retention.
MAX_CHANCE = 0.8
#: Fewer questions than this make no rate.
MIN_QUESTIONS = 10


@dataclass(frozen=True)
class Retention:
    """Share of the asked-for content that had been retained, for one required symbol or all of them.

    `value` is not clipped: below 0 the answers were worse than a guess. NaN comes with a `reason`.
    """

    required: int | None  # None: all symbols together
    asked: int  # probed ticks that count
    right: int
    chance: float  # mean chance level of those ticks
    left_out: int  # probed ticks whose chance level is above MAX_CHANCE
    value: float
    low: float
    high: float
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; NaN becomes None."""
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in vars(self).items()}


def clopper_pearson(count: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of a binomial probability; (0, 1) where nothing was tried.

    Source: Clopper and Pearson, Biometrika 26 (1934), by quantiles of the beta law.
    """
    from scipy.special import betaincinv

    if total == 0:
        return 0.0, 1.0
    tail = 0.5 * (1.0 - level)
    low = 0.0 if count == 0 else float(betaincinv(count, total - count + 1, tail))
    high = 1.0 if count == total else float(betaincinv(count + 1, total - count, 1.0 - tail))
    return low, high


@dataclass(frozen=True)
class Chance:
    """What a guesser who never observed the tick itself could have answered, per probed tick."""

    rows: IntArray  # (n,) row of the tick in the trace
    overall: FloatArray  # (n,) probability that the best guess is right
    within: FloatArray  # (n,) the same for a guesser who is told the required symbol


def chance_levels(trace: Trace) -> Chance:
    """Chance level of every probed, scored tick.

    A guesser knows the law and everything delivered before the question reached the agent, apart from what was
    delivered about the tick itself.

    Raises:
        ValueError: a trace without a task, or a law that is no chain.
    """
    task = trace.task
    chain = chain_of(task)
    t = trace.ticks
    order = np.lexsort((t["tick"], t["episode"]))
    episode, tick, onset, delivered, probed_at, latent = (
        t[name][order] for name in ("episode", "tick", "onset_ms", "delivered_ms", "probe_ms", "latent")
    )
    asked = (probed_at >= 0) & t["scored"][order]
    limit = memory(task)
    before, after = nearest_rows(episode, tick, onset, delivered, probed_at, own=False, limit=limit)
    before, after = before[asked], after[asked]
    here = np.flatnonzero(asked)
    neighbours = np.concatenate([before[before >= 0], after[after >= 0]])
    if neighbours.size and (latent.ndim != 1 or (latent[neighbours] < 0).any()):
        raise ValueError("ticks.latent: expected the chain's state of every tick; without it no chance level is known")
    state = latent if latent.ndim == 1 else np.zeros(len(tick), np.int64)
    context = np.stack(
        [
            np.where(before >= 0, tick[here] - tick[before], 0),
            np.where(before >= 0, state[before], 0),
            np.where(after >= 0, tick[after] - tick[here], 0),
            np.where(after >= 0, state[after], 0),
            t["required"][order][here],
        ],
        axis=1,
    ).astype(np.int64)
    unique, inverse = np.unique(context, axis=0, return_inverse=True)
    levels = np.array([_levels(task, chain, *row) for row in unique.tolist()]).reshape(-1, 2)[inverse.reshape(-1)]
    return Chance(order[here], levels[:, 0], levels[:, 1])


def _levels(
    task: Task, chain: Chain, before: int, z_before: int, after: int, z_after: int, required: int
) -> list[float]:
    """The two chance levels of one context; distance 0 stands for nothing known on that side."""
    law = chain.stationary if before == 0 else np.linalg.matrix_power(chain.matrix, before)[z_before]
    if after:
        law = law * np.linalg.matrix_power(chain.matrix, after)[:, z_after]
    law = law / law.sum()
    answers = np.asarray(task.question)
    mine = np.bincount(answers, weights=law * (chain.response == required), minlength=task.num_answers)
    everything = np.bincount(answers, weights=law, minlength=task.num_answers)
    return [float(everything.max()), float(mine.max() / mine.sum())]


def retention(trace: Trace) -> list[Retention]:
    """Retention over all probed ticks, then per required symbol.

    Overall, the chance level is that of the best guess of g. Within one symbol it is that of a guesser who always bets
    on that symbol: else one who answers "idle" to everything would have retained every idle tick. A symbol with a
    single answer is thus withheld: who names the symbol has named the answer.

    Raises:
        ValueError: a trace without a task or probes, or a law that is no chain.
    """
    task = trace.task
    if task.probes is None:
        raise ValueError("trace: its task has no probes, so nobody was asked what was retained; use Task(probes=...)")
    answer = outcomes(trace).probe
    chance = chance_levels(trace)
    assert (answer[chance.rows] != NOT_PROBED).all()
    right = answer[chance.rows] == RIGHT
    required = trace.ticks["required"][chance.rows]
    rows = [_retention(None, right, chance.overall)]
    for symbol in np.flatnonzero(task.pmf > 0).tolist():
        mine = required == symbol
        rows.append(_retention(symbol, right[mine], chance.within[mine]))
    return rows


def _retention(symbol: int | None, right: BoolArray, chance: FloatArray) -> Retention:
    nan = float("nan")
    kept = chance <= MAX_CHANCE
    asked, left_out = int(kept.sum()), int((~kept).sum())
    hits = int(right[kept].sum())
    c = float(chance[kept].mean()) if asked else nan
    if asked < MIN_QUESTIONS:
        reason = (
            f"every question could be guessed with probability above {MAX_CHANCE:g}"
            if asked == 0 and left_out
            else f"{asked} questions count, at least {MIN_QUESTIONS} are needed"
        )
        return Retention(symbol, asked, hits, c, left_out, nan, nan, nan, reason)
    value, low, high = ((p - c) / (1.0 - c) for p in (hits / asked, *clopper_pearson(hits, asked)))
    return Retention(symbol, asked, hits, c, left_out, value, low, high)
