"""Figures for papers and reports: the frontier under its demand line."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from envrate.scorers import Frontier, Point

#: Colours that stay apart for colour-blind readers and in grey (Okabe and Ito 2008).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#555555"
STYLE = {"output-only": "-", "resolved": (0, (4, 1.5))}
SIZE = (6.4, 4.0)  # inches: one column of a page


def frontier(
    frontiers: Sequence[Frontier],
    path: str | os.PathLike[str] | None = None,
    *,
    reading: str | None = None,
    ideal: Frontier | Sequence[tuple[float, float]] | None = None,
    gap_at_ms: float | None = None,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Credited throughput against allowed latency, with 95 % bands, under the demand.

    Args:
        frontiers: one or more, each in a colour of its own.
        path: where to write the figure, as .png, .svg or .pdf; None only returns it.
        reading: "output-only" or "resolved"; None draws both, the resolved one dashed.
        ideal: the frontier of an ideal observer on the same link, or its (latency in ms, bits/s) pairs; drawn in grey.
        gap_at_ms: the latency at which the gap of the first frontier is drawn; None takes the first latency with a
            throughput above 0 at which the system is not shown to keep up.
        labels: one per frontier; None takes the agents' names.
        title: of the figure; None takes the task's name.

    Returns:
        The matplotlib figure.

    Raises:
        ValueError: no frontier, another number of labels, frontiers of different tick lengths.
    """
    if not frontiers:
        raise ValueError("frontiers: expected at least one, got none")
    ticks = sorted({f.header.tick_ms for f in frontiers})
    if len(ticks) > 1:
        raise ValueError(f"frontiers: expected equal tick lengths, got {ticks} ms; rates then have different units")
    names = [f.header.agent or f.name for f in frontiers] if labels is None else list(labels)
    if len(names) != len(frontiers):
        raise ValueError(f"labels: expected {len(frontiers)}, one per frontier, got {len(names)}")
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    _demand_lines(axes, frontiers)
    if ideal is not None:
        _ideal(axes, ideal, reading or "output-only", last=frontiers[0].latencies_ms[-1])
    for k, (one, name) in enumerate(zip(frontiers, names, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        for which in ("output-only", "resolved"):
            if reading in (None, which) and (which == "output-only" or one.has_resolved):
                _steps(axes, one.reading(which), colour=colour, style=STYLE[which], label=f"{name}, {which}")
    _gap(axes, frontiers[0], reading, gap_at_ms)
    _finish(axes, frontiers, title)
    if path is not None:
        save(figure, path)
    return figure


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Writes a figure by the ending of `path`; the same figure gives the same bytes."""
    import matplotlib

    target = figure_path(path)
    metadata: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix, {})
    with matplotlib.rc_context({"svg.hashsalt": "envrate", "svg.fonttype": "none"}):
        figure.savefig(target, dpi=200, metadata=metadata)
    return target


def figure_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a figure can be written there; raises ValueError naming the endings that it can have."""
    target = Path(path)
    if target.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"path: expected a name that ends in .png, .svg or .pdf, got {target.name!r}")
    if not target.absolute().parent.is_dir():
        raise ValueError(f"path: there is no folder {str(target.parent)!r}")
    return target


def _demand_lines(axes: Axes, frontiers: Sequence[Frontier]) -> None:
    """One line per different demand; a bracket that is wide enough to see is a band."""
    seen: list[float] = []
    for k, one in enumerate(frontiers):
        due = one.demand
        if any(math.isclose(due.upper, other, rel_tol=1e-9) for other in seen):
            continue
        seen.append(due.upper)
        colour = "black" if len({f.demand.upper for f in frontiers}) == 1 else COLOURS[k % len(COLOURS)]
        axes.axhline(due.upper, color=colour, linewidth=1.2, linestyle=(0, (6, 2)), zorder=2)
        if due.width > 1e-3 * due.upper:
            axes.axhspan(due.lower, due.upper, color=colour, alpha=0.12, linewidth=0)
        kind = "" if due.kind == "exact" else f", {due.kind}"
        axes.annotate(
            f"demand R(0) = {due.upper:.4g} bits/s{kind}",
            (1.0, due.upper),
            xycoords=("axes fraction", "data"),
            xytext=(-4, 4),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=8.5,
            color=colour,
        )


def _steps(axes: Axes, points: Sequence[Point], *, colour: str, style: Any, label: str) -> None:
    """A frontier is constant between the latencies at which something arrives, so it is drawn in steps."""
    known = [p for p in points if math.isfinite(p.credited)]
    if not known:
        return
    x = [p.latency_ms for p in known]
    line: dict[str, Any] = {"color": colour, "linestyle": style, "linewidth": 1.6, "label": label, "zorder": 3}
    axes.plot(x, [p.credited for p in known], drawstyle="steps-post", **line)
    low, high = [p.credited_low for p in known], [p.credited_high for p in known]
    axes.fill_between(x, low, high, step="post", color=colour, alpha=0.22, linewidth=0, zorder=1)


def _ideal(axes: Axes, ideal: Frontier | Sequence[tuple[float, float]], reading: str, last: float) -> None:
    """The best that any decision rule makes of the link, dotted."""
    if isinstance(ideal, Frontier):
        pairs = [(float(p.latency_ms), p.credited) for p in ideal.reading(reading)]
    else:
        pairs = [(float(x), float(y)) for x, y in ideal]
    known = [(x, y) for x, y in pairs if math.isfinite(y)]
    if known:
        x, y = zip(*known, (max(last, known[-1][0]), known[-1][1]), strict=True)
        line: dict[str, Any] = {"color": GREY, "linestyle": (0, (1, 1.2)), "linewidth": 1.6}
        line["label"] = f"ideal observer, {reading}"
        axes.plot(x, y, drawstyle="steps-post", **line)


def _gap(axes: Axes, one: Frontier, reading: str | None, at_ms: float | None) -> None:
    """Double arrows from C to the demand, one per reading that is drawn."""
    there = ("output-only", "resolved") if one.has_resolved else ("output-only",)
    drawn = [name for name in there if reading in (None, name)]
    if not drawn:
        return
    if at_ms is None:
        known = [p for p in one.reading(drawn[0]) if math.isfinite(p.credited)]
        open_ = [p.latency_ms for p in known if p.credited > 0 and p.keeps_up != "yes"] or [p.latency_ms for p in known]
        if not open_:
            return
        at_ms = open_[0]
    here = one.at(at_ms, drawn[0]).credited
    ends = [p.latency_ms for p in one.reading(drawn[0]) if p.latency_ms > at_ms and p.credited != here]
    width = (ends[0] if ends else one.latencies_ms[-1]) - at_ms
    for k, name in enumerate(drawn):
        point = one.at(at_ms, name)
        if not math.isfinite(point.gap) or point.gap < 0.02 * one.demand.upper:
            continue
        x = at_ms + width * (k + 1) / (len(drawn) + 1)
        axes.annotate(
            "",
            (x, point.credited),
            (x, one.demand.upper),
            arrowprops={"arrowstyle": "<->", "color": GREY, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0},
        )
        axes.annotate(
            f"gap {point.gap:.3g}",
            (x, 0.5 * (point.credited + one.demand.upper)),
            xytext=(-2, 0),
            textcoords="offset points",
            fontsize=8,
            color=GREY,
            rotation=90,
            ha="right",
            va="center",
        )


def _finish(axes: Axes, frontiers: Sequence[Frontier], title: str | None) -> None:
    first = frontiers[0]
    top = max(f.demand.upper for f in frontiers)
    levels = [level for f in frontiers for level in f.latencies_ms]
    axes.set_xlim(min(levels), max(max(levels), min(levels) + 1))
    axes.set_ylim(0.0, 1.16 * top if top > 0 else 1.0)
    axes.set_xlabel("allowed latency l (ms)")
    axes.set_ylabel("credited throughput (bits/s)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    modality = f" · {first.header.modality}" if first.header.modality else ""
    axes.set_title(f"{first.name}{modality} · T = {first.header.tick_ms} ms" if title is None else title, fontsize=10)
    axes.grid(True, linewidth=0.4, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", fontsize=8, frameon=True, framealpha=0.9, edgecolor="none")
