"""Finite hidden Markov sources: checks, the stationary law, time reversal and exact lumping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks

FloatArray = NDArray[np.float64]

#: Rows of probabilities closer than this are taken as equal when states are lumped.
LUMP_TOLERANCE = 1e-14


@dataclass(frozen=True)
class HiddenMarkov:
    """A stationary hidden Markov source: the state moves first, then emits a letter."""

    transition: FloatArray  # (K, K)
    emission: FloatArray  # (K, A)
    stationary: FloatArray  # (K,)

    @property
    def num_states(self) -> int:
        """K, the number of recurrent states."""
        return len(self.stationary)

    @property
    def pmf(self) -> FloatArray:
        """(A,) stationary law of the letter."""
        return np.asarray(self.stationary @ self.emission)

    @property
    def reversed(self) -> HiddenMarkov:
        """The source run backwards in time; its entropy rate is the same."""
        back = self.transition.T * self.stationary / self.stationary[:, None]
        return HiddenMarkov(back / back.sum(1, keepdims=True), self.emission, self.stationary)


def _reachable(transition: FloatArray) -> NDArray[np.bool_]:
    """(K, K): can state j be reached from i, in zero steps or more."""
    reach = (transition > 0) | np.eye(len(transition), dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(len(transition)))))):
        reach = (reach.astype(np.float64) @ reach.astype(np.float64)) > 0
    return reach


def recurrent_class(transition: FloatArray) -> NDArray[np.intp]:
    """The states of the one closed class; raises ValueError when there are several, for then no rate is defined."""
    reach = _reachable(transition)
    closed = np.flatnonzero((reach <= reach.T).all(axis=1))
    members = np.flatnonzero(reach[closed[0]])
    if len(members) != len(closed):
        others = [int(state) for state in closed if state not in members]
        raise ValueError(
            f"transition: the chain has several closed classes, such as {members.tolist()} "
            f"and one with state {others[0]}; "
            "expected one, so that a stationary law and an entropy rate exist"
        )
    return members


def stationary_law(transition: FloatArray) -> FloatArray:
    """(K,) stationary law of an irreducible chain by state reduction, accurate in every entry.

    Source: Grassmann, Taksar, Heyman 1985, "Regenerative analysis and steady state distributions for Markov chains".
    """
    p = transition.copy()
    size = len(p)
    for n in range(size - 1, 0, -1):
        p[:n, n] /= p[n, :n].sum()
        p[:n, :n] += np.outer(p[:n, n], p[n, :n])
    pi = np.zeros(size)
    pi[0] = 1.0
    for n in range(1, size):
        pi[n] = pi[:n] @ p[:n, n]
    return pi / pi.sum()


def hidden_markov(transition: ArrayLike, emission: ArrayLike) -> HiddenMarkov:
    """The checked source; transient states are dropped, for the stationary process never visits them."""
    p = _checks.stochastic_matrix("transition", transition)
    e = _checks.finite_array("emission", emission, 2)
    if len(e) != len(p) or e.shape[1] == 0:
        raise ValueError(f"emission: expected {len(p)} rows, one per state, got shape {e.shape}")
    for row in range(len(e)):
        _checks.pmf(f"emission[{row}]", e[row])
    keep = recurrent_class(p)
    p, e = p[np.ix_(keep, keep)], e[keep]
    p, e = p / p.sum(1, keepdims=True), e / e.sum(1, keepdims=True)
    return HiddenMarkov(p, e, stationary_law(p))


def function_of_chain(transition: ArrayLike, response: ArrayLike) -> HiddenMarkov:
    """The source whose letter is `response[state]`; letters run over 0 ... max(response)."""
    p = _checks.stochastic_matrix("transition", transition)
    letters = [_checks.integer("response", letter, 0) for letter in np.asarray(response).ravel().tolist()]
    if len(letters) != len(p):
        raise ValueError(f"response: expected {len(p)} letters, one per state, got {len(letters)}")
    return hidden_markov(p, np.eye(max(letters) + 1)[letters])


def _group_rows(rows: FloatArray) -> NDArray[np.intp]:
    """(K,) a label per row; rows equal within the tolerance share it."""
    labels = np.full(len(rows), -1, dtype=np.intp)
    firsts: list[int] = []
    for i, row in enumerate(rows):
        for label, first in enumerate(firsts):
            if np.abs(row - rows[first]).max() <= LUMP_TOLERANCE:
                labels[i] = label
                break
        else:
            labels[i] = len(firsts)
            firsts.append(i)
    return labels


def lumped(source: HiddenMarkov) -> HiddenMarkov:
    """The source with the fewest states that strong lumping gives; its letters have the same law.

    States are merged when they emit alike and move into every merged class with the same probability.
    Source: Kemeny and Snell 1960, "Finite Markov Chains", theorem 6.3.2, by partition refinement.
    """
    labels = _group_rows(source.emission)
    while True:
        member = np.eye(labels.max() + 1)[labels]  # (K, G)
        # The old label stays in the row, so that a split is never undone.
        refined = _group_rows(np.hstack([member, source.transition @ member]))
        if refined.max() == labels.max():
            break
        labels = refined
    if labels.max() + 1 == source.num_states:
        return source
    first = [int(np.flatnonzero(labels == g)[0]) for g in range(labels.max() + 1)]
    transition = (source.transition @ member)[first]
    return HiddenMarkov(
        transition / transition.sum(1, keepdims=True),
        source.emission[first],
        np.asarray(np.bincount(labels, weights=source.stationary), dtype=np.float64),
    )


def is_unifilar(source: HiddenMarkov) -> bool:
    """Whether the state and the next letter fix the next state."""
    step = (source.transition[:, :, None] > 0) & (source.emission[None] > 0)  # (K, K, A)
    return bool((step.sum(axis=1) <= 1).all())


def entropy(p: FloatArray) -> float:
    """Entropy in bits of a pmf of any shape."""
    seen = p[p > 0]
    return float(-(seen * np.log2(seen)).sum())
