"""A run as a trace: one episode per question, one tick per reply, one stratum per number of options."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from envrate.bench_adapters.tvbench._items import MAX_SECONDS, STATUSES, WRONG, Item, Run
from envrate.rd import Bracket
from envrate.trace import WRONG_UNKNOWN, Array, Header, Stratum, Trace

#: The grid of allowed latencies has about FINE of them up to the 90th percentile of the measured ones, at most MOST in
#: all; its step is 1, 2 or 5 times a power of ten.
FINE, MOST = 25, 200
#: Time of an answer whose latency was not measured: beyond every horizon.
UNMEASURED_MS = 10**12
#: The clock of a run whose clips have no known length.
NOMINAL = "1 nominal second per item"
MS = 1000.0


def seconds_of(items: Sequence[Item], seconds: str | float | None) -> tuple[list[float], str]:
    """Each item's own clock in seconds, and how it was had.

    Args:
        items: of the run.
        seconds: "clip" (length of the clip or segment), a number of seconds for every item, or None: clips where all
            items have one, else one nominal second per item, so that a rate per second reads as a rate per item.

    Raises:
        ValueError: neither of these, or "clip" where some item has no length.
    """
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        if not 1 / MS <= seconds <= MAX_SECONDS:
            raise ValueError(f"seconds: expected a number in [{1 / MS:g}, {MAX_SECONDS:g}] or 'clip', got {seconds!r}")
        return [float(seconds)] * len(items), f"{seconds:g} s per item"
    if seconds not in (None, "clip"):
        raise ValueError(f"seconds: expected a number > 0 or 'clip', got {seconds!r}")
    without = sum(item.clip_s is None for item in items)
    if without and seconds == "clip":
        raise ValueError(
            f"seconds: {without} of {len(items)} items have no clip length; give the data set that holds it "
            "(data, --data) or a number of seconds per item"
        )
    if without:
        return [1.0] * len(items), NOMINAL
    return [item.clip_s or 0.0 for item in items], "clip or segment length"


def to_trace(run: Run, *, seconds: str | float | None = None) -> Trace:
    """The trace of a run.

    A reply answers its question from time 0 on; its time is the latency of the request. A reply whose latency was not
    measured takes effect after the horizon, so that it is within no allowed latency. Failed, filtered, unparsed and
    missing items are ticks without a response.

    Raises:
        ValueError: as `seconds_of`.
    """
    items = run.items
    clock, clock_words = seconds_of(items, seconds)
    sizes = sorted({item.options for item in items})
    strata = tuple(
        Stratum(f"{k} options", (0.0, *([1.0 / k] * k)), exchangeable=(tuple(range(1, k + 1)),)) for k in sizes
    )
    latencies = [math.ceil(item.latency_s * MS) for item in items if item.choice and item.latency_s is not None]
    step, horizon = _grid(latencies)
    duration = sum(clock)
    episodes = {key: number for number, key in enumerate(dict.fromkeys((i.subset, i.index) for i in items))}
    ticks: dict[str, list[int]] = defaultdict(list)
    responses: dict[str, list[int]] = defaultdict(list)
    for item, required in zip(items, _required(items), strict=True):
        episode = episodes[item.subset, item.index]
        ticks["episode"].append(episode)
        ticks["tick"].append(item.repeat)
        ticks["required"].append(required)
        ticks["stratum"].append(sizes.index(item.options))
        if item.choice:
            time = UNMEASURED_MS if item.latency_s is None else math.ceil(item.latency_s * MS)
            responses["episode"].append(episode)
            responses["tick"].append(item.repeat)
            responses["time_ms"].append(time)
            responses["compute_ms"].append(time)
            responses["value"].append(WRONG_UNKNOWN if item.choice == WRONG else item.choice)
    ticks["onset_ms"] = [0] * len(items)
    bits = sum(math.log2(item.options) for item in items)
    per_second = bits / duration
    header = Header(
        tick_ms=max(1, round(MS * duration / len(items))),
        micro_turn_ms=step,
        horizon_ms=horizon,
        demand=Bracket(per_second, per_second, kind="nominal", method="log2 of the number of options, balanced"),
        strata=strata,
        modality="video",
        agent=run.model,
        clock="service",
        reply="named",
        duration_ms=round(MS * duration),
        items=len(items),
        source=run.format,
        notes=(*run.notes, *_about(run, clock_words)),
        extra={
            "benchmark": "tvbench",
            "format": run.format,
            "producer": run.version,
            "settings": _plain(run.settings),
            "counts": run.counts(),
            "clock": clock_words,
            "service_seconds": sum(item.latency_s for item in items if item.latency_s is not None),
            "subsets": dict(Counter(item.subset for item in items)),
        },
    )
    return Trace(header, _columns(ticks), _columns(responses))


def _columns(lists: dict[str, list[int]]) -> dict[str, Array]:
    return {name: np.asarray(values, dtype=np.int64) for name, values in lists.items()}


def _grid(latencies_ms: Sequence[int]) -> tuple[int, int]:
    """Step and last value of the grid of allowed latencies: covers every measured one, finer than most of them."""
    latest = max(latencies_ms, default=0)
    if latest <= 0:
        return 100, 0
    raw = max(1.0, float(np.quantile(latencies_ms, 0.9)) / FINE, latest / MOST)
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    return step, -(-latest // step) * step


def _required(items: Sequence[Item]) -> list[int]:
    """The right option of each item.

    Where no file tells it (a failed request leaves no row), the option seen least so far stands in for it: the item is
    silent, options are exchangeable, and the law of the answers is balanced by convention.
    """
    seen: dict[int, Counter[int]] = defaultdict(Counter)
    for item in items:
        if item.target:
            seen[item.options][item.target] += 1
    required = []
    for item in items:
        target = item.target
        if not target:
            target = min(range(1, item.options + 1), key=lambda option: (seen[item.options][option], option))
            seen[item.options][target] += 1
        required.append(target)
    return required


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it: a configuration file may hold dates, infinities or anything else."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return f"{value!r:.200}"


def _about(run: Run, clock: str) -> list[str]:
    """What a reader has to know about the numbers."""
    counts = run.counts()
    said = []
    lost = {status: counts[status] for status in STATUSES if status != "ok" and counts[status]}
    if lost:
        listed = ", ".join(f"{number} {status}" for status, number in lost.items())
        said.append(f"in the denominator without an answer: {listed}")
    if counts["without latency"]:
        said.append(f"{counts['without latency']} answer(s) without a latency are within no allowed latency")
    unknown = sum(not item.target and item.choice != 0 for item in run.items)
    if unknown:
        said.append(f"{unknown} answer(s) to questions whose right option no file tells are scored as chance")
    if clock == NOMINAL:
        said.append("no clip lengths, so bits/s are bits per item; give seconds (--seconds) or the data set (--data)")
    if run.format == "evalscope" and counts["without latency"] < counts["ok"]:
        said.append(
            f"latency is per request at concurrency {run.settings.get('concurrency')}, retries included; "
            "the model has the whole clip when it starts"
        )
    return said
