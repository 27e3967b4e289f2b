"""The shipped reference frontiers: whole, under their demand, and what a recomputation gives."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

import envrate as er
from envrate import _ids, reference, sweep, tasks
from envrate.cli import main


def test_the_shipped_file_holds_every_job() -> None:
    assert [entry["spec"] for entry in reference.load()] == reference.specs()


def test_specs_are_every_task_modality_and_link() -> None:
    specs = reference.specs()
    found = {(spec["task"], spec["modality"], spec["link"]) for spec in specs}
    assert found == {(*pair, link) for pair in _ids.pairs() for link in ("lan", "wifi", "4g", "satellite", "worked")}
    assert len({sweep.job_name(spec) for spec in specs}) == len(specs)


def test_the_file_is_small_and_plain() -> None:
    text = (resources.files("envrate") / "data" / "reference.json").read_text(encoding="utf-8")
    assert len(text) < 10**6
    assert {"format", "version", "spec", "tasks", "frontiers"} == set(json.loads(text))


def test_a_result_survives_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every point of a small result, to five digits, through the file and back."""
    specs = sweep.expand(
        {"task": "watch", "num_envs": 20, "num_ticks": 20, "resamples": 100, "agent": ["never", "reactive"]}
    )
    monkeypatch.setattr(reference, "specs", lambda: specs)
    (tmp_path / "data").mkdir()
    path = reference.build(tmp_path / "jobs", tmp_path / "data" / "reference.json", jobs=1)
    monkeypatch.setattr(reference.resources, "files", lambda name: path.parent.parent)
    reference.load.cache_clear()
    try:
        loaded = reference.load()
    finally:
        monkeypatch.undo()
        reference.load.cache_clear()
    for entry, result in zip(loaded, sweep.results(specs, tmp_path / "jobs"), strict=True):
        assert result is not None
        frontier = result["frontier"]
        assert entry["spec"] == result["spec"] and entry["demand"] == frontier["demand"]
        assert len(entry["points"]) == len(frontier["points"])
        for got, want in zip(entry["points"], frontier["points"], strict=True):
            assert {"latency_ms", "reading", "credited", "credited_low", "credited_high", "severity", "events"} == set(
                got
            )
            for key, value in got.items():
                assert value == (pytest.approx(want[key], rel=1e-4) if isinstance(value, float) else want[key])


def test_frontiers_lie_under_their_demand_and_rise() -> None:
    for entry in reference.load():
        for reading in ("output-only", "resolved"):
            rates = [p["credited"] for p in entry["points"] if p["reading"] == reading and p["credited"] is not None]
            assert all(0 <= a <= b for a, b in zip(rates, rates[1:], strict=False)), entry["spec"]
            most = entry["demand"]["upper"] * (1 + 5 * 10.0**-reference.DIGITS)  # the file is rounded
            assert all(rate <= most for rate in rates), entry["spec"]


def test_never_has_nothing_and_symbols_on_a_lan_keep_up() -> None:
    """Exactly nothing. Where a value is tracked, silence is a guess of the mean, whose error in a run is not quite the
    variance; the interval begins at 0."""
    for entry in reference.find(agent="never"):
        tracks = tasks.get(entry["spec"]["task"]).is_tracking
        known = [point for point in entry["points"] if point["credited"] is not None]
        assert known and all(point["credited_low" if tracks else "credited"] == 0 for point in known), entry["spec"]
    (entry,) = reference.find(task="alert", modality="symbols", link="lan", agent="reactive")
    assert entry["keeps_up_at_ms"] == 100


def test_the_same_latent_gets_through_in_every_modality() -> None:
    """An alert has the same demand however it is shown; on a lan nothing but the perceiver can lose any of it."""
    entries = [entry for entry in reference.find(task="alert", link="lan") if entry["spec"]["agent"] == "perceiver"]
    assert {entry["spec"]["modality"] for entry in entries} == {"audio", "video", "screen", "proprio"}
    for entry in entries:
        last = [point for point in entry["points"] if point["reading"] == "output-only"][-1]
        assert last["credited"] > 1.9 and entry["demand"]["upper"] == 2.0, entry["spec"]


def test_one_of_them_recomputed() -> None:
    (entry,) = reference.find(task="alert", modality="symbols", link="worked", agent="reactive")
    assert reference.compare_with_fresh(entry)["agrees"]


def test_they_are_drawn_behind_a_frontier() -> None:
    trace = er.rollout("alert", "reactive", link="wifi", num_envs=20, num_ticks=40)
    figure = er.frontier(trace, resamples=100).plot()
    before = len(figure.axes[0].lines)
    entries = reference.find(task="alert", modality="symbols", link="wifi")
    assert len(entries) == 5 and reference.matching(er.frontier(trace, resamples=100)) == entries
    reference.draw_behind(figure, entries)
    assert len(figure.axes[0].lines) == before + 5


def test_only_the_same_task_modality_and_link_match() -> None:
    own = er.tasks.get("alert").replace(horizon_ms=1000)
    for task, link in ((own, "wifi"), ("alert", er.channels.Link(delay_ms=7))):
        trace = er.rollout(task, "reactive", link=link, num_envs=20, num_ticks=20)
        assert reference.matching(er.frontier(trace, resamples=100)) == []


def test_the_command_line_draws_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = er.rollout("alert", "reactive", link="wifi", num_envs=20, num_ticks=40).save(tmp_path / "run.jsonl")
    sizes = []
    for more in ([], ["--reference"]):
        with pytest.raises(SystemExit) as end:
            main(["frontier", str(run), "--png", str(tmp_path / "f.svg"), *more])
        assert not end.value.code
        sizes.append((tmp_path / "f.svg").stat().st_size)
    assert sizes[1] > sizes[0]
    with pytest.raises(SystemExit) as end:
        main(["frontier", str(run), "--reference"])
    assert end.value.code == 2 and "--reference: expected --png too" in capsys.readouterr().err


@pytest.mark.nightly
def test_a_sample_recomputed() -> None:
    assert all(row["agrees"] for row in reference.check(sample=6))
