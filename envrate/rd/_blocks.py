"""Blocks of n letters with additive costs: the kernel is a Kronecker power, so it is never written out.

At multipliers m >= 0 in nats, the block problem is

    V(m) = min over laws q of the outcome block of  - sum_a p(a) log sum_y q(y) exp(- m . cost(a, y)),

cost(a, y) = sum_t cost(a_t, y_t). Cutting the block in two halves, the kernel is K1 x K2 with K1, K2 the kernels of
the halves, and its product with q, written as a matrix, is K1 q K2': two small matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envrate.rd._block_newton import polish
from envrate.rd._chain import HiddenMarkov

FloatArray = NDArray[np.float64]

#: Weight of the uniform law mixed into q where bounds are evaluated: without it an outcome of vanishing weight that
#: Blahut-Arimoto has not yet raised would spoil the lower bound.
POLISH = (1e-10, 1e-6)

#: Floor of a weight in the iteration: every source block keeps an outcome, so that no logarithm or ratio fails.
SMALLEST = 1e-250

#: Largest number of entries of a half kernel, all costs together.
MAX_HALF = 4_000_000


def block_law(source: HiddenMarkov, start: FloatArray, letters: NDArray[np.intp], n: int) -> FloatArray:
    """(A**n,) law of the next n letters when the state before them has law `start`; the first letter moves slowest."""
    forward = start[None, :]  # (A**k, K)
    emission = source.emission[:, letters].T  # (A, K)
    for _ in range(n):
        forward = ((forward @ source.transition)[:, None, :] * emission[None]).reshape(-1, source.num_states)
    return np.asarray(forward.sum(axis=1))


@dataclass(frozen=True)
class Condition:
    """What both ends know before a block: one law of the block per case."""

    name: str
    weights: FloatArray  # (G,) probability of each case
    laws: FloatArray  # (G, A**n1, A**n2)
    memory: float  # bits per letter to take off a lower bound


@dataclass(frozen=True)
class BlockSolution:
    """A certified solution at given multipliers, in nats per block: lower <= V <= value."""

    lower: float
    value: float
    output: FloatArray  # (G, Y**n1, Y**n2) the law q of the outcome block
    costs: FloatArray  # (C,) expected cost per letter of the channel q K / r
    information: float  # nats per block: at least the information of that channel


def _halves(costs: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The cost (C, A**k, Y**k) of the first and of the second half of a block."""

    def power(k: int) -> FloatArray:
        total = np.zeros((len(costs), 1, 1))
        for _ in range(k):
            size = (total.shape[1] * costs.shape[1], total.shape[2] * costs.shape[2])
            total = (total[:, :, None, :, None] + costs[:, None, :, None, :]).reshape(len(costs), *size)
        return total

    return power((n + 1) // 2), power(n // 2)


class Blocks:
    """The block problem of one cost tensor. Final.

    Args:
        costs: (C, A, Y) costs >= 0; infinite where the cell is forbidden. Every row needs a cell of cost 0.
        n: letters per block.
    """

    def __init__(self, costs: FloatArray, n: int) -> None:
        """Builds the costs of the two halves."""
        self.n = n
        self.num_costs, self.num_letters, self.num_outcomes = costs.shape
        halves = _halves(costs, n)
        self._forbidden = [np.isinf(half).any(axis=0) for half in halves]
        self._costs = [np.where(np.isinf(half), 0.0, half) for half in halves]

    @staticmethod
    def largest_n(num_costs: int, letters: int, outcomes: int, n: int) -> int:
        """The largest block length up to n whose half kernels stay within the memory limit."""
        while n > 1 and num_costs * (letters * outcomes) ** ((n + 1) // 2) > MAX_HALF:
            n -= 1
        return n

    def shape(self, size: int) -> tuple[int, int]:
        """The matrix shape of a block law over an alphabet of `size`."""
        return size ** ((self.n + 1) // 2), size ** (self.n // 2)

    def kernels(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """exp(- m . cost) of the two halves, (A**k, Y**k) each; an infinite multiplier forbids what costs."""
        infinite = np.isinf(multipliers)
        finite = np.where(infinite, 0.0, multipliers)
        out = []
        for cost, forbidden in zip(self._costs, self._forbidden, strict=True):
            kernel = np.exp(-np.tensordot(finite, cost, axes=1))
            kernel[forbidden | (cost[infinite] > 0).any(axis=0)] = 0.0
            out.append(kernel)
        return out[0], out[1]

    def product_output(self, channel: FloatArray, laws: FloatArray) -> FloatArray:
        """(G, Y**n1, Y**n2) outcome laws when each letter goes through `channel` (A, Y) by itself."""
        power: list[FloatArray] = [np.ones((1, 1))]
        for _ in range((self.n + 1) // 2):
            power.append(np.asarray(np.kron(power[-1], channel)))
        return np.asarray(power[(self.n + 1) // 2].T @ laws @ power[self.n // 2])

    def solve(
        self,
        multipliers: FloatArray,
        condition: Condition,
        output: FloatArray,
        *,
        tol: float,
        iterations: int,
        effort: int,
    ) -> BlockSolution:
        """Minimises by Blahut-Arimoto steps, extrapolated on the log scale, then by Newton steps.

        Blahut-Arimoto stops when value - lower <= tol nats or after `iterations`; cases not certified by then go to
        the Newton polish, which takes `effort` large steps at most. Source of the bounds: Blahut 1972; Csiszar 1974;
        Gallager 1968, theorem 9.4.1. The extrapolation is SQUAREM (Varadhan and Roland 2008), taken back whenever it
        does not descend.
        """
        first, second = self.kernels(multipliers)
        back_first, second_t = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T)
        laws, weights = condition.laws, condition.weights
        size = output[0].size

        def forward(q: FloatArray) -> FloatArray:
            return np.asarray(first @ q @ second_t)

        def value(r: FloatArray) -> FloatArray:
            return -np.asarray((laws * np.log(np.where(laws > 0, r, 1.0))).sum(axis=(1, 2)))

        def ratio(r: FloatArray) -> FloatArray:
            w = np.divide(laws, r, out=np.zeros_like(laws), where=laws > 0)
            return np.asarray(back_first @ w @ second)

        q = np.maximum(output, SMALLEST)
        best = q.copy()
        lowers, values = np.full(len(weights), -np.inf), np.full(len(weights), np.inf)
        for step in range(iterations + 1):
            if step % 5 == 0 or step == iterations:
                for eps in POLISH:
                    mixed = (1.0 - eps) * q + eps / size
                    r = forward(mixed)
                    reached = value(r)
                    lowers = np.maximum(lowers, reached - np.log(ratio(r).max(axis=(1, 2))))
                    better = reached < values
                    best[better], values[better] = mixed[better], reached[better]
                if float(weights @ (values - lowers)) <= tol or step == iterations:
                    break
            r0 = forward(q)
            q1 = np.maximum(q * ratio(r0), SMALLEST)
            q2 = np.maximum(q1 * ratio(forward(q1)), SMALLEST)
            q = self._extrapolate(q, q1, q2, value(r0), value, forward)
        for case in np.flatnonzero(values - lowers > tol):
            best[case], low, high = polish(first, second, laws[case], best[case], 0.5 * tol, effort)
            lowers[case], values[case] = max(lowers[case], low), high
        _, costs, information = self.channel(multipliers, condition, best)
        return BlockSolution(float(weights @ lowers), float(weights @ values), best, costs, information)

    def channel(
        self, multipliers: FloatArray, condition: Condition, output: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """The channel q K / r of any law q: r (G, A**n1, A**n2), costs (C,) per letter, information in nats per block.

        The information is that of the channel itself: -E log r - m . cost less the divergence of q from the outcomes.
        """
        first, second = self.kernels(multipliers)
        laws, weights = condition.laws, condition.weights
        r = first @ output @ second.T
        w = np.divide(laws, r, out=np.zeros_like(r), where=laws > 0)
        c = first.T @ w @ second
        left, right = first @ output, output @ second.T  # K1 q and q K2'
        weighted = w * weights[:, None, None]
        costs = np.empty(self.num_costs)
        for k in range(self.num_costs):
            part = (first * self._costs[0][k]) @ right + left @ (second * self._costs[1][k]).T
            costs[k] = (weighted * part).sum() / self.n
        value = -(laws * np.log(np.where(laws > 0, r, 1.0))).sum(axis=(1, 2))
        drift = (output * c * np.log(np.maximum(c, 1e-300))).sum(axis=(1, 2))
        finite = np.where(np.isinf(multipliers), 0.0, multipliers)
        return r, costs, float(weights @ (value - drift)) - self.n * float(finite @ costs)

    @staticmethod
    def _extrapolate(
        q0: FloatArray,
        q1: FloatArray,
        q2: FloatArray,
        value0: FloatArray,
        value: Callable[[FloatArray], FloatArray],
        forward: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        """One safeguarded SQUAREM step in log q, per case."""
        tiny = 1e-300
        l0, l1, l2 = (np.log(np.maximum(q, tiny)) for q in (q0, q1, q2))
        step, bend = l1 - l0, l2 - 2 * l1 + l0
        top, bottom = (q0 * step**2).sum(axis=(1, 2)), (q0 * bend**2).sum(axis=(1, 2))
        alpha = np.maximum(1.0, np.sqrt(top / np.maximum(bottom, tiny)))[:, None, None]
        far = np.exp(np.clip(l0 + 2 * alpha * step + alpha**2 * bend, -690.0, 50.0))
        far = np.maximum(far / far.sum(axis=(1, 2), keepdims=True), SMALLEST)
        good = value(forward(far)) <= value0 + 1e-13
        return np.where(good[:, None, None], far, q2)
