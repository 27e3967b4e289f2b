"""Two-sided bounds on the entropy rate of a hidden Markov source from a tree of contexts (numba)."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@njit(cache=True)
def context_tree(
    steps: FloatArray,  # (A, K, K) steps[y, i, j] = P(next state j, letter y | state i)
    stationary: FloatArray,  # (K,)
    threshold: float,
    max_nodes: int,
    max_depth: int,
) -> tuple[float, float, int, int]:
    """Lower and upper bound on the entropy rate in nats, the number of contexts looked at and the longest one.

    A context w is the run of the latest letters. Over any complete tree of contexts

        sum_w P(w) H(Y | w, state before w)  <=  entropy rate  <=  sum_w P(w) H(Y | w)

    (Birch 1962 is the tree of equal depths). A context is made longer by one older letter while its share of the gap
    is above `threshold`, so the tree is deep only where the state is in doubt. The conditional entropies are added
    up directly, with compensated sums: differences of block entropies would lose the digits.
    """
    letters, states = steps.shape[0], steps.shape[1]
    joint = np.zeros((max_depth + 2, states, letters))  # by depth: P(w, next letter y | state before w)
    child = np.zeros(max_depth + 2, dtype=np.int64)
    for i in range(states):
        for y in range(letters):
            for j in range(states):
                joint[0, i, y] += steps[y, i, j]
    lower = upper = lower_rest = upper_rest = 0.0
    nodes = 0
    longest = 0
    depth = 0
    enter = True
    while depth >= 0:
        if enter:
            nodes += 1
            longest = max(longest, depth)
            weight = 0.0
            above = 0.0  # P(w) H(Y | w)
            below = 0.0  # P(w) H(Y | w, state)
            for y in range(letters):
                mixed = 0.0
                for i in range(states):
                    mixed += stationary[i] * joint[depth, i, y]
                weight += mixed
                if mixed > 0.0:
                    above -= mixed * math.log(mixed)
            if weight > 0.0:
                above += weight * math.log(weight)
            for i in range(states):
                total = 0.0
                part = 0.0
                for y in range(letters):
                    value = joint[depth, i, y]
                    total += value
                    if value > 0.0:
                        part -= value * math.log(value)
                if total > 0.0:
                    below += stationary[i] * (part + total * math.log(total))
            leaf = above - below <= threshold or depth == max_depth or nodes >= max_nodes
            if leaf:
                # Neumaier's compensated sums.
                total = lower + below
                lower_rest += (lower - total) + below if lower >= below else (below - total) + lower
                lower = total
                total = upper + above
                upper_rest += (upper - total) + above if upper >= above else (above - total) + upper
                upper = total
                depth -= 1
                enter = False
                continue
            child[depth] = 0
        y = child[depth]
        if y == letters:
            depth -= 1
            enter = False
            continue
        child[depth] += 1
        reached = False
        for i in range(states):
            for b in range(letters):
                value = 0.0
                for j in range(states):
                    value += steps[y, i, j] * joint[depth, j, b]
                joint[depth + 1, i, b] = value
                reached = reached or value > 0.0
        enter = reached
        if reached:
            depth += 1
    return lower + lower_rest, upper + upper_rest, nodes, longest
