"""Rows of a trace as they are made, and which strata have enough in them to be scored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from envrate.rd import Bracket
from envrate.trace import Stratum

IntArray = NDArray[np.int64]

#: A stratum with fewer events, options questions or answers than this has no rate.
MIN_EVENTS = 10
TICKS = ("episode", "tick", "onset_ms", "required", "stratum", "scored")
RESPONSES = ("episode", "time_ms", "tick", "value", "compute_ms")


@dataclass
class Table:
    """The two tables of a trace, row by row, and its strata by name."""

    strata: dict[str, Stratum] = field(default_factory=dict)
    ticks: list[tuple[int, ...]] = field(default_factory=list)
    responses: list[tuple[int, ...]] = field(default_factory=list)

    def stratum(self, name: str, pmf: tuple[float, ...], method: str, *, exchangeable: bool = False) -> int:
        """Index of a stratum, made at first use."""
        if name not in self.strata:
            groups = (tuple(range(1, len(pmf))),) if exchangeable else ()
            self.strata[name] = Stratum(name, pmf, groups, method)
        return list(self.strata).index(name)

    def tick(self, episode: int, tick: int, onset_ms: int, required: int, stratum: int, scored: bool = True) -> None:
        """Adds a row."""
        self.ticks.append((episode, tick, onset_ms, required, stratum, int(scored)))

    def response(self, episode: int, time_ms: int, tick: int, value: int, compute_ms: int = 0) -> None:
        """Adds a row."""
        self.responses.append((episode, time_ms, tick, value, compute_ms))

    def tick_columns(self) -> dict[str, IntArray]:
        """The ticks by column."""
        return dict(zip(TICKS, np.array(self.ticks, dtype=np.int64).reshape(-1, len(TICKS)).T, strict=True))

    def response_columns(self) -> dict[str, IntArray]:
        """The responses by column."""
        columns = np.array(self.responses, dtype=np.int64).reshape(-1, len(RESPONSES)).T
        return dict(zip(RESPONSES, columns, strict=True))

    def without_small_strata(self) -> tuple[Table, list[str]]:
        """The table without the strata that are too small to have a rate, and a note on each.

        One of them would withhold the rate of the whole run. What is small depends on the items alone, never on what
        a system said. Where all are too small they stay, and the scorer says why there is no rate.
        """
        columns = self.tick_columns()
        reasons = {name: _too_small(stratum, i, columns) for i, (name, stratum) in enumerate(self.strata.items())}
        if all(reasons.values()) or not any(reasons.values()):
            return self, []
        place = {i: k for k, i in enumerate(i for i, reason in enumerate(reasons.values()) if not reason)}
        gone = {(row[0], row[1]) for row in self.ticks if row[4] not in place}
        kept = Table(
            strata={name: stratum for name, stratum in self.strata.items() if not reasons[name]},
            ticks=[(*row[:4], place[row[4]], *row[5:]) for row in self.ticks if row[4] in place],
            responses=[row for row in self.responses if (row[0], row[2]) not in gone],
        )
        return kept, [f"stratum {name!r} left out: {reason}" for name, reason in reasons.items() if reason]

    def demand(self, exposure_s: float) -> Bracket:
        """Nominal bits per second: one per scored slot, log2 K per options question, one per open answer."""
        columns = self.tick_columns()
        bits = 0.0
        for index, stratum in enumerate(self.strata.values()):
            rows = (columns["scored"] == 1) & (columns["stratum"] == index)
            if stratum.method == "share":
                bits += float((rows & (columns["required"] == 1)).sum())
            else:
                bits += float(rows.sum()) * -sum(p * math.log2(p) for p in stratum.pmf if p > 0)
        rate = bits / exposure_s
        return Bracket(rate, rate, kind="nominal", method="balanced slots and options")


def _too_small(stratum: Stratum, index: int, columns: dict[str, IntArray]) -> str:
    """Why a stratum cannot be scored; empty where it can."""
    rows = (columns["stratum"] == index) & (columns["scored"] == 1)
    count = np.bincount(columns["required"][rows], minlength=len(stratum.pmf))
    if stratum.method == "lag-window":
        if count.min() < MIN_EVENTS:
            return f"{count[1]} events and {count[0]} slots without one, expected at least {MIN_EVENTS}"
        items = len(np.unique(columns["episode"][rows]))
        return "" if items > 1 else "one item, expected at least 2"
    if count[1:].sum() < MIN_EVENTS:
        return f"{count[1:].sum()} answers, expected at least {MIN_EVENTS}"
    never = np.flatnonzero(count[1:] == 0)
    return f"option {never[0] + 1} is never the right one" if never.size else ""
