"""Tally: the sufficient statistics of a run, counts of outcomes in blocks at each allowed latency.

Scores and their intervals read nothing else, so that a run of any length can be scored in constant memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.scorers._outcome import Outcomes, outcomes
from envrate.trace import WRONG_UNKNOWN, Header, Trace

IntArray = NDArray[np.int64]

#: Kinds of silence, the first columns of the outcome axis: 4 * (nothing delivered by onset + l) + answer to the
#: probe (0 not probed, 1 right, 2 wrong, 3 "don't know" or none).
SILENT_KINDS = 8
#: Episodes from which on the bootstrap draws whole episodes; with fewer it draws moving blocks of ticks.
MIN_EPISODES = 20
#: Most blocks that `tally` makes, and most counts it holds at once.
MAX_BLOCKS, MAX_CELLS = 2048, 2**23


@dataclass(frozen=True)
class Tally:
    """Counts of scored ticks over (block, latency, required, outcome).

    `counts[s]` belongs to stratum s of the header and has shape (B, L, A, A + 8). Its last axis is the outcome: 8
    kinds of silence (index 4 * u + q, where u is 1 if nothing about the tick had been delivered by onset + l, and q is
    the answer to its probe: 0 not probed, 1 right, 2 wrong, 3 "don't know" or none), then the responses 1 ... A-1 from
    index 8 on, then "wrong, unknown which". That last column may be left out.

    Args:
        header: of the run.
        latencies_ms: (L,) allowed latencies, rising.
        counts: one array per stratum.
        episode: (B,) the episode that each block belongs to, blocks of one episode in order of time.
        by_episode: whether blocks are whole episodes (or groups of them), to be drawn independently; else they are
            stretches of consecutive ticks, to be drawn as moving blocks.
        link_log: whether it is known when packets were delivered; without it there is no resolved reading.
        censored: ticks whose horizon went beyond the episode's end; they are in no count.
        redundant: later responses to a tick already answered.
        premature: responses computed before the tick they name had begun.
        no_tick: responses that name no tick.
    """

    header: Header
    latencies_ms: IntArray  # (L,)
    counts: tuple[IntArray, ...]  # each (B, L, A, A + 8)
    episode: IntArray  # (B,)
    by_episode: bool = True
    link_log: bool = True
    censored: int = 0
    redundant: int = 0
    premature: int = 0
    no_tick: int = 0

    def __post_init__(self) -> None:
        """Checks shapes; adds the last column where it was left out."""
        put = object.__setattr__
        put(self, "latencies_ms", check_latencies(self.latencies_ms, self.header))
        put(self, "episode", np.asarray(self.episode, dtype=np.int64))
        blocks, levels = len(self.episode), len(self.latencies_ms)
        if len(self.counts) != len(self.header.strata):
            raise ValueError(f"counts: expected {len(self.header.strata)} arrays (strata), got {len(self.counts)}")
        whole = []
        for counts, stratum in zip(self.counts, self.header.strata, strict=True):
            array, size = np.asarray(counts), len(stratum.pmf)
            if array.shape == (blocks, levels, size, size + SILENT_KINDS - 1):
                array = np.concatenate([array, np.zeros_like(array[..., :1])], axis=-1)
            expected = (blocks, levels, size, size + SILENT_KINDS)
            if array.shape != expected:
                raise ValueError(f"counts: expected shape {expected} for stratum {stratum.name!r}, got {array.shape}")
            if array.dtype.kind not in "iu":
                raise ValueError(f"counts: expected whole numbers, got dtype {array.dtype}")
            whole.append(array)
        put(self, "counts", tuple(whole))

    @property
    def num_blocks(self) -> int:
        """B, the number of blocks."""
        return len(self.episode)

    def required(self, stratum: int = 0) -> IntArray:
        """(A,) scored ticks of a stratum by required symbol."""
        return np.asarray(self.counts[stratum][:, 0].sum(axis=(0, 2)), dtype=np.int64)

    @property
    def num_ticks(self) -> int:
        """Scored ticks of all strata."""
        return sum(int(self.required(s).sum()) for s in range(len(self.counts)))

    @property
    def probed(self) -> bool:
        """Whether any scored tick was probed."""
        columns = [q for q in range(SILENT_KINDS) if q % 4]
        return any(bool(counts[..., columns].any()) for counts in self.counts)


def default_latencies(header: Header) -> IntArray:
    """0, m, 2m ... up to the horizon."""
    return np.arange(0, header.horizon_ms + 1, header.micro_turn_ms, dtype=np.int64)


def check_latencies(latencies_ms: Sequence[int] | IntArray | None, header: Header) -> IntArray:
    """Allowed latencies as a rising array within 0 ... horizon; None is every multiple of the micro-turn."""
    if latencies_ms is None:
        return default_latencies(header)
    given, last = np.atleast_1d(latencies_ms).tolist(), header.horizon_ms
    levels = [_checks.integer("latencies_ms", level, 0, last, "ms") for level in given]
    if not levels:
        raise ValueError("latencies_ms: expected at least one allowed latency, got none")
    return np.unique(np.asarray(levels, dtype=np.int64))


def tally(trace: Trace, latencies_ms: Sequence[int] | IntArray | None = None) -> Tally:
    """Counts the outcomes of a trace in blocks.

    Args:
        trace: a run with symbols for responses.
        latencies_ms: allowed latencies; None takes 0, m, 2m ... up to the horizon.

    Raises:
        ValueError: a trace of real-valued responses, two rows for one tick, a latency beyond the horizon.
    """
    levels = check_latencies(latencies_ms, trace.header)
    found = outcomes(trace)
    scored = np.flatnonzero(trace.ticks["scored"])
    cells = sum(len(s.pmf) * (len(s.pmf) + SILENT_KINDS) for s in trace.header.strata) * len(levels)
    most = int(np.clip(MAX_CELLS // cells, 64, MAX_BLOCKS))
    block, episode, by_episode = _blocks(trace, scored, most)
    return Tally(
        header=trace.header,
        latencies_ms=levels,
        counts=tuple(
            _count(trace, found, scored, block, len(episode), levels, s) for s in range(len(trace.header.strata))
        ),
        episode=episode,
        by_episode=by_episode,
        link_log=trace.header.link is not None or bool((trace.ticks["delivered_ms"] >= 0).any()),
        censored=len(trace) - len(scored),
        redundant=found.redundant,
        premature=found.premature,
        no_tick=found.no_tick,
    )


def _blocks(trace: Trace, scored: IntArray, most: int) -> tuple[IntArray, IntArray, bool]:
    """(N,) block of each scored tick, (B,) episode of each block, and whether blocks are whole episodes.

    At most `most` blocks: episodes are grouped, or ticks taken in stretches, as needed.
    """
    if not len(scored):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), True
    episodes, rank = np.unique(trace.ticks["episode"][scored], return_inverse=True)
    if len(episodes) >= MIN_EPISODES or any(s.method != "profile" for s in trace.header.strata):
        group = -(-len(episodes) // most)
        return rank // group, episodes[::group], True
    stretch = max(1, -(-len(scored) // max(1, most - len(episodes))))
    onset = trace.ticks["onset_ms"][scored]
    same = rank[1:] == rank[:-1]
    in_order = (rank[1:] >= rank[:-1]).all() and (~same | (onset[1:] >= onset[:-1])).all()
    order = np.arange(len(scored)) if in_order else np.lexsort((onset, rank))
    start = np.searchsorted(rank[order], np.arange(len(episodes)))  # of each episode
    within = (np.arange(len(scored)) - start[rank[order]]) // stretch
    sizes = np.bincount(rank[order], minlength=len(episodes))
    per_episode = -(-sizes // stretch)
    base = np.cumsum(per_episode) - per_episode
    block = np.empty(len(scored), dtype=np.int64)
    block[order] = base[rank[order]] + within
    return block, np.repeat(episodes, per_episode), False


def _count(
    trace: Trace, found: Outcomes, scored: IntArray, block: IntArray, blocks: int, levels: IntArray, stratum: int
) -> IntArray:
    """(B, L, A, A + 8) counts of one stratum, as running sums of the changes at each latency."""
    size = len(trace.header.strata[stratum].pmf)
    kinds, num = size + SILENT_KINDS, len(levels)
    mine = trace.ticks["stratum"][scored] == stratum
    rows, block = scored[mine], block[mine]
    cell = (block * num * size + trace.ticks["required"][rows]) * kinds  # of (block, level 0, required, kind 0)
    start = np.zeros(len(rows), dtype=np.int64)
    first = np.searchsorted(levels, found.first_ms[rows])
    delivered = np.minimum(np.searchsorted(levels, found.delivered_ms[rows]), first)
    silent, unheard = found.probe[rows], found.probe[rows] + SILENT_KINDS // 2
    value = found.first_value[rows]
    response = np.where(value == WRONG_UNKNOWN, kinds - 1, value + SILENT_KINDS - 1)
    # Undelivered from level 0 on, then delivered and silent, then answered; a stage of no levels is skipped.
    last = np.full(len(rows), num)
    plus, minus = [], []
    for level, end, kind in ((start, delivered, unheard), (delivered, first, silent), (first, last, response)):
        end = np.minimum(end, num)
        some, ends = level < end, (level < end) & (end < num)
        plus.append((cell + level * (size * kinds) + kind)[some])
        minus.append((cell + end * (size * kinds) + kind)[ends])
    shape = (blocks, num, size, kinds)
    change = np.bincount(np.concatenate(plus), minlength=math.prod(shape))
    change -= np.bincount(np.concatenate(minus), minlength=math.prod(shape))
    return change.reshape(shape).cumsum(axis=1)
