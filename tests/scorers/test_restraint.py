"""The restraint table and retention: what a silence was, and what could have been guessed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthetic import honest, nobody, remembers, respond, trace, world

from envrate import tasks
from envrate.latents import MarkovChain
from envrate.scorers import restraint_table, retention
from envrate.scorers._posterior import chain_of
from envrate.scorers._restraint import CONSEQUENCES
from envrate.scorers._retention import chance_levels, clopper_pearson
from envrate.task import Probes, Severity, Task

PROBED = tasks.get("alert").replace(probes=Probes(rate=0.3, after_ms=2000))
STICKY = Task(
    latent=MarkovChain(((0.8, 0.15, 0.05), (0.1, 0.7, 0.2), (0.3, 0.1, 0.6))),
    response=(0, 0, 1),
    tick_ms=500,
    probes=Probes(rate=0.3, after_ms=2000),
)


def test_rows_make_up_every_tick_and_their_severities_add():
    task = PROBED.replace(severity=Severity(miss=3.0, over=0.5))
    w = world(task, 6000, seed=1, delay=(300, 900), late=0.4, loss=0.1)
    acts = honest(w)
    acts["time"] = acts["time"] + w.generator.choice([0, 400], len(acts["row"]))
    idle = w.generator.choice(np.flatnonzero(w.required == 0), 200, replace=False)
    acts = {k: np.concatenate([acts[k], extra]) for k, extra in
            (("row", idle), ("time", w.onset[idle] + 100), ("value", np.ones(200, np.int64)))}  # fmt: skip
    table = restraint_table(trace(w, acts, remembers), 600)
    for symbol in (None, 0, 1):
        rows = [r for r in table.rows if r.required == symbol]
        names = {r.consequence for r in rows}
        assert len(names) == len(rows)
    whole = [table.row(name) for name in CONSEQUENCES]
    assert sum(r.apportioned for r in whole) == pytest.approx(6000, abs=1e-6)
    # Severity at 600 ms, tick by tick.
    first = np.full(6000, 10**9)
    np.minimum.at(first, acts["row"], acts["time"] - w.onset[acts["row"]])
    acted = first <= 600
    harm = np.where(acted, (w.required == 0) * 0.5, (w.required == 1) * 3.0).mean()
    assert sum(r.severity for r in whole) == pytest.approx(harm, abs=1e-12)
    assert all(r.low <= r.rate <= r.high for r in whole)


def test_each_cause_lands_in_its_row():
    w = world(PROBED, 4000, seed=2, delay=(300, 300), loss=0.2)
    heard, due = w.heard, w.required == 1
    acts = honest(w)
    # Of the alerts heard: half are answered at once, a quarter late, a quarter never; all are known.
    kind = w.generator.choice(4, len(acts["row"]))
    late = kind == 2
    acts = respond(acts["row"], acts["time"] + 1000 * late, np.where(kind == 3, 0, acts["value"]))
    table = restraint_table(trace(w, acts, remembers), 500)
    assert table.row("miss by loss").count == (due & ~heard).sum()
    assert table.row("late").count == late.sum()
    assert table.row("held back").apportioned == pytest.approx((kind == 3).sum(), abs=1e-9)
    assert table.row("miss by perception").apportioned == 0.0
    assert table.row("correct silence").apportioned == pytest.approx((~due & heard).sum(), abs=1e-9)
    assert table.row("lucky silence").apportioned == pytest.approx((~due & ~heard).sum(), abs=1e-9)
    assert table.row("handled", 1).count == (kind < 2).sum()
    # An agent that has forgotten the same ticks misses by perception.
    table = restraint_table(trace(w, acts, lambda w, rows: np.full(len(rows), -1)), 500)
    assert table.row("held back").apportioned == 0.0
    assert table.row("miss by perception").apportioned == pytest.approx((kind == 3).sum(), abs=1e-9)
    assert table.row("correct silence").apportioned == 0.0


def test_probes_share_out_the_silences_that_were_not_probed():
    w = world(PROBED, 20_000, seed=3, delay=(100, 100))
    known = w.generator.random(len(w.tick)) < 0.7  # of each tick, whatever it holds
    run = trace(w, nobody(w), lambda w, rows: np.where(known[rows], w.latent[rows], -1))
    table = restraint_table(run, 500)
    truth = {"correct silence": (known & (w.required == 0)).sum(), "held back": (known & (w.required == 1)).sum()}
    for name, count in truth.items():
        row = table.row(name)
        assert row.count < 0.4 * count < count
        assert row.low <= count / row.ticks <= row.high
        assert row.high - row.low < 0.06


def test_emissions_that_belong_to_no_outcome_are_counted():
    w = world(PROBED, 100, seed=4)
    rows = np.flatnonzero(w.required == 1)[:10]
    twice = np.concatenate([rows, rows])
    acts = {"row": twice, "time": w.onset[twice] + np.repeat([0, 100], 10), "value": np.ones(20, np.int64)}
    run = trace(w, acts)
    run.responses["tick"][-1] = 10_000  # a tick that there is not
    run.responses["time_ms"][0] -= 50  # before the tick that it names had begun
    table = restraint_table(run, 500)
    assert (table.redundant, table.premature, table.no_tick) == (8, 1, 1)
    assert table.to_dict()["redundant"] == 8


def test_what_cannot_be_told_apart_is_withheld_with_its_reason():
    w = world(tasks.get("alert"), 1000, seed=5)
    table = restraint_table(trace(w, nobody(w)), 500)
    assert math.isnan(table.row("correct silence").rate)
    assert "no probe" in table.row("held back").reason
    assert table.retention == () and "no probes" in table.notes[0]
    assert table.row("miss by loss").count == 0
    bare = restraint_table(trace(w, nobody(w), link=False), 500)
    assert any("no link log" in note for note in bare.notes)
    with pytest.raises(ValueError, match="no row"):
        table.row("handled", 7)
    with pytest.raises(ValueError, match="latency_ms"):
        restraint_table(trace(w, nobody(w)), 5000)


# -- retention --------------------------------------------------------------------------------------------------------


def test_chance_level_of_independent_ticks_is_the_likeliest_answer():
    w = world(PROBED, 2000, seed=6, delay=(300, 300))
    found = chance_levels(trace(w, honest(w), remembers))
    assert found.overall == pytest.approx(np.full(len(found.rows), 0.5))
    # Within null the two idle states are alike, within alert there is one state only.
    required = w.required[found.rows]
    assert found.within[required == 0] == pytest.approx(0.5) and found.within[required == 1] == pytest.approx(1.0)


def test_chance_level_on_a_sticky_chain_by_forward_and_backward():
    w = world(STICKY, 200, seed=7, delay=(300, 800), late=0.3, loss=0.3)
    found = chance_levels(trace(w, nobody(w), remembers))
    chain = chain_of(STICKY)
    for row, level in zip(found.rows[:40], found.overall[:40], strict=True):
        cutoff = w.onset[row] + 2000
        evidence = np.ones((200, 3))
        for s in range(200):
            if s != row and 0 <= w.delivered[s] <= cutoff:
                evidence[s] = np.eye(3)[w.latent[s]]
        forward = chain.stationary * evidence[0]
        for s in range(1, row + 1):
            forward = (forward @ chain.matrix) * evidence[s]
            forward /= forward.sum()
        backward = np.ones(3)
        for s in range(199, row, -1):
            backward = chain.matrix @ (evidence[s] * backward)
            backward /= backward.sum()
        law = forward * backward
        assert level == pytest.approx(law.max() / law.sum(), abs=1e-9)


def test_retention_of_those_who_remember_guess_and_forget():
    w = world(PROBED, 20_000, seed=8, delay=(300, 300))
    whole, null, alert = retention(trace(w, honest(w), remembers))
    assert (whole.value, null.value) == (1.0, 1.0)
    assert math.isnan(alert.value) and "guessed" in alert.reason and alert.left_out > 1000
    for answer in (0, 1, 2):  # one who says the same thing to every question
        whole, null, _ = retention(trace(w, honest(w), lambda w, rows, answer=answer: np.full(len(rows), answer)))
        assert whole.low <= {0: -0.5, 1: -0.5, 2: 0.0}[answer] <= whole.high
        assert null.low <= {0: 0.0, 1: 0.0, 2: -1.0}[answer] <= null.high
    half = w.generator.random(len(w.tick)) < 0.5
    guess = w.generator.integers(0, 3, len(w.tick))
    whole, _, _ = retention(trace(w, honest(w), lambda w, rows: np.where(half[rows], w.latent[rows], guess[rows])))
    # Half known, half guessed with probability 1/3: (2/3 - 1/2) / (1/2).
    assert whole.low <= 1 / 3 <= whole.high


def test_a_guesser_with_neighbours_retains_nothing_on_a_sticky_chain():
    w = world(STICKY, 20_000, seed=9, delay=(100, 100))
    chain = chain_of(STICKY)

    def from_neighbours(w, rows):
        before, after = w.latent[np.maximum(rows - 1, 0)], w.latent[np.minimum(rows + 1, 19_999)]
        return (chain.matrix[before] * chain.matrix[:, after].T).argmax(axis=1)

    whole = retention(trace(w, nobody(w), from_neighbours))[0]
    assert whole.low <= 0.0 <= whole.high and whole.high - whole.low < 0.2
    assert whole.left_out > 0  # ticks that their neighbours give away


def test_questions_that_anyone_could_answer_are_withheld():
    task = Task(
        latent=MarkovChain(((0.95, 0.05), (0.05, 0.95))), response=(0, 1), probes=Probes(rate=0.5, after_ms=2000)
    )
    w = world(task, 2000, seed=10)
    whole = retention(trace(w, nobody(w), remembers))[0]
    assert whole.asked + whole.left_out == w.probed.sum()
    dull = task.replace(latent=MarkovChain(((0.95, 0.05), (0.95, 0.05))))
    whole = retention(trace(world(dull, 2000, seed=10), nobody(w)))[0]
    assert whole.asked == 0 and "above 0.8" in whole.reason and whole.to_dict()["value"] is None
    with pytest.raises(ValueError, match="no probes"):
        retention(trace(world(tasks.get("alert"), 50), nobody(w)))


def test_clopper_pearson_against_its_closed_ends():
    # No event in n: upper end 1 - 0.025^(1/n); all of n: the mirror image.
    assert clopper_pearson(0, 10) == pytest.approx((0.0, 1 - 0.025**0.1))
    assert clopper_pearson(10, 10) == pytest.approx((0.025**0.1, 1.0))
    assert clopper_pearson(0, 0) == (0.0, 1.0)


def test_a_law_without_a_chance_level_withholds_retention_only():
    from envrate import Threshold
    from envrate.latents import GaussianProcess
    from envrate.trace import Header, Trace

    rng = np.random.default_rng(11)
    n = 400
    for kernel, withheld in (((1.0, 0.5), True), ((1.0,), False)):
        task = Task(
            latent=GaussianProcess(kernel=kernel),
            response=Threshold((-1.0, 0.0, 1.0), (0, 0, 0, 1)),
            probes=Probes(rate=1.0, after_ms=2000),
        )
        z = rng.standard_normal(n)
        letter = np.asarray(task.response.intervals(z))
        onset = np.arange(n) * 500
        run = Trace(
            Header.for_task(task, duration_ms=n * 500),
            {
                "episode": np.zeros(n),
                "tick": np.arange(n),
                "onset_ms": onset,
                "required": np.asarray(task.table)[letter],
                "delivered_ms": onset,
                "probe_ms": onset + 2000,
                "probe_required": letter,
                "latent": z[:, None],
            },
            {
                "episode": np.zeros(n),
                "time_ms": onset + 2000,
                "tick": np.arange(n),
                "value": letter,
                "kind": np.ones(n, np.int64),
            },
        )
        table = restraint_table(run, 500)
        assert table.row("correct silence").rate == 1.0
        if withheld:
            assert table.retention == () and "retention is withheld" in table.notes[0]
        else:  # independent ticks: four intervals, the likeliest one is the chance level
            assert table.retention[0].value == 1.0 and table.retention[0].chance == pytest.approx(0.3413, abs=1e-4)
