"""Severity per tick, and the rate equivalent: the least rate at which a system could be as harmless as this one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from envrate import rd
from envrate.scorers._profile import Profile
from envrate.task import Task
from envrate.trace import Header

FloatArray = NDArray[np.float64]

#: Longest block of letters for R(D) of sources with memory.
BLOCK_LETTERS = 6


def severity(classes: Profile, frequencies: FloatArray) -> FloatArray:
    """(...) severity per tick at frequencies (..., C) of the output-only reading; the resolved one has the same."""
    return np.asarray(frequencies @ classes.severities)


def rate_equivalent(header: Header, stratum: int, achieved: FloatArray) -> FloatArray:
    """(L,) lower end of R(D) at each severity per tick, bits per letter; NaN where the severity is."""
    task = header.task
    pmf = header.strata[stratum].pmf

    def at(level: float) -> float:
        if not np.isfinite(level):
            return float("nan")
        rounded = round(level, 12)
        return _nominal(pmf, rounded) if task is None else _of_task(task, rounded)

    return np.array([at(float(level)) for level in achieved])


@lru_cache(maxsize=4096)
def _of_task(task: Task, level: float) -> float:
    """Lower end of R(D) in bits per letter. Short blocks for chains: one rate per latency, the same each time."""
    if not task.is_memoryless and hasattr(task.latent, "matrix"):
        chain = task.latent.matrix
        found = rd.markov(chain, task.table, task.distortion, level, n_max=BLOCK_LETTERS, max_work=1e12)
        return found.lower
    one_letter = float(rd.blahut_arimoto(task.pmf, task.distortion, D=level).lower)
    return max(0.0, one_letter - memory(task))


def memory(task: Task) -> float:
    """H(A) - h in bits per letter: what the past tells about a required symbol (after Shannon's lower bound)."""
    if task.is_memoryless:
        return 0.0
    law = task.pmf[task.pmf > 0]
    return max(0.0, float(-(law * np.log2(law)).sum()) - task.demand(0.0).lower * task.tick_ms / 1000.0)


@lru_cache(maxsize=4096)
def _nominal(pmf: tuple[float, ...], level: float) -> float:
    return float(rd.blahut_arimoto(np.asarray(pmf), 1.0 - np.eye(len(pmf)), D=level).lower)
