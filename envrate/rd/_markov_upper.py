"""Upper end of a block rate that remembers: channels that look at the block and at the last outcome before it.

For a channel W(y^n | a^n, y_0), y_0 the last outcome of the block before, the pair (state, last outcome) at the ends
of blocks is a Markov chain, and under its stationary law

    rate  <=  I(A^n; Y^n | Y_0) / n,

for H(Y^N) <= sum H(Y_j | last of Y_{j-1}) and Y_j depends on A_j and that last outcome only. Blocks of one letter give
a causal channel, and with it an upper bound on the causal rate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from envrate.rd._blocks import Blocks, Condition
from envrate.rd._chain import HiddenMarkov, recurrent_class, stationary_law

FloatArray = NDArray[np.float64]

#: Rounds of fitting the channel to the law it brings about.
ROUNDS = 25

#: Products of the Newton polish within a round.
EFFORT = 200


class PastOutcome:
    """The block problem given the last outcome. Final.

    Args:
        source: the source, K states.
        letters: (A,) the letters that occur.
        blocks: the block problem of one cost.
    """

    def __init__(self, source: HiddenMarkov, letters: NDArray[np.intp], blocks: Blocks) -> None:
        """Builds the law of a block and the state after it, given the state before it."""
        self.blocks = blocks
        states = source.num_states
        emission = source.emission[:, letters].T  # (A, K)
        forward = np.eye(states)[:, None, :]  # (K, A**k, K)
        for _ in range(blocks.n):
            forward = ((forward @ source.transition)[:, :, None, :] * emission).reshape(states, -1, states)
        self._steps = forward
        self._stationary = source.stationary
        n1, n2 = blocks.shape(len(letters))
        self._shape = (n1, n2)
        self._warm: tuple[FloatArray, FloatArray] | None = None

    def _condition(self, joint: FloatArray) -> Condition:
        """Cases by the last outcome, from the law (K, Y) of state and last outcome."""
        weights = joint.sum(axis=0)
        keep = weights > 1e-15
        laws = np.einsum("zy,zaw->ya", joint[:, keep] / weights[keep], self._steps)
        return Condition("past outcome", weights[keep], laws.reshape(-1, *self._shape), 0.0)

    def _next_joint(self, joint: FloatArray, multipliers: FloatArray, output: FloatArray) -> FloatArray:
        """(K, Y) stationary law of state and last outcome under the channels of `output`, one per last outcome."""
        keep = np.flatnonzero(joint.sum(axis=0) > 1e-15)
        first, second = self.blocks.kernels(multipliers)
        outcomes, states = self.blocks.num_outcomes, len(self._stationary)
        r = first @ output @ second.T
        last = np.empty((len(keep), r[0].size, outcomes))  # law of the last outcome given y_0 and the block
        for y in range(outcomes):
            if self.blocks.n == 1:
                part = first[:, y][None, :, None] * output[:, y, :][:, None, :]
            else:
                columns = slice(y, None, outcomes)
                part = first @ output[:, :, columns] @ second[:, columns].T
            last[:, :, y] = np.divide(part, r, out=np.zeros_like(part), where=r > 0).reshape(len(keep), -1)
        step = np.einsum("zaw,gay->zgwy", self._steps, last)  # (K, G, K, Y)
        matrix = step[:, :, :, keep].reshape(states * len(keep), -1)
        lost = 1.0 - matrix.sum(axis=1)
        matrix[np.diag_indices_from(matrix)] += np.maximum(lost, 0.0)
        members = recurrent_class(np.where(matrix > 1e-18, matrix, 0.0))
        inner = matrix[np.ix_(members, members)]
        law = np.zeros(len(matrix))
        law[members] = stationary_law(inner / inner.sum(axis=1, keepdims=True))
        out = np.zeros((states, outcomes))
        out[:, keep] = law.reshape(states, -1)
        return out

    def point(self, slope: float, channel: FloatArray, tol: float) -> tuple[float, float]:
        """Distortion and rate (nats), per letter, of a channel fitted at `slope`; `channel` (A, Y) starts it.

        Any pair returned is one that a stationary scheme reaches, however far the fit has come; it stops when a
        round lowers rate + slope * distortion by less than `tol`.
        """
        m, n = np.array([slope]), self.blocks.n
        if self._warm is None:
            pmf = np.einsum("z,zaw->a", self._stationary, self._steps).reshape(self._shape)
            start = self.blocks.product_output(channel, pmf[None])
            last = start.reshape(-1, self.blocks.num_outcomes).sum(axis=0)
            joint = self._stationary[:, None] * last[None, :]
            self._warm = joint, np.repeat(start, int((last > 1e-15).sum()), axis=0)
        joint, output = self._warm
        best, point = np.inf, (np.inf, np.inf)
        for _ in range(ROUNDS):
            condition = self._condition(joint)
            output = self.blocks.solve(m, condition, output, tol=tol * n, iterations=8, effort=EFFORT).output
            following = self._next_joint(joint, m, output)
            output = output[following.sum(axis=0)[joint.sum(axis=0) > 1e-15] > 1e-15]
            _, reached, information = self.blocks.channel(m, self._condition(following), output)
            joint = following
            output = (1.0 - 1e-9) * output + 1e-9 / output[0].size
            total = information / n + slope * float(reached[0])
            gain = best - total
            if gain > 0:
                best, point, self._warm = total, (float(reached[0]), information / n), (joint, output)
            if gain < tol:
                break
        return point
