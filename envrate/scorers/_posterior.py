"""What could have been known: the exact Bayes posterior of the required response given what the link delivered.

Codecs are constant-rate, so arrival times and losses are independent of the latent; a delivered packet about tick s
shows z_s and a missing one shows nothing. The law is Markov: of all that was delivered by onset_t + l only the
nearest tick at or before t and the nearest one after t matter. The *pattern* of a tick is that pair of distances;
ticks of one pattern share one joint law of (z_before, z_t, z_after), taken from the law itself and not from the run,
so the observer's figures carry no sampling noise but the link's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate._responses import letter_pmf
from envrate.trace import Trace

if TYPE_CHECKING:
    from envrate.task import Task

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: In a pattern: nothing was delivered on that side.
NOTHING = -1
#: A chain that is this close to its stationary law has forgotten.
FORGOTTEN = 1e-13
#: Distances above this are not told apart even where a chain never forgets (a periodic one).
MAX_DISTANCE = 4096


def has_link_log(trace: Trace) -> bool:
    """Whether it is known when packets reached the agent; a simulated link may have lost every one of them."""
    return trace.header.link is not None or bool((trace.ticks["delivered_ms"] >= 0).any())


@dataclass(frozen=True)
class Patterns:
    """Distances to the nearest delivered ticks, with how often each pair came up.

    `before` is 0 where something about the tick itself was delivered, `NOTHING` where nothing at or before it in the
    episode was; `after` is >= 1 or `NOTHING`.
    """

    before: IntArray  # (n,)
    after: IntArray  # (n,)
    share: FloatArray  # (n,), sums to 1

    @property
    def known(self) -> float:
        """Share of ticks about which something was delivered in time."""
        return float(self.share[self.before == 0].sum())


@dataclass(frozen=True)
class Contexts:
    """All that an observer can know when it decides, with the posterior it then holds."""

    weight: FloatArray  # (n,) probabilities, sum to 1
    posterior: FloatArray  # (n, A) law of a_t
    known: BoolArray  # (n,) something about the tick itself was delivered

    @property
    def joint(self) -> FloatArray:
        """(n, A) probability of context and required response."""
        return self.weight[:, None] * self.posterior

    def information(self) -> float:
        """I(A_t; context) in bits per tick."""
        joint = self.joint
        product = self.weight[:, None] * joint.sum(axis=0)
        seen = joint > 0
        return float(max(0.0, (joint[seen] * np.log2(joint[seen] / product[seen])).sum()))


@lru_cache(maxsize=1)
def _nearest_kernel() -> Any:
    """Compiled scan; numba is imported on first use."""
    import numba

    @numba.njit(cache=True)
    def nearest(
        episode: IntArray,
        tick: IntArray,
        onset: IntArray,
        delivered: IntArray,
        cutoff: IntArray,
        own: bool,
        limit: int,
        before: IntArray,
        after: IntArray,
    ) -> None:
        n = tick.size
        for t in range(n):
            before[t] = -1
            after[t] = -1
            s = t if own else t - 1
            # Beyond the limit the chain has forgotten: as good as nothing seen.
            while s >= 0 and episode[s] == episode[t] and tick[t] - tick[s] < limit:
                if 0 <= delivered[s] <= cutoff[t]:
                    before[t] = s
                    break
                s -= 1
            if before[t] == t:
                continue
            s = t + 1
            # A packet about a tick cannot arrive before the tick begins.
            while s < n and episode[s] == episode[t] and onset[s] <= cutoff[t] and tick[s] - tick[t] < limit:
                if 0 <= delivered[s] <= cutoff[t]:
                    after[t] = s
                    break
                s += 1

    return nearest


def nearest_rows(
    episode: IntArray, tick: IntArray, onset: IntArray, delivered: IntArray, cutoff: IntArray, *, own: bool, limit: int
) -> tuple[IntArray, IntArray]:
    """Rows of the nearest ticks at or before and after each tick that were delivered by its cutoff, -1 where none.

    Args:
        episode: (N,) in order of (episode, tick).
        tick: (N,).
        onset: (N,) ms.
        delivered: (N,) ms since the episode's start, -1 never.
        cutoff: (N,) ms since the episode's start.
        own: whether the tick's own packet counts.
        limit: distances of this many ticks or more count as nothing.
    """
    before, after = np.empty(tick.size, np.int64), np.empty(tick.size, np.int64)
    _nearest_kernel()(episode, tick, onset, delivered, cutoff, own, limit, before, after)
    return before, after


@dataclass(frozen=True)
class Observer:
    """The observer behind one run's link: posteriors at each allowed latency.

    Args:
        task: the task, whose law is known.
        episode: (N,) ticks in order of (episode, tick).
        tick: (N,).
        onset_ms: (N,).
        delivered_ms: (N,), -1 never.
        scored: (N,), ticks that count.
    """

    task: Task
    episode: IntArray
    tick: IntArray
    onset_ms: IntArray
    delivered_ms: IntArray
    scored: BoolArray

    @classmethod
    def of(cls, trace: Trace) -> Observer:
        """The observer of a trace; raises ValueError where its law or its link's log is not known."""
        task = trace.task
        if trace.is_tracking:
            raise ValueError("trace: the observer of a chain needs discrete responses, this is a tracking run")
        t = trace.ticks
        if not has_link_log(trace):
            raise ValueError("trace: it has no link log, so what could be known is not")
        order = np.lexsort((t["tick"], t["episode"]))
        columns = (t[name][order] for name in ("episode", "tick", "onset_ms", "delivered_ms", "scored"))
        return cls(task, *columns)

    def patterns(self, latency_ms: int, *, own: bool = True) -> Patterns:
        """Patterns of the scored ticks at one allowed latency.

        Args:
            latency_ms: l; packets delivered by onset + l count.
            own: whether the tick's own packets count; without them what is left is prediction (and hindsight).
        """
        _checks.integer("latency_ms", latency_ms, 0, unit="ms")
        limit = memory(self.task)
        columns = (self.episode, self.tick, self.onset_ms, self.delivered_ms)
        rows = nearest_rows(*columns, self.onset_ms + latency_ms, own=own, limit=limit)
        distances = (np.where(row >= 0, np.abs(self.tick - self.tick[row]), NOTHING) for row in rows)
        before, after = (distance[self.scored] for distance in distances)
        code = (before + 1) * (limit + 1) + (after + 1)
        if (limit + 1) ** 2 <= code.size:  # few possible pairs: counting is faster than sorting
            counts = np.bincount(code)
            found = np.flatnonzero(counts)
            counts = counts[found]
        else:
            found, counts = np.unique(code, return_counts=True)
        pairs = np.stack(np.divmod(found, limit + 1)) - 1
        return Patterns(pairs[0], pairs[1], counts / float(counts.sum()))

    def contexts(self, latency_ms: int, *, own: bool = True) -> Contexts:
        """What could be known by onset + l, with its posteriors; see `contexts`."""
        return contexts(self.task, self.patterns(latency_ms, own=own))


@dataclass(frozen=True)
class Chain:
    """The law of the letters of a task whose letters are Markov, as matrices."""

    matrix: FloatArray  # (K, K)
    stationary: FloatArray  # (K,)
    response: IntArray  # (K,) f


def chain_of(task: Task) -> Chain:
    """The chain behind a task's required responses.

    Raises:
        ValueError: a tracking task, or intervals of a Gaussian process with memory, which are not Markov.
    """
    response = np.asarray(task.table, dtype=np.int64)
    if task.is_tracking:
        raise ValueError("task: a tracking task has no symbols; its latent is not a chain")
    if hasattr(task.latent, "matrix"):
        return Chain(np.asarray(task.latent.matrix), np.asarray(task.latent.stationary), response)
    if task.is_memoryless:
        pi = letter_pmf(task.latent, task.response)
        return Chain(np.tile(pi, (pi.size, 1)), pi, response)
    raise ValueError(
        "task: the intervals of a Gaussian process with memory are no Markov chain, so there is no exact posterior; "
        "use a MarkovChain latent to get one"
    )


@lru_cache(maxsize=64)
def memory(task: Task) -> int:
    """Distance at which the chain has forgotten where it was, at least 1; `MAX_DISTANCE` where it never does."""
    if task.is_memoryless:
        return 1
    chain = chain_of(task)
    pi, power = chain.stationary, chain.matrix
    distance = 1
    while np.abs(power - pi).max() > FORGOTTEN and distance < MAX_DISTANCE:
        power = power @ power
        distance *= 2
    return min(distance, MAX_DISTANCE)


def contexts(task: Task, patterns: Patterns) -> Contexts:
    """Every context of every pattern, with its probability and the posterior of the required response.

    The chain is taken as stationary, as the demand is. Contexts of one pattern are the pairs (z_before, z_after).
    """
    chain = chain_of(task)
    pi, matrix = chain.stationary, chain.matrix
    to_symbol = np.eye(task.num_symbols)[chain.response]  # (K, A)
    powers: dict[int, FloatArray] = {}

    def power(distance: int) -> FloatArray:
        if distance not in powers:
            powers[distance] = np.linalg.matrix_power(matrix, distance)
        return powers[distance]

    weights: list[FloatArray] = []
    posteriors: list[FloatArray] = []
    known: list[BoolArray] = []
    rows = zip(patterns.before.tolist(), patterns.after.tolist(), patterns.share.tolist(), strict=True)
    for before, after, share in rows:
        if before == 0:
            weight, posterior = task.pmf, np.eye(task.num_symbols)
        else:
            left = pi[None, :] if before == NOTHING else pi[:, None] * power(before)  # (S, K)
            right = np.ones((len(pi), 1)) if after == NOTHING else power(after)  # (K, S')
            joint = np.einsum("sk,kr,ka->sra", left, right, to_symbol).reshape(-1, task.num_symbols)
            weight = joint.sum(axis=1)
            posterior = joint / np.where(weight > 0, weight, 1.0)[:, None]
        kept = weight > 0
        weights.append(share * weight[kept])
        posteriors.append(posterior[kept])
        known.append(np.full(int(kept.sum()), before == 0))
    return Contexts(np.concatenate(weights), np.concatenate(posteriors), np.concatenate(known))
