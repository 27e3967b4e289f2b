"""Delays of each event and the table of restraint, by the benchmark's own matching. No bits come from here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from envrate.bench_adapters.interactionbench._data import Benchmark, Item
from envrate.bench_adapters.interactionbench._evaluate import Inputs, gather
from envrate.bench_adapters.interactionbench._matching import match
from envrate.bench_adapters.interactionbench._protocol import delivered_times
from envrate.bench_adapters.interactionbench._runs import SILENT, Run
from envrate.bench_adapters.interactionbench._scores import Protocol

#: Columns of the table of restraint: counts of events, then of emissions, then of items that required silence.
RESTRAINT = (
    "events", "on time", "late", "missed", "emissions", "premature", "redundant", "false alarm", "silent items",
    "kept silent",
)  # fmt: skip


@dataclass(frozen=True)
class EventDelay:
    """What became of one event.

    Args:
        item_id: the item.
        event_s: when the answer was due.
        stream_s: when the emission that took it was decided; None where it was missed.
        delivered_s: when that emission was ready, compute and queueing included; None where not recorded.
    """

    item_id: str
    event_s: float
    stream_s: float | None = None
    delivered_s: float | None = None

    @property
    def lead_s(self) -> float | None:
        """Signed delay of the stream, negative where the emission came before the event."""
        return None if self.stream_s is None else self.stream_s - self.event_s

    @property
    def delay_s(self) -> float | None:
        """d_n, the delay that the benchmark scores: early emissions have 0."""
        return None if self.lead_s is None else max(0.0, self.lead_s)

    @property
    def delivered_delay_s(self) -> float | None:
        """Signed delay with compute and queueing."""
        return None if self.delivered_s is None else self.delivered_s - self.event_s


def delays(
    preds: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Run,
    data: str | os.PathLike[str] | Benchmark,
    *,
    items: str | os.PathLike[str] | Iterable[str] | None = None,
    skip_missing: bool = False,
    pre_tol: float = 1.0,
) -> list[EventDelay]:
    """Every event of the scored items with the emission that took it, by the benchmark's matching.

    Args:
        preds: the run, as in `evaluate`.
        data: the benchmark's data folder.
        items: ids to take, or a file with one per line.
        skip_missing: leave out items without a line in the run.
        pre_tol: an emission up to so many seconds before an event belongs to it.

    Raises:
        ValueError: as `evaluate`.
    """
    inputs = gather(preds, data, mcq_key=False, items=items, skip_missing=skip_missing)
    return [delay for item in inputs.items for delay in _of_item(item, inputs.run, pre_tol)]


def _of_item(item: Item, run: Run, pre_tol: float) -> list[EventDelay]:
    if not item.events:
        return []
    prediction = run.predictions.get(item.item_id, SILENT)
    spoken = prediction.spoken
    matching = match([event.time_s for event in item.events], [e.t for e in spoken], pre_tol=pre_tol)
    ready = delivered_times(item, prediction, run)
    return [
        EventDelay(item.item_id, event.time_s)
        if taken is None
        else EventDelay(item.item_id, event.time_s, spoken[taken].t, ready[taken])
        for event, taken in zip(item.events, matching.taken, strict=True)
    ]


def restraint(inputs: Inputs, protocol: Protocol = Protocol()) -> dict[str, dict[str, int]]:  # noqa: B008 - frozen
    """Counts by capability group: what was said in time, late or not at all, and what was said without need.

    An event is on time if it was taken within `protocol.delta` seconds, late if after that. "false alarm" counts the
    emissions on items that required silence.
    """
    table: dict[str, dict[str, int]] = {}
    for item in inputs.items:
        row = table.setdefault(item.group, dict.fromkeys(RESTRAINT, 0))
        spoken = inputs.run.predictions.get(item.item_id, SILENT).spoken
        row["emissions"] += len(spoken)
        if item.should_stay_silent:
            row["silent items"] += 1
            row["kept silent"] += not spoken
            row["false alarm"] += len(spoken)
            continue
        matching = match([e.time_s for e in item.events], [e.t for e in spoken], pre_tol=protocol.pre_tol)
        on_time = sum(d is not None and d < protocol.delta for d in matching.delays)
        row["events"] += len(item.events)
        row["on time"] += on_time
        row["late"] += matching.matched - on_time
        row["missed"] += len(item.events) - matching.matched
        row["premature"] += matching.premature
        row["redundant"] += matching.redundant
    return table
