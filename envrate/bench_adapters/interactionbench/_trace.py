"""A run as a trace: timing of events in slots, content by number of options, open answers by their share.

**Timing.** B and C items: one-second slots over the video, required 1 where an event falls. A stratum per time type and
capability, which is what the system is told; items that require silence are in it like any other. A question asked
now needs no timing, so A items have none. A slot whose window would reach beyond the video's end is not scored.

**Content.** One tick per multiple-choice item, at its first event r: the option that the first emission in [r, r + l]
means. A stratum per number of options K, balanced. Other items bring one tick per event, one nominal bit each, right
where the first emission in [r, r + l] scores at least 1/2; as a control the same emission is held against an event of
the same capability in another video. Running counts bring none: they say nothing that the times of their steps do not.

Emissions are placed by their own times; the annotations enter as required symbols and as the r of content ticks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from envrate import _checks
from envrate._trace_io import LoadReport
from envrate.bench_adapters.interactionbench._content import option_chosen
from envrate.bench_adapters.interactionbench._data import Benchmark, Item, answer_window_s, load_benchmark
from envrate.bench_adapters.interactionbench._evaluate import gather
from envrate.bench_adapters.interactionbench._judges import Judge, resolve
from envrate.bench_adapters.interactionbench._options import Options, key_path
from envrate.bench_adapters.interactionbench._protocol import delivered_times
from envrate.bench_adapters.interactionbench._restraint import restraint
from envrate.bench_adapters.interactionbench._runs import SILENT, Emission, Run, finite_ms
from envrate.bench_adapters.interactionbench._scores import Protocol
from envrate.bench_adapters.interactionbench._table import Table
from envrate.trace import NO_TICK, WRONG_UNKNOWN, Header, Trace

SLOT_MS = 1000
#: An open answer is right from this content score on.
RIGHT_SCORE = 0.5
#: A video longer than this, in seconds, is a wrong number; so are more slots than this in all.
MAX_DURATION_S, MAX_SLOTS = 1e6, 10_000_000
LATENCIES = ("stream", "delivered")


@dataclass(frozen=True)
class _Said:
    """An emission with the time at which it counts; `at_ms` is None where its latency is not recorded."""

    emission: Emission
    stream_ms: int
    at_ms: int | None


def load(
    preds: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Run,
    data: str | os.PathLike[str] | Benchmark,
    *,
    mcq_key: str | os.PathLike[str] | bool | None = None,
    judge: str | Judge | None = None,
    items: str | os.PathLike[str] | Iterable[str] | None = None,
    skip_missing: bool = False,
    latency: str = "stream",
    horizon_s: float = 5.0,
) -> Trace:
    """A run as a trace with a nominal, balanced demand; one episode per item, times in ms of the video.

    Args:
        preds: a preds.jsonl, the run folder that holds one, or its lines as objects.
        data: the benchmark's data folder.
        mcq_key: the key of the multiple-choice items; None takes the data folder's own where it is, False none.
        judge: for open answers, as in `evaluate`.
        items: ids to take, or a file with one per line.
        skip_missing: leave out items without a line in the run instead of taking them as silent.
        latency: "stream" places an emission at the time of the frames it was decided on; "delivered" adds its compute
            and its waiting behind earlier decisions, from the recorded latencies.
        horizon_s: the largest allowed latency, whole seconds; the benchmark's own credit ends at 5.

    Raises:
        ValueError: as `evaluate`; a run without recorded latencies for "delivered"; videos without a duration.
    """
    _checks.choice("latency", latency, LATENCIES)
    horizon = _checks.integer("horizon_s", horizon_s, 1, 3600, "s")
    benchmark, key = _with_key(data, mcq_key)
    inputs = gather(preds, benchmark, mcq_key=key, items=items, skip_missing=skip_missing)
    protocol = Protocol(key=inputs.key, judge=resolve(judge))
    table, notes, run = Table(), [*inputs.notes], inputs.run
    said = [_said(item, run, latency) for item in inputs.items]
    if latency == "delivered":
        notes += _latency_notes(run, said)
    shared = _timing(table, inputs.items, said, horizon)
    if shared:
        notes.append(f"{shared} events fall into the slot of another one of their item and count with it")
    _options(table, inputs.items, said, inputs.key)
    _open_answers(table, inputs.items, said, protocol)
    if not table.strata:
        raise ValueError("items: none of them has a slot, an option or an answer to score; are the durations missing?")
    table, left_out = table.without_small_strata()
    notes += left_out
    notes += [f"hindsight: {reason}" for reason in run.hindsight]
    exposure_s = sum(answer_window_s(item, run.a_window_s) for item in inputs.items)
    if exposure_s <= 0:
        raise ValueError("data: the items have no exposure; expected duration_s > 0 in the annotations")
    return Trace(
        header=Header(
            tick_ms=SLOT_MS,
            micro_turn_ms=SLOT_MS,
            horizon_ms=horizon * SLOT_MS,
            demand=table.demand(exposure_s),
            strata=tuple(table.strata.values()),
            modality="video",
            agent=run.name,
            clock="video" if latency == "stream" else "wall",
            duration_ms=round(1000 * exposure_s),
            items=len(inputs.items),
            hindsight=bool(run.hindsight),
            source="interactionbench",
            notes=tuple(notes),
            extra={
                "latency": latency,
                "items": [item.item_id for item in inputs.items],
                "restraint": restraint(inputs),
            },
        ),
        ticks=table.tick_columns(),
        responses=table.response_columns(),
        report=LoadReport(run.damaged),
    )


def _with_key(
    data: str | os.PathLike[str] | Benchmark, mcq_key: str | os.PathLike[str] | bool | None
) -> tuple[Benchmark, str | os.PathLike[str] | bool]:
    """The data, and the key that None stands for."""
    benchmark = data if isinstance(data, Benchmark) else load_benchmark(data)
    if mcq_key is None:
        own = key_path(benchmark.root, True)
        mcq_key = own is not None and own.is_file()
    return benchmark, mcq_key


def _said(item: Item, run: Run, latency: str) -> list[_Said]:
    """Emissions of one item that say something, in order of time."""
    prediction = run.predictions.get(item.item_id, SILENT)
    spoken = prediction.spoken
    times = delivered_times(item, prediction, run) if latency == "delivered" else [e.t for e in spoken]
    return [_Said(e, round(1000 * e.t), finite_ms(time)) for e, time in zip(spoken, times, strict=True)]


def _latency_notes(run: Run, said: list[list[_Said]]) -> list[str]:
    """What to know about delivered times; raises ValueError where there are none."""
    every = [s for row in said for s in row]
    unknown = sum(s.at_ms is None for s in every)
    if every and unknown == len(every):
        raise ValueError(
            "latency: the run records no latencies (poll_latencies, latency_s, raw/), so no delivered times can be "
            "had; use latency='stream'"
        )
    notes = ["the run's times are wall-clock times: delivered as they are"] if run.wall_clock else []
    if unknown:
        notes.append(f"{unknown} of {len(every)} emissions have no recorded latency and count as never delivered")
    return notes


def _slots(item: Item) -> int:
    """Slots of an item, the one that its last moment falls into included."""
    if not 0 <= item.duration_s <= MAX_DURATION_S:
        raise ValueError(f"data: {item.item_id} lasts {item.duration_s:g} s, expected 0 ... {MAX_DURATION_S:g}")
    return math.floor(item.duration_s) + 1 if item.duration_s > 0 else 0


def _timing(table: Table, items: tuple[Item, ...], said: list[list[_Said]], horizon: int) -> int:
    """Slots, events and emissions of B and C items; returns how many events share a slot with another."""
    shared = 0
    total = sum(_slots(item) for item in items if item.time_type != "A")
    if total > MAX_SLOTS:
        raise ValueError(f"data: the videos last {total} s in all, expected at most {MAX_SLOTS}; score fewer items")
    for episode, (item, row) in enumerate(zip(items, said, strict=True)):
        if item.time_type == "A":
            continue
        slots = _slots(item)
        due = [math.floor(event.time_s) for event in item.events]
        shared += len(due) - len(set(due))
        number = sorted({*range(slots), *(slot for slot in due if slot >= 0)})
        if not number:
            continue
        stratum = table.stratum(f"timing {item.time_type} {item.capability}", (0.5, 0.5), "lag-window")
        for slot in number:
            table.tick(episode, slot, slot * SLOT_MS, int(slot in due), stratum, slot + horizon < slots)
        there = set(number)
        for slot in sorted({s.at_ms // SLOT_MS for s in row if s.at_ms is not None}):
            # Beyond the last slot it names none: the next numbers belong to the item's content.
            table.response(episode, slot * SLOT_MS, slot if slot in there else NO_TICK, 1)
    return shared


def _first_from(said: list[_Said], r: float) -> _Said | None:
    """The first emission decided at or after `r` seconds; None where there is none or its time is not known."""
    found = next((s for s in said if s.emission.t >= r), None)
    return None if found is None or found.at_ms is None else found


def _content_tick(item: Item, index: int) -> int:
    """Number of an item's content tick: after its slots."""
    last = max((math.floor(event.time_s) for event in item.events), default=0)
    return max(_slots(item), last + 1, 0) + index


def _onset_ms(r: float) -> int:
    return math.floor(1000 * r)


def _answer(table: Table, episode: int, tick: int, first: _Said | None, value: int) -> None:
    if first is not None and first.at_ms is not None:
        table.response(episode, first.at_ms, tick, value, max(0, first.at_ms - first.stream_ms))


def _is_optional(item: Item, key: Mapping[str, Options]) -> bool:
    """Whether an item is answered by an option whose letter the key knows."""
    options = key.get(item.item_id)
    return options is not None and options.correct is not None and item.family not in ("negative", "C_counting")


def _options(table: Table, items: tuple[Item, ...], said: list[list[_Said]], key: Mapping[str, Options]) -> None:
    """One content tick per multiple-choice item, by number of options."""
    chosen = [(e, item) for e, item in enumerate(items) if _is_optional(item, key)]
    for episode, item in sorted(chosen, key=lambda pair: len(key[pair[1].item_id].options)):
        options = key[item.item_id]
        size = len(options.options)
        stratum = table.stratum(f"content K={size}", (0.0, *([1.0 / size] * size)), "profile", exchangeable=True)
        event, tick = item.events[0], _content_tick(item, 0)
        assert options.correct is not None
        table.tick(episode, tick, _onset_ms(event.time_s), options.correct + 1, stratum)
        first = _first_from(said[episode], event.time_s)
        if first is not None:
            letter = option_chosen(options.options, first.emission.content)
            _answer(table, episode, tick, first, WRONG_UNKNOWN if letter is None else letter + 1)


def _open_answers(table: Table, items: tuple[Item, ...], said: list[list[_Said]], protocol: Protocol) -> None:
    """One content tick per event of the other items, and one control beside it."""
    chosen = [
        (episode, item)
        for episode, item in enumerate(items)
        if item.family not in ("negative", "C_counting") and not _is_optional(item, protocol.key)
    ]
    peers: dict[str, list[Item]] = {}
    for _, item in chosen:
        peers.setdefault(item.capability, []).append(item)
    place = {item.item_id: k for group in peers.values() for k, item in enumerate(group)}
    for episode, item in chosen:
        stratum = table.stratum("content open", (0.0, 1.0), "share")
        content = protocol.content(item)
        other = _other_video(peers[item.capability], place[item.item_id])
        for n, event in enumerate(item.events):
            first = _first_from(said[episode], event.time_s)
            references = {1: event.content}
            if other is not None:
                references[0] = other.events[n % len(other.events)].content
            for required, reference in references.items():
                tick = _content_tick(item, 2 * n + 1 - required)
                table.tick(episode, tick, _onset_ms(event.time_s), required, stratum)
                if first is not None:
                    right = content(reference, first.emission.content) >= RIGHT_SCORE
                    _answer(table, episode, tick, first, 1 if right else WRONG_UNKNOWN)


def _other_video(group: list[Item], place: int) -> Item | None:
    """The next item of the group that belongs to another video, around the end; None without one."""
    for step in range(1, len(group)):
        other = group[(place + step) % len(group)]
        if other.video_id != group[place].video_id:
            return other
    return None
