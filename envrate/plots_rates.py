"""Published rates of humans and interfaces as labelled lines on a frontier's figure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from envrate.plots import GREY
from envrate.scorers import CAUTION, reference_rates


def add_reference_rates(figure: Figure, names: Sequence[str]) -> Figure:
    """Draws dashed lines at published rates on the first panel of a figure, with the caution below it.

    Args:
        figure: as `envrate.plots.frontier` returns it.
        names: of the rates, as in `envrate.scorers.reference_rates`.

    Returns:
        The figure.

    Raises:
        ValueError: a name that is not in the table.
    """
    known = {rate.name: rate for rate in reference_rates()}
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"names: no reference rate {missing[0]!r}; expected some of {', '.join(known)}")
    axes = figure.axes[0]
    for name in names:
        rate = known[name]
        axes.axhline(rate.bits_per_s, color=GREY, linewidth=0.9, linestyle=(0, (2, 2)))
        axes.annotate(
            f"{rate.name}, {rate.bits_per_s:g} ({rate.source})",
            (0.0, rate.bits_per_s),
            xycoords=("axes fraction", "data"),
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=6.5,
            color=GREY,
        )
    highest = max((known[name].bits_per_s for name in names), default=0.0)
    axes.set_ylim(top=max(axes.get_ylim()[1], 1.1 * highest))
    figure.text(0.01, -0.04, CAUTION, fontsize=6.5, color=GREY, wrap=True, va="top")
    return figure
