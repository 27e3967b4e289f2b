"""The split of the gap as stacked bands under the demand line."""

from __future__ import annotations

import math
import os
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from envrate.plots import COLOURS, save
from envrate.scorers import Split, SplitPoint

SIZE = (6.4, 3.6)  # inches, per reading
#: What each band is, from the bottom up, with its colour and hatch: they stay apart in grey too.
BANDS = (
    ("credited", COLOURS[0], ""),
    ("lost in the decision", COLOURS[4], "//"),
    ("lost in perception", COLOURS[1], ".."),
    ("lost on the link", COLOURS[5], "xx"),
)


def split_figure(split: Split, path: str | os.PathLike[str] | None = None, *, reading: str | None = None) -> Figure:
    """Credited throughput and the three parts of the gap, stacked up to the demand, against allowed latency.

    Args:
        split: as `envrate.scorers.split` gives it.
        path: where to write the figure, as .png, .svg or .pdf; None only returns it.
        reading: "output-only" or "resolved"; None draws all that the split holds, one panel each.

    Returns:
        The matplotlib figure.

    Raises:
        ValueError: a reading that the split does not hold, or none with numbers in it.
    """
    names = list(dict.fromkeys(p.reading for p in split.points)) if reading is None else [reading]
    panels = [(name, [p for p in split.reading(name) if math.isfinite(p.credited)]) for name in names]
    panels = [(name, points) for name, points in panels if points]
    if not panels:
        reasons = sorted({p.reason for p in split.points if p.reason})
        raise ValueError(f"split: it holds no numbers to draw{': ' + reasons[0] if reasons else ''}")
    figure = Figure(figsize=(SIZE[0], SIZE[1] * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (name, points) in zip(axes, panels, strict=True):
        _panel(ax, split, name, points)
    axes[-1].set_xlabel("allowed latency (ms)")
    figure.suptitle(" · ".join(part for part in (split.task, split.agent) if part), fontsize=10)
    if path is not None:
        save(figure, path)
    return figure


def _panel(axes: Axes, split: Split, name: str, points: list[SplitPoint]) -> None:
    x = [p.latency_ms for p in points]
    # Parts may come out a little below 0 by chance; a band then has no height.
    edges = [[0.0] * len(points)]
    for values in (
        [p.credited for p in points],
        [p.decoded for p in points],
        [p.ideal for p in points],
        [split.demand.upper] * len(points),
    ):
        edges.append([max(low, value) for low, value in zip(edges[-1], values, strict=True)])
    for (label, colour, hatch), low, high in zip(BANDS, edges[:-1], edges[1:], strict=True):
        style: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "hatch": hatch, "alpha": 0.75}
        axes.fill_between(x, low, high, step="post", label=label, linewidth=0, **style)
    axes.axhline(split.demand.upper, color="black", linewidth=1.2, linestyle=(0, (6, 2)))
    axes.plot(
        x,
        [p.prediction for p in points],
        drawstyle="steps-post",
        color="black",
        linewidth=1.2,
        linestyle=(0, (1, 1.2)),
        label="prediction alone",
    )
    axes.set_xlim(x[0], x[-1] if len(x) > 1 else x[0] + 1)
    axes.set_ylim(0.0, 1.08 * split.demand.upper)
    axes.set_ylabel(f"bits/s, T = {split.tick_ms} ms")
    axes.set_title(f"{name} reading", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
