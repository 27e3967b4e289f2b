"""The best that could have been had: decision rules on a posterior, ascended in credited throughput.

C is convex in the profile, so its maximum over decision rules lies at a Bayes rule. At a profile f the rate has a
lower plane, C(g) >= C(f) - m . (g - f), with multipliers m >= 0. The Bayes rule whose costs are those multipliers has
the smallest m . g of all rules, so its rate is no smaller than C(f): taking the multipliers of the present profile as
the next rule's costs ascends. It ends in a local maximum; several starts make a worse one unlikely.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from envrate import rd
from envrate.scorers._credited import CreditedRate
from envrate.scorers._posterior import Contexts
from envrate.scorers._profile import HANDLED, Profile, profile
from envrate.task import Task

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Steps of one ascent; few are needed, since each one changes the rule.
MAX_STEPS = 50
#: Costs of a miss among the starts, as shares of the cost of a wrong response.
DOUBT = (0.1, 0.2, 0.3, 0.45)
#: Random cost matrices among the starts, from a fixed seed.
RANDOM_STARTS = 6
#: Shares of e this close to the largest one count as the largest.
TIE = 1e-9
#: Rules that are polished, the best ones of the ascents.
POLISHED = 5
#: Decisions that are tried one by one at most.
MAX_FLIPS = 256
#: A gain below this, in bits per tick, is none.
GAIN = 1e-9
#: Rules whose process rate is computed, where it differs from the one-letter rate that the ascent climbs.
FINALISTS = 1
#: Certificate of the rates that a search goes by; what it finds is rated anew.
SEARCH_TOLERANCE = 1e-8
#: Cost, in bits, that no rate is worth.
FORBIDDEN = 1e6


@dataclass(frozen=True)
class Scale:
    """Credited throughput of a table of conditional frequencies, for one task and reading.

    Tables are (A, A + 2): silence, responses 1 ... A-1, "wrong, unknown which", e. Rates are bits per tick; for a
    source with memory they are the lower end of its bracket, as everywhere.
    """

    task: Task
    resolved: bool

    @cached_property
    def profile(self) -> Profile:
        """The classes of the task in this reading."""
        return profile(self.task.pmf, self.task.distortion, self.task.exchangeable, resolved=self.resolved)

    @cached_property
    def rate(self) -> CreditedRate:
        """The rate that frontiers are made of."""
        return CreditedRate(self.profile, self.task)

    def frequencies(self, conditional: FloatArray) -> FloatArray:
        """(..., C) class frequencies of tables (..., A, A + 2), without the rounding that makes a zero negative."""
        return np.maximum(self.profile.frequencies(conditional), 0.0)

    def credited(self, conditional: FloatArray) -> FloatArray:
        """(...) C in bits per tick of tables (..., A, A + 2)."""
        return self.rate.lower(self.frequencies(conditional))

    def one_letter_rates(self, conditional: FloatArray) -> FloatArray:
        """(N,) rates of one tick alone; -inf where none can be certified: such a table is no candidate."""
        return self._one_letter(self.frequencies(conditional))[0]

    def one_letter(self, conditional: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(N,) rates of one tick alone, and (N, A, A + 1) costs that their multipliers put on (required, outcome)."""
        rates, multipliers = self._one_letter(self.frequencies(conditional))
        costs = [self._costs(m, table) for m, table in zip(multipliers, conditional, strict=True)]
        return rates, np.stack(costs)

    def _one_letter(self, frequencies: FloatArray) -> tuple[FloatArray, FloatArray]:
        try:
            rate = rd.profile_rate(self.task.pmf, self.profile.matrix, frequencies, tol=SEARCH_TOLERANCE)
        except ValueError:
            # One profile in a hundred thousand is not certified; the others of its batch are.
            if len(frequencies) == 1:
                return np.array([-np.inf]), np.zeros(frequencies.shape)
            half = len(frequencies) // 2
            parts = [self._one_letter(part) for part in (frequencies[:half], frequencies[half:])]
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        return np.asarray(rate.lower), np.asarray(rate.multipliers)

    def _costs(self, multipliers: FloatArray, conditional: FloatArray) -> FloatArray:
        """Costs per unit of joint probability; the last column is e."""
        size = len(self.task.pmf)
        m = np.minimum(np.nan_to_num(multipliers, nan=FORBIDDEN, posinf=FORBIDDEN), FORBIDDEN)
        costs = np.zeros((size, size + 1))
        matrix = self.profile.matrix[:, :size]
        costs[:, :size] = np.where(matrix == HANDLED, 0.0, m[np.maximum(matrix, 0)])
        if self.resolved:
            # e is bounded by its largest share, so only the symbols that attain it move the bound.
            share = np.where(self.task.pmf > 0, conditional[:, -1], -1.0)
            worst = share >= share.max() - TIE
            total = float((m * self.profile.mass)[self.profile.common].sum())
            costs[worst, -1] = total / float(self.task.pmf[worst].sum())
        return costs


def starting_costs(task: Task) -> list[FloatArray]:
    """(A, A + 1) cost matrices to start from.

    Severities, the most probable symbol, 1/p, free doubt, misses cheaper than wrong responses, random ones. A rule
    that is silent where it is in doubt (Chow 1970) has to be among the starts: once a rule misses nothing, misses are
    forbidden and the ascent keeps away from them.
    """
    size = task.num_symbols
    wrong = 1.0 - np.eye(size)
    even = wrong / np.maximum(task.pmf, 1e-12)[:, None]
    severity = np.asarray(task.distortion)
    starts = [np.column_stack([costs, costs[:, 0]]) for costs in (severity, wrong, even)]
    starts += [np.column_stack([costs, np.zeros(size)]) for costs in (wrong, even)]
    for share in DOUBT:
        costs = even.copy()
        costs[1:, 0] *= share
        starts.append(np.column_stack([costs, costs[:, 0]]))
    generator = np.random.default_rng(20260706)
    for _ in range(RANDOM_STARTS):
        costs = np.exp(2.0 * generator.standard_normal((size, size))) * even
        starts.append(np.column_stack([costs, costs[:, 0]]))
    return starts


@dataclass(frozen=True)
class Situations:
    """What a decision rule decides on: joint probabilities with the required symbol, and what its silence means.

    A rule gives one outcome per situation. `silence` is the share of a silence there that reads as e. Rules go by
    `belief`, tables by `joint`; they differ where a belief was inferred and the joint counted.
    """

    joint: FloatArray  # (n, A), sums to 1
    silence: FloatArray  # (n,) in [0, 1]; all 0 in the output-only reading
    belief: FloatArray  # (n, A) joint probabilities that the rule goes by

    @classmethod
    def of(cls, contexts: Contexts, *, resolved: bool) -> Situations:
        """The observer's: its silence reads as e where nothing about the tick had been delivered."""
        joint = contexts.joint
        return cls(joint, np.where(contexts.known, 0.0, 1.0) * resolved, joint)

    def table(self, rule: IntArray, pmf: FloatArray) -> FloatArray:
        """(A, A + 2) conditional frequencies under a rule (n,) of outcomes 0 (silence) ... A-1."""
        size = self.joint.shape[1]
        out = np.zeros((size, size + 2))
        silent = rule == 0
        out[:, -1] = self.joint[silent].T @ self.silence[silent]
        out[:, 0] = self.joint[silent].T @ (1.0 - self.silence[silent])
        for y in range(1, size):
            out[:, y] = self.joint[rule == y].sum(axis=0)
        total = self.joint.sum(axis=0)
        return np.where(pmf[:, None] > 0, out / np.where(total > 0, total, 1.0)[:, None], 0.0)

    def bayes(self, costs: FloatArray) -> IntArray:
        """(n,) the rule of least expected cost for (A, A + 1) costs."""
        size = self.joint.shape[1]
        expected = self.belief @ costs  # (n, A + 1)
        options = expected[:, :size].copy()
        options[:, 0] = (1.0 - self.silence) * expected[:, 0] + self.silence * expected[:, size]
        return np.asarray(options.argmin(axis=1), dtype=np.int64)


def climb(
    scale: Scale, situations: Situations, starts: list[FloatArray], tables: Iterable[FloatArray] = ()
) -> list[FloatArray]:
    """Tables of the best rules that the ascents from all starts went through, the largest one-letter rate first.

    Args:
        scale: the measure.
        situations: what is decided on.
        starts: (A, A + 1) cost matrices.
        tables: (A, A + 2) tables whose multipliers are starts too. What is found is then no worse than any of them
            that a rule on these situations could have made.

    Returns:
        One table where the ticks are independent; a few where the process's rate has still to choose among them.
    """
    given = [np.asarray(table) for table in tables]
    front = list(starts) + (list(scale.one_letter(np.stack(given))[1]) if given else [])
    seen: dict[bytes, float] = {}
    rules: list[IntArray] = []
    for _ in range(MAX_STEPS):
        fresh = []
        for costs in front:
            rule = situations.bayes(costs)
            if rule.tobytes() not in seen:
                seen[rule.tobytes()] = 0.0
                fresh.append(rule)
        if not fresh:
            break
        values, next_costs = scale.one_letter(np.stack([situations.table(rule, scale.task.pmf) for rule in fresh]))
        seen.update(zip((rule.tobytes() for rule in fresh), values.tolist(), strict=True))
        rules += fresh
        front = list(next_costs)
    rules.sort(key=lambda rule: -seen[rule.tobytes()])
    polished, _ = max(
        (_polish(scale, situations, rule, seen[rule.tobytes()]) for rule in rules[:POLISHED]), key=lambda pair: pair[1]
    )
    finalists = [polished] if scale.task.is_memoryless else [polished, *rules[:FINALISTS]]
    return [situations.table(rule, scale.task.pmf) for rule in finalists]


def _polish(scale: Scale, situations: Situations, rule: IntArray, rate: float) -> tuple[IntArray, float]:
    """Changes one decision at a time while that helps.

    In the resolved reading e is bounded by its largest share, which no linear cost describes: an ascent can stop at a
    rule that is not even a local maximum.
    """
    places, size = situations.joint.shape
    if places * (size - 1) > MAX_FLIPS:
        return rule, rate
    for _ in range(MAX_STEPS):
        flips = [(n, y) for n in range(places) for y in range(size) if y != rule[n]]
        tried = np.repeat(rule[None], len(flips), axis=0)
        tried[np.arange(len(flips)), [n for n, _ in flips]] = [y for _, y in flips]
        values = scale.one_letter_rates(np.stack([situations.table(one, scale.task.pmf) for one in tried]))
        best = int(np.argmax(values))
        if values[best] <= rate + GAIN:
            break
        rule, rate = tried[best], float(values[best])
    return rule, rate


def least_severity(contexts: Contexts, distortion: FloatArray) -> tuple[float, IntArray]:
    """The observer of least severity: its severity per tick, and its decision (n,) in each context."""
    expected = contexts.joint @ distortion
    rule = expected.argmin(axis=1)
    return float(np.take_along_axis(expected, rule[:, None], axis=1).sum()), np.asarray(rule, dtype=np.int64)
