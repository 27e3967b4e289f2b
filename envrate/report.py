"""The report of a run: one self-contained page, no network, for a phone, a screen or paper."""

from __future__ import annotations

import html
import io
import math
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from envrate import __version__, scorers
from envrate.scorers import Frontier
from envrate.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOW_TO_READ = """
<ul>
<li><b>Demand</b>: the rate, in task-relevant bits per second, that any system must handle to give every required
response. It follows from the task alone: the same for sound, pixels or an arm.</li>
<li><b>Credited throughput</b> within l: the least information rate that agrees with what came right, wrong, missing
and unasked within l milliseconds. Always acting and never acting both score 0.</li>
<li><b>Output-only</b> counts a silence as a silence; <b>resolved</b> sets apart what could not have been known in
time, by the link's log and by probes.</li>
<li><b>Gap</b>: demand less credited throughput. <b>Keeps up</b>: the upper end of the gap's interval is at most 5 % of
the demand. "Not shown" means too few events to say.</li>
<li><b>Severity</b> says what hurts, bits say what got through: a system may do well on one and badly on the other.</li>
<li>Rates depend on the tick's length: compare runs at equal T.</li>
</ul>
"""


def write_report(trace: Trace, out: str | os.PathLike[str], *, latency_ms: int | None = None, seed: int = 0) -> Path:
    """Scores a run and writes its report as one HTML file.

    Args:
        trace: the run.
        out: the file, ending in `.html`.
        latency_ms: the allowed latency of the headline numbers and the restraint table; None is the smallest at
            which the frontier reaches its highest value.
        seed: of the bootstrap.
    """
    path = Path(out)
    if path.suffix not in (".html", ".htm"):
        raise ValueError(f"out: expected a name that ends in .html, got {path.name!r}")
    frontier = scorers.frontier(trace, seed=seed)
    headline = _headline_latency(frontier) if latency_ms is None else latency_ms
    page = Template((resources.files("envrate") / "data" / "report.html").read_text(encoding="utf-8"))
    header = trace.header
    subtitle = [header.modality, header.agent, f"{header.clock} clock", f"T = {header.tick_ms} ms"]
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in frontier.notes)
    path.write_text(
        page.substitute(
            title=html.escape(frontier.name),
            subtitle=html.escape(" · ".join(part for part in subtitle if part)),
            cards=_cards(frontier, headline),
            notes=notes,
            frontier_figure=_svg(frontier.plot()),
            frontier_table=_frontier_table(frontier),
            split=_split_section(trace),
            restraint=_restraint_section(trace, headline),
            latency=_latency_section(trace),
            timeline=_timeline_section(trace),
            certificate=_certificate(frontier),
            reading=HOW_TO_READ,
            version=__version__,
        ),
        encoding="utf-8",
    )
    return path


def _headline_latency(frontier: Frontier) -> int:
    known = [p for p in frontier.reading() if math.isfinite(p.credited)]
    return min((p.latency_ms for p in known if p.credited == known[-1].credited), default=frontier.latencies_ms[-1])


def _svg(figure: Figure) -> str:
    """A figure as inline SVG, closed afterwards."""
    import matplotlib
    import matplotlib.pyplot as plt

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "envrate", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    body = text.getvalue()
    return body[body.index("<svg") :]


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], identifier: str) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table id="{identifier}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _grouped(rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Rows whose cells after the first are alike become one, with the range of their latencies."""
    groups: list[tuple[Any, Any, Sequence[Any]]] = []
    for first, *rest in rows:
        if groups and groups[-1][2] == rest:
            groups[-1] = (groups[-1][0], first, rest)
        else:
            groups.append((first, first, rest))
    return [(str(low) if low == high else f"{low} … {high}", *rest) for low, high, rest in groups]


def _cards(frontier: Frontier, latency_ms: int) -> str:
    point = frontier.at(latency_ms)
    keeps_up = frontier.keeps_up_at_ms
    cards = [
        ("demand", f"{_number(frontier.demand.upper)} bits/s", f"demand, {frontier.demand.kind}"),
        ("credited", f"{_number(point.credited)} bits/s", f"credited within {latency_ms} ms, output-only"),
        ("interval", f"{_number(point.credited_low)} … {_number(point.credited_high)}", "its 95 % interval"),
        ("gap", f"{_number(point.gap)} bits/s", f"gap at {latency_ms} ms"),
        ("keeps-up", "not shown" if keeps_up is None else f"{keeps_up} ms", "keeps up at"),
        ("events", str(point.events), f"events, {point.censored} censored"),
    ]
    return "".join(
        f'<div class="card"><b id="{key}">{html.escape(value)}</b><span>{html.escape(label)}</span></div>'
        for key, value, label in cards
    )


def _frontier_table(frontier: Frontier) -> str:
    rows: list[tuple[Any, ...]] = [
        (
            p.latency_ms,
            p.reading,
            _number(p.credited),
            f"{_number(p.credited_low)} … {_number(p.credited_high)}",
            _number(p.gap),
            _number(p.detection),
            _number(p.identification),
            _number(p.severity),
            _number(p.rate_equivalent),
            p.keeps_up,
            p.reason,
        )
        for p in frontier.points
    ]
    columns: tuple[str, ...] = (
        "l (ms)", "reading", "C (bits/s)", "95 %", "gap", "detection", "identification", "severity", "R(D)", "keeps up",
        "reason",
    )  # fmt: skip
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return _table(columns, _grouped(rows), "frontier")


def _section(title: str, body: str) -> str:
    return f"<h2>{title}</h2>\n{body}"


def _split_section(trace: Trace) -> str:
    from envrate.plots_split import split_figure

    title = "Where the gap comes from"
    try:
        split = scorers.split(trace)
    except ValueError as error:
        return _section(title, f'<p class="note">Not split: {html.escape(str(error))}</p>')
    rows = [
        (
            p.latency_ms,
            p.reading,
            *(_number(v) for v in (p.link, p.perception, p.decision, p.ideal, p.prediction, p.link_information)),
        )
        for p in split.points
    ]
    columns = ("l (ms)", "reading", "link", "perception", "decision", "C ideal", "prediction alone", "link information")
    table = _table(columns, _grouped(rows), "split")
    return _section(title, f'<figure>{_svg(split_figure(split))}</figure><div class="scroll">{table}</div>')


def _restraint_section(trace: Trace, latency_ms: int) -> str:
    title = f"Restraint within {latency_ms} ms"
    try:
        table = scorers.restraint_table(trace, latency_ms)
    except ValueError as error:
        return _section(title, f'<p class="note">No table: {html.escape(str(error))}</p>')
    rows = [
        (
            row.consequence,
            "all" if row.required is None else row.required,
            row.count,
            _number(row.rate),
            f"{_number(row.low)} … {_number(row.high)}",
            _number(row.severity),
            row.reason,
        )
        for row in table.rows
    ]
    columns = ("consequence", "required", "count", "rate", "95 %", "severity per tick", "reason")
    extra = f"{table.redundant} redundant, {table.premature} premature, {table.no_tick} that name no tick"
    body = f'<div class="scroll">{_table(columns, rows, "restraint")}</div><p class="note">Also: {extra}.</p>'
    return _section(title, body)


def _latency_section(trace: Trace) -> str:
    from envrate.plots_report import latency_histogram

    if trace.is_tracking:
        return ""
    return _section("Latency of the responses", f"<figure>{_svg(latency_histogram(trace))}</figure>")


def _timeline_section(trace: Trace) -> str:
    from envrate.plots_report import timeline

    if trace.is_tracking or not len(trace):
        return ""
    return _section("Ten seconds of it", f"<figure>{_svg(timeline(trace))}</figure>")


def _certificate(frontier: Frontier) -> str:
    demand = frontier.demand
    words = {
        "exact": "The bracket encloses the true rate.",
        "estimate": "An estimate: the bracket does not enclose the true rate for certain.",
        "nominal": "A convention: the law of a real benchmark is not known. Compare rankings, not bits.",
    }[demand.kind]
    return (
        f'R(0) lies between <b id="demand-lower">{demand.lower:.9g}</b> and '
        f'<b id="demand-upper">{demand.upper:.9g}</b> bits/s ({html.escape(demand.method or demand.kind)}). {words}'
    )
