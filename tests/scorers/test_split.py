"""The split of the gap points at its cause."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthetic import honest, nobody, remembers, respond, trace, world

from envrate import tasks
from envrate.latents import MarkovChain
from envrate.plots_split import split_figure
from envrate.scorers import frontier, restraint_table, split
from envrate.scorers._ideal import Scale, Situations, climb, starting_costs
from envrate.task import Probes, Severity, Task

CHOICE4 = Task(latent=MarkovChain(((0.4, 0.3, 0.2, 0.1),) * 4), response=(0, 1, 2, 3), tick_ms=500, micro_turn_ms=100)


def parts(point):
    gap = point.gap
    return {name: getattr(point, name) / gap for name in ("link", "perception", "decision")}


@pytest.mark.parametrize("reading", ["output-only", "resolved"])
def test_a_slow_link_is_to_blame(reading):
    w = world(CHOICE4, 20_000, seed=1, delay=(300, 900), late=0.4)
    point = split(trace(w, honest(w)), [300, 900]).at(300, reading)
    assert parts(point)["link"] >= 0.8
    assert point.gap > 0.5


@pytest.mark.parametrize("reading", ["output-only", "resolved"])
def test_a_noisy_perceiver_is_to_blame(reading):
    w = world(CHOICE4, 20_000, seed=2, delay=(100, 100))
    rows = np.arange(len(w.tick))
    seen = np.where(w.generator.random(len(rows)) < 0.25, w.generator.choice(4, len(rows), p=CHOICE4.pmf), w.required)
    point = split(trace(w, respond(rows, w.delivered, seen)), [100]).at(100, reading)
    assert parts(point)["perception"] >= 0.8
    assert point.gap > 0.5


@pytest.mark.parametrize("reading", ["output-only", "resolved"])
def test_permuted_labels_are_to_blame(reading):
    w = world(CHOICE4, 20_000, seed=3, delay=(100, 100))
    acts = honest(w)
    acts["value"] = np.array([0, 2, 3, 1])[acts["value"]]
    point = split(trace(w, acts), [100]).at(100, reading)
    assert parts(point)["decision"] >= 0.8
    assert point.decoded == pytest.approx(point.ideal, abs=0.01)


@pytest.mark.parametrize("kind", ["slow link", "noisy", "permuted"])
def test_the_same_on_a_sticky_chain(kind):
    task = tasks.get("hold")
    w = world(task, 6000, seed=4, delay=(100, 100) if kind != "slow link" else (700, 700))
    acts = honest(w)
    if kind == "slow link":  # at 400 ms the newest tick known is the one before; this agent makes the best of it
        rows = np.arange(1, len(w.tick))
        acts = respond(rows, w.onset[rows] + 300, w.required[rows - 1])
    if kind == "noisy":
        wrong = w.generator.random(len(acts["row"])) < 0.15
        acts["value"] = np.where(wrong, 3 - acts["value"], acts["value"])
    if kind == "permuted":
        acts["value"] = 3 - acts["value"]
    point = split(trace(w, acts), [400], readings=["output-only"]).at(400)
    assert point.gap > 0.2
    name = {"slow link": "link", "noisy": "perception", "permuted": "decision"}[kind]
    assert parts(point)[name] >= 0.8


def belief_law(stay: float, right: float, levels: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Grid and invariant law of the belief in state 1 of a symmetric chain seen through symmetric noise.

    Bayes' recursion b' = p l1 / (p l1 + (1 - p) l0) with p = b stay + (1 - b) (1 - stay), its mass split between the
    two nearest points of the grid.
    """
    grid = (np.arange(levels) + 0.5) / levels
    predicted = grid * stay + (1 - grid) * (1 - stay)
    law = np.full(levels, 1 / levels)
    steps = []
    for one, zero in ((right, 1 - right), (1 - right, right)):
        seen = predicted * one + (1 - predicted) * zero
        place = np.clip(predicted * one / seen * levels - 0.5, 0, levels - 1)
        low = np.minimum(place.astype(int), levels - 2)
        steps.append((low, place - low, seen))
    for _ in range(300):
        following = np.zeros(levels)
        for low, share, seen in steps:
            np.add.at(following, low, law * seen * (1 - share))
            np.add.at(following, low + 1, law * seen * share)
        law = following / following.sum()
    return grid, law


def test_the_share_of_a_noisy_perceiver_on_a_sticky_chain_is_the_exact_one():
    """What the perceiver heard before wins a part of the gap back: the filter of its own outcomes, silent in doubt.

    The best rule is found here among all thresholds of the exact belief; its part is 12.8 % of the gap, so 87.2 %
    are perception.
    """
    task, right = tasks.get("hold"), 0.85
    grid, law = belief_law(0.9, right)
    scale = Scale(task, resolved=False)

    def table(wrong, missed):
        out = np.zeros((3, 5))
        out[1:, 0] = missed
        out[[1, 2], [1, 2]] = 1 - wrong - missed
        out[[1, 2], [2, 1]] = wrong
        return out

    rules = []
    for limit in np.linspace(0.5, 0.99, 50):
        sure = law * (grid >= limit)
        wrong, said = 2 * float(sure @ (1 - grid)), 2 * float(sure.sum())  # the other symbol is its mirror image
        rules.append(table(min(wrong, 1.0), max(0.0, 1 - said)))
    per_second = 1000 / task.tick_ms
    decoded = float(scale.credited(np.stack(rules)).max()) * per_second
    credited = float(scale.credited(table(1 - right, 0.0)[None])[0]) * per_second
    exact = (task.demand().upper - decoded) / (task.demand().upper - credited)
    assert exact == pytest.approx(0.872, abs=0.002)
    # The ascent finds the best threshold in the population ...
    joint = np.column_stack([np.zeros_like(law), law * (1 - grid), law * grid])
    found = climb(scale, Situations(joint, np.zeros_like(law), joint), starting_costs(task), [table(1 - right, 0.0)])
    assert float(scale.credited(np.stack(found)).max()) * per_second == pytest.approx(decoded, abs=2e-3)
    # ... and the split of a run comes near it.
    w = world(task, 20_000, seed=9, delay=(100, 100))
    acts = honest(w)
    acts["value"] = np.where(w.generator.random(len(acts["row"])) < 1 - right, 3 - acts["value"], acts["value"])
    point = split(trace(w, acts), [400], readings=["output-only"]).at(400)
    assert point.decoded == pytest.approx(decoded, abs=0.04)
    assert point.credited == pytest.approx(credited, abs=0.03)
    assert parts(point)["perception"] == pytest.approx(exact, abs=0.04)


@pytest.mark.parametrize("seed", range(50))
def test_ideal_decoded_and_credited_stand_in_order(seed):
    """50 random tasks, links and agents. Sampling noise of C, at a 99.99 % bound, is all that may turn them round."""
    rng = np.random.default_rng(100 + seed)
    size = int(rng.integers(2, 5))
    task = Task(
        latent=MarkovChain((tuple(rng.dirichlet(np.full(size, 4.0))),) * size),
        response=tuple(range(size)),
        severity=Severity(miss=float(rng.uniform(1, 20)), wrong=float(rng.uniform(1, 5)), over=1.0),
        micro_turn_ms=100,
        probes=Probes(rate=0.5, after_ms=2000),
        name="random",
    )
    n = 4000
    w = world(task, n, seed=seed, delay=(100, 600), late=float(rng.uniform(0, 0.6)), loss=float(rng.uniform(0, 0.3)))
    rows = np.flatnonzero(w.heard)
    channel = rng.dirichlet(np.full(size, 0.3), size) * 0.5 + 0.5 * np.eye(size)[rng.permutation(size)]
    said = np.array([rng.choice(size, p=channel[a]) for a in w.required[rows]])
    acts = respond(rows, w.delivered[rows] + rng.choice([0, 100, 300]), said)
    run = trace(w, acts, remembers)
    found = split(run, [0, 100, 300, 600, 1000])
    scored = frontier(run, [0, 100, 300, 600, 1000], resamples=100)
    for point in found.points:
        # Standard error of C: half the width of its 95 % interval over 1.96, at least what 4000 ticks leave open.
        here = scored.at(point.latency_ms, point.reading)
        error = max((here.credited_high - here.credited_low) / 3.92, 0.01)
        assert point.credited == pytest.approx(here.credited, abs=1e-6)
        assert point.decoded >= point.credited
        assert point.ideal >= point.credited - 3.72 * error
        assert point.ideal >= point.decoded - 3.72 * error
        assert point.prediction <= point.ideal + 1e-6
        assert point.link + point.perception + point.decision == pytest.approx(here.gap, abs=1e-6)
        if point.reading == "output-only":
            assert point.ideal <= point.link_information + 1e-6
        # No agent's severity beats the observer's.
        assert here.severity >= point.severity - 3.72 * task.distortion.max() / math.sqrt(n)


def test_worked_example():
    w = world(tasks.get("alert"), 20_000, seed=1, delay=(300, 600), late=0.4)
    found = split(trace(w, honest(w), agent="reactive"))
    assert found.at(300, "output-only").ideal == pytest.approx(0.7916, abs=0.04)
    assert found.at(300, "resolved").ideal == pytest.approx(1.2, abs=0.04)
    assert found.at(300).link_information == pytest.approx(1.2, abs=0.04)
    assert found.at(300).severity == pytest.approx(0.2, abs=0.01)  # a silent or a guessing rule errs half of the time
    assert found.at(600).gap == pytest.approx(0.0, abs=1e-6)
    assert found.at(299.0).latency_ms == 200
    body = found.to_dict()
    assert body["unit"] == "bits/s" and len(body["points"]) == 2 * 21


def test_prediction_alone_is_seen():
    """An echo on a sticky chain lives on prediction: its bits are those of the best rule that has not seen the tick."""
    task = tasks.get("hold")
    w = world(task, 6000, seed=6, delay=(0, 0))
    rows = np.arange(1, len(w.tick))
    found = split(trace(w, respond(rows, w.onset[rows], w.required[rows - 1])), [0], readings=["output-only"]).at(0)
    assert found.credited == pytest.approx(found.prediction, abs=0.08)
    assert 0.1 < found.credited < 0.8 * found.ideal


def test_silence_loses_everything_in_perception():
    w = world(CHOICE4, 4000, seed=7, delay=(0, 0))
    point = split(trace(w, nobody(w)), [0]).at(0)
    assert point.credited == point.decoded == 0.0
    assert point.perception == pytest.approx(point.gap, abs=1e-6)


def test_too_few_events_are_withheld_and_bad_arguments_refused():
    w = world(tasks.get("alert"), 12, seed=1)
    point = split(trace(w, honest(w)), [0]).at(0)
    assert math.isnan(point.credited) and point.reason and point.to_dict()["gap"] is None
    w = world(tasks.get("alert"), 100, seed=1)
    with pytest.raises(ValueError, match="no link log"):
        split(trace(w, honest(w), link=False))
    with pytest.raises(ValueError, match="readings"):
        split(trace(w, honest(w)), readings=["both"])
    with pytest.raises(ValueError, match="reading"):
        split(trace(w, honest(w)), [0]).at(0, "both")


def test_figure_stacks_up_to_the_demand(tmp_path):
    w = world(tasks.get("alert"), 2000, seed=1, delay=(300, 600), late=0.4)
    found = split(trace(w, honest(w), agent="reactive"))
    figure = split_figure(found, tmp_path / "split.svg")
    assert (tmp_path / "split.svg").stat().st_size > 1000
    axes = figure.axes[0]
    top = max(path.vertices[:, 1].max() for band in axes.collections for path in band.get_paths())
    assert top == pytest.approx(2.0)
    assert {text.get_text() for text in axes.get_legend().get_texts()} >= {"credited", "lost on the link"}
    few = world(tasks.get("alert"), 12, seed=1)
    with pytest.raises(ValueError, match="no numbers to draw"):
        split_figure(split(trace(few, honest(few)), [0]))


def test_a_link_that_loses_everything_is_to_blame_for_everything():
    w = world(CHOICE4, 400, seed=8, loss=1.0)
    run = trace(w, nobody(w))
    assert split(run, [0]).at(0).link == pytest.approx(split(run, [0]).demand.upper)
    assert restraint_table(run, 100).row("miss by loss").rate == 1.0
