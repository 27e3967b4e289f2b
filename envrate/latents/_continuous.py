"""Markov chains in continuous time, sampled on the tick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from envrate import _checks
from envrate._spec import tagged
from envrate.latents._laws import MarkovChain

#: How far the rows of a generator may be from 0, relative to the largest rate.
ROW_TOLERANCE = 1e-9


@tagged("law", "continuous-markov")
@dataclass(frozen=True)
class ContinuousMarkovChain:
    """A Markov chain that may jump at any moment and is read once per tick.

    Args:
        generator: (K, K) rates per second; off-diagonal entries >= 0, rows sum to 0.
        initial: (K,) law of z_0; None starts it stationary.

    Raises:
        ValueError: a negative rate, a row that does not sum to 0; reducible chains are refused once the tick is known.
    """

    generator: tuple[tuple[float, ...], ...]  # (K, K), per second
    initial: tuple[float, ...] | None = None  # (K,)

    def __post_init__(self) -> None:
        """Checks the generator and stores it as nested tuples."""
        rates = _checks.finite_array("generator", self.generator, 2)
        if rates.shape[0] != rates.shape[1] or not rates.size:
            raise ValueError(f"generator: expected a square matrix, got shape {rates.shape}")
        off = rates - np.diag(np.diag(rates))
        if (off < 0).any():
            row, column = np.argwhere(off < 0)[0]
            raise ValueError(f"generator: entry ({row}, {column}) is {rates[row, column]:g}, expected a rate >= 0")
        sums = rates.sum(1)
        bad = np.flatnonzero(np.abs(sums) > ROW_TOLERANCE * max(1.0, float(np.abs(rates).max())))
        if bad.size:
            raise ValueError(f"generator: row {bad[0]} sums to {sums[bad[0]]:.6g}, expected 0")
        object.__setattr__(self, "generator", tuple(tuple(row) for row in rates.tolist()))
        if self.initial is not None:
            start = _checks.pmf("initial", self.initial)
            if start.size != len(rates):
                raise ValueError(f"initial: expected {len(rates)} probabilities, one per state, got {start.size}")
            object.__setattr__(self, "initial", tuple(start.tolist()))

    @property
    def num_states(self) -> int:
        """K, the number of states."""
        return len(self.generator)

    def at_tick(self, tick_ms: int) -> MarkovChain:
        """The chain from tick to tick, expm(Q T)."""
        from scipy.linalg import expm

        matrix = np.maximum(expm(np.asarray(self.generator) * (tick_ms / 1000.0)), 0.0)
        return MarkovChain(matrix / matrix.sum(1, keepdims=True), self.initial)
