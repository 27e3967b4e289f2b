"""`envrate demo`: the worked example, by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json

if TYPE_CHECKING:
    from envrate.scorers import Frontier
    from envrate.task import Task

ENVS = 40
PROBE_RATE = 0.3
#: Delays of the standard link "worked", and the share of packets that has the first.
FIRST_MS, SECOND_MS, SHARE = 300, 600, 0.6


@app.command()
def demo(
    micro_turn_ms: Annotated[int, typer.Option("--micro-turn-ms", help="How often the agent looks, ms.")] = 100,
    ticks: Annotated[int, typer.Option("--ticks", help="Ticks to simulate, shared among 40 environments.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", help="Of everything random.")] = 0,
    out: Annotated[Path, typer.Option("--out", help="The figure: .png, .svg or .pdf.")] = Path("frontier.png"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Runs the worked example by simulation: three numbers for one link, and why they differ."""
    with only_json(as_json):
        from envrate import _checks
        from envrate.plots import figure_path
        from envrate.plots import frontier as draw

        _checks.integer("--ticks", ticks, 20 * ENVS)
        _checks.integer("--micro-turn-ms", micro_turn_ms, 1, 500, "ms")
        figure_path(out)
        reactive, guess, ceiling = _simulate(micro_turn_ms, ticks, seed)
        labels = ["reactive", "guesses what it has not heard"]
        draw([reactive, guess], out, labels=labels, ideal=ceiling, gap_at_ms=FIRST_MS)
        rows = _rows(reactive, guess, micro_turn_ms)
        said = _explained(rows, reactive, micro_turn_ms)
    if as_json:
        emit_json(
            {
                "frontiers": [reactive.to_json() | {"agent": "reactive"}, guess.to_json() | {"agent": "guess"}],
                "summary": rows,
                "explanation": said,
                "ticks": -(-ticks // ENVS) * ENVS,
                "seed": seed,
                "figure": str(out),
            }
        )
        return
    _print(reactive, rows, said, out)


def _simulate(micro_turn_ms: int, ticks: int, seed: int) -> tuple[Frontier, Frontier, list[tuple[float, float]]]:
    """Frontiers of the reactive agent, probed, and of the guessing one, and the ideal observer's rate by latency."""
    from rich.console import Console
    from rich.progress import Progress

    from envrate import agents, tasks
    from envrate.envs import rollout
    from envrate.scorers import frontier, split
    from envrate.task import Probes
    from envrate.trace import Trace

    task = tasks.get("alert").replace(micro_turn_ms=micro_turn_ms)
    # Both name the tick they answer, so that they differ in one thing: what they do about what they have not heard.
    named = task.replace(reply="named")
    probed = named.replace(probes=Probes(rate=PROBE_RATE, after_ms=task.horizon_ms))
    levels = _latencies(task)
    options: dict[str, Any] = {"link": "worked", "num_envs": ENVS, "num_ticks": -(-ticks // ENVS)}
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("simulating", total=5)
        trace = rollout(probed, agents.Reactive(probed), seed=seed, **options)
        progress.advance(bar)
        guessing = rollout(named, agents.GuessUnheard(named, after_ms=FIRST_MS), seed=seed + 1, **options)
        progress.update(bar, advance=1, description="scoring")
        reactive = frontier(trace, levels, seed=seed)
        progress.advance(bar)
        guess = frontier(guessing, levels, seed=seed)
        progress.update(bar, advance=1, description="ideal observer")
        assert isinstance(trace, Trace)
        ceiling = split(trace, [level for level in levels if level <= 2 * SECOND_MS], readings=["output-only"])
    return reactive, guess, [(float(p.latency_ms), p.ideal) for p in ceiling.points]


def _latencies(task: Task) -> list[int]:
    """Multiples of the micro-turn, and the two delays of the link."""
    return sorted({*range(0, task.horizon_ms + 1, task.micro_turn_ms), FIRST_MS, SECOND_MS})


def heard_by(latency_ms: int, micro_turn_ms: int, tick_ms: int = 500) -> float:
    """Share of ticks that an agent who looks every micro-turn has heard of at onset + latency."""
    period = micro_turn_ms  # onsets fall anywhere on the grid in turn; their phases repeat after this many ticks
    total = 0.0
    for i in range(period):
        onset = i * tick_ms
        for delay, share in ((FIRST_MS, SHARE), (SECOND_MS, 1.0 - SHARE)):
            seen = -(-(onset + delay) // micro_turn_ms) * micro_turn_ms
            total += share * (seen - onset <= latency_ms)
    return total / period


def _expected(heard: float) -> dict[str, float]:
    """Bits/s of the three cases at a share heard in time, p = 1/2, two ticks a second: the formulas."""
    import numpy as np

    def entropy(p: float) -> float:
        return float(-sum(q * np.log2(q) for q in (p, 1 - p) if q > 0))

    return {
        "resolved": 2.0 * heard,  # erasure
        "output-only": 2.0 * (entropy(heard / 2) - 0.5 * entropy(heard)),  # Z-channel
        "guess": 2.0 * (1.0 - entropy((1.0 - heard) / 2)),  # symmetric errors: half of the guesses are right
    }


def _rows(reactive: Frontier, guess: Frontier, micro_turn_ms: int) -> list[dict[str, Any]]:
    """The three cases at both delays, simulated and by formula."""
    rows = []
    for level in (FIRST_MS, SECOND_MS):
        heard = heard_by(level, micro_turn_ms)
        expected = _expected(heard)
        # The guess falls on the first look from 300 ms on: off the grid later than that, and at 600 ms it is corrected.
        on_grid = 500 % micro_turn_ms == FIRST_MS % micro_turn_ms == 0
        for name, frontier, reading in (
            ("resolved", reactive, "resolved"),
            ("output-only", reactive, "output-only"),
            ("guess", guess, "output-only"),
        ):
            point = frontier.at(level, reading)
            formula = expected[name] if name != "guess" or (on_grid and level == FIRST_MS) else None
            kept = ("credited", "credited_low", "credited_high", "gap", "gap_low", "gap_high", "keeps_up")
            body = {key: value for key, value in point.to_json().items() if key in kept}
            rows.append({"case": name, "latency_ms": level, "heard": heard} | body | {"formula": formula})
    return rows


WHY = (
    "One link, one latent, three numbers, because they answer three questions.",
    "Resolved (erasure): the link's log and the probes tell a correct silence from a silence for want of news, so each "
    "tick heard in time earns its whole bit.",
    "Output-only (Z-channel): seen from outside, a missed alert and a correct silence are the same silence, so an "
    "alert heard in time earns less.",
    "Guess: an agent that names a symbol for every tick it has not heard is right half of the time; its wrong answers "
    "look like its right ones (symmetric errors), so it earns least.",
)


def _explained(rows: list[dict[str, Any]], reactive: Frontier, micro_turn_ms: int) -> list[str]:
    """Why the numbers differ, and what the grid of micro-turns does to them."""
    said = list(WHY)
    if 500 % micro_turn_ms == 0 and FIRST_MS % micro_turn_ms == 0:
        return said
    heard = heard_by(FIRST_MS, micro_turn_ms)
    levels = [level for level in reactive.latencies_ms if heard_by(level, micro_turn_ms) >= SHARE - 1e-9]
    whole = [level for level in reactive.latencies_ms if heard_by(level, micro_turn_ms) >= 1.0 - 1e-9]
    said.append(
        f"Grid: the agent looks at 0, {micro_turn_ms}, {2 * micro_turn_ms} ... ms, but ticks begin every 500 ms and "
        f"packets arrive 300 or 600 ms later. One that arrives between two looks waits for the next, so at 300 ms only "
        f"{heard:.0%} of the ticks have been heard (60% on a grid of 100 ms), 60% by {levels[0]} ms and all by "
        f"{whole[0]} ms. The gap at 300 ms is now partly the agent's own: it looks too seldom."
    )
    return said


def _print(reactive: Frontier, rows: list[dict[str, Any]], said: list[str], out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from envrate.scorers._frontier_table import number

    demand = reactive.demand.upper
    table = Table(title=f"alert: demand {demand:g} bits/s exactly, one tick each {reactive.header.tick_ms} ms")
    for heading in ("l ms", "case", "C bits/s", "95 %", "by formula", "gap", "keeps up"):
        table.add_column(heading, justify="left" if heading in ("case", "keeps up") else "right", no_wrap=True)
    for row in rows:
        formula = row["formula"]
        table.add_row(
            str(row["latency_ms"]),
            row["case"],
            number(row["credited"]),
            f"{number(row['credited_low'], 2)}...{number(row['credited_high'], 2)}",
            "-" if formula is None else number(formula),
            number(row["gap"]),
            row["keeps_up"],
        )
    console = Console()
    console.print(table)
    for sentence in said:
        console.print(f"• {sentence}", highlight=False)
    console.print(f"Figure: {out}", highlight=False)
