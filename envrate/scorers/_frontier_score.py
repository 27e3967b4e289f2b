"""From a tally to rates at each latency with their resamples: the arithmetic behind a frontier."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from envrate.scorers import _bootstrap, _intervals, _severity
from envrate.scorers._credited import CreditedRate, classes_for
from envrate.scorers._profile import Profile
from envrate.scorers._resolved import HEARD, REDUCED, UNHEARD, conditional, pooled, reduce, required_counts
from envrate.scorers._tally import Tally
from envrate.scorers._timing import items, stratum_rate
from envrate.trace import Header, Trace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Numbers held at once while resampling.
CHUNK = 2**23


@dataclass(frozen=True)
class Scores:
    """Raw scores of a run in one reading, per second, strata added; NaN where a rate cannot be had."""

    credited: FloatArray  # (L,)
    sparse: FloatArray  # (L,) the same with sparse classes at their Clopper-Pearson bounds
    ties: FloatArray  # (L,) the same at what a maximum over tied shares of e may hide
    chance: FloatArray  # (L,) what outcomes that do not look at the required symbol exceed in 2.5 % of runs
    detection: FloatArray  # (L,)
    resampled: FloatArray  # (R, L)
    influence: FloatArray  # (J, L) jackknife values, up to a constant
    severity: FloatArray  # (L,) per tick
    severity_sparse: FloatArray  # (L,)
    severity_resampled: FloatArray  # (R, L)
    severity_influence: FloatArray  # (J, L)
    rate_equivalent: FloatArray  # (L,)


def letters_per_second(tally: Tally, stratum: int) -> float:
    """Letters of a stratum per second: one per tick of a task, else scored ticks over the run's exposure."""
    header = tally.header
    if header.task is not None:
        return 1000.0 / header.tick_ms
    seconds = header.duration_ms / 1000.0
    return float(tally.required(stratum).sum()) / seconds if seconds > 0 else float("nan")


def events(tally: Tally) -> int:
    """Ticks at which a response was due: the events behind every rate."""
    return sum(int(tally.required(s)[1:].sum()) for s in range(len(tally.counts)))


def never_came_up(tally: Tally) -> list[str]:
    """Required symbols that the law has and the run has not, by stratum; exchangeable symbols stand for each other."""
    said = []
    for s, stratum in enumerate(tally.header.strata):
        count = tally.required(s)
        for group in stratum.exchangeable:
            count[list(group)] = count[list(group)].sum()
        if stratum.method == "profile" and count.sum():
            missing = np.flatnonzero((np.asarray(stratum.pmf) > 0) & (count == 0)).tolist()
            where = f" of stratum {stratum.name!r}" if len(tally.counts) > 1 else ""
            said += [f"required symbol {a}{where} never came up" for a in missing]
    return said


def impossible(tally: Tally) -> None:
    """Raises ValueError where a symbol was required that the law gives probability 0."""
    for s, stratum in enumerate(tally.header.strata):
        bad = np.flatnonzero((np.asarray(stratum.pmf) == 0) & (tally.required(s) > 0))
        if stratum.method == "profile" and bad.size:
            raise ValueError(
                f"ticks.required: symbol {bad[0]} came up in stratum {stratum.name!r}, whose law gives it probability 0"
            )


def distinct_levels(tally: Tally) -> tuple[IntArray, IntArray]:
    """Positions of the latencies at which anything changes, and (L,) which of them stands for each latency."""
    changed = np.zeros(len(tally.latencies_ms), dtype=bool)
    changed[:1] = True
    for counts, stratum in zip(tally.counts, tally.header.strata, strict=True):
        changed[1:] |= (counts[:, 1:] != counts[:, :-1]).any(axis=(0, 2, 3))
        if stratum.method == "lag-window":  # its window widens while each outcome stays as it is
            changed[1:] |= np.diff(tally.latencies_ms // tally.header.tick_ms) > 0
    return np.flatnonzero(changed), np.cumsum(changed) - 1


class _Source:
    """One profile stratum of a tally: its reduced counts, classes and rates."""

    def __init__(self, tally: Tally, stratum: int, levels: IntArray, resolved: bool) -> None:
        header = tally.header
        self.per_second = letters_per_second(tally, stratum)
        self.blocks = reduce(tally.counts[stratum][:, levels])  # (B, L, A, A + 4)
        self.total = self.blocks.sum(axis=0)
        self.fallback = pooled(self.total, header.strata[stratum].exchangeable)
        self.stratum = stratum
        self.readings = [classes_for(header, stratum)] + [classes_for(header, stratum, resolved=True)] * resolved
        self.rates = [CreditedRate(classes, header.task) for classes in self.readings]
        self.tables = [
            conditional(self.total, resolved=classes.resolved, fallback=self.fallback) for classes in self.readings
        ]
        self.profiles = [c.frequencies(t) for c, t in zip(self.readings, self.tables, strict=True)]
        self.slopes = [r.slopes(f) for r, f in zip(self.rates, self.profiles, strict=True)]

    def profiles_of(self, reduced: FloatArray) -> list[FloatArray]:
        """(N, L, C) frequencies in each reading of reduced counts (N, L, A, A + 4)."""
        return [
            classes.frequencies(conditional(reduced, resolved=classes.resolved, fallback=self.fallback))
            for classes in self.readings
        ]

    def without_each_block(self) -> list[FloatArray]:
        """(B, L, C) change of the frequencies when a block is left out, in each reading."""
        step = max(1, CHUNK // max(1, self.blocks[0].size))
        parts = [self.profiles_of(self.total - self.blocks[i : i + step]) for i in range(0, len(self.blocks), step)]
        whole = [np.concatenate([part[r] for part in parts]) for r in range(len(self.readings))]
        return [f - point for f, point in zip(whole, self.profiles, strict=True)]

    def resampled(self, weights: FloatArray) -> list[FloatArray]:
        """(R, L, C) frequencies of resamples in each reading."""
        flat = self.blocks.reshape(len(self.blocks), -1)
        step = max(1, CHUNK // max(1, flat.shape[1]))
        parts = [
            self.profiles_of((weights[i : i + step] @ flat).reshape(-1, *self.total.shape))
            for i in range(0, len(weights), step)
        ]
        return [np.concatenate([part[r] for part in parts]) for r in range(len(self.readings))]

    def failures(self) -> FloatArray:
        """(B, 2 L) ticks not handled, and silences about which nothing was delivered, per tick of the block."""
        size = self.blocks.shape[-2]
        ticks = required_counts(self.blocks).sum(axis=-1)
        right = self.blocks[:, :, 0, UNHEARD] + self.blocks[:, :, 0, HEARD]
        for a in range(1, size):
            right = right + self.blocks[:, :, a, REDUCED + a - 1]
        unheard = self.blocks[..., UNHEARD].sum(axis=-1)
        return np.concatenate([ticks - right, unheard], axis=1) / np.maximum(np.tile(ticks, 2), 1.0)


def score(
    tally: Tally, trace: Trace | None, *, resolved: bool, resamples: int, seed: int
) -> tuple[list[Scores], IntArray]:
    """Raw scores in the output-only and, on demand, the resolved reading, and (L,) the level of each latency.

    Scores are at the distinct levels only: latencies between which nothing happened share one.
    """
    levels, level_of = distinct_levels(tally)
    profile_strata = [s for s, stratum in enumerate(tally.header.strata) if stratum.method == "profile"]
    others = [s for s, stratum in enumerate(tally.header.strata) if stratum.method != "profile"]
    sources = [_Source(tally, s, levels, resolved) for s in profile_strata if tally.required(s).sum()]
    changes = [source.without_each_block() for source in sources]
    window = 1
    if not tally.by_episode:
        series = [source.failures() for source in sources]
        series += [
            np.einsum("blc,lc->bl", change, slopes)
            for source, change_of in zip(sources, changes, strict=True)
            for change, slopes in zip(change_of, source.slopes, strict=True)
        ]
        window = _bootstrap.window_length(np.concatenate(series, axis=1)) if series else 1
        if tally.num_ticks >= 2 * tally.num_blocks:  # stretches hide what hangs together at their ends
            window = max(window, 2)
    rng = np.random.default_rng(seed)
    weights = _bootstrap.weights(tally.num_blocks, resamples, rng, window=window)
    readings = 1 + resolved
    parts = [
        _profile_scores(tally.header, source, change, weights, window, rng)
        for source, change in zip(sources, changes, strict=True)
    ]
    parts += [[_item_scores(tally, trace, s, levels, weights)] * readings for s in others]
    ticks = [int(tally.required(source.stratum).sum()) for source in sources]
    ticks += [int(tally.required(s).sum()) for s in others]
    return [_added([part[r] for part in parts], ticks) for r in range(readings)], level_of


def _profile_scores(
    header: Header,
    source: _Source,
    changes: list[FloatArray],
    weights: FloatArray,
    window: int,
    rng: np.random.Generator,
) -> list[Scores]:
    """Scores of one profile stratum in each reading."""
    effect = _intervals.design_effect(source.blocks, window)
    draws = source.resampled(weights)
    out: list[Scores] = []
    for r, (classes, rate) in enumerate(zip(source.readings, source.rates, strict=True)):
        point, table = source.profiles[r], source.tables[r]
        sparse = _intervals.sparse_bounds(classes, source.fallback, point, table, effect)
        ties = _intervals.tied_bounds(classes, source.fallback, point, table, effect)
        ends = np.stack([point, sparse, ties])
        bits = rate.lower(ends) * source.per_second
        drawn = rate.lower(draws[r], anchors=ends.reshape(-1, ends.shape[-1])) * source.per_second
        found = Scores(
            credited=bits[0],
            sparse=bits[1],
            ties=bits[2],
            chance=_intervals.chance_bound(classes, source.fallback, bits[0] / source.per_second, effect, rng)
            * source.per_second,
            detection=_detection(header, classes, table, bits[0] / source.per_second) * source.per_second,
            resampled=drawn,
            influence=-np.einsum("blc,lc->bl", changes[r], source.slopes[r]) * source.per_second,
            severity=_severity.severity(classes, point),
            severity_sparse=_severity.severity(classes, sparse),
            severity_resampled=_severity.severity(classes, draws[r]),
            severity_influence=-_severity.severity(classes, changes[r]),
            rate_equivalent=np.empty(0),
        )
        if r == 0:
            equivalent = _severity.rate_equivalent(header, source.stratum, found.severity) * source.per_second
            out.append(replace(found, rate_equivalent=equivalent))
        else:
            out.append(_at_least(found, out[0]))
    return [_by_window(scores, window) for scores in out]


def _at_least(resolved: Scores, output_only: Scores) -> Scores:
    """The resolved reading is never below the output-only one, and has its severity: e is a silence."""
    larger = output_only.credited > resolved.credited
    return replace(
        output_only,
        credited=np.maximum(resolved.credited, output_only.credited),
        sparse=np.maximum(resolved.sparse, output_only.sparse),
        ties=np.maximum(resolved.ties, output_only.ties),
        chance=np.maximum(resolved.chance, output_only.chance),
        detection=np.where(larger, output_only.detection, resolved.detection),
        resampled=np.maximum(resolved.resampled, output_only.resampled),
        influence=np.where(larger, output_only.influence, resolved.influence),
    )


def _detection(header: Header, classes: Profile, table: FloatArray, whole: FloatArray) -> FloatArray:
    """(L,) bits per letter of detection, at most the whole; 0 where a response is due at every tick."""
    if not 0.0 < classes.pmf[0] < 1.0:
        return np.where(np.isfinite(whole), 0.0, np.nan)
    rate = CreditedRate(classes, header.task, merged=True)
    # Both are lower ends; the whole is a bound on its part.
    return np.minimum(rate.lower(rate.classes.frequencies(classes.merge(table))), whole)


def _by_window(scores: Scores, window: int) -> Scores:
    """Jackknife values of the windows that the bootstrap drew: influences of neighbours add."""
    if window == 1:
        return scores
    starts = np.arange(0, len(scores.influence), window)
    return replace(
        scores,
        influence=np.add.reduceat(scores.influence, starts, axis=0),
        severity_influence=np.add.reduceat(scores.severity_influence, starts, axis=0),
    )


def _item_scores(tally: Tally, trace: Trace | None, stratum: int, levels: IntArray, weights: FloatArray) -> Scores:
    """Scores of a stratum that is scored item by item (lag window, share); blocks are items or groups of them."""
    name = tally.header.strata[stratum].name
    if trace is None:
        raise ValueError(f"stratum: {name!r} is scored from its responses one by one; expected a Trace, got a Tally")
    block = np.searchsorted(tally.episode, items(trace), side="right") - 1
    latencies = tally.latencies_ms[levels]
    whole = stratum_rate(trace, stratum, latencies)
    drawn = stratum_rate(trace, stratum, latencies, weights=weights[:, block]).per_second
    without = 1.0 - np.eye(tally.num_blocks)[:, block]
    left = stratum_rate(trace, stratum, latencies, weights=without).per_second
    rate = np.asarray(whole.per_second)
    failed = 1.0 - np.clip(rate / whole.demand_per_second, 0.0, 1.0)
    timing = tally.header.strata[stratum].method == "lag-window"
    return Scores(
        credited=rate,
        sparse=rate,
        ties=rate,
        chance=np.zeros_like(rate),
        detection=rate if timing else np.where(np.isfinite(rate), 0.0, np.nan),
        resampled=np.asarray(drawn),
        influence=left.mean(axis=0) - left,
        severity=failed,
        severity_sparse=failed,
        severity_resampled=np.repeat(failed[None], len(weights), axis=0),
        severity_influence=np.zeros_like(left),
        rate_equivalent=rate,
    )


def _added(parts: list[Scores], ticks: list[int]) -> Scores:
    """Strata added: rates sum, severities average over ticks."""
    share = np.asarray(ticks) / max(1, sum(ticks))
    values = {}
    for name in Scores.__dataclass_fields__:
        arrays = [getattr(part, name) for part in parts]
        scale = share if name.startswith("severity") else np.ones(len(parts))
        values[name] = sum(weight * array for weight, array in zip(scale, arrays, strict=True))
    return Scores(**values)
