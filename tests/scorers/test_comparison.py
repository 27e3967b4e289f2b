"""Differences between two runs: paired intervals, their coverage, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from synthetic import honest, missing, nobody, respond, trace, world
from typer.testing import CliRunner

from envrate import tasks
from envrate.cli._app import app
from envrate.scorers import compare, frontier, tally

ALERT = tasks.get("alert")


def z_channel(miss):
    """C in bits per second of a fair alert of which a share is missed: 2 (H(p) - .5 H(miss)) (the Z-channel)."""

    def h(p):
        return -(p * math.log2(p) + (1 - p) * math.log2(1 - p)) if 0 < p < 1 else 0.0

    return 2 * (h(0.5 * (1 - miss)) - 0.5 * h(miss))


def test_a_difference_is_found_and_named():
    w = world(ALERT, 4000, seed=1, episodes=40, delay=(100, 100))
    found = compare(missing(w, 0.2, 1), missing(w, 0.4, 2))
    assert found.paired and found.notes == ()
    point = found.at(150)
    assert point.latency_ms == 100 and point.verdict == "a"
    truth = z_channel(0.2) - z_channel(0.4)
    assert point.low < truth < point.high and point.difference == pytest.approx(point.a - point.b, abs=1e-12)
    assert compare(missing(w, 0.4, 2), missing(w, 0.2, 1)).at(100).verdict == "b"
    assert point.severity_high < 0  # misses fewer, so harms less
    assert found.a == "misses 0.2" and found.to_dict()["unit"] == "bits/s"


def test_a_run_against_itself_shows_nothing():
    w = world(ALERT, 2000, seed=2, episodes=40, delay=(100, 300), late=0.4)
    run = trace(w, honest(w))
    for point in compare(run, run).points:
        assert point.difference == 0.0 and point.verdict == "not shown"
        # Two runs that were never wrong are not shown to be equal: rare failures may not have come up.
        assert point.low <= 0.0 <= point.high
    perfect = compare(run, run).at(300)
    assert perfect.low < -0.01 and perfect.high > 0.01


def test_pairing_narrows_the_interval():
    w = world(ALERT, 4000, seed=3, episodes=40, delay=(100, 600), late=0.4)
    a = trace(w, honest(w))
    acts = honest(w)
    kept = w.generator.random(len(acts["row"])) < 0.95
    b = trace(w, {k: v[kept] for k, v in acts.items()})
    paired = compare(a, b).at(100)
    other = world(ALERT, 4000, seed=4, episodes=40, delay=(100, 600), late=0.4)
    apart = compare(a, trace(other, honest(other)))
    assert not apart.paired and "not paired" in apart.notes[0]
    assert paired.high - paired.low < 0.6 * (apart.at(100).high - apart.at(100).low)


def test_single_episodes_are_cut_into_stretches():
    w = world(ALERT, 4000, seed=5, delay=(100, 100))
    point = compare(missing(w, 0.1, 1), missing(w, 0.3, 2), [100]).at(100)
    assert point.low < z_channel(0.1) - z_channel(0.3) < point.high and point.verdict == "a"


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_cover_the_true_difference(paired):
    """60 experiments: with 95 % coverage, 51 or fewer hits have probability 0.0006."""
    truth = z_channel(0.2) - z_channel(0.3)
    hits = 0
    for k in range(60):
        w = world(ALERT, 1000, seed=10 + k, episodes=25)
        v = w if paired else world(ALERT, 1000, seed=1000 + k, episodes=25)
        point = compare(missing(w, 0.2, 2 * k), missing(v, 0.3, 2 * k + 1), [0], resamples=500).at(0)
        hits += point.low <= truth <= point.high
    assert hits > 51


def test_tallies_can_be_compared_too():
    w = world(ALERT, 2000, seed=6, episodes=40)
    a, b = missing(w, 0.1, 1), missing(w, 0.3, 2)
    assert compare(tally(a), tally(b)).points == compare(a, b).points


def test_rates_agree_with_the_frontier():
    w = world(ALERT, 2000, seed=7, episodes=40, delay=(100, 300), late=0.4)
    a, b = missing(w, 0.1, 1), missing(w, 0.3, 2)
    found = compare(a, b)
    for reading in ("output-only", "resolved"):
        for one, run in (("a", a), ("b", b)):
            rates = [p.credited for p in frontier(run, resamples=100).reading(reading)]
            assert [getattr(p, one) for p in found.reading(reading)] == pytest.approx(rates, abs=1e-9)


def test_runs_with_other_grids_meet_on_both():
    w = world(ALERT, 2000, seed=12, episodes=20, delay=(150, 150))
    run = trace(w, honest(w))
    short = world(ALERT.replace(horizon_ms=400, micro_turn_ms=150), 2000, seed=12, episodes=20, delay=(150, 150))
    found = compare(run, trace(short, honest(short)))
    assert [p.latency_ms for p in found.reading()][:6] == [0, 100, 150, 200, 300, 400] and not found.paired
    # Beyond its horizon the second run scores what it did there.
    assert found.at(2000).b == found.at(400).b == pytest.approx(2.0)
    assert found.at(100).a == found.at(100).b == 0.0
    part = tally(run, [0, 200])
    assert compare(part, part).at(150).a == 0.0 and compare(part, part, [150, 300]).at(300).a == pytest.approx(2.0)
    with pytest.raises(ValueError, match="not counted"):
        compare(tally(run, [200]), part, [100])


def test_what_cannot_be_compared_is_refused():
    w = world(ALERT, 200, seed=8)
    slow = world(ALERT.replace(tick_ms=1000), 200, seed=8)
    with pytest.raises(ValueError, match="1000 ms"):
        compare(trace(w, honest(w)), trace(slow, honest(slow)))
    with pytest.raises(ValueError, match="Trace or a Tally"):
        compare(trace(w, honest(w)), "run.jsonl")
    few = world(ALERT, 12, seed=8)
    point = compare(trace(w, honest(w)), trace(few, honest(few))).at(0)
    assert math.isnan(point.difference) and "events" in point.reason and point.to_dict()["low"] is None


def test_the_command_prints_one_json_document(tmp_path):
    w = world(ALERT, 1000, seed=9, episodes=20)
    paths = []
    for name, run in (("a", missing(w, 0.1, 1)), ("b", trace(w, nobody(w)))):
        paths.append(str(run.save(tmp_path / f"{name}.jsonl")))
    done = CliRunner().invoke(app, ["compare", *paths, "--latency-ms", "0", "--json"])
    body = json.loads(done.stdout)
    assert done.exit_code == 0 and body["paired"] and len(body["frontiers"]) == 2
    assert body["points"][0]["verdict"] == "a" and body["a"] == "misses 0.1" and body["b"] == "b"
    shown = CliRunner().invoke(app, ["compare", *paths, "--latency-ms", "0"])
    assert shown.exit_code == 0 and "Paired by common random numbers" in shown.stdout


def test_an_empty_run_is_told_apart_from_a_silent_one():
    w = world(ALERT, 400, seed=11)
    none = np.zeros(0, np.int64)
    assert compare(trace(w, respond(none, none, none)), trace(w, honest(w)), [0]).at(0).a == 0.0
