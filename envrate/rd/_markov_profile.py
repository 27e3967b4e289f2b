"""Credited rate of a source with memory: certified lower planes over the frequencies of its consequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._blocks import Blocks, Condition
from envrate.rd._chain import HiddenMarkov, function_of_chain, lumped
from envrate.rd._contexts import given_letters, given_state, unconditional
from envrate.rd._entropy_rate import entropy_rate_of
from envrate.rd._markov_ascent import LARGEST, Ascent, ascend
from envrate.rd._profile import class_matrix, profile_rate
from envrate.rd._threads import one_blas_thread
from envrate.rd._types import Bracket

FloatArray = NDArray[np.float64]

LN2: Final = float(np.log(2.0))

#: Bits per letter that a plane may lose to its solution's gap, and that a batch may lose to a plane it shares.
PLANE_TOLERANCE: Final = 2e-5
SHARING_TOLERANCE: Final = 3e-3

#: Planes added per call, and kept in all.
MAX_PLANES_PER_CALL: Final = 12
MAX_PLANES: Final = 96

#: Multiply-adds of one pass over a block, and cases of what is known before a block.
WORK_LIMIT: Final = 500_000
MAX_CASES: Final = 8


@dataclass(frozen=True)
class _Level:
    """Blocks of one length and what may be known before them; the same conditions at every length."""

    blocks: Blocks
    conditions: tuple[Condition, ...]


@final
class MarkovProfile:
    """Credited rate of A_t = response[Z_t] in bits per letter, Z a stationary Markov chain.

    The rate is the least information rate between required symbols and outcomes that agrees with the joint frequency
    of each class of cells (see `profile_rate` for one letter). For every vector of multipliers m >= 0,

        R(f) >= V_n(m) / n - memory - m . f,     V_n(m) = min over q of - E log sum_y q(y) exp(- m . cost(A^n, y)),

    a plane that is valid for every f. V_n is certified from below by its dual. The blocks are conditioned on the
    latest letters (memory = H(A^n | letters)/n - h, after Wyner and Ziv 1971) and on the state (memory = 0, after
    Gray 1973); the larger bound counts. The one-letter rate less the memory of one letter (Shannon's bound) and 0
    are lower bounds too.

    Args:
        transition: (K, K) row i is the law of the next state; one closed class.
        response: (K,) required symbol of each state.
        classes: (A, Y) integers: the class of each cell (required, outcome), -1 for a cell without a bound. Rows
            beyond the largest response are an error. Each required symbol needs a cell without a bound.
        n: letters per block; made shorter where the kernels would be too large (`self.n` is what is used).

    Raises:
        ValueError: bad input, or a required symbol whose every outcome is bounded.
    """

    def __init__(self, transition: ArrayLike, response: ArrayLike, classes: ArrayLike, n: int = 8) -> None:
        """Checks the input and prepares the conditions; planes are added when rates are asked for."""
        source = lumped(function_of_chain(transition, response))
        cells = np.asarray(classes)
        count = int(cells.max(initial=-1)) + 1 if cells.dtype.kind in "iu" else 1
        self._classes = class_matrix(classes, source.emission.shape[1], count)
        if count == 0:
            raise ValueError("classes: every cell is -1; expected at least one class")
        self._letters = np.flatnonzero(source.pmf > 0)
        for a in self._letters:
            if not (self._classes[a] < 0).any():
                raise ValueError(f"classes: row {a} has no cell of class -1; expected an outcome that handles it")
        self._pmf = source.pmf / source.pmf.sum()
        self.num_classes = count
        self.entropy_rate = entropy_rate_of(source, tol=1e-10)
        requested = _checks.integer("n", n, 1, 64)
        self.n = self._affordable(requested, len(self._letters), self._classes.shape[1])
        costs = np.stack([(self._classes[self._letters] == c).astype(float) for c in range(count)])
        rate = self.entropy_rate.lower
        lengths = sorted({max(1, self.n // 4), max(1, self.n // 2), self.n})
        self._levels = [self._level(source, costs, k, rate) for k in lengths]
        self._conditions = self._levels[-1].conditions[:-1]
        self._letter_blocks = Blocks(costs, 1)
        self._letter = unconditional(source, self._letters, 1, rate)
        self._memoryless = self._letter.memory <= 1e-12
        self._intercepts = np.empty(0)  # (P,) bits per letter
        self._planes = np.empty((0, count))  # (P, C) multipliers in bits, may be infinite
        self._anchors = np.empty((0, count))  # (J, C) frequencies that planes were made for
        self._anchor_bounds = np.empty(0)  # (J,) one-letter bound at the anchor
        self._anchor_slopes = np.empty((0, count))  # (J, C) its multipliers
        names = " and ".join(condition.name for condition in self._conditions)
        shorter = f" ({requested} asked for)" if self.n < requested else ""
        self.method = "one letter, memoryless" if self._memoryless else f"blocks of {self.n}{shorter}, {names}"

    def _level(self, source: HiddenMarkov, costs: FloatArray, n: int, rate: float) -> _Level:
        """Blocks of n letters under each condition; the last one knows nothing and serves the upper end."""
        conditions = [given_letters(source, self._letters, n, rate, MAX_CASES)]
        if conditions[0].memory > 1e-9 and source.num_states <= 2 * MAX_CASES:
            conditions.append(given_state(source, self._letters, n))
        return _Level(Blocks(costs, n), (*conditions, unconditional(source, self._letters, n, rate)))

    @staticmethod
    def _affordable(n: int, letters: int, outcomes: int) -> int:
        """The largest block length up to n whose pass stays within the limit on work."""

        def work(k: int) -> int:
            first, second = (k + 1) // 2, k // 2
            return int(letters**first * outcomes**second * (outcomes**first + letters**second))

        while n > 1 and work(n) > WORK_LIMIT:
            n -= 1
        return n

    # -- lower end --------------------------------------------------------------------------------------------------

    @one_blas_thread
    def lower(self, frequencies: ArrayLike) -> FloatArray:
        """Certified lower end of the rate at each profile, bits per letter.

        Args:
            frequencies: (..., C) joint frequency of each class of cells, at least 0.

        Returns:
            (...) rates, at least 0. Planes are made for the profiles that need them most and serve the whole batch,
            and later batches; every plane is valid everywhere, so more planes only raise the bound.
        """
        f = self._checked(frequencies)
        flat = f.reshape(-1, self.num_classes)
        letter = profile_rate(self._pmf, self._classes, flat)
        bound = np.asarray(letter.lower)
        if not self._memoryless:
            self._add_planes(flat, bound, np.asarray(letter.multipliers))
            bound = np.maximum(bound - self._letter.memory, self._evaluate(flat))
        return np.asarray(np.maximum(bound, 0.0).reshape(f.shape[:-1]))

    def _checked(self, frequencies: ArrayLike) -> FloatArray:
        f = _checks.finite_array("frequencies", frequencies)
        if f.ndim == 0 or f.shape[-1] != self.num_classes:
            raise ValueError(
                f"frequencies: expected a last axis of {self.num_classes}, one number per class, got shape {f.shape}"
            )
        return f

    def _evaluate(self, f: FloatArray) -> FloatArray:
        """(N,) the best plane at each profile; an infinite multiplier holds only where its frequency is 0."""
        best = np.full(len(f), -np.inf)
        for intercept, plane in zip(self._intercepts, self._planes, strict=True):
            infinite = np.isinf(plane)
            value = intercept - f @ np.where(infinite, 0.0, plane)
            value[(f[:, infinite] > 0).any(axis=1)] = -np.inf
            np.maximum(best, value, out=best)
        return best

    def _shared(self, f: FloatArray) -> FloatArray:
        """(N,) what the one-letter planes of the anchors give at each profile: how well anchors serve a batch."""
        best = np.full(len(f), -np.inf)
        for g, bound, slope in zip(self._anchors, self._anchor_bounds, self._anchor_slopes, strict=True):
            value = bound + (g - f) @ slope
            value[(f[:, g == 0.0] > 0).any(axis=1)] = -np.inf
            np.maximum(best, value, out=best)
        return best

    def _add_planes(self, f: FloatArray, bounds: FloatArray, slopes: FloatArray) -> None:
        """Greedy: the profile that the anchors so far serve worst becomes an anchor."""
        served = self._shared(f)
        for _ in range(MAX_PLANES_PER_CALL):
            loss = bounds - np.maximum(served, 0.0)
            worst = int(np.argmax(loss))
            if loss[worst] <= SHARING_TOLERANCE or len(self._anchors) >= MAX_PLANES:
                break
            self._anchors = np.vstack([self._anchors, f[worst]])
            self._anchor_bounds = np.append(self._anchor_bounds, bounds[worst])
            self._anchor_slopes = np.vstack([self._anchor_slopes, slopes[worst]])
            for index, condition in enumerate(self._conditions):
                plane = self._ascend(index, f[worst], slopes[worst])
                self._intercepts = np.append(self._intercepts, plane.lower / LN2 - condition.memory)
                self._planes = np.vstack([self._planes, plane.multipliers / LN2])
            value = bounds[worst] + (f[worst] - f) @ slopes[worst]
            value[(f[:, f[worst] == 0.0] > 0).any(axis=1)] = -np.inf
            served = np.maximum(served, value)

    def _ascend(self, index: int, f: FloatArray, slope: FloatArray) -> Ascent:
        """The best plane at `f` under condition `index` (-1: nothing known), from the one-letter multipliers."""
        m = np.where(f > 0, np.clip(slope * LN2, 0.0, LARGEST), np.inf)
        outcomes = self._classes.shape[1]
        uniform = np.full((1, outcomes, 1), 1.0 / outcomes)
        solution = self._letter_blocks.solve(m, self._letter, uniform, tol=1e-7, iterations=50, effort=0)
        kernel = self._letter_blocks.kernels(m)[0] * solution.output[0, :, 0]
        levels = [(level.blocks, level.conditions[index]) for level in self._levels]
        entropy = (levels[-1][1].memory + self.entropy_rate.lower) * LN2
        return ascend(levels, f, m, kernel / kernel.sum(axis=1, keepdims=True), entropy, PLANE_TOLERANCE * LN2)

    # -- both ends --------------------------------------------------------------------------------------------------

    @one_blas_thread
    def upper(self, frequencies: ArrayLike) -> FloatArray:
        """Upper end of the rate at each profile, (...) bits per letter: R_n, and the one-letter rate.

        The channel found for the block is mixed with one that handles everything until every frequency holds.
        """
        f = self._checked(frequencies)
        flat = f.reshape(-1, self.num_classes)
        letter = profile_rate(self._pmf, self._classes, flat)
        out = np.minimum(np.asarray(letter.upper), self.entropy_rate.upper)
        if not self._memoryless:
            for i, (g, slope) in enumerate(zip(flat, np.asarray(letter.multipliers), strict=True)):
                out[i] = min(out[i], self._ascend(-1, g, slope).upper / LN2)
        return np.asarray(np.maximum(out, 0.0).reshape(f.shape[:-1]))

    def bracket(self, frequencies: ArrayLike) -> Bracket:
        """The rate at one profile (C,) in bits per letter, both ends certified."""
        f = self._checked(frequencies)
        if f.ndim != 1:
            raise ValueError(f"frequencies: expected one profile of {self.num_classes} numbers, got shape {f.shape}")
        upper = float(self.upper(f))
        lower = min(float(self.lower(f)), upper)
        return Bracket(lower, upper, method=self.method)
