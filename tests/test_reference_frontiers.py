"""The shipped reference frontiers: whole, under their demand, and what a recomputation gives."""

from __future__ import annotations

import pytest

import envrate as er
from envrate import reference


def test_the_shipped_file_holds_every_job() -> None:
    assert [entry["spec"] for entry in reference.load()] == reference.specs()


def test_frontiers_lie_under_their_demand_and_rise() -> None:
    for entry in reference.load():
        for reading in ("output-only", "resolved"):
            rates = [p["credited"] for p in entry["points"] if p["reading"] == reading and p["credited"] is not None]
            assert all(0 <= a <= b for a, b in zip(rates, rates[1:], strict=False)), entry["spec"]
            assert all(rate <= entry["demand"]["upper"] * (1 + 1e-5) for rate in rates), entry["spec"]


def test_never_has_nothing_and_symbols_on_a_lan_keep_up() -> None:
    assert all(
        p["credited"] == 0 for e in reference.find(agent="never") for p in e["points"] if p["credited"] is not None
    )
    (entry,) = reference.find(task="alert", modality="symbols", link="lan", agent="reactive")
    assert entry["keeps_up_at_ms"] == 100


def test_one_of_them_recomputed() -> None:
    (entry,) = reference.find(task="alert", modality="symbols", link="worked", agent="reactive")
    assert reference.compare_with_fresh(entry)["agrees"]


def test_they_are_drawn_behind_a_frontier() -> None:
    trace = er.rollout("alert", "reactive", link="wifi", num_envs=20, num_ticks=40)
    figure = er.frontier(trace, resamples=100).plot()
    before = len(figure.axes[0].lines)
    assert reference.draw_behind(figure, task="alert", modality="symbols", link="wifi") == 4
    assert len(figure.axes[0].lines) == before + 4


@pytest.mark.nightly
def test_a_sample_recomputed() -> None:
    assert all(row["agrees"] for row in reference.check(sample=6))
