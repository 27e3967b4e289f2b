"""Rankings, their transfer, and strengths from pairwise results."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from synthetic import honest, missing, respond, trace, world

from envrate import tasks
from envrate.scorers import bradley_terry, rank, transfer, wins_matrix
from envrate.scorers._ranking_pairwise import components
from envrate.task import Severity

ALERT = tasks.get("alert")


def test_order_interval_and_probability():
    w = world(ALERT, 4000, seed=1, episodes=40)
    runs = [missing(w, share, k) for k, share in enumerate((0.5, 0.1, 0.3))]
    found = rank(runs, 0)
    assert [run.name for run in found.runs] == ["misses 0.1", "misses 0.3", "misses 0.5"]
    assert [run.rank for run in found.runs] == [1, 2, 3]
    assert found.paired and found.disputed == ()
    assert found.order[0, 1] > 0.99 and found.order[0, 1] + found.order[1, 0] == pytest.approx(1.0)
    assert math.isnan(found.order[0, 0])
    assert all(run.low <= run.credited <= run.high for run in found.runs)
    assert found.to_dict()["order_right"][0][0] is None


def test_equal_runs_are_not_ordered():
    w = world(ALERT, 2000, seed=2, episodes=40)
    twins = rank([missing(w, 0.3, 1), missing(w, 0.3, 2)], 0, names=["x", "y"])
    assert 0.02 < twins.order[0, 1] < 0.98
    same = missing(w, 0.3, 1)
    assert rank([same, same], 0, names=["x", "y"]).order[0, 1] == 0.5


def test_pairs_that_severity_orders_the_other_way_are_flagged():
    task = ALERT.replace(severity=Severity(miss=20.0, over=1.0))
    w = world(task, 4000, seed=3, episodes=40)
    cautious = missing(w, 0.1, 1)  # few misses, each of them grave
    acts = honest(w)
    idle = np.flatnonzero((w.required == 0) & (w.generator.random(len(w.tick)) < 0.4))
    rows = np.concatenate([acts["row"], idle])
    eager = trace(w, respond(rows, w.onset[rows], np.ones(len(rows), np.int64)), agent="eager")
    found = rank([eager, cautious], 0)
    assert [run.name for run in found.runs] == ["misses 0.1", "eager"]
    assert found.runs[0].severity > found.runs[1].severity
    assert found.disputed == (("misses 0.1", "eager"),)


def test_what_weakens_a_ranking_is_noted():
    w = world(ALERT, 400, seed=5, episodes=40)
    flawless, half = trace(w, honest(w), agent="flawless"), missing(w, 0.5, 1)
    found = rank([flawless, half], 2000)
    assert found.runs[0].name == "flawless" and found.order[0, 1] == 1.0
    # Four hundred ticks without a failure do not prove that there is none: the interval and a note say so.
    assert found.runs[0].low < 1.97 and any("flawless" in note and "fewer than 5" in note for note in found.notes)
    other = world(ALERT.replace(severity=Severity(miss=2.0)), 400, seed=5, episodes=40)
    assert "the runs are on different tasks: their demands differ" in rank([half, trace(other, honest(other))]).notes


def test_what_cannot_be_ranked_is_refused():
    w = world(ALERT, 400, seed=4, episodes=4)
    run = missing(w, 0.1, 1)
    with pytest.raises(ValueError, match="at least 2"):
        rank([run])
    with pytest.raises(ValueError, match="different names"):
        rank([run, run])
    few = world(ALERT, 12, seed=4)
    with pytest.raises(ValueError, match="events"):
        rank([run, trace(few, honest(few), agent="few")])
    slow = world(ALERT.replace(tick_ms=1000), 400, seed=4, episodes=4)
    with pytest.raises(ValueError, match="only runs with equal ticks"):
        rank([run, missing(slow, 0.2, 1)])
    with pytest.raises(ValueError, match="no link log"):
        rank([run, trace(w, honest(w), agent="bare", link=False)], 0, reading="resolved")


# -- transfer ---------------------------------------------------------------------------------------------------------


def scores(values):
    return dict(zip("abcdefghijklmnop", values, strict=False))


@pytest.mark.parametrize("seed", range(6))
def test_tau_b_and_rho_equal_scipy_with_ties(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 9))
    x, y = rng.integers(0, 5, n).astype(float), rng.integers(0, 5, n).astype(float)
    found = transfer(scores(x), scores(y))
    assert found.kendall == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert found.spearman == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    # Every permutation, one by one.
    every = [stats.kendalltau(x, y[list(p)]).statistic for p in itertools.permutations(range(6))] if n == 6 else []
    if every:
        assert found.kendall_p == pytest.approx(np.mean(np.abs(every) >= abs(found.kendall) - 1e-12))


def test_exact_p_without_ties():
    # Of the 720 orders of six systems, one neighbour swap or none in either direction: (5 + 1) * 2 / 720.
    found = transfer(scores(range(6)), scores([0, 1, 2, 3, 5, 4]))
    assert found.kendall == pytest.approx(1 - 2 * 2 / 30 * 1, abs=1e-12)  # 14 of 15 pairs agree
    assert found.kendall_p == pytest.approx(12 / 720)
    assert found.kendall_low < found.kendall < found.kendall_high < 1.0
    perfect = transfer(scores(range(6)), scores(range(6)))
    assert perfect.kendall_p == pytest.approx(2 / 720) and perfect.kendall_high == 1.0 and perfect.kendall_low < 0.8
    reverse = transfer(scores(range(6)), scores(range(6, 0, -1)))
    assert (reverse.kendall, reverse.kendall_low) == (-1.0, -1.0) and reverse.kendall_high < 0


def test_many_systems():
    rng = np.random.default_rng(1)
    x = rng.standard_normal(12)
    y = x + rng.standard_normal(12)
    found = transfer(scores(x), scores(y))
    assert found.kendall_p == pytest.approx(stats.kendalltau(x, y, method="exact").pvalue, rel=1e-9)
    assert found.spearman_p == pytest.approx(stats.spearmanr(x, y).pvalue, abs=0.02)
    assert 0 <= found.spearman_low < found.spearman < found.spearman_high <= 1


def test_published_rankings_that_disagree(shared_data):
    # Full-Duplex-Bench: turn-taking latency against taking the turn in pauses, six systems, Spearman -.66.
    latency = scores([0.070, 0.265, 0.352, 0.953, 1.301, 1.470])
    pause = scores([0.584, 0.985, 0.934, 0.642, 0.255, 0.010])
    found = transfer(latency, pause)
    assert found.spearman == pytest.approx(-0.66, abs=0.005) and found.spearman_p > 0.1


def test_under_six_systems_nothing_is_tested():
    found = transfer(scores(range(5)), scores(range(6)))
    assert math.isnan(found.kendall) and "not testable: 5 systems" in found.reason
    assert found.left_out == ("f",) and found.to_dict()["spearman"] is None
    assert "tied" in transfer(scores([1.0] * 6), scores(range(6))).reason


def test_a_ranking_is_taken_as_it_is():
    w = world(ALERT, 2000, seed=5, episodes=40)
    runs = [missing(w, 0.1 * k, k) for k in range(6)]
    ranking = rank(runs, 0)
    assert transfer(ranking, {f"misses {0.1 * k:g}": -k for k in range(6)}).kendall == pytest.approx(1.0)


# -- pairwise ---------------------------------------------------------------------------------------------------------


def test_bradley_terry_against_a_published_table():
    # Four players; strengths with geometric mean 1: .640, 1.043, .660, 2.270.
    results = {("A", "B"): 2, ("B", "A"): 3, ("A", "D"): 1, ("D", "A"): 4, ("B", "C"): 5, ("C", "B"): 3,
               ("C", "D"): 1, ("D", "C"): 3}  # fmt: skip
    names, wins = wins_matrix(results)
    found = bradley_terry(wins, names)
    assert names == ("A", "B", "C", "D")
    assert found.strength == pytest.approx([0.6398, 1.0433, 0.6598, 2.2704], abs=5e-5)
    # At the maximum everyone has won as often as expected.
    p = found.strength[:, None] / (found.strength[:, None] + found.strength)
    assert ((wins + wins.T) * p).sum(axis=1) == pytest.approx(wins.sum(axis=1), abs=1e-9)


def test_three_wins_to_one_are_190_elo():
    found = bradley_terry([[0, 3], [1, 0]])
    assert found.elo[0] - found.elo[1] == pytest.approx(400 * math.log10(3), abs=1e-9)  # 190.8485
    # Variance of the log-odds 1/3 + 1/1, half of the difference for each side.
    half = 1.959964 * math.sqrt(4 / 3) * 400 / math.log(10) / 2
    assert found.elo_high[0] - found.elo[0] == pytest.approx(half, rel=1e-6)


def test_a_graph_that_is_not_connected_is_refused_and_named():
    # Two models that met only each other, because a label was misspelt, were once ranked among seven others.
    wins = np.zeros((4, 4))
    wins[0, 1] = wins[1, 0] = 5
    wins[2, 3], wins[3, 2] = 30, 10
    with pytest.raises(ValueError, match=r"\{a, b\}.*\{c, d\}|\{c, d\}.*\{a, b\}"):
        bradley_terry(wins, ["a", "b", "c", "d"])
    assert sorted(components(wins)) == [[0, 1], [2, 3]]
    # Connected but one-way: who never won has no finite strength.
    with pytest.raises(ValueError, match="not strongly connected"):
        bradley_terry([[0, 4, 2], [1, 0, 3], [0, 0, 0]])


def test_bad_wins_are_refused():
    with pytest.raises(ValueError, match="square"):
        bradley_terry([[0, 1]])
    with pytest.raises(ValueError, match="counts >= 0"):
        bradley_terry([[0, -1], [1, 0]])
    with pytest.raises(ValueError, match="names"):
        bradley_terry([[0, 1], [1, 0]], ["a"])
