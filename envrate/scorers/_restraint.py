"""The restraint table: what each silence and each action was, with the reason behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.scorers._outcome import DONT_KNOW, NEVER_MS, NOT_PROBED, RIGHT, WRONG, Outcomes, outcomes
from envrate.scorers._posterior import has_link_log
from envrate.scorers._retention import Retention, clopper_pearson, retention
from envrate.trace import Trace

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Consequences of a tick in the order of the table; together they make up every scored tick.
CONSEQUENCES = (
    "handled",  # the required response, in time
    "correct silence",  # nothing was due, nothing done, and the tick was known
    "lucky silence",  # nothing was due, nothing done, and the tick was not known
    "over-actuation",  # a response where none was due
    "wrong",  # another response than the one due
    "miss by loss",  # nothing about the tick had been delivered in time
    "miss by perception",  # delivered in time, and the probe was answered wrongly or with "don't know"
    "held back",  # delivered in time, the probe was answered rightly, and no response ever came
    "late",  # delivered in time, and a response came after the allowed latency
)
#: Pairs of consequences that only a probe tells apart: (known, not known).
TOLD_APART = (("correct silence", "lucky silence"), ("held back", "miss by perception"))
#: Confidence of each of up to three estimates that a rate is made of, so that the rate has 95 % (Bonferroni).
PRODUCT_LEVEL = 1.0 - 0.05 / 3


@dataclass(frozen=True)
class RestraintRow:
    """One consequence of one required symbol, or of all of them.

    `count` is what was seen as such; `apportioned` adds the share of the silences that no probe resolved, by the ones
    that were. `rate` is `apportioned` over `ticks`.
    """

    consequence: str
    required: int | None  # None: all symbols together
    ticks: int  # scored ticks in which it could have happened
    count: int
    apportioned: float
    rate: float
    low: float
    high: float
    severity: float  # its part of the severity per scored tick of the run
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; NaN becomes None."""
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in vars(self).items()}


@dataclass(frozen=True)
class RestraintTable:
    """Rows per consequence, overall and per required symbol, and the emissions that belong to no tick's outcome."""

    latency_ms: int
    rows: tuple[RestraintRow, ...]
    retention: tuple[Retention, ...]  # empty without probes
    redundant: int  # later responses to a tick already answered
    premature: int  # computed before the tick that they name had begun
    no_tick: int  # name no tick
    censored: int  # ticks cut off by the episode's end
    notes: tuple[str, ...] = ()

    def row(self, consequence: str, required: int | None = None) -> RestraintRow:
        """The row of one consequence; raises ValueError where there is none."""
        for row in self.rows:
            if row.consequence == consequence and row.required == required:
                return row
        raise ValueError(f"consequence: no row {consequence!r} for required symbol {required}")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "latency_ms": self.latency_ms,
            "rows": [row.to_dict() for row in self.rows],
            "retention": [row.to_dict() for row in self.retention],
            "redundant": self.redundant,
            "premature": self.premature,
            "no_tick": self.no_tick,
            "censored": self.censored,
            "notes": list(self.notes),
        }


def restraint_table(trace: Trace, latency_ms: int | None = None) -> RestraintTable:
    """What became of each scored tick at one allowed latency, and why.

    Args:
        trace: a run with symbols for responses.
        latency_ms: l; None is the horizon.

    Returns:
        The table. Without a link log nothing is known to be lost, and without probes no silence is resolved: the rows
        that need them then hold NaN with the reason.

    Raises:
        ValueError: a tracking trace, or a trace with several strata or without a task (their severities are unknown).
    """
    task = trace.task
    latency = trace.header.horizon_ms if latency_ms is None else latency_ms
    latency = _checks.integer("latency_ms", latency, 0, trace.header.horizon_ms, "ms")
    found = outcomes(trace)
    scored = trace.ticks["scored"]
    required = trace.ticks["required"][scored]
    outcome = np.where(found.first_ms <= latency, found.first_value, 0)[scored]
    log = has_link_log(trace)
    kinds = _kinds(found, scored, required, outcome, latency, log=log)
    severity = _severity(task.distortion, required, outcome)
    rows = []
    for symbol in (None, *np.flatnonzero(task.pmf > 0).tolist()):
        mine = np.ones(len(required), bool) if symbol is None else required == symbol
        rows.extend(_rows(symbol, {name: kind & mine for name, kind in kinds.items()}, mine, required, severity))
    notes = [] if log else ["no link log: a miss by loss cannot be told from a miss by perception"]
    probed = task.probes is not None
    if not probed:
        notes.append("no probes: a correct silence cannot be told from a lucky one")
    kept: tuple[Retention, ...] = ()
    if probed and log:
        try:
            kept = tuple(retention(trace))
        except ValueError as error:
            notes.append(f"retention is withheld: {error}")
    return RestraintTable(
        latency_ms=latency,
        rows=tuple(rows),
        retention=kept,
        redundant=found.redundant,
        premature=found.premature,
        no_tick=found.no_tick,
        censored=int((~scored).sum()),
        notes=tuple(notes),
    )


def _severity(distortion: NDArray[np.float64], required: IntArray, outcome: IntArray) -> NDArray[np.float64]:
    """(N,) severity of each tick; a wrong response that is not known counts as the worst one."""
    known = np.maximum(outcome, 0)
    worst = distortion[:, 1:].max(axis=1)[required]
    return np.where(outcome < 0, worst, distortion[required, known])


def _kinds(
    found: Outcomes, scored: BoolArray, required: IntArray, outcome: IntArray, latency: int, *, log: bool
) -> dict[str, BoolArray]:
    """(N,) masks over scored ticks, one per consequence, and "silent?" and "missed?" for the silences not probed."""
    delivered = (found.delivered_ms[scored] <= latency) if log else np.ones(len(required), bool)
    probe = found.probe[scored]
    later = (found.first_ms[scored] > latency) & (found.first_ms[scored] < NEVER_MS)
    due, silent = required != 0, outcome == 0
    missed = due & silent & delivered & ~later
    idle = ~due & silent
    unknown = (probe == WRONG) | (probe == DONT_KNOW)
    return {
        "handled": due & (outcome == required),
        "correct silence": idle & delivered & (probe == RIGHT),
        "lucky silence": idle & (~delivered | unknown),
        "over-actuation": ~due & ~silent,
        "wrong": due & ~silent & (outcome != required),
        "miss by loss": due & silent & ~delivered,
        "miss by perception": missed & unknown,
        "held back": missed & (probe == RIGHT),
        "late": due & silent & delivered & later,
        "silent?": idle & delivered & (probe == NOT_PROBED),
        "missed?": missed & (probe == NOT_PROBED),
        "lost idle": idle & ~delivered,
    }


def _rows(
    symbol: int | None, kinds: dict[str, BoolArray], mine: BoolArray, required: IntArray, severity: NDArray[np.float64]
) -> list[RestraintRow]:
    total = len(required)
    due = mine & (required != 0)
    ticks = {True: int(due.sum()), False: int((mine & (required == 0)).sum())}
    rows = []
    for name in CONSEQUENCES:
        needs_due = name not in ("correct silence", "lucky silence", "over-actuation")
        if symbol is not None and needs_due != (symbol != 0):
            continue
        n = ticks[needs_due]
        count = int(kinds[name].sum())
        pair = next((pair for pair in TOLD_APART if name in pair), None)
        cost = float(severity[kinds[name]].sum())
        if n == 0:
            nan = float("nan")
            rows.append(RestraintRow(name, symbol, 0, 0, 0.0, nan, nan, nan, 0.0, "no such tick came up"))
        elif pair is None:
            interval = clopper_pearson(count, n)
            rows.append(RestraintRow(name, symbol, n, count, count, count / n, *interval, cost / total))
        else:
            rows.append(_apportioned(symbol, name, pair, kinds, n, severity, total))
    return rows


def _apportioned(
    symbol: int | None,
    name: str,
    pair: tuple[str, str],
    kinds: dict[str, BoolArray],
    n: int,
    severity: NDArray[np.float64],
    total: int,
) -> RestraintRow:
    """A consequence that only probes tell from its twin: the silences not probed are shared out by the probed ones."""
    idle = pair[0] == "correct silence"
    open_ones = kinds["silent?" if idle else "missed?"]
    # A silence before anything was delivered is resolved by the link's log; probes share out the others.
    by_log = kinds["lost idle"] if idle and name == pair[1] else np.zeros(len(open_ones), bool)
    seen = kinds[name]
    by_probe = int((seen & ~by_log).sum())
    probed = int(kinds[pair[0]].sum() + (kinds[pair[1]] & ~(kinds["lost idle"] if idle else by_log)).sum())
    unprobed, sure = int(open_ones.sum()), int(by_log.sum())
    cost = float(severity[seen].sum())
    if probed == 0 and unprobed:
        nan = float("nan")
        reason = f"{unprobed} silences and no probe"
        return RestraintRow(name, symbol, n, int(seen.sum()), nan, nan, nan, nan, nan, reason)
    share = by_probe / probed if probed else 0.0
    estimate = sure + share * (probed + unprobed)
    if probed + unprobed == 0:
        low, high = clopper_pearson(sure, n)
    else:
        group = clopper_pearson(probed + unprobed, n, PRODUCT_LEVEL)
        part = clopper_pearson(by_probe, probed, PRODUCT_LEVEL)
        lost = clopper_pearson(sure, n, PRODUCT_LEVEL) if idle and name == pair[1] else (0.0, 0.0)
        low, high = lost[0] + group[0] * part[0], min(1.0, lost[1] + group[1] * part[1])
    each = float(severity[open_ones].mean()) if unprobed else 0.0
    return RestraintRow(
        name, symbol, n, int(seen.sum()), estimate, estimate / n, low, high, (cost + share * unprobed * each) / total
    )
