"""Credited rate of a source with memory: certified lower planes over the frequencies of its consequences."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._blocks import Blocks, Condition
from envrate.rd._chain import function_of_chain, lumped
from envrate.rd._contexts import given_letters, given_state, unconditional
from envrate.rd._entropy_rate import entropy_rate_of
from envrate.rd._profile import class_matrix, profile_rate
from envrate.rd._threads import one_blas_thread
from envrate.rd._types import Bracket

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LN2: Final = float(np.log(2.0))

#: Bits per letter that a plane may lose to its certificate, and that are taken off for what rounding may add.
PLANE_TOLERANCE: Final = 2e-5
ROUNDING: Final = 1e-12

#: Moves of the multipliers on short blocks, which cost next to nothing, and on the longest; their first stride; steps
#: at the best of them.
SHORT_MOVES, FULL_MOVES = 15, 8
SHORT_STRIDE, FULL_STRIDE = 1.0, 0.25
SHORT_ROUNDS: Final = 100
START_STEPS, SHORT_STEPS, FULL_STEPS = 10, 10, 60
LETTER_STEPS: Final = 100

#: Moves of a channel's multipliers until it meets its profile.
MEETING_MOVES: Final = 60

#: Multiply-adds of one pass over a block, source blocks, and cases of what is known before a block.
WORK_LIMIT: Final = 150_000
MAX_BLOCKS: Final = 512
MAX_CASES: Final = 8

#: Profiles whose planes are kept, and profiles that a thread searches for at once.
MAX_KEPT, CHUNK = 4096, 4


@dataclass(frozen=True)
class Planes:
    """Lower planes intercept - multipliers . f of one or more profiles, bits per letter."""

    intercepts: FloatArray  # (P,)
    multipliers: FloatArray  # (P, C) may be infinite

    def at(self, f: FloatArray) -> FloatArray:
        """(N,) the best plane at each profile (N, C); an infinite multiplier holds only where its frequency is 0."""
        best = np.full(len(f), -np.inf)
        for intercept, plane in zip(self.intercepts, self.multipliers, strict=True):
            infinite = np.isinf(plane)
            value = intercept - f @ np.where(infinite, 0.0, plane)
            value[(f[:, infinite] > 0).any(axis=1)] = -np.inf
            np.maximum(best, value, out=best)
        return best


def _power(matrix: FloatArray, n: int) -> FloatArray:
    """The n-th Kronecker power."""
    out: FloatArray = np.ones((1, 1))
    for _ in range(n):
        out = np.asarray(np.kron(out, matrix))
    return out


def _cost(m: FloatArray, f: FloatArray) -> float:
    """What multipliers m cost at a profile, m . f, where a frequency of 0 costs nothing."""
    return float(np.where(f > 0, m, 0.0) @ f)


def _chunks(indices: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return np.split(indices, range(CHUNK, len(indices), CHUNK))


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
        n: letters per block; made shorter where the kernels would be too large (`self.n` is what is used). Outcomes
            that a profile forbids throughout leave room for longer ones.

    Raises:
        ValueError: bad input, or a required symbol whose every outcome is bounded.
    """

    def __init__(self, transition: ArrayLike, response: ArrayLike, classes: ArrayLike, n: int = 8) -> None:
        """Checks the input; planes are searched for when rates are asked for."""
        self._source = lumped(function_of_chain(transition, response))
        cells = np.asarray(classes)
        count = int(cells.max(initial=-1)) + 1 if cells.dtype.kind in "iu" else 1
        matrix = class_matrix(classes, self._source.emission.shape[1], count)
        if count == 0:
            raise ValueError("classes: every cell is -1; expected at least one class")
        self._matrix = matrix
        self._letters = np.flatnonzero(self._source.pmf > 0)
        self._classes = matrix[self._letters]
        for a, row in zip(self._letters, self._classes, strict=True):
            if not (row < 0).any():
                raise ValueError(f"classes: row {a} has no cell of class -1; expected an outcome that handles it")
        self._pmf = self._source.pmf / self._source.pmf.sum()
        self.num_classes = count
        self.entropy_rate = entropy_rate_of(self._source, tol=1e-10)
        self._requested = _checks.integer("n", n, 1, 64)
        self._known: dict[int, tuple[Condition, ...]] = {}
        self._kept: dict[bytes, Planes] = {}
        self.n = self._affordable(self._classes.shape[1])
        self._memory = unconditional(self._source, self._letters, 1, self.entropy_rate.lower).memory
        self._memoryless = self._memory <= 1e-12
        names = " and ".join(condition.name for condition in self._conditions(self.n)[:-1])
        shorter = f" ({self._requested} asked for)" if self.n < self._requested else ""
        self.method = "one letter, memoryless" if self._memoryless else f"blocks of {self.n}{shorter}, {names}"

    def _affordable(self, outcomes: int) -> int:
        """The largest block length up to the one asked for whose pass stays within the limit on work."""
        letters, n = len(self._letters), self._requested

        def work(k: int) -> int:
            first, second = (k + 1) // 2, k // 2
            return int(letters**first * outcomes**second * (outcomes**first + letters**second))

        while n > 1 and (work(n) > WORK_LIMIT or letters**n > MAX_BLOCKS):
            n -= 1
        return n

    def _conditions(self, n: int) -> tuple[Condition, ...]:
        """What may be known before blocks of n, alike at every n; the last knows nothing and serves the upper end."""
        if n not in self._known:
            source, letters, rate = self._source, self._letters, self.entropy_rate.lower
            found = [given_letters(source, letters, n, rate, MAX_CASES)]
            if given_letters(source, letters, self.n, rate, MAX_CASES).memory > 1e-9 and (
                source.num_states <= 2 * MAX_CASES
            ):
                found.append(given_state(source, letters, n))
            self._known[n] = (*found, unconditional(source, letters, n, rate))
        return self._known[n]

    # -- lower end --------------------------------------------------------------------------------------------------

    @one_blas_thread
    def lower(self, frequencies: ArrayLike, *, anchors: ArrayLike | None = None) -> FloatArray:
        """Certified lower end of the rate at each profile, bits per letter.

        Args:
            frequencies: (..., C) joint frequency of each class of cells, at least 0.
            anchors: (J, C) profiles whose planes bound all of `frequencies`. For thousands of profiles near a few:
                what is lost grows with the square of the distance. None searches for the planes of each profile,
                so that its rate depends on nothing else.

        Returns:
            (...) rates, at least 0.
        """
        f = self._checked("frequencies", frequencies)
        flat = f.reshape(-1, self.num_classes)
        if self._memoryless:
            bound = np.asarray(profile_rate(self._pmf, self._matrix, flat).lower)
        elif anchors is None:
            bound = self._own(flat)
        else:
            around = self._checked("anchors", anchors).reshape(-1, self.num_classes)
            planes = self._planes(np.unique(around, axis=0))
            bound = Planes(
                np.concatenate([one.intercepts for one in planes]), np.concatenate([one.multipliers for one in planes])
            ).at(flat)
        return np.asarray(np.maximum(bound, 0.0).reshape(f.shape[:-1]))

    def _checked(self, name: str, frequencies: ArrayLike) -> FloatArray:
        f = _checks.finite_array(name, frequencies)
        if f.ndim == 0 or f.shape[-1] != self.num_classes:
            raise ValueError(
                f"{name}: expected a last axis of {self.num_classes}, one number per class, got shape {f.shape}"
            )
        return f

    def _own(self, f: FloatArray) -> FloatArray:
        """(N,) the best plane of each profile at that profile."""
        planes = self._planes(f)
        return np.array([one.at(g[None])[0] for one, g in zip(planes, f, strict=True)])

    def _planes(self, f: FloatArray) -> list[Planes]:
        """The planes of each profile (N, C), searched for where they are not kept."""
        missing = np.array([k for k, g in enumerate(f) if g.tobytes() not in self._kept], dtype=np.intp)
        if len(self._kept) + len(missing) > MAX_KEPT:
            self._kept.clear()
            missing = np.arange(len(f))
        letter = profile_rate(self._pmf, self._matrix, f[missing])
        slopes = np.asarray(letter.multipliers).reshape(-1, self.num_classes)
        # Shannon's bound: the one-letter plane less the memory of one letter.
        shannon = np.asarray(letter.lower).reshape(-1) + (slopes * f[missing]).sum(axis=1) - self._memory
        # Profiles that forbid the same outcomes are searched for together; the compiled search lets threads run.
        usable = np.stack([self._usable(g) for g in f[missing]]) if len(missing) else np.empty((0, 0), bool)
        parts = [
            part
            for pattern in np.unique(usable, axis=0)
            for part in _chunks(np.flatnonzero((usable == pattern).all(axis=1)))
        ]
        conditions = range(len(self._conditions(self.n)) - 1)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            waiting = [
                [pool.submit(self._search, k, f[missing[part]], slopes[part], usable[part[0]]) for k in conditions]
                for part in parts
            ]
            found = [[one.result()[:2] for one in each] for each in waiting]
        for part, each in zip(parts, found, strict=True):
            for row, index in enumerate(part):
                g = f[missing[index]]
                self._kept[g.tobytes()] = Planes(
                    np.array([shannon[index], *(intercepts[row] for intercepts, _ in each)]),
                    np.stack([np.where(g > 0, slopes[index], np.inf), *(m[row] for _, m in each)]),
                )
        return [self._kept[g.tobytes()] for g in f]

    def _usable(self, f: FloatArray) -> NDArray[np.bool_]:
        """(Y,) the outcomes with a cell that the profile does not forbid."""
        return np.asarray(((self._classes < 0) | (f[self._classes] > 0)).any(axis=0))

    def _search(
        self, index: int, f: FloatArray, slopes: FloatArray, usable: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The planes of (N, C) profiles under condition `index`, and the law of the outcome block of each at the end.

        Returns (N,) intercepts less the memory and (N, C) multipliers in bits, and (N, G, Y**n1, Y**n2) laws.
        """
        found = [self._climb(index, g, slope, usable) for g, slope in zip(f, slopes, strict=True)]
        intercepts, multipliers, laws = (np.stack(part) for part in zip(*found, strict=True))
        return intercepts, multipliers, laws

    def _climb(
        self, index: int, f: FloatArray, slope: FloatArray, usable: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The plane of one profile (C,): from the one-letter multipliers, from short to long blocks."""
        from envrate.rd import _block_kernel as kernel

        classes = np.ascontiguousarray(self._classes[:, usable])
        n, outcomes = self._affordable(classes.shape[1]), classes.shape[1]
        m = np.where(f > 0, np.clip(slope * LN2, 0.0, kernel.LARGEST), np.inf)
        channel = self._letter_channel(classes, m)
        tried: list[tuple[FloatArray, int]] = []  # multipliers and the length of the blocks that they are best for
        for length in sorted({max(1, n // 4), max(1, n // 2), n}):
            last = length == n
            condition = self._conditions(length)[index]
            problem = classes, length, condition.laws, condition.weights, f
            left, right = (_power(channel, k) for k in ((length + 1) // 2, length // 2))
            start = np.ascontiguousarray(left.T @ condition.laws @ right)
            start = 0.999 * start + 0.001 / outcomes**length
            if last and len(tried) > 1:  # multipliers go about with 1/n: a second place to start from
                (m1, n1), (m2, n2) = tried[-2:]
                with np.errstate(invalid="ignore"):
                    ahead = m2 + (m2 - m1) * (1.0 / n2 - 1.0 / n) / (1.0 / n1 - 1.0 / n2)
                ahead = np.where(f > 0, np.clip(ahead, 0.0, kernel.LARGEST), np.inf)
                here, there = (
                    kernel.climb(*problem, place.copy(), start.copy(), 0, 0, 0.0, START_STEPS, 1.0) - _cost(place, f)
                    for place in (m, ahead)
                )
                m = ahead if there > here else m
            q = start.copy()
            intercept = kernel.climb(
                *problem, m, q, 0 if last else SHORT_ROUNDS, FULL_MOVES if last else SHORT_MOVES,
                FULL_STRIDE if last else SHORT_STRIDE, FULL_STEPS if last else SHORT_STEPS, PLANE_TOLERANCE * LN2,
            )
            tried.append((m.copy(), length))
        return np.asarray(intercept / LN2 - condition.memory - ROUNDING), m / LN2, q

    def _letter_channel(self, classes: IntArray, m: FloatArray) -> FloatArray:
        """(A, Y) the best channel of one letter at multipliers m."""
        from envrate.rd import _block_kernel as kernel

        cells = kernel.letter_kernel(classes, m)
        pmf = np.ascontiguousarray(self._pmf[self._letters][:, None])
        q = np.full((cells.shape[1], 1), 1.0 / cells.shape[1])
        kernel.over_relaxed(cells, np.ones((1, 1)), pmf, q, np.empty_like(q), LETTER_STEPS, 1e-7)
        channel = cells * q.T
        return np.asarray(channel / channel.sum(axis=1, keepdims=True))

    # -- both ends --------------------------------------------------------------------------------------------------

    @one_blas_thread
    def upper(self, frequencies: ArrayLike) -> FloatArray:
        """Upper end of the rate at each profile, (...) bits per letter: R_n, and the one-letter rate.

        The channel found for the block is sharpened, and mixed with one that handles everything, until every
        frequency holds.
        """
        f = self._checked("frequencies", frequencies)
        flat = f.reshape(-1, self.num_classes)
        letter = profile_rate(self._pmf, self._matrix, flat)
        out = np.minimum(np.asarray(letter.upper).reshape(-1), self.entropy_rate.upper)
        if not self._memoryless:
            for i, (g, slope) in enumerate(zip(flat, np.asarray(letter.multipliers).reshape(flat.shape), strict=True)):
                out[i] = min(out[i], self._reached(g, slope))
        return np.asarray(np.maximum(out, 0.0).reshape(f.shape[:-1]))

    def _reached(self, f: FloatArray, slope: FloatArray) -> float:
        """Information in bits per letter of a block channel that meets the profile (C,)."""
        usable = self._usable(f)
        _, planes, laws = self._search(-1, f[None], slope[None], usable)
        classes = self._classes[:, usable]
        n = self._affordable(classes.shape[1])
        blocks = Blocks(np.stack([(classes == c).astype(float) for c in range(self.num_classes)]), n)
        condition, free = self._conditions(n)[-1], f > 0
        everything = (condition.memory + self.entropy_rate.lower) * LN2
        m, best = planes[0] * LN2, np.inf
        for _ in range(MEETING_MOVES):
            _, costs, information = blocks.channel(m, condition, laws[0])
            over = costs > f
            share = 1.0 - float(np.min(f[over] / costs[over], initial=1.0))
            best = min(best, (1.0 - share) * information / n + share * everything)
            if share <= 1e-12 and (costs[free & (m > 0)] >= f[free & (m > 0)] * (1.0 - 1e-9)).all():
                break
            m = np.where(free, np.maximum(m + np.log(np.maximum(costs, 1e-300) / np.where(free, f, 1.0)), 0.0), np.inf)
        return best / LN2

    def bracket(self, frequencies: ArrayLike) -> Bracket:
        """The rate at one profile (C,) in bits per letter, both ends certified."""
        f = self._checked("frequencies", frequencies)
        if f.ndim != 1:
            raise ValueError(f"frequencies: expected one profile of {self.num_classes} numbers, got shape {f.shape}")
        upper = float(self.upper(f))
        lower = min(float(self.lower(f)), upper)
        return Bracket(lower, upper, method=self.method)
