"""Rate-distortion function of sources with memory, from n-blocks, with certified ends."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._blocks import Blocks, Condition
from envrate.rd._chain import HiddenMarkov, entropy, function_of_chain, lumped
from envrate.rd._contexts import given_letters, given_state, unconditional
from envrate.rd._entropy_rate import entropy_rate_of
from envrate.rd._markov_upper import PastOutcome
from envrate.rd._slopes import Chords, SlopeSearch
from envrate.rd._threads import one_blas_thread
from envrate.rd._types import Bracket

FloatArray = NDArray[np.float64]

LN2 = math.log(2.0)

#: Blahut-Arimoto steps before Newton's, and products of the Newton polish.
STEPS, EFFORT = 20, 1500

#: Cases of what is known before a block.
MAX_CASES = 8

#: Time grows like this power of the multiply-adds of a pass: small blocks are mostly overhead.
GROWTH = 0.7

#: Largest table of the law of a block and the states at both ends.
MAX_STEPS_TABLE = 4_000_000


@dataclass(frozen=True)
class _Problem:
    """A checked source with its distortion, each row's minimum taken off."""

    source: HiddenMarkov
    letters: NDArray[np.intp]
    cost: FloatArray  # (A, Y) >= 0, rows with minimum 0, may be infinite
    target: float  # D less the least distortion

    @property
    def pmf(self) -> FloatArray:
        """(A,) law of a letter that occurs."""
        return self.source.pmf[self.letters]


def _problem(transition: ArrayLike, response: ArrayLike, distortion: ArrayLike, D: float) -> _Problem:  # noqa: N803
    source = lumped(function_of_chain(transition, response))
    cost = np.asarray(distortion, dtype=np.float64)
    size = source.emission.shape[1]
    if cost.ndim != 2 or len(cost) != size or cost.shape[1] == 0:
        raise ValueError(f"distortion: expected {size} rows, one per letter, got shape {cost.shape}")
    if np.isnan(cost).any() or (cost < 0).any():
        where = np.argwhere(np.isnan(cost) | (cost < 0))[0].tolist()
        raise ValueError(f"distortion: entry {where} is {cost[tuple(where)]}, expected a number >= 0 or infinity")
    _checks.number("D", D, 0.0)
    letters = np.flatnonzero(source.pmf > 0)
    rows = cost[letters]
    if np.isinf(rows).all(axis=1).any():
        row = int(letters[np.isinf(rows).all(axis=1)][0])
        raise ValueError(f"distortion: row {row} is infinite throughout, expected an outcome that is allowed")
    least = float(source.pmf[letters] @ rows.min(axis=1))
    if D < least - 1e-12 * max(1.0, least):
        raise ValueError(f"D: {D:g} is below D_min = {least:.12g}, the least distortion any outcome gives")
    return _Problem(source, letters, rows - rows.min(axis=1, keepdims=True), max(0.0, D - least))


@one_blas_thread
def solve_at(
    cost: FloatArray, d: float, blocks: Blocks, condition: Condition, tol: float
) -> tuple[float, float, float]:
    """Certified bounds on the block problem's rate at distortion d, nats per letter, and the slope reached.

    The slope is moved, at the current outcome law, to where the distortion is the target; the law is then solved
    anew. The lower bound is the line V/n - s D at the slope; the upper one is the information of the channel made of
    that law with the slope that meets D exactly. Both are off by second order in the slope's error.
    """
    n = blocks.n
    finite = np.where(np.isinf(cost), 0.0, cost)
    scale = float(finite.max())
    if d <= 0.0 or scale == 0.0:
        channel = (cost == 0.0).astype(float)
        q = blocks.product_output(channel / channel.sum(axis=1, keepdims=True), condition.laws)
        exact = blocks.solve(np.array([np.inf]), condition, q, tol=tol * n, iterations=200, effort=EFFORT)
        return exact.lower / n, exact.information / n, math.inf
    slope = max(0.1, math.log(max(2.0, scale / d))) / scale
    start = np.exp(-slope * cost)
    q = blocks.product_output(start / start.sum(axis=1, keepdims=True), condition.laws)
    for _ in range(3):
        solution = blocks.solve(np.array([slope]), condition, q, tol=1e-2, iterations=STEPS, effort=0)
        q = (1.0 - 1e-9) * solution.output + 1e-9 / q[0].size
        guess, _ = _slope_for(blocks, condition, solution.output, slope, d)
        slope = min(3.0 * slope, max(slope / 3.0, guess))
    lower, curve = 0.0, Chords(d)
    search = SlopeSearch(slope, d)
    for _ in range(16):
        solution = blocks.solve(
            np.array([search.slope]), condition, q, tol=0.2 * tol * n, iterations=STEPS, effort=EFFORT
        )
        lower = max(lower, solution.lower / n - search.slope * d)
        reached = float(solution.costs[0])
        curve.add(reached, solution.information / n)
        _, information = _slope_for(blocks, condition, solution.output, search.slope, d)
        curve.add(d, information / n)
        if curve.best - lower <= tol or not search.move(reached, curve.slope):
            break
        q = (1.0 - 1e-9) * solution.output + 1e-9 / q[0].size
    return lower, curve.best, search.slope


def _slope_for(
    blocks: Blocks, condition: Condition, output: FloatArray, slope: float, d: float
) -> tuple[float, float]:
    """The slope at which the channel of the law `output` has distortion d, and its information in nats per block."""
    low, high = 0.0, math.inf
    s, best = slope, math.inf
    for _ in range(50):
        _, costs, information = blocks.channel(np.array([s]), condition, output)
        reached = float(costs[0])
        if reached <= d * (1.0 + 1e-12):
            # A hair above d counts too, mixed with a channel of no cost, which needs at most log A per letter.
            share = max(0.0, 1.0 - d / reached) if reached > 0 else 0.0
            best = min(best, (1.0 - share) * information + share * blocks.n * math.log(blocks.num_letters))
        if reached <= d:
            high = s
        else:
            low = s
        if abs(reached - d) <= 1e-12 * d or high - low <= 1e-14 * high:
            break
        # Distortion falls about exponentially in the slope: a secant step on its logarithm, kept in the bracket.
        nearby = float(blocks.channel(np.array([s * 1.001]), condition, output)[1][0])
        decay = math.log(reached / nearby) / (1e-3 * s) if 0.0 < nearby < reached else 0.0
        # Aimed a hair below d, so that the last step is one that meets it.
        guess = s + math.log(reached / (d * (1.0 - 1e-13))) / decay if decay > 0 else math.nan
        if not low < guess < high:
            guess = 0.5 * (low + high) if math.isfinite(high) else 2.0 * s
        if guess * 1e-6 > slope:
            break
        s = guess
    return s, best


@one_blas_thread
def block_rate(
    transition: ArrayLike,
    response: ArrayLike,
    distortion: ArrayLike,
    D: float,  # noqa: N803 - the field's symbol
    n: int,
    *,
    tol: float = 1e-9,
) -> Bracket:
    """R_n(D), the rate of blocks of n letters coded by themselves, in bits per letter; an upper bound on R(D).

    Args:
        transition: (K, K) row i is the law of the next state.
        response: (K,) letter of each state.
        distortion: (A, Y) distortion of outcome y where letter a came; infinite entries forbid.
        D: largest mean distortion per letter.
        n: letters per block.
        tol: width aimed at, in bits; the bracket returned is certified whatever its width.

    Raises:
        ValueError: bad input, D below the least distortion, or blocks too long for memory.

    Source: Gallager 1968, section 9.8. The kernel of a block is a Kronecker power, applied as two matrix products.
    """
    problem = _problem(transition, response, distortion, D)
    n = _checks.integer("n", n, 1)
    outcomes = problem.cost.shape[1]
    largest = Blocks.largest_n(1, len(problem.letters), outcomes, n)
    if largest < n:
        raise ValueError(f"n: blocks of {n} letters are too large for memory, expected at most {largest}")
    if _is_free(problem):
        return Bracket(0.0, 0.0, method="a constant outcome meets D")
    condition = unconditional(problem.source, problem.letters, n, math.nan)
    lower, upper, _ = solve_at(problem.cost, problem.target, Blocks(problem.cost[None], n), condition, tol * LN2)
    upper = min(upper / LN2, entropy(condition.laws) / n)
    return Bracket(float(min(lower / LN2, upper)), float(upper), method=f"blocks of {n}")


def _is_free(problem: _Problem) -> bool:
    """Whether one outcome for all meets D, so that the rate is 0."""
    with np.errstate(invalid="ignore"):
        means = np.where(np.isinf(problem.cost).any(axis=0), np.inf, problem.pmf @ problem.cost)
    return bool(problem.target >= means.min() * (1.0 - 1e-15))


@one_blas_thread
def markov(
    transition: ArrayLike,
    response: ArrayLike,
    distortion: ArrayLike,
    D: float,  # noqa: N803 - the field's symbol
    *,
    tol: float = 1e-3,
    n_max: int = 12,
    max_work: float = 6e5,
    time_budget_s: float | None = None,
) -> Bracket:
    """R(D) of A_t = response[Z_t], Z a stationary Markov chain, in bits per letter.

    Args:
        transition: (K, K) row i is the law of the next state; one closed class.
        response: (K,) letter of each state.
        distortion: (A, Y) distortion of outcome y where letter a came; infinite entries forbid.
        D: largest mean distortion per letter.
        tol: stop when the bracket is this narrow, in bits.
        n_max: longest block.
        max_work: no block is begun that takes more multiply-adds per pass; the default takes about a second in all,
            and gives the same bracket on each machine.
        time_budget_s: if given, no block is begun either that would probably end after this.

    Returns:
        Bracket of kind "exact". Lower ends: Shannon's bound R_1(D) - (H(A) - h), and blocks given the latest letters
        less their memory (after Wyner and Ziv 1971) and given the state (Gray 1973). Upper ends: R_n(D) (Gallager
        1968, section 9.8) and block channels that look at the last outcome before the block, which for n = 1 is a
        causal channel. Ends from all n count. The method says the longest n and why it stopped.

    Raises:
        ValueError: bad input, or D below the least distortion, which the message gives.
    """
    problem = _problem(transition, response, distortion, D)
    tol = _checks.number("tol", tol, 0.0, open_low=True)
    n_max = _checks.integer("n_max", n_max, 1, 64)
    max_work = _checks.number("max_work", max_work, 0.0)
    deadline = math.inf
    if time_budget_s is not None:
        deadline = time.perf_counter() + _checks.number("time_budget_s", time_budget_s, 0.0)
    rate = entropy_rate_of(problem.source)
    if _is_free(problem):
        return Bracket(0.0, 0.0, method="a constant outcome meets D")
    if entropy(problem.pmf) - rate.lower <= 1e-12:
        from envrate.rd._blahut_arimoto import blahut_arimoto

        point = blahut_arimoto(problem.pmf / problem.pmf.sum(), problem.cost, D=problem.target)
        return Bracket(float(point.lower), float(point.upper), method="memoryless, Blahut-Arimoto")
    special = _binary_symmetric(problem, rate)
    if special is not None:
        return special
    lower, upper, used, why = 0.0, rate.upper, 0, ""
    sources = {"lower": "", "upper": "entropy rate"}
    for n in (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64):
        if n > n_max:
            why = f"n_max = {n_max}"
            break
        if Blocks.largest_n(1, len(problem.letters), problem.cost.shape[1], n) < n:
            why = "longer blocks do not fit in memory"
            break
        work = _work(problem, n)
        if n > 1 and work > max_work:
            why = f"max_work = {max_work:g}"
            break
        began = time.perf_counter()
        for low, high, name in _ends(problem, n, rate.lower, 0.1 * tol * LN2):
            if low > lower:
                lower, sources["lower"] = low, name
            if high < upper:
                upper, sources["upper"] = high, name
        used = n
        if upper - lower <= tol:
            break
        ended = time.perf_counter()
        longer = _work(problem, n + 1 if n == 1 else n + 2)
        if ended + (longer / work) ** GROWTH * (ended - began) > deadline:
            why = f"the time budget of {time_budget_s:g} s"
            break
    method = f"blocks of {used}: lower {sources['lower'] or '0'}, upper {sources['upper']}"
    if upper - lower > tol and why:
        method += f"; stopped by {why}"
    return Bracket(float(min(lower, upper)), float(max(lower, upper)), method=method)


def _binary_symmetric(problem: _Problem, rate: Bracket) -> Bracket | None:
    """Exact R(D) = h(p) - h(D) of the binary symmetric Markov source up to its critical distortion (Gray 1970)."""
    source, cost = problem.source, problem.cost
    if source.num_states != 2 or cost.shape != (2, 2) or len(problem.letters) != 2:
        return None
    p = float(source.transition[0, 1])
    unit = float(cost[0, 1])
    symmetric = abs(p - source.transition[1, 0]) <= 1e-15 and unit == cost[1, 0] and math.isfinite(unit) and unit > 0
    q = min(p, 1.0 - p)  # flipping every second letter turns p into 1 - p and leaves the distortion as it is
    if not symmetric or q <= 0.0:
        return None
    d = problem.target / unit
    critical = 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - (q / (1.0 - q)) ** 2)))
    if d > critical * (1.0 + 1e-12):
        return None
    value = rate.mid - entropy(np.array([d, 1.0 - d]))
    return Bracket(value, value, method="binary symmetric Markov source below its critical distortion")


def _work(problem: _Problem, n: int) -> float:
    """Multiply-adds of a pass over a block, and the entries of its law with the states at both ends if that is used."""
    letters, outcomes = float(len(problem.letters)), float(problem.cost.shape[1])
    first, second = (n + 1) // 2, n // 2
    table = problem.source.num_states**2 * letters**n
    passing = letters**first * outcomes**second * (outcomes**first + letters**second)
    return passing + (table if table <= MAX_STEPS_TABLE else 0.0)


def _ends(problem: _Problem, n: int, rate: float, tol: float) -> list[tuple[float, float, str]]:
    """(lower, upper, name) in bits per letter from blocks of n."""
    blocks = Blocks(problem.cost[None], n)
    source, letters = problem.source, problem.letters
    low, high, slope = solve_at(problem.cost, problem.target, blocks, unconditional(source, letters, n, rate), tol)
    conditions = [given_letters(source, letters, n, rate, MAX_CASES)]
    memory = unconditional(source, letters, n, rate).memory
    out = [(low / LN2 - memory, high / LN2, "Shannon" if n == 1 else f"R_{n}")]
    if conditions[0].memory > 1e-9 and source.num_states <= 2 * MAX_CASES:
        conditions.append(given_state(source, letters, n))
    for condition in conditions:
        low, _, _ = solve_at(problem.cost, problem.target, blocks, condition, tol)
        out.append((low / LN2 - condition.memory, math.inf, condition.name))
    if math.isfinite(slope) and source.num_states**2 * len(letters) ** n <= MAX_STEPS_TABLE:
        out.append((-math.inf, _past_outcome_end(problem, blocks, slope, 10 * tol), "channel with past outcome"))
    return out


def _past_outcome_end(problem: _Problem, blocks: Blocks, slope: float, tol: float) -> float:
    """Rate in bits at the target of block channels with the past outcome: chords between points of a few slopes."""
    past = PastOutcome(problem.source, problem.letters, blocks)
    curve, search = Chords(problem.target), SlopeSearch(slope, problem.target)
    if not np.isinf(problem.cost).any():
        curve.add(float((problem.pmf @ problem.cost).min()), 0.0)
    for _ in range(8):
        kernel = np.exp(-search.slope * problem.cost)
        d, rate = past.point(search.slope, kernel / kernel.sum(axis=1, keepdims=True), tol)
        before = curve.best
        curve.add(d, rate)
        if abs(before - curve.best) <= tol or not search.move(d):
            break
    return curve.best / LN2
