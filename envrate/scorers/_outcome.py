"""What became of each tick: the outcome, which the responses and the link's log fix, never the required response.

The outcome of a tick at allowed latency l is the first non-null response that names it with latency at most l, or
silence. So two numbers per tick, the first response's value and latency, hold the outcomes at every l.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envrate.trace import ACT, PROBE, WRONG_UNKNOWN, Trace

IntArray = NDArray[np.int64]

#: Latency of a response or a delivery that never came.
NEVER_MS = np.iinfo(np.int64).max // 4
#: Answers to a probe: none was put, the right one, a wrong one, "don't know" or no answer in time.
NOT_PROBED, RIGHT, WRONG, DONT_KNOW = range(4)


@dataclass(frozen=True)
class Outcomes:
    """One row per tick of a trace, in the order of its table of ticks."""

    first_value: IntArray  # (N,) 0 silence, 1 ... A-1, -2 wrong and unknown which
    first_ms: IntArray  # (N,) latency from the tick's onset; NEVER_MS where no response came
    delivered_ms: IntArray  # (N,) latency of the first packet about the tick; NEVER_MS where none came
    probe: IntArray  # (N,) NOT_PROBED, RIGHT, WRONG or DONT_KNOW
    redundant: int  # later responses to a tick already answered: counted, never credited
    premature: int  # responses computed before the tick they name had begun: void
    no_tick: int  # responses that name no tick of the trace


def outcomes(trace: Trace) -> Outcomes:
    """The outcome of every tick of `trace`, at every latency.

    Raises:
        ValueError: two rows of ticks with the same episode and number, or a trace of real-valued responses.
    """
    if trace.is_tracking:
        raise ValueError("trace: its responses are real-valued and have no symbols to count; score it as tracking")
    t, r = trace.ticks, trace.responses
    find = _finder(t["episode"], t["tick"])
    row = find(r["episode"], r["tick"])
    onset = t["onset_ms"]
    acts = (r["kind"] == ACT) & (r["value"] != 0)
    known = acts & (row >= 0)
    begun = np.zeros(len(row), dtype=bool)
    begun[known] = (r["time_ms"] - r["compute_ms"])[known] >= onset[row[known]]
    valid = np.flatnonzero(known & begun)
    first = _first(row[valid], r["time_ms"][valid], len(onset))
    answered = first >= 0
    value, latency = np.zeros(len(onset), dtype=np.int64), np.full(len(onset), NEVER_MS)
    chosen = valid[first[answered]]
    value[answered] = r["value"][chosen]
    latency[answered] = r["time_ms"][chosen] - onset[answered]
    _check_alphabet(trace, value)
    delivered = np.where(t["delivered_ms"] >= 0, t["delivered_ms"] - onset, NEVER_MS)
    return Outcomes(
        first_value=value,
        first_ms=latency,
        delivered_ms=delivered,
        probe=_probe_answers(trace, row),
        redundant=len(valid) - int(answered.sum()),
        premature=int((known & ~begun).sum()),
        no_tick=int((acts & (row < 0)).sum()),
    )


def _finder(episode: IntArray, tick: IntArray):  # type: ignore[no-untyped-def]  # a closure over a lookup table
    """A function (episode, tick) -> row of the table of ticks, -1 where there is none."""
    if len(tick) == 0:
        return lambda e, k: np.full(len(k), -1, dtype=np.int64)
    e0, k0 = int(episode.min()), int(tick.min())
    width = int(tick.max()) - k0 + 1
    height = int(episode.max()) - e0 + 1

    def key(e: IntArray, k: IntArray) -> IntArray:
        inside = (e >= e0) & (e < e0 + height) & (k >= k0) & (k < k0 + width)
        return np.where(inside, (e - e0) * width + (k - k0), -1)

    keys = key(episode, tick)
    rows = np.arange(len(tick))
    if height * width <= 8 * len(tick) + 1024:  # dense: a table is faster than a search
        table = np.full(height * width + 1, -1, dtype=np.int64)  # the last entry answers key -1
        table[keys] = rows
        if (table[keys] != rows).any():
            _raise_duplicate(episode, tick, int(np.flatnonzero(table[keys] != rows)[0]))
        return lambda e, k: table[key(e, k)]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    if same.size:
        _raise_duplicate(episode, tick, int(order[same[0]]))

    def search(e: IntArray, k: IntArray) -> IntArray:
        wanted = key(e, k)
        place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        return np.where(ordered[place] == wanted, order[place], -1)

    return search


def _raise_duplicate(episode: IntArray, tick: IntArray, row: int) -> None:
    raise ValueError(
        f"ticks: episode {episode[row]}, tick {tick[row]} has two rows; expected one row per required response"
    )


def _first(row: IntArray, time: IntArray, count: int) -> IntArray:
    """(count,) position of the earliest entry of each row, the earlier in the table on a tie; -1 where none."""
    first = np.full(count, -1, dtype=np.int64)
    order = np.arange(len(row))
    first[row[::-1]] = order[::-1]  # the last write wins, so the first in the table stays
    if len(row) and (time < time[first[row]]).any():  # the table is not in order of time
        order = np.lexsort((order, time))
        first[row[order][::-1]] = order[::-1]
    return first


def _check_alphabet(trace: Trace, value: IntArray) -> None:
    """A response must be in the alphabet of the tick it answers."""
    sizes = np.array([len(s.pmf) for s in trace.header.strata])
    size = sizes[trace.ticks["stratum"]] if len(value) else value
    bad = np.flatnonzero((value >= size) | ((value < 0) & (value != WRONG_UNKNOWN)))
    if bad.size:
        row = int(bad[0])
        raise ValueError(
            f"responses.value: {value[row]} answers tick {trace.ticks['tick'][row]} of episode "
            f"{trace.ticks['episode'][row]}, whose stratum has the symbols 0 ... {size[row] - 1}"
        )


def _probe_answers(trace: Trace, row: IntArray) -> IntArray:
    """(N,) what came of each tick's probe; the first answer within the deadline counts."""
    t, r = trace.ticks, trace.responses
    probed = t["probe_ms"] >= 0
    answer = np.where(probed, DONT_KNOW, NOT_PROBED).astype(np.int64)
    said = np.flatnonzero((r["kind"] == PROBE) & (row >= 0))
    if not said.size or not probed.any():
        return answer
    at, time = row[said], r["time_ms"][said]
    in_time = probed[at] & (time >= t["probe_ms"][at])
    task = trace.header.task
    if task is not None and task.probes is not None:
        in_time &= time <= t["onset_ms"][at] + task.probes.after_ms + task.probes.deadline_ms
    said, at, time = said[in_time], at[in_time], time[in_time]
    first = _first(at, time, len(answer))
    got = np.flatnonzero(first >= 0)
    value = r["value"][said[first[got]]]
    answer[got] = np.where(value == t["probe_required"][got], RIGHT, np.where(value < 0, DONT_KNOW, WRONG))
    return answer
