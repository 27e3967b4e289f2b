"""Rankings of several runs, and whether one ranking says anything about another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.scorers._comparison_scores import check_runs, enter, own_latencies, same_ticks
from envrate.scorers._frontier import OUTPUT_ONLY, READINGS, RESOLVED
from envrate.scorers._tally import Tally
from envrate.trace import Trace

FloatArray = NDArray[np.float64]

#: With fewer systems than this even a perfect agreement is no evidence worth printing.
MIN_SYSTEMS = 6
#: Up to this many systems every permutation is counted.
MAX_EXACT = 8
#: Permutations drawn beyond that.
PERMUTATIONS = 100_000
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Ranked:
    """One run in a ranking; C in bits/s with a 95 % interval, severity per tick."""

    name: str
    rank: int
    credited: float
    low: float
    high: float
    severity: float


@dataclass(frozen=True)
class Ranking:
    """Runs by credited throughput, the best first.

    `order[i, j]` is the share of resamples in which run i (in this order) does better than run j, ties counting half:
    the probability that the order of the two is right. `disputed` names the pairs that severity orders the other way.
    """

    latency_ms: int
    reading: str
    runs: tuple[Ranked, ...]
    order: FloatArray  # (n, n), NaN on the diagonal
    disputed: tuple[tuple[str, str], ...]
    paired: bool
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, float]:
        """C by name, as `transfer` takes it."""
        return {run.name: run.credited for run in self.runs}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "latency_ms": self.latency_ms,
            "reading": self.reading,
            "unit": "bits/s",
            "runs": [vars(run) for run in self.runs],
            "order_right": [[None if math.isnan(x) else x for x in row] for row in self.order.tolist()],
            "disputed": [list(pair) for pair in self.disputed],
            "paired": self.paired,
            "notes": list(self.notes),
        }


def rank(
    runs: Sequence[Trace | Tally],
    latency_ms: int | None = None,
    *,
    names: Sequence[str] | None = None,
    reading: str = OUTPUT_ONLY,
    seed: int = 0,
    resamples: int = 2000,
) -> Ranking:
    """Ranks runs by credited throughput at one allowed latency.

    Args:
        runs: two or more runs with equal tick lengths.
        latency_ms: l; None is the longest horizon. Beyond its own horizon a run scores what it did there.
        names: one per run; None takes the agents' names.
        reading: "output-only" or "resolved".
        seed: of the bootstrap.
        resamples: of the bootstrap. Runs on the same ticks are resampled alike.

    Raises:
        ValueError: fewer than two runs, names that are not all different, different tick lengths, a run of which no
            rate can be had.
    """
    _checks.choice("reading", reading, READINGS)
    if len(runs) < 2:
        raise ValueError(f"runs: expected at least 2, got {len(runs)}")
    check_runs({f"runs[{k}]": run for k, run in enumerate(runs)})
    longest = max(run.header.horizon_ms for run in runs)
    latency = longest if latency_ms is None else _checks.integer("latency_ms", latency_ms, 0, longest, "ms")
    entries = []
    for k, run in enumerate(runs):
        below = own_latencies(run)
        entries.append(enter(run, f"runs[{k}]", np.append(below[below < latency], latency)))
    labels = [entry.label(f"run {k}") for k, entry in enumerate(entries)] if names is None else list(names)
    if len(labels) != len(runs) or len(set(labels)) != len(runs):
        raise ValueError(f"names: expected {len(runs)} different names, got {labels}")
    for name, entry in zip(labels, entries, strict=True):
        if reason := entry.too_little():
            raise ValueError(f"runs: no rate can be had of {name!r}: {reason}")
        if reading == RESOLVED and not entry.link_log:
            why = "has no link log" if entry.counted is not None else "follows values"
            raise ValueError(f"runs: {name!r} {why}, so there is no resolved reading of it")
    paired = all(same_ticks(entries[0], other) for other in entries[1:])
    scored = [
        entry.resampled(resolved=reading == RESOLVED, resamples=resamples, seed=seed if paired else seed + k)[-1]
        for k, entry in enumerate(entries)
    ]
    credited = np.array([s.credited[-1] for s in scored])
    severity = np.array([s.severity[-1] for s in scored])
    draws = np.stack([s.draws[:, -1] for s in scored], axis=1)  # (R, n)
    best = np.argsort(-credited, kind="stable")
    credited, severity, draws, labels = credited[best], severity[best], draws[:, best], [labels[k] for k in best]
    ends = [s.interval() for s in scored]
    low, high = (np.array([end[side][-1] for end in ends])[best] for side in (0, 1))
    rows = tuple(
        Ranked(
            name=name,
            rank=1 + int((credited > credited[k]).sum()),
            credited=float(credited[k]),
            low=float(low[k]),
            high=float(high[k]),
            severity=float(severity[k]),
        )
        for k, name in enumerate(labels)
    )
    order = _order(draws)
    disputed = tuple(
        (labels[i], labels[j])
        for i, j in itertools.combinations(range(len(labels)), 2)
        if credited[i] > credited[j] and severity[i] > severity[j]
    )
    notes = [] if paired else ["not paired: the runs met different required responses"]
    if any(run.header.task != runs[0].header.task for run in runs[1:]):
        notes.append("the runs are on different tasks: their demands differ")
    rare = [labels[k] for k, place in enumerate(best) if scored[place].sparse[-1] < scored[place].credited[-1]]
    if rare:
        notes.append(
            f"some failures of {', '.join(rare)} came up fewer than 5 times: no resample shows more of them, so "
            "the shares in favour of an order are too sure; the intervals allow for it"
        )
    return Ranking(latency, reading, rows, order, disputed, paired, tuple(notes))


def _order(draws: FloatArray) -> FloatArray:
    """(n, n) share of resamples (R, n) in which column i is above column j, ties counting half."""
    n = draws.shape[1]
    out = np.full((n, n), np.nan)
    for i, j in itertools.permutations(range(n), 2):
        out[i, j] = (draws[:, i] > draws[:, j]).mean() + 0.5 * (draws[:, i] == draws[:, j]).mean()
    return out


@dataclass(frozen=True)
class Transfer:
    """Agreement of two rankings of the same systems, with exact p-values (two-sided) and 95 % intervals.

    NaN with a `reason` where it cannot be tested.
    """

    systems: tuple[str, ...]  # in both rankings
    kendall: float  # tau-b
    kendall_p: float
    kendall_low: float
    kendall_high: float
    spearman: float
    spearman_p: float
    spearman_low: float
    spearman_high: float
    left_out: tuple[str, ...]  # in one ranking only
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; NaN becomes None."""
        body = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in vars(self).items()}
        return body | {"systems": list(self.systems), "left_out": list(self.left_out)}


def transfer(
    ranking_a: Ranking | Mapping[str, float], ranking_b: Ranking | Mapping[str, float], *, seed: int = 0
) -> Transfer:
    """How far one ranking of systems agrees with another.

    Args:
        ranking_a: a `Ranking`, or scores by name, larger being better.
        ranking_b: another one; systems that only one of the two has are left out and named.
        seed: of the permutations, where there are more than 8 systems.

    Returns:
        Kendall's tau-b and Spearman's rho. The p-value is the share of permutations of one ranking that agree or
        disagree as strongly: of all of them up to 8 systems; beyond, tau without ties has its exact law (Kendall 1970)
        and the others the share of 100,000 drawn ones. Intervals by Fisher's z with
        the variances of Fieller, Hartley and Pearson (1957) for tau, 0.437 / (n - 4), and of Bonett and Wright (2000)
        for rho, (1 + rho^2 / 2) / (n - 3). Under 6 systems "not testable".
    """
    a, b = (dict(r.scores) if isinstance(r, Ranking) else dict(r) for r in (ranking_a, ranking_b))
    systems = tuple(sorted(set(a) & set(b)))
    left_out = tuple(sorted(set(a) ^ set(b)))
    x, y = (_checks.finite_array("ranking", [scores[name] for name in systems]) for scores in (a, b))
    nan = math.nan
    if len(systems) < MIN_SYSTEMS:
        reason = f"not testable: {len(systems)} systems in both rankings, at least {MIN_SYSTEMS} are needed"
        return Transfer(systems, nan, nan, nan, nan, nan, nan, nan, nan, left_out, reason)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        reason = "not testable: all systems are tied in one ranking"
        return Transfer(systems, nan, nan, nan, nan, nan, nan, nan, nan, left_out, reason)
    from scipy.stats import rankdata

    n = len(systems)
    signs = [np.sign(v[:, None] - v[None, :]) for v in (x, y)]
    ranks = [rankdata(v) - (n + 1) / 2 for v in (x, y)]
    scale_tau = math.sqrt(float((signs[0] ** 2).sum() * (signs[1] ** 2).sum()))
    scale_rho = math.sqrt(float((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    tau = float((signs[0] * signs[1]).sum()) / scale_tau
    rho = float(ranks[0] @ ranks[1]) / scale_rho
    orders = _permutations(n, seed)
    taus = np.einsum("ij,pij->p", signs[0], signs[1][orders[:, :, None], orders[:, None, :]]) / scale_tau
    rhos = ranks[1][orders] @ ranks[0] / scale_rho
    exact = n <= MAX_EXACT
    return Transfer(
        systems,
        tau,
        _share(taus, tau, exact=exact) if exact or _tied(x, y) else _exact_tau(x, y),
        *_fisher(tau, 0.437 / (n - 4), 4.0 / (n * (n - 1))),
        rho,
        _share(rhos, rho, exact=exact),
        *_fisher(rho, (1.0 + rho**2 / 2.0) / (n - 3), 12.0 / (n * (n**2 - 1))),
        left_out,
    )


def _tied(x: FloatArray, y: FloatArray) -> bool:
    return len(np.unique(x)) < len(x) or len(np.unique(y)) < len(y)


def _exact_tau(x: FloatArray, y: FloatArray) -> float:
    from scipy.stats import kendalltau

    return float(kendalltau(x, y, method="exact").pvalue)


def _permutations(n: int, seed: int) -> NDArray[np.int64]:
    """(P, n) every permutation, or many drawn ones."""
    if n <= MAX_EXACT:
        return np.array(list(itertools.permutations(range(n))), dtype=np.int64)
    generator = np.random.default_rng(seed)
    count = min(PERMUTATIONS, max(2000, 20_000_000 // n**2))
    return np.argsort(generator.random((count, n)), axis=1)


def _share(values: FloatArray, observed: float, *, exact: bool) -> float:
    """Two-sided p-value; drawn permutations count the observed one too (Phipson and Smyth 2010)."""
    extreme = int((np.abs(values) >= abs(observed) - 1e-12).sum())
    return extreme / len(values) if exact else (extreme + 1) / (len(values) + 1)


def _fisher(value: float, variance: float, swap: float) -> tuple[float, float]:
    """Interval of a correlation on Fisher's z scale, where a perfect one is at infinity.

    A perfect one is taken there as what is left of it after the swap of two neighbours, and keeps its own end.
    """
    inner = math.copysign(min(abs(value), 1.0 - swap), value)
    half = Z95 * math.sqrt(variance)
    low, high = math.tanh(math.atanh(inner) - half), math.tanh(math.atanh(inner) + half)
    return (low, 1.0) if value > 1.0 - 1e-12 else (-1.0, high) if value < -1.0 + 1e-12 else (low, high)
