"""The multipliers that raise a block's lower plane most at one profile, from short to long blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envrate.rd._blocks import Blocks, BlockSolution, Condition

FloatArray = NDArray[np.float64]

#: Largest multiplier in nats: beyond it a cell is as good as forbidden.
LARGEST = 60.0

#: Evaluations on a short block and on the full one; blocks of a few letters cost next to nothing.
SHORT_EVALUATIONS = 15
FULL_EVALUATIONS = 5

#: Blahut-Arimoto steps in an evaluation and in the final one.
STEPS = 10
FINAL_STEPS = 40

#: Products of the Newton polish in an evaluation and in the final one.
EFFORT = 60
FINAL_EFFORT = 600


@dataclass(frozen=True)
class Ascent:
    """A certified plane in nats per letter, R(f) >= lower - multipliers . f, and a rate reached at the profile."""

    lower: float  # intercept
    multipliers: FloatArray  # (C,) may be infinite
    upper: float  # nats per letter: information of a channel that meets the profile


def _feasible(solution: BlockSolution, f: FloatArray, n: int, entropy: float) -> float:
    """Rate of the solution's channel mixed with one that handles everything, so that every frequency holds."""
    over = solution.costs > f
    share = 1.0 - float(np.min(f[over] / solution.costs[over], initial=1.0))
    return (1.0 - share) * solution.information / n + share * entropy


def ascend(
    levels: Sequence[tuple[Blocks, Condition]],
    f: FloatArray,
    start: FloatArray,
    channel: FloatArray,
    entropy: float,
    tol: float,
) -> Ascent:
    """Maximises V(m)/n - m . f over m >= 0 by L-BFGS on each level in turn; the last plane is certified to `tol`.

    Args:
        levels: blocks from short to long, with the same condition.
        f: (C,) profile; a frequency of 0 takes an infinite multiplier.
        start: (C,) multipliers in nats to start from.
        channel: (A, Y) one-letter channel whose outcomes start the block problems.
        entropy: nats per letter of a block of the last level, the rate of handling everything.
        tol: nats per letter.
    """
    from scipy.optimize import minimize

    free = f > 0
    m = np.where(free, np.clip(start, 0.0, LARGEST), np.inf)
    upper = np.inf
    for blocks, condition in levels:
        last = blocks is levels[-1][0]
        output = blocks.product_output(channel, condition.laws)
        size = output[0].size
        output = 0.999 * output + 0.001 / size
        best: list[tuple[float, FloatArray, BlockSolution]] = []

        def objective(
            x: FloatArray,
            blocks: Blocks = blocks,
            condition: Condition = condition,
            size: int = size,
            best: list[tuple[float, FloatArray, BlockSolution]] = best,
            output: FloatArray = output,
        ) -> tuple[float, FloatArray]:
            trial = np.where(free, 0.0, np.inf)
            trial[free] = x
            warm = 0.999 * best[-1][2].output + 0.001 / size if best else output
            solution = blocks.solve(trial, condition, warm, tol=4 * tol * blocks.n, iterations=STEPS, effort=EFFORT)
            best.append((solution.lower / blocks.n - float(x @ f[free]), trial, solution))
            return float(x @ f[free]) - solution.value / blocks.n, f[free] - solution.costs[free]

        if free.any():
            evaluations = FULL_EVALUATIONS if last else SHORT_EVALUATIONS
            box = [(0.0, LARGEST)] * int(free.sum())
            minimize(objective, m[free], jac=True, method="L-BFGS-B", bounds=box, options={"maxfun": evaluations})
        else:
            objective(np.empty(0))
        _, m, solution = max(best, key=lambda item: item[0])
        if last:
            upper = min(_feasible(item[2], f, blocks.n, entropy) for item in best)
    final = blocks.solve(m, condition, solution.output, tol=tol * blocks.n, iterations=FINAL_STEPS, effort=FINAL_EFFORT)
    lower = max(final.lower, solution.lower) / blocks.n
    return Ascent(lower, m, min(upper, _feasible(final, f, blocks.n, entropy)))
