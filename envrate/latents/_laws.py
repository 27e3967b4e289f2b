"""Laws of the hidden latent z_t: frozen dataclasses of Python numbers, one per family of processes.

A law says how z moves from tick to tick; the samplers in JAX sit in private modules beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate._spec import tagged

FloatArray = NDArray[np.float64]


def _classes(reachable: NDArray[np.bool_]) -> list[list[int]]:
    """Communicating classes, from the (K, K) reachability relation."""
    mutual = reachable & reachable.T
    return [np.flatnonzero(row).tolist() for row in np.unique(mutual, axis=0)]


def _reachability(transition: FloatArray) -> NDArray[np.bool_]:
    """(K, K): can state j be reached from i in any number of steps, zero included."""
    reach = (transition > 0) | np.eye(len(transition), dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(len(transition)))))):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    return reach


@tagged("law", "markov")
@dataclass(frozen=True)
class MarkovChain:
    """A finite irreducible Markov chain that moves once per tick.

    Args:
        transition: (K, K) nested sequence or array; row i is the law of z_{t+1} given z_t = i and sums to 1.
        initial: (K,) law of z_0; None starts it stationary, which every demand assumes.

    Raises:
        ValueError: a row that is no probability vector, or a chain that falls into several classes: its entropy
            rate would depend on where it starts.
    """

    transition: tuple[tuple[float, ...], ...]  # (K, K)
    initial: tuple[float, ...] | None = None  # (K,)

    def __post_init__(self) -> None:
        """Checks the matrix and stores it as nested tuples."""
        matrix = _checks.stochastic_matrix("transition", self.transition)
        classes = _classes(_reachability(matrix))
        if len(classes) > 1:
            raise ValueError(
                f"transition: the chain is reducible, its communicating classes are {classes[:4]}; "
                "expected one class, so that a stationary law and an entropy rate exist"
            )
        object.__setattr__(self, "transition", tuple(tuple(row) for row in matrix.tolist()))
        if self.initial is not None:
            start = _checks.pmf("initial", self.initial)
            if start.size != len(matrix):
                raise ValueError(f"initial: expected {len(matrix)} probabilities, one per state, got {start.size}")
            object.__setattr__(self, "initial", tuple(start.tolist()))

    @property
    def num_states(self) -> int:
        """K, the number of states."""
        return len(self.transition)

    @cached_property
    def matrix(self) -> FloatArray:
        """(K, K) transition matrix."""
        return np.asarray(self.transition)

    @cached_property
    def stationary(self) -> FloatArray:
        """(K,) stationary law, the solution of pi P = pi that sums to 1."""
        system = np.vstack([self.matrix.T - np.eye(self.num_states), np.ones(self.num_states)])
        target = np.append(np.zeros(self.num_states), 1.0)
        pi = np.maximum(np.linalg.lstsq(system, target, rcond=None)[0], 0.0)
        return np.asarray(pi / pi.sum())

    @property
    def is_memoryless(self) -> bool:
        """Whether every row is the same law, so that the states are drawn afresh at each tick."""
        return bool((self.matrix == self.matrix[0]).all())

    def at_tick(self, tick_ms: int) -> MarkovChain:
        """The law from tick to tick: this chain itself, whatever the tick's length."""
        return self
