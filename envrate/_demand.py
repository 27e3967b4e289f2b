"""The demand of a task: R(D) of its required-response process in bits per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envrate import _checks, rd

if TYPE_CHECKING:
    from envrate.task import Task

MS_PER_S = 1000.0


def demand(task: Task, D: float) -> rd.Bracket:  # noqa: N803 - the field's symbol
    """R(D) of `task` in bits per second; see `Task.demand`."""
    _checks.number("D", D, 0.0)
    per_second = MS_PER_S / task.tick_ms
    if not hasattr(task.latent, "matrix") or task.is_tracking:
        from envrate import _demand_gaussian

        if task.is_tracking:
            return _demand_gaussian.tracking(task, D).scaled(per_second)
        if not task.is_memoryless and D > 0.0:
            raise ValueError("D: the rate of a thresholded process with memory is known at D = 0 only")
        if D == 0.0:
            return _demand_gaussian.threshold(task).scaled(per_second)
    if task.is_memoryless and D == 0.0:
        p = task.pmf[task.pmf > 0]
        entropy = float(-(p * np.log2(p)).sum())
        return rd.Bracket(entropy, entropy, method="entropy").scaled(per_second)
    if task.is_memoryless:
        point = rd.blahut_arimoto(task.pmf, task.distortion, D=D)
        return rd.Bracket(point.lower, point.upper, method="Blahut-Arimoto").scaled(per_second)
    if D == 0.0:
        return rd.entropy_rate(task.latent.matrix, task.table).scaled(per_second)
    return rd.markov(task.latent.matrix, task.table, task.distortion, D=D).scaled(per_second)
