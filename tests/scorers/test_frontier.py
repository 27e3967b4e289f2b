"""Frontiers: running maximum, readings, strata, keeps up, JSON, table and figure."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from envrate import plots, tasks
from envrate.rd import Bracket
from envrate.scorers import Frontier, _credited, frontier, tally
from envrate.task import Task
from envrate.trace import Header, Stratum, Trace


def simulate(task: Task, policy: str, *, ticks: int = 3000, seed: int = 0, late: float = 0.4) -> Trace:
    """A run on a finite-state task: packets after 300 or 600 ms, a simple policy, every row in one table."""
    rng = np.random.default_rng(seed)
    rows = np.cumsum(task.latent.matrix, axis=1)
    latent = np.zeros(ticks, dtype=int)
    latent[0] = rng.choice(len(rows), p=task.latent.stationary)
    for t in range(1, ticks):
        latent[t] = min(np.searchsorted(rows[latent[t - 1]], rng.random(), side="right"), len(rows) - 1)
    required = np.asarray(task.table)[latent]
    episode, tick = np.zeros(ticks, dtype=int), np.arange(ticks)
    onset = tick * task.tick_ms
    delivered = onset + np.where(rng.random(ticks) < late, 600, 300)
    said = {
        "reactive": required,
        "never": np.zeros(ticks, dtype=int),
        "always": np.full(ticks, task.num_symbols - 1),
        "random": rng.integers(0, task.num_symbols, ticks),
        "echo": np.roll(required, 1),
    }[policy]
    when = onset + 200 if policy in ("always", "random", "echo") else delivered
    rows_ = np.flatnonzero(said)
    return Trace(
        Header.for_task(task, link={"kind": "link"}, agent=policy, modality="symbols"),
        {
            "episode": episode,
            "tick": tick,
            "onset_ms": onset,
            "required": required,
            "delivered_ms": delivered,
            "latent": latent,
        },
        {"episode": episode[rows_], "tick": tick[rows_], "time_ms": when[rows_], "value": said[rows_]},
    )


def preset(name: str) -> Task:
    return tasks.get(name)


DISCRETE = [name for name in tasks.names() if hasattr(tasks.get(name).latent, "matrix")]


@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.parametrize("policy", ["never", "always"])
def test_constant_policies_get_exactly_nothing_in_both_readings(name, policy):
    found = frontier(simulate(preset(name), policy), [0, 1000, 2000], resamples=100)
    for reading in ("output-only", "resolved"):
        points = found.reading(reading)
        assert len(points) == 3
        assert all(p.raw == 0.0 and p.credited == 0.0 and p.credited_low == 0.0 for p in points)


@pytest.mark.parametrize("name", ["alert", "choice8"])
def test_a_random_guesser_gets_next_to_nothing(name):
    found = frontier(simulate(preset(name), "random", ticks=20_000), [1000, 2000], resamples=200)
    for reading in ("output-only", "resolved"):
        assert found.at(2000, reading).credited < 0.01
        assert found.at(2000, reading).credited_low == 0.0
        assert found.at(2000, reading).keeps_up == "no"


def test_an_echo_on_a_sticky_task_gets_its_share_and_does_not_keep_up():
    found = frontier(simulate(preset("hold"), "echo", ticks=5000), [2000], resamples=200).at(2000)
    assert 0.1 < found.credited < 0.5 * 0.938  # demand 2 H(.1) = 0.938 bits/s
    assert found.keeps_up == "no"


def test_a_perfect_agent_keeps_up_from_its_latency_on_and_not_before():
    found = frontier(simulate(preset("alert"), "reactive"), resamples=500)
    assert found.keeps_up_at_ms == 600
    assert [p.keeps_up for p in found.reading()][:6] == ["no"] * 6
    assert found.at(600).gap == pytest.approx(0.0, abs=1e-9) and found.at(650).latency_ms == 600
    assert found.at(300, "resolved").credited > found.at(300).credited
    last = found.at(2000)
    assert last.detection == pytest.approx(2.0, abs=1e-6) and last.identification == pytest.approx(0.0, abs=1e-6)
    assert last.severity == 0.0 and last.rate_equivalent == pytest.approx(2.0, abs=1e-6)


def test_latency_of_the_agent_moves_the_frontier_right():
    trace = simulate(preset("alert"), "reactive")
    slow = Trace(trace.header, trace.ticks, trace.responses | {"time_ms": trace.responses["time_ms"] + 400})
    a, b = frontier(trace, resamples=100), frontier(slow, resamples=100)
    assert [p.credited for p in b.reading()][4:] == [p.credited for p in a.reading()][:-4]


def test_the_frontier_is_the_running_maximum_and_keeps_the_raw_values():
    # Answers right at 200 ms on half of the ticks, and blurts a wrong alert at 1000 ms on the null ones.
    trace = simulate(preset("alert"), "reactive", ticks=4000)
    null = np.flatnonzero(trace.ticks["required"] == 0)
    blurted = {
        "episode": np.zeros(len(null)),
        "tick": null,
        "time_ms": null * 500 + 1000,
        "value": np.ones(len(null)),
    }
    responses = {k: np.concatenate([trace.responses[k], blurted.get(k, np.zeros(len(null)))]) for k in trace.responses}
    found = frontier(Trace(trace.header, trace.ticks, responses), resamples=200)
    points = found.reading()
    raw = np.array([p.raw for p in points])
    np.testing.assert_allclose([p.credited for p in points], np.maximum.accumulate(raw))
    assert raw[-1] == 0.0 and points[-1].credited == pytest.approx(2.0, abs=1e-6) and points[-1].keeps_up == "yes"
    assert points[-1].severity == pytest.approx(0.5)  # of this latency alone


def test_detection_and_identification_add_up():
    trace = simulate(preset("watch"), "reactive", ticks=6000)
    swapped = np.where(trace.responses["value"] == 1, 2, 1)
    found = frontier(Trace(trace.header, trace.ticks, trace.responses | {"value": swapped}), [2000], resamples=100)
    right = frontier(trace, [2000], resamples=100).at(2000)
    wrong = found.at(2000)
    assert right.detection + right.identification == right.credited
    assert wrong.identification == pytest.approx(0.0, abs=0.02) and wrong.detection > 0.5 * right.detection
    assert right.identification > 0.01


def test_a_tolerance_is_held_against_the_severity():
    task = preset("alert").replace(tolerance=0.3)
    trace = simulate(task, "reactive", ticks=4000)
    found = frontier(trace, resamples=300)
    # Severity .5 before 300 ms, then .5 * .4 = .2 <= .3, then 0.
    assert found.at(200).keeps_up == "no" and found.at(300).keeps_up == "yes"
    assert found.at(300).severity == pytest.approx(0.2, abs=0.03)
    assert found.at(300).severity_low < found.at(300).severity < found.at(300).severity_high


def test_a_required_symbol_that_never_came_up_withholds_the_rate_and_is_named():
    trace = simulate(preset("choice8").replace(exchangeable=()), "reactive", ticks=400)
    keep = trace.ticks["required"] != 5
    ticks = {k: v[keep] for k, v in trace.ticks.items()}
    point = frontier(Trace(trace.header, ticks, {}), resamples=100).at(2000)
    assert math.isnan(point.credited) and point.reason == "required symbol 5 never came up"


def test_a_symbol_that_the_law_excludes_is_an_error():
    trace = simulate(preset("choice8"), "reactive", ticks=50)
    ticks = trace.ticks | {"required": np.where(np.arange(50) == 3, 0, trace.ticks["required"])}
    with pytest.raises(ValueError, match="symbol 0 came up in stratum 'choice8', whose law gives it probability 0"):
        frontier(Trace(trace.header, ticks, trace.responses), resamples=100)


def test_severities_that_a_failure_is_split_by_do_not_change_the_credit_of_a_binary_task():
    plain = frontier(simulate(preset("alert"), "reactive"), [300], resamples=100).at(300)
    weighted = preset("alert").replace(severity={"kind": "severity", "miss": 7.0, "over": 3.0})
    heavy = frontier(simulate(weighted, "reactive"), [300], resamples=100).at(300)
    assert heavy.credited == pytest.approx(plain.credited, abs=1e-9)
    assert heavy.severity == pytest.approx(7.0 * plain.severity)


# -- strata ---------------------------------------------------------------------------------------------------------


def benchmark_run(right: float, seed: int = 0, items: int = 300) -> Trace:
    """Two- and four-option questions, one per item, 10 s each."""
    rng = np.random.default_rng(seed)
    strata = (
        Stratum("two", (0.0, 0.5, 0.5), ((1, 2),)),
        Stratum("four", (0.0, 0.25, 0.25, 0.25, 0.25), ((1, 2, 3, 4),)),
    )
    stratum = np.arange(items) % 2
    options = np.where(stratum == 0, 2, 4)
    required = 1 + rng.integers(0, options)
    given = np.where(rng.random(items) < right, required, required % options + 1)
    per_second = (items / 2 * 1.0 + items / 2 * 2.0) / (10.0 * items)
    demand = Bracket(per_second, per_second, "nominal", "balanced options")
    header = Header(
        1000, 1000, 5000, demand, strata, clock="video", items=items, duration_ms=10_000 * items, source="quiz"
    )
    episode = np.arange(items)
    ticks = {"episode": episode, "tick": 0 * episode, "onset_ms": 0 * episode, "required": required, "stratum": stratum}
    responses = {"episode": episode, "tick": 0 * episode, "time_ms": 0 * episode + 1500, "value": given}
    return Trace(header, ticks, responses)


def test_rates_of_strata_add_per_second_of_exposure():
    found = frontier(benchmark_run(1.0), resamples=200)
    assert found.at(1000).credited == 0.0
    assert found.at(2000).credited == pytest.approx(0.15, abs=1e-9) and found.demand.upper == pytest.approx(0.15)
    assert found.at(2000).gap == pytest.approx(0.0, abs=1e-9)
    assert not found.has_resolved and found.name == "quiz"
    assert any("nominal" in note for note in found.notes)


def test_each_stratum_gets_its_wolpaw_rate():
    trace = benchmark_run(0.8, items=2000)
    found = frontier(trace, [2000], resamples=200)

    def wolpaw(k: int, stratum: int) -> float:
        counts = tally(trace).counts[stratum].sum(axis=0)[-1]
        p = np.mean([counts[a, 7 + a] / counts[a].sum() for a in range(1, k + 1)])
        return float(np.log2(k) + p * np.log2(p) + (1 - p) * np.log2((1 - p) / (k - 1)))

    assert found.at(2000).credited == pytest.approx((wolpaw(2, 0) + wolpaw(4, 1)) / 2 / 10.0, abs=1e-9)


def test_slots_and_open_answers_are_scored_by_their_own_methods():
    rng = np.random.default_rng(3)
    items, slots = 40, 30
    event = (rng.random((items, slots)) < 0.2).astype(int)
    n = items * slots
    strata = (Stratum("timing", (0.5, 0.5), method="lag-window"), Stratum("open", (0.5, 0.5), method="share"))
    demand = Bracket(1.0, 1.0, "nominal")
    header = Header(1000, 1000, 3000, demand, strata, clock="video", items=items, duration_ms=1000 * n)
    ticks = {
        "episode": np.concatenate([np.repeat(np.arange(items), slots), np.arange(items)]),
        "tick": np.concatenate([np.tile(np.arange(slots), items), np.full(items, slots)]),
        "onset_ms": np.concatenate([np.tile(np.arange(slots) * 1000, items), np.zeros(items)]),
        "required": np.concatenate([event.ravel(), np.ones(items)]),
        "stratum": np.concatenate([np.zeros(n), np.ones(items)]),
    }
    hits = np.argwhere(event)
    responses = {
        "episode": np.concatenate([hits[:, 0], np.arange(items)]),
        "tick": np.concatenate([hits[:, 1], np.full(items, slots)]),
        "time_ms": np.concatenate([hits[:, 1] * 1000 + 400, np.full(items, 900)]),
        "value": np.ones(len(hits) + items),
    }
    trace = Trace(header, ticks, responses)
    found = frontier(trace, [0, 1000], resamples=200)
    # Every event answered in its own slot: 1 bit per slot (nominal law); every open answer right: 1 bit each.
    assert found.at(0).credited == pytest.approx(1.0, abs=1e-6)
    assert found.at(1000).credited == pytest.approx(1.0 + items / n, abs=1e-6)
    assert found.at(1000).detection == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(ValueError, match="expected a Trace, got a Tally"):
        frontier(tally(trace), resamples=100)


# -- form -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worked() -> Frontier:
    return frontier(simulate(preset("alert"), "reactive"), resamples=200)


KEYS = (
    "latency_ms reading credited credited_low credited_high gap gap_low gap_high detection identification severity "
    "rate_equivalent keeps_up events censored reason"
)


def test_json_has_exactly_the_documented_keys(worked):
    document = json.loads(json.dumps(worked.to_json(), allow_nan=False))
    assert list(document) == ["task", "unit", "tick_ms", "micro_turn_ms", "demand", "keeps_up_at_ms", "points"]
    assert list(document["demand"]) == ["lower", "upper", "kind", "method"]
    assert len(document["points"]) == 2 * 21
    assert all(sorted(point) == sorted(KEYS.split()) for point in document["points"])
    assert {point["reading"] for point in document["points"]} == {"output-only", "resolved"}


def test_the_same_seed_gives_the_same_numbers_and_a_tally_the_same_as_its_trace():
    trace = simulate(preset("alert"), "reactive", ticks=1000)
    first = frontier(trace, seed=3, resamples=200)
    assert first.points == frontier(trace, seed=3, resamples=200).points
    assert first.points == frontier(tally(trace), seed=3, resamples=200).points
    assert first.points != frontier(trace, seed=4, resamples=200).points


def test_a_tally_is_scored_at_the_latencies_that_it_counted():
    counts = tally(simulate(preset("alert"), "reactive", ticks=1000))
    found = frontier(counts, [300, 600], resamples=200)
    assert found.latencies_ms == [300, 600]
    with pytest.raises(ValueError, match="latencies_ms: 350 ms was not counted"):
        frontier(counts, [350], resamples=200)


def test_bad_arguments_are_named():
    trace = simulate(preset("alert"), "reactive", ticks=100)
    with pytest.raises(ValueError, match="run: expected a Trace or a Tally, got dict"):
        frontier({})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="resamples: expected an integer >= 100"):
        frontier(trace, resamples=10)
    with pytest.raises(ValueError, match="latencies_ms: expected an integer in"):
        frontier(trace, [-100])
    with pytest.raises(ValueError, match="latency_ms: expected at least 0 ms"):
        frontier(trace, resamples=100).at(-1)
    with pytest.raises(ValueError, match="reading: expected one of"):
        frontier(trace, resamples=100).reading("resolve")


def test_an_empty_run_is_withheld_and_not_an_error():
    trace = simulate(preset("alert"), "reactive", ticks=50)
    empty = Trace(trace.header, trace.ticks | {"scored": np.zeros(50)}, trace.responses)
    point = frontier(empty, resamples=100).at(300)
    assert point.reason == "0 events, expected at least 10" and point.censored == 50


@pytest.mark.parametrize("name", ["hold", "watch"])
def test_a_rate_of_a_source_with_memory_depends_on_no_other_call(name):
    # The planes that bound it are searched for at its own profile: whatever was scored before, in whatever order.
    run, other = (simulate(preset(name), policy, ticks=1500) for policy in ("reactive", "random"))
    all_at_once = frontier(run, resamples=100)
    _credited.process.cache_clear()
    frontier(other, [600], resamples=100)
    for level in (600, 400):
        alone = frontier(run, [level], resamples=100, seed=1)
        for reading in ("output-only", "resolved"):
            assert alone.at(level, reading).raw == all_at_once.at(level, reading).raw


def test_the_table_has_a_row_where_something_changes(worked):
    console = Console(width=80)
    with console.capture() as said:
        console.print(worked.table())
    lines = said.get().splitlines()
    text = "\n".join(lines)
    assert "keeps up from 600 ms on" in text and "demand 2.0000 bits/s (exact), T = 500 ms" in text
    assert "…" not in text and max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if line.split() and line.split()[0].isdigit() and len(line.split()) == 9]
    assert [row[0] for row in rows] == ["0", "300", "600", "2000"] * 2  # where something changes, and the horizon
    point = worked.at(300)
    assert rows[1][1:4] == [
        f"{point.credited:.3f}", f"{point.credited_low:.3f}..{point.credited_high:.3f}", f"{point.gap:.3f}"
    ]  # fmt: skip
    with console.capture() as said:
        console.print(worked.table("resolved"))
    assert "resolved, bits/s" in said.get() and "output-only, bits/s" not in said.get()


def test_the_figure_shows_the_demand_both_readings_and_the_gap(worked, tmp_path: Path):
    figure = worked.plot(tmp_path / "a.svg", gap_at_ms=300)
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert any("demand R(0) = 2 bits/s" in text for text in texts)
    gap = worked.at(300).gap
    assert f"gap {gap:.3g}" in texts
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["reactive, output-only", "reactive, resolved"]
    again = worked.plot(tmp_path / "b.svg", gap_at_ms=300)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes() and again is not figure


def test_several_frontiers_and_an_ideal_observer_share_a_figure(worked, tmp_path: Path):
    other = frontier(simulate(preset("alert"), "random"), resamples=100)
    figure = plots.frontier([worked, other], tmp_path / "a.pdf", ideal=worked, reading="output-only")
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["ideal observer, output-only", "reactive, output-only", "random, output-only"]
    other_tick = replace(other, header=replace(other.header, tick_ms=1000))
    with pytest.raises(ValueError, match="frontiers: expected equal tick lengths"):
        plots.frontier([worked, other_tick])
    with pytest.raises(ValueError, match="labels: expected 2"):
        plots.frontier([worked, other], labels=["one"])
    with pytest.raises(ValueError, match="frontiers: expected at least one"):
        plots.frontier([])
