"""One run scored whole: what it is, its own numbers, bits per item, and its frontier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from envrate.bench_adapters._adapter import ScoresItself, ScoreTable
from envrate.bench_adapters._discovery import Found, option_names
from envrate.bench_adapters._rates import MS_PER_S, ItemRate, bits_per_item
from envrate.trace import ACT, Trace

if TYPE_CHECKING:
    from envrate.scorers import Frontier

#: Allowed latencies on a grid for several runs, at most.
MOST_LEVELS = 200
UNTIMED = "no latency was measured"
SERVICE_NOTE = "time of the service, under its own load; for capacity only, no ranking uses it"


@dataclass(frozen=True)
class ScoredRun:
    """A run with everything that a table of runs shows."""

    name: str
    found: Found
    trace: Trace
    frontier: Frontier
    rate: ItemRate | None  # None where the run has no items (a run on an EnvRate task)
    own: ScoreTable | None
    information: Any = None  # tvbench.InformationBound, where option probabilities were logged

    @property
    def accuracy(self) -> float | None:
        """The benchmark's own main number."""
        return None if self.own is None else self.own.values.get(self.own.main)

    @property
    def is_timed(self) -> bool:
        """Whether any answer has a time within the horizon; without one there is no frontier to speak of."""
        responses = self.trace.responses
        if self.trace.header.clock != "service" or not len(responses["time_ms"]):
            return True
        return bool((responses["time_ms"] <= self.trace.header.horizon_ms).any())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader has to know, each once."""
        report = str(self.trace.report) if self.trace.report is not None else ""
        said = [*self.frontier.notes, *(self.own.notes if self.own is not None else ()), *([report] if report else [])]
        return tuple(dict.fromkeys(said))

    def service(self) -> dict[str, float | None] | None:
        """Seconds of service per answer (median and sum) and bits per service second; None off the service clock."""
        if self.trace.header.clock != "service" or self.rate is None:
            return None
        responses = self.trace.responses
        measured = (responses["kind"] == ACT) & (responses["time_ms"] <= self.trace.header.horizon_ms)
        seconds = responses["compute_ms"][measured] / MS_PER_S
        if not seconds.size or not seconds.sum():
            return None
        # Bits that came with a measured latency, over the time that was measured.
        last = self.frontier.at(self.trace.header.horizon_ms)
        bits = last.credited * self.trace.header.duration_ms / MS_PER_S
        return {
            "median_seconds": float(np.median(seconds)),
            "total_seconds": float(seconds.sum()),
            "bits_per_service_second": finite(float(bits / seconds.sum())),
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; numbers that cannot be had are None."""
        rate, service, header = self.rate, self.service(), self.trace.header
        last = self.frontier.at(header.horizon_ms)
        return {
            "name": self.name,
            "path": str(self.found.path),
            "adapter": self.found.adapter.name,
            "kind": self.found.recognition.kind,
            "recognised": self.found.recognition.description,
            "agent": header.agent,
            "hindsight": header.hindsight,
            "own_scores": None if self.own is None else self.own.to_dict(),
            "items": header.items,
            "bits_per_item": None if rate is None else {
                "bits": finite(rate.bits), "low": finite(rate.low), "high": finite(rate.high),
                "demand": finite(rate.demand), "reason": rate.reason,
            },
            "bits_per_second": {
                "latency_ms": last.latency_ms, "credited": finite(last.credited), "low": finite(last.credited_low),
                "high": finite(last.credited_high), "demand": header.demand.upper, "keeps_up": last.keeps_up,
                "keeps_up_at_ms": self.frontier.keeps_up_at_ms, "clock": header.extra.get("clock", header.clock),
                "reason": last.reason or (None if self.is_timed else UNTIMED),
            },
            "service": None if service is None else service | {"note": SERVICE_NOTE},
            "information_bound": None if self.information is None else {
                "bits": finite(self.information.bits), "low": finite(self.information.low),
                "high": finite(self.information.high), "items": self.information.items,
                "reason": self.information.reason,
            },
            "settings": header.extra.get("settings", {}),
            "counts": header.extra.get("counts", {}),
            "notes": list(self.notes),
        }  # fmt: skip


def finite(value: float | None) -> float | None:
    """`value`, or None where it is no number."""
    return value if value is not None and math.isfinite(value) else None


def on_one_grid(traces: Sequence[Trace]) -> list[Trace]:
    """Runs on the `service` clock with one grid of allowed latencies, so that their frontiers can be compared.

    The grid ends at the latest measured answer of all of them. Other traces are left as they are: their horizon is
    the benchmark's.
    """
    mine = [trace.header for trace in traces if trace.header.clock == "service"]
    if len(mine) < 2:
        return list(traces)
    horizon = max(header.horizon_ms for header in mine)
    step = max(min(header.micro_turn_ms for header in mine), -(-horizon // MOST_LEVELS))
    horizon = -(-horizon // step) * step
    return [
        trace.with_header(horizon_ms=horizon, micro_turn_ms=step) if trace.header.clock == "service" else trace
        for trace in traces
    ]


def score_run(found: Found, name: str | None = None, *, trace: Trace | None = None, **options: Any) -> ScoredRun:
    """Scores one recognised run.

    Args:
        found: what `runs` gave.
        name: for tables; None takes the path's last part.
        trace: the run, where it has been loaded already.
        **options: of the adapter; those that its `load` lacks are refused, those that only `load` has do not reach
            `scores`.

    Raises:
        ValueError: as `load`.
    """
    from envrate.bench_adapters._discovery import load, scores
    from envrate.scorers import frontier

    adapter, kind = found.adapter, found.recognition.kind
    path = found.runs[0] if len(found.runs) == 1 else found.path
    if trace is None:
        trace = load(path, kind, **options)
    own = scores(path, kind, **options) if isinstance(adapter, ScoresItself) else None
    information = None
    if hasattr(adapter, "information"):
        takes = option_names(adapter.information) or ()
        information = adapter.information(Path(path), **{k: v for k, v in options.items() if k in takes})
        information = information if information.items else None
    return ScoredRun(
        name=name if name is not None else found.path.name,
        found=found,
        trace=trace,
        frontier=frontier(trace),
        rate=bits_per_item(trace) if trace.header.items and trace.header.task is None else None,
        own=own,
        information=information,
    )
