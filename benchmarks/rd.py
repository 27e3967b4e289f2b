"""R(D) of discrete sources against other solvers: time, error and certified gap, in one run.

    python benchmarks/rd.py                prints the table
    python benchmarks/rd.py --write        and puts it into benchmarks/results/rd.md

Needs the packages dit, cvxpy and clarabel beside envrate. Every solver gets one thread; times are CPU time of that
thread, the least over repeats, so that other jobs on the machine weigh little.

- dit has no "R at D": it is driven by bisection on beta to |D - D*| < 1e-7 D*, with one restart (its default of 100
  costs 100 times that); the least time of five counts where one takes less than 2 s. Its error is taken at the D that
  it reached itself.
- NumPy: plain Blahut-Arimoto with BLAS products at the slope that solves the problem, which it is given for free, until
  its certificate (log2 max c) is 1e-9 or the budget is spent; the certificate is shown.
- Clarabel: the mixture-weight problem at the same slope through cvxpy's exponential cones; its certified gap is shown.
- general: `blahut_arimoto` with detection of structure switched off; structured: as it is; closed form: the declared
  function. All three are certified to 1e-9.
"""

# ruff: noqa: E402 - the thread counts must be set before NumPy is imported
from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from envrate import rd
from envrate.rd import _solve

RESULTS = Path(__file__).parent / "results" / "rd.md"
NUMPY_BUDGET_S = 1.5
#: dit is timed as often as this where it takes less than so long, and its least time counts.
DIT_REPEATS, DIT_LONG_S = 5, 2.0


@dataclass
class Problem:
    """A source, a distortion and the D to solve for."""

    name: str
    kind: str  # "general" or "structured": which ratio counts
    pmf: np.ndarray
    distortion: np.ndarray
    D: float
    closed_form: Callable[[], float] | None = None


def problems() -> list[Problem]:
    found = []
    bernoulli = np.array([0.7, 0.3])
    found.append(
        Problem("Bernoulli(.3), Hamming", "structured", bernoulli, 1 - np.eye(2), 0.1,
                lambda: rd.hamming(bernoulli, 0.1))
    )  # fmt: skip
    zipf = 1 / np.arange(1, 65)
    zipf /= zipf.sum()
    for D in (0.1, 0.3, 0.5):
        form = lambda D=D: rd.hamming(zipf, D)  # noqa: E731
        found.append(Problem("Zipf 64, Hamming", "structured", zipf, 1 - np.eye(64), D, form))
    for name, kind, n, end, density in (
        ("Gauss 200", "structured", 200, 8.0, lambda x: np.exp(-x * x / 2)),
        ("Gauss 400", "structured", 400, 8.0, lambda x: np.exp(-x * x / 2)),
        ("Laplace 400", "general", 400, 14.0, lambda x: np.exp(-np.sqrt(2) * np.abs(x))),
        ("two Gaussians 400", "general", 400, 6.0,
         lambda x: np.exp(-((x + 1.2) ** 2) / 0.6) + 0.5 * np.exp(-((x - 1.5) ** 2) / 0.2)),
        ("uniform 400", "general", 400, 1.73, np.ones_like),
    ):  # fmt: skip
        x = np.linspace(-end, end, n)
        p = density(x) / density(x).sum()
        for D in (0.1, 0.25, 0.5):
            found.append(Problem(f"{name}, squared", kind, p / p.sum(), (x[:, None] - x) ** 2, D))
    rng = np.random.default_rng(0)
    for n in (8, 64, 128):
        p, d = rng.dirichlet(np.ones(n)), rng.random((n, n))
        d_min, d_max = float(p @ d.min(axis=1)), float((p @ d).min())
        for share in (0.15, 0.5):
            found.append(Problem(f"random {n} x {n}", "general", p / p.sum(), d, d_min + share * (d_max - d_min)))
    return found


def cpu_seconds(call: Callable[[], Any], at_least: float = 0.15) -> float:
    """Least CPU time of one call over repeats."""
    call()
    start = time.thread_time()
    call()
    once = max(time.thread_time() - start, 1e-7)
    loops = max(1, int(2e-3 / once))
    best, spent = once, 0.0
    while spent < at_least:
        start = time.thread_time()
        for _ in range(loops):
            call()
        passed = time.thread_time() - start
        best, spent = min(best, passed / loops), spent + passed
    return best


def by_dit(problem: Problem) -> tuple[float, float, float]:
    """Seconds, rate and distortion by dit, the least time of `DIT_REPEATS` where one takes less than `DIT_LONG_S`."""
    seconds, rate, reached = by_dit_once(problem)
    for _ in range(DIT_REPEATS - 1 if seconds < DIT_LONG_S else 0):
        seconds = min(seconds, by_dit_once(problem)[0])
    return seconds, rate, reached


def by_dit_once(problem: Problem) -> tuple[float, float, float]:
    """Seconds, rate and distortion by dit's Blahut-Arimoto, one restart, bisection on beta."""
    from dit.rate_distortion.blahut_arimoto import blahut_arimoto

    def at(beta: float) -> tuple[float, float]:
        result, _ = blahut_arimoto(problem.pmf, beta, distortion=lambda *_: problem.distortion, restarts=1)
        return float(result.rate), float(result.distortion)

    start = time.thread_time()
    low, high = 1e-3, 1.0
    while at(high)[1] > problem.D and high < 1e6:
        low, high = high, 4 * high
    rate, reached = np.nan, np.nan
    for _ in range(60):
        beta = (low * high) ** 0.5
        rate, reached = at(beta)
        if abs(reached - problem.D) < 1e-7 * problem.D:
            break
        low, high = (beta, high) if reached > problem.D else (low, beta)
    return time.thread_time() - start, rate, reached


def gap_bits(problem: Problem, slope: float, q: np.ndarray) -> float:
    """Certified gap of an output law at a slope in bits: log2 max c - sum q c log2 c."""
    d = problem.distortion - problem.distortion.min(axis=1, keepdims=True)
    kernel = np.exp2(-slope * d)
    q = np.maximum(q, 0.0) / np.maximum(q, 0.0).sum()
    c = (problem.pmf / (kernel @ q)) @ kernel
    used = q > 0
    return float(np.log2(c.max()) - (q[used] * c[used] * np.log2(c[used])).sum())


def by_numpy(problem: Problem, slope: float) -> tuple[float, float]:
    """Seconds and certified gap of plain Blahut-Arimoto at the slope that solves the problem."""
    start = time.thread_time()
    d = problem.distortion - problem.distortion.min(axis=1, keepdims=True)
    kernel = np.exp2(-slope * d)
    transposed = np.ascontiguousarray(kernel.T)
    q = np.full(d.shape[1], 1 / d.shape[1])
    while True:
        for _ in range(20):
            c = transposed @ (problem.pmf / (kernel @ q))
            q = q * c
        if np.log2(c.max()) < 1e-9 or time.thread_time() - start > NUMPY_BUDGET_S:
            break
    return time.thread_time() - start, gap_bits(problem, slope, q)


def by_clarabel(problem: Problem, slope: float) -> tuple[float, float]:
    """Seconds and certified gap of the mixture-weight problem by an interior-point cone solver."""
    import cvxpy as cp

    start = time.process_time()
    d = problem.distortion - problem.distortion.min(axis=1, keepdims=True)
    kernel = np.exp2(-slope * d)
    q = cp.Variable(d.shape[1], nonneg=True)
    objective = cp.Maximize(problem.pmf @ cp.log(kernel @ q))
    cp.Problem(objective, [cp.sum(q) == 1]).solve(solver=cp.CLARABEL)
    seconds = time.process_time() - start
    return seconds, gap_bits(problem, slope, np.asarray(q.value))


def spell(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def row(problem: Problem) -> tuple[str, float, float]:
    """A line of the table, and how many times faster than dit: general and structured."""
    solve = lambda: rd.blahut_arimoto(problem.pmf, problem.distortion, D=problem.D)  # noqa: E731
    structured = solve()
    structured_s = cpu_seconds(solve)
    _solve.solve, detecting = partial(_solve.solve, detect=False), _solve.solve
    try:
        general = solve()
        general_s = cpu_seconds(solve)
    finally:
        _solve.solve = detecting
    closed_s = np.inf if problem.closed_form is None else cpu_seconds(problem.closed_form)
    closed = "" if problem.closed_form is None else spell(closed_s)
    dit_s, rate, reached = by_dit(problem)
    own = rd.blahut_arimoto(problem.pmf, problem.distortion, D=reached).rate if np.isfinite(reached) else np.nan
    numpy_s, numpy_gap = by_numpy(problem, structured.slope)
    try:
        cone_s, cone_gap = by_clarabel(problem, structured.slope)
        cone = f"{spell(cone_s)}, {cone_gap:.0e}"
    except Exception as error:  # a solver that gives up is a result
        cone = f"failed ({type(error).__name__})"
    truth = problem.closed_form() if problem.closed_form else structured.rate
    assert general.lower - 1e-12 <= truth <= general.upper + 1e-12 or not problem.closed_form
    shown = min(structured_s, closed_s)
    line = (
        f"| {problem.name}, D = {problem.D:.3g} | {spell(dit_s)}, {rate - own:+.0e}"
        f" | {spell(numpy_s)}, {numpy_gap:.0e} | {cone}"
        f" | {spell(general_s)}, {general.upper - general.lower:.0e} | {dit_s / general_s:,.0f}"
        f" | {spell(structured_s) if problem.kind == 'structured' else ''} | {closed}"
        f" | {f'{dit_s / shown:,.0f}' if problem.kind == 'structured' else ''} |"
    )
    return line, dit_s / general_s, dit_s / shown


def profiles() -> list[str]:
    """Throughput of `profile_rate`."""
    rng = np.random.default_rng(1)
    lines = []
    conditional = rng.dirichlet([4, 1, 1], size=(20000, 2))
    f = np.stack([0.5 * conditional[:, a, k] for k in (1, 2) for a in (0, 1)], axis=-1)
    seconds = cpu_seconds(lambda: rd.profile_rate([0.5, 0.5], [[-1, 1, 2], [0, -1, 3]], f), 0.5)
    lines.append(f"| 2 x 3, 4 classes | {len(f) / seconds:,.0f} |")
    classes = np.ones((9, 10), int)
    classes[:, 0], classes[0, :], classes[:, 9], classes[0, 9] = 0, 2, 3, 4
    np.fill_diagonal(classes, -1)
    f = rng.uniform(0.001, 0.2, (4000, 5))
    pmf = np.append(0.2, np.full(8, 0.1))
    seconds = cpu_seconds(lambda: rd.profile_rate(pmf, classes, f), 0.5)
    lines.append(f"| 9 x 10, 5 pooled classes | {len(f) / seconds:,.0f} |")
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/rd.md")
    parser.add_argument("--machine", default=platform.processor() or platform.machine(), help="the machine in words")
    options = parser.parse_args()
    lines = [
        "# R(D) of discrete sources",
        "",
        f"Machine: {options.machine}; Python {platform.python_version()}, NumPy {np.__version__}. One thread, CPU "
        "time, least over repeats. One run of `benchmarks/rd.py`, whose head says how each solver is driven.",
        "",
        "dit: the least of five runs where one takes less than 2 s. Beside each time: dit, its error in bits at the D "
        "it reached itself; NumPy and Clarabel, the certified gap in bits of what they return at the right slope, "
        "given to them; general, the certified gap in bits at D.",
        "",
        "| problem | dit 1 restart | NumPy BA | Clarabel | general | x dit | structured | closed form | x dit |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    ratios: dict[str, list[tuple[float, str]]] = {"general": [], "structured": []}
    for problem in problems():
        line, general, structured = row(problem)
        ratios["general"].append((general, f"{problem.name}, D = {problem.D:.3g}"))
        if problem.kind == "structured":
            ratios["structured"].append((structured, f"{problem.name}, D = {problem.D:.3g}"))
        lines.append(line)
        print(line, flush=True)
    tail = [""]
    for kind, found in ratios.items():
        least = min(found)
        tail.append(f"Least ratio to dit, {kind}: {least[0]:,.0f} ({least[1]}).")
    tail += ["", "`profile_rate`, profiles per second in a batch:", "", "| size | per second |", "|---|---|"]
    tail += profiles()
    lines += tail
    print("\n".join(tail))
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
