"""Entropy rate of functions of Markov chains and of hidden Markov processes, with a certificate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from envrate import _checks
from envrate.rd._chain import (
    LUMP_TOLERANCE,
    HiddenMarkov,
    entropy,
    function_of_chain,
    hidden_markov,
    is_unifilar,
    lumped,
)
from envrate.rd._types import Bracket

#: Contexts looked at before the bracket reached so far is returned.
MAX_NODES = 4_000_000

#: Multiply-adds spent before the same: with many states fewer contexts are looked at.
MAX_WORK = 2_000_000_000

#: Longest context; contexts that long matter only for chains that forget very slowly.
MAX_DEPTH = 4096


def entropy_rate(
    transition: ArrayLike, response: ArrayLike, *, tol: float = 1e-12, max_nodes: int = MAX_NODES
) -> Bracket:
    """Entropy rate of A_t = response[Z_t], Z a stationary Markov chain, in bits per letter.

    Args:
        transition: (K, K) row i is the law of the next state; one closed class.
        response: (K,) letter 0, 1, ... of each state.
        tol: the bracket is made at most this wide, in bits.
        max_nodes: contexts looked at before giving the bracket reached so far, which the method then says; fewer
            where there are many states.

    Returns:
        Bracket of kind "exact". Its bounds coincide where a formula exists: states that can be lumped without
        changing the law of the letters are lumped (Kemeny and Snell 1960); what is left is exact if the state and
        the next letter fix the next state, in either direction of time. Otherwise the bounds are
        H(A | context, state before it) and H(A | context) over a tree of contexts (after Birch 1962).

    Raises:
        ValueError: rows that are no probabilities, lengths that do not match, or a chain with several closed classes.
    """
    return entropy_rate_of(function_of_chain(transition, response), tol=tol, max_nodes=max_nodes)


def hidden_markov_entropy_rate(
    transition: ArrayLike, emission: ArrayLike, *, tol: float = 1e-12, max_nodes: int = MAX_NODES
) -> Bracket:
    """Entropy rate of a stationary hidden Markov process in bits per letter.

    Args:
        transition: (K, K) row i is the law of the next state; one closed class.
        emission: (K, A) row i is the law of the letter that state i emits.
        tol: the bracket is made at most this wide, in bits.
        max_nodes: contexts looked at before giving the bracket reached so far, which the method then says.

    Returns:
        Bracket as `entropy_rate` gives it.

    Raises:
        ValueError: rows that are no probabilities, lengths that do not match, or a chain with several closed classes.
    """
    return entropy_rate_of(hidden_markov(transition, emission), tol=tol, max_nodes=max_nodes)


def _exact(source: HiddenMarkov) -> tuple[float, str] | None:
    """The entropy rate by a formula and the formula's name, or None."""
    for direction, start in (("", source), (" backwards in time", source.reversed)):
        small = lumped(start)
        if is_unifilar(small):
            following = small.transition @ small.emission  # (K, A) law of the next letter given the state
            rate = float(sum(weight * entropy(row) for weight, row in zip(small.stationary, following, strict=True)))
            memoryless = np.abs(small.transition - small.transition[0]).max() <= LUMP_TOLERANCE
            states = f"entropy rate, unifilar with {small.num_states} states{direction}"
            return rate, "entropy, memoryless" if memoryless else states
    return None


def entropy_rate_of(source: HiddenMarkov, *, tol: float = 1e-12, max_nodes: int = MAX_NODES) -> Bracket:
    """Entropy rate of a checked source in bits per letter; see `entropy_rate`."""
    tol = _checks.number("tol", tol, 0.0, open_low=True)
    max_nodes = _checks.integer("max_nodes", max_nodes, 1)
    exact = _exact(source)
    if exact is not None:
        return Bracket(exact[0], exact[0], method=exact[1])
    from envrate.rd._hidden_markov import context_tree

    small = lumped(source)
    letters = np.flatnonzero(small.pmf > 0)
    steps = np.ascontiguousarray(small.transition[None] * small.emission.T[letters][:, None, :])  # (A, K, K)
    threshold = max(1e-3, tol) * math.log(2)
    limit = max(1, min(max_nodes, int(MAX_WORK / (small.num_states**2 * len(letters)))))
    left = limit
    lower, upper, nodes, depth = 0.0, math.log(len(letters)), 0, 0
    while left > 0:
        low, high, used, longest = context_tree(steps, small.stationary, threshold, left, MAX_DEPTH)
        left -= used
        if high - low < upper - lower:
            lower, upper, nodes, depth = low, high, used, longest
        gap = (high - low) / math.log(2)
        if gap <= tol:
            break
        # The gap falls with the threshold, a little slower; steps of 4 to 1000 waste little and do not overshoot much.
        threshold *= min(0.25, max(1e-3, 0.2 * tol / gap))
        if threshold < 1e-22:
            break
    lower, upper = min(lower, upper) / math.log(2), max(lower, upper) / math.log(2)
    method = f"entropy rate, {nodes} contexts of up to {depth} letters"
    if upper - lower > tol:
        method += f"; stopped {'at' if left <= 0 else 'by rounding before'} the limit of {limit} contexts"
    return Bracket(lower, upper, method=method)
