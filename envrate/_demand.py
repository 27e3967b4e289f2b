"""The demand of a task: R(D) of its required-response process in bits per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envrate import _checks, rd

if TYPE_CHECKING:
    from envrate.task import Task

MS_PER_S = 1000.0

#: Points of a curve that is not had in closed form or by warm starts, and where a tracking task's begins.
CURVE_POINTS, TRACKING_FROM = 13, 0.01


def demand(task: Task, D: float, *, n_max: int = 12, max_work: float = 6e5) -> rd.Bracket:  # noqa: N803
    """R(D) of `task` in bits per second; see `Task.demand`. Blocks are those of `rd.markov`."""
    _checks.number("D", D, 0.0)
    per_second = MS_PER_S / task.tick_ms
    if task.is_tracking:
        from envrate import _demand_gaussian

        return _demand_gaussian.tracking(task, D).scaled(per_second)
    if not task.is_memoryless and not hasattr(task.latent, "matrix"):
        from envrate import _demand_gaussian

        if D > 0.0:
            return _demand_gaussian.threshold_at(task, D, n_max, max_work).scaled(per_second)
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
    found = rd.markov(task.latent.matrix, task.table, task.distortion, D=D, n_max=n_max, max_work=max_work)
    return found.scaled(per_second)


def demand_curve(task: Task) -> rd.RDCurve:
    """R(D) of `task` in bits per second against severity per tick; see `Task.demand_curve`."""
    per_second = MS_PER_S / task.tick_ms
    unit = "severity per tick"
    if not task.is_tracking and task.is_memoryless:
        points = rd.curve(task.pmf, task.distortion)
        return points.scaled(per_second, rate_unit="bits/s", distortion_unit=unit)
    if task.is_tracking:
        from envrate._demand_gaussian import components

        d_max = sum(variance for _, variance in components(task.latent, task.tick_ms))
        grid = d_max * np.geomspace(TRACKING_FROM, 1.0, CURVE_POINTS)
        unit = "squared error"
    else:
        d_max = float((task.pmf @ task.distortion).min())
        grid = d_max * 0.5 * (1.0 - np.cos(np.pi * np.arange(CURVE_POINTS) / (CURVE_POINTS - 1)))
    # Shorter blocks for each point than a single one gets.
    found = [demand(task, float(at), n_max=6, max_work=5e4) for at in grid[:-1]]
    found.append(rd.Bracket(0.0, 0.0, method="a constant outcome meets D"))
    # R never rises with D, so a bound at one point serves on one side of it.
    lower = np.maximum.accumulate([bracket.lower for bracket in found][::-1])[::-1]
    upper = np.minimum.accumulate([bracket.upper for bracket in found])
    slope = np.full(len(grid), np.nan)
    return rd.RDCurve(grid, lower, upper, slope, rate_unit="bits/s", distortion_unit=unit)
