"""Two pictures of the report: how late the responses came, and ten seconds of the run."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from envrate.trace import ACT, PROBE, Trace

TIMELINE_MS = 10_000
INK, RIGHT, WRONG, QUIET = "#333333", "#1b7f5c", "#b3372f", "#8a8f98"


def latency_histogram(trace: Trace) -> Figure:
    """Latency of the responses that name a tick, from its onset, in steps of the micro-turn."""
    header = trace.header
    responses = trace.responses
    named = (responses["kind"] == ACT) & (responses["tick"] >= 0)
    latency = responses["time_ms"][named] - onsets(trace)[named]
    figure, axes = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
    edges = np.arange(0, header.horizon_ms + 2 * header.micro_turn_ms, header.micro_turn_ms)
    within = np.clip(latency, 0, edges[-1] - 1)
    axes.hist(within, bins=edges.tolist(), color=RIGHT, alpha=0.85)
    axes.axvline(header.horizon_ms, color=INK, linewidth=1, linestyle=(0, (4, 2)))
    axes.set_xlabel("latency of a response (ms); beyond the horizon in the last bar")
    axes.set_ylabel("responses")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def onsets(trace: Trace) -> NDArray[np.int64]:
    """(M,) onset of the tick that each response names; 0 where it names none or one that is not in the trace."""
    ticks, responses = trace.ticks, trace.responses
    if not len(trace):
        return np.zeros(len(responses["tick"]), dtype=np.int64)
    span = int(max(ticks["tick"].max(), responses["tick"].max(initial=0))) + 1
    key = ticks["episode"] * span + ticks["tick"]
    order = np.argsort(key)
    wanted = responses["episode"] * span + responses["tick"]
    place = order[np.minimum(np.searchsorted(key, wanted, sorter=order), len(order) - 1)]
    return np.where(key[place] == wanted, ticks["onset_ms"][place], 0)


def timeline(trace: Trace, *, start_ms: int = 0, episode: int | None = None) -> Figure:
    """Ten seconds of one episode: what was required, delivered, done and asked."""
    ticks, responses = trace.ticks, trace.responses
    which = int(ticks["episode"].min()) if episode is None else episode
    end_ms = start_ms + TIMELINE_MS

    def rows(table: dict[str, Any], column: str) -> Any:
        return (table["episode"] == which) & (table[column] >= start_ms) & (table[column] < end_ms)

    figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    begun = rows(ticks, "onset_ms")
    for onset, symbol in zip(ticks["onset_ms"][begun], ticks["required"][begun], strict=True):
        due = bool(symbol)
        axes.barh(3, trace.header.tick_ms * 0.94, left=onset, height=0.5, color=INK if due else "#e3e5e8")
        if due:
            axes.text(onset + trace.header.tick_ms / 2, 3, str(symbol), color="white", ha="center", va="center", size=7)
    delivered = rows(ticks, "delivered_ms")
    axes.plot(ticks["delivered_ms"][delivered], np.full(delivered.sum(), 2), "|", color=QUIET, markersize=12)
    required = dict(
        zip(ticks["tick"][ticks["episode"] == which], ticks["required"][ticks["episode"] == which], strict=True)
    )
    done = rows(responses, "time_ms") & (responses["kind"] == ACT)
    for time, tick, value in zip(*(responses[c][done] for c in ("time_ms", "tick", "value")), strict=True):
        right = required.get(tick) == value
        axes.plot(time, 1, "o" if right else "X", color=RIGHT if right else WRONG, markersize=6)
    asked = rows(ticks, "probe_ms")
    axes.plot(ticks["probe_ms"][asked], np.full(asked.sum(), 0), "v", color=QUIET, markersize=6)
    answered = rows(responses, "time_ms") & (responses["kind"] == PROBE)
    axes.plot(responses["time_ms"][answered], np.full(answered.sum(), -0.25), "^", color=RIGHT, markersize=5)
    axes.set_yticks([3, 2, 1, 0], ["required", "delivered", "done", "probes"])
    axes.set_ylim(-0.7, 3.6)
    axes.set_xlim(start_ms, end_ms)
    axes.set_xticks(np.arange(start_ms, end_ms + 1, 1000), [f"{s / 1000:g}" for s in range(start_ms, end_ms + 1, 1000)])
    axes.set_xlabel("time (s)")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    return figure
