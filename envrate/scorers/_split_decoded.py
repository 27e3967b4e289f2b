"""What the agent's own outcomes would have been worth, relabelled: the situations that C_decoded decides on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envrate.scorers._ideal import Situations
from envrate.scorers._outcome import DONT_KNOW, NOT_PROBED, Outcomes
from envrate.scorers._posterior import chain_of
from envrate.task import Task
from envrate.trace import WRONG_UNKNOWN, Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Ticks that a process's outcomes are followed over; more would change nothing but the time it takes.
MAX_FOLLOWED = 200_000
#: Beliefs are told apart to this many parts.
LEVELS = 100
#: Added to each count of the fitted channel.
SMOOTHING = 0.5


def memoryless_situations(task: Task, table: FloatArray) -> Situations:
    """The columns of the agent's own table (A, A + 2): with independent ticks, all that an outcome says is itself."""
    joint = task.pmf[:, None] * table  # (A, A + 2)
    silence = np.zeros(joint.shape[1])
    silence[-1] = 1.0
    return Situations(joint.T, silence, joint.T)


def process_situations(trace: Trace, found: Outcomes, latency_ms: int, *, resolved: bool) -> Situations:
    """Outcomes up to and including each tick, through the channel fitted to them, by what they let one believe.

    Args:
        trace: a run on a chain with memory.
        found: its outcomes.
        latency_ms: l.
        resolved: whether silence before anything was delivered is a symbol of its own.
    """
    from envrate.scorers._information_kernels import filtered_symbols

    task = trace.task
    chain, t = chain_of(task), trace.ticks
    order = np.lexsort((t["tick"], t["episode"]))[:MAX_FOLLOWED]
    required, episode, scored = (t[name][order] for name in ("required", "episode", "scored"))
    size = task.num_symbols
    outcome = np.where(found.first_ms <= latency_ms, found.first_value, 0)[order]
    outcome = np.where(outcome == WRONG_UNKNOWN, size, outcome)
    if resolved:
        outcome = np.where((outcome == 0) & (found.delivered_ms[order] > latency_ms), size + 1, outcome)
    counts = np.zeros((size, size + 2))
    np.add.at(counts, (required[scored], outcome[scored]), 1.0)
    channel = (counts + SMOOTHING) / (counts + SMOOTHING).sum(axis=1, keepdims=True)
    starts = np.append(True, episode[1:] != episode[:-1])
    belief = filtered_symbols(
        chain.matrix, chain.stationary, chain.response, channel, np.where(scored, outcome, -1), starts
    )[scored]
    required, outcome = required[scored], outcome[scored]
    # One situation per outcome and belief, beliefs being told apart to a hundredth.
    codes = np.rint(belief * LEVELS).astype(np.int64) @ (LEVELS + 1) ** np.arange(size) * (size + 2) + outcome
    _, inverse = np.unique(codes, return_inverse=True)
    inverse = inverse.reshape(-1)
    number = np.bincount(inverse).astype(np.float64)
    joint = np.zeros((number.size, size))
    np.add.at(joint, (inverse, required), 1.0)
    mean = np.stack([np.bincount(inverse, weights=belief[:, a]) for a in range(size)], axis=1)
    # The law's own pmf, as in every profile.
    share = np.bincount(required, minlength=size)
    joint *= task.pmf / np.maximum(share, 1)
    silence = np.zeros(number.size)
    if resolved:
        probe = found.probe[order][scored]
        asked = (outcome == 0) & (probe != NOT_PROBED)
        unknown = float((probe[asked] == DONT_KNOW).mean()) if asked.any() else 0.0
        kind = np.zeros(number.size, dtype=np.int64)
        kind[inverse] = outcome
        silence = np.where(kind == size + 1, 1.0, np.where(kind == 0, unknown, 0.0))
    return Situations(joint, silence, mean / mean.sum())
