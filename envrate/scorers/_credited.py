"""Credited throughput: the least information rate that agrees with what came right, wrong, missing and unasked."""

from __future__ import annotations

from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from envrate import rd
from envrate.scorers._profile import Profile, profile
from envrate.scorers._severity import memory
from envrate.task import Task
from envrate.trace import Header

FloatArray = NDArray[np.float64]

#: Letters per block for sources with memory.
BLOCK_LETTERS = 8


def classes_for(header: Header, stratum: int = 0, *, resolved: bool = False) -> Profile:
    """The classes of one stratum of a run; a run without a task weighs every failure alike."""
    source = header.strata[stratum]
    distortion = None if header.task is None else header.task.distortion
    return profile(source.pmf, distortion, source.exchangeable, resolved=resolved)


@lru_cache(maxsize=32)
def process(
    transition: tuple[tuple[float, ...], ...], response: tuple[int, ...], classes: tuple[tuple[int, ...], ...]
) -> rd.MarkovProfile:
    """One per source and reading, so that what was searched for once is kept; its rates depend on no call before."""
    return rd.MarkovProfile(transition, response, classes, BLOCK_LETTERS)


@final
class CreditedRate:
    """Bits per letter of one source in one reading, certified lower ends.

    Memoryless sources (and strata of other benchmarks) have the one-letter rate; chains the lower end of an n-block
    bracket; other processes with memory, such as a thresholded Gaussian process, the one-letter rate less the memory
    H(A) - h (after Shannon's lower bound), with h from the task's demand.
    """

    def __init__(self, classes: Profile, task: Task | None = None, *, merged: bool = False) -> None:
        """Prepares the rate.

        Args:
            classes: of the source; with `merged` those of the source whose responses are all one.
            task: gives the process; None is memoryless.
            merged: whether to merge all responses into "alert": the rate of detection.
        """
        self.classes = classes.merged() if merged else classes
        self._blocks: rd.MarkovProfile | None = None
        self._memory = 0.0
        self.method = "one letter"
        if task is None or task.is_memoryless:
            return
        if hasattr(task.latent, "matrix"):
            response = np.minimum(task.table, 1) if merged else np.asarray(task.table)
            matrix = self.classes.matrix[: int(response.max()) + 1]
            self._blocks = process(
                tuple(map(tuple, task.latent.matrix.tolist())),
                tuple(response.tolist()),
                tuple(map(tuple, matrix.tolist())),
            )
            self.method = self._blocks.method
        else:
            self._memory = memory(task)  # merging only lessens the memory, so this one serves both
            self.method = "one letter less the memory"

    def lower(self, frequencies: FloatArray, *, anchors: FloatArray | None = None) -> FloatArray:
        """(...) bits per letter at frequencies (..., C); NaN where a frequency is NaN.

        With `anchors` (J, C) a chain's rate at all of them is bounded by the planes of those; see `rd.MarkovProfile`.
        """
        flat = frequencies.reshape(-1, frequencies.shape[-1])
        known = np.isfinite(flat).all(axis=1)
        out = np.full(len(flat), np.nan)
        if known.any():
            unique, back = np.unique(flat[known], axis=0, return_inverse=True)
            out[known] = self._lower(unique, anchors)[back.ravel()]
        return np.asarray(out.reshape(frequencies.shape[:-1]))

    def _lower(self, frequencies: FloatArray, anchors: FloatArray | None) -> FloatArray:
        if self._blocks is not None:
            return np.asarray(self._blocks.lower(frequencies, anchors=anchors))
        rate = np.asarray(rd.profile_rate(self.classes.pmf, self.classes.matrix, frequencies).lower)
        return np.asarray(np.maximum(rate - self._memory, 0.0) if self._memory else rate)

    def slopes(self, frequencies: FloatArray) -> FloatArray:
        """(..., C) how fast the one-letter rate falls with each frequency, bits; 0 where a frequency is NaN."""
        known = np.isfinite(frequencies).all(axis=-1)
        out = np.zeros(frequencies.shape)
        if known.any():
            out[known] = rd.profile_rate(self.classes.pmf, self.classes.matrix, frequencies[known]).multipliers
        return out
