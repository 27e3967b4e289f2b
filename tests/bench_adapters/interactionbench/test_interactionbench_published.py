"""The published runs against the benchmark's own file, and a run set beside them."""

from __future__ import annotations

import json

import ib_synthetic as synthetic
import pytest

from envrate.bench_adapters import interactionbench as ib


def test_every_number_is_that_of_the_benchmarks_file(shared_data):
    body = json.loads((shared_data / "interactionbench" / "configs" / "paper_runs.json").read_text(encoding="utf-8"))
    assert len(body["runs"]) == len(ib.published_runs()) == 58
    for theirs, ours in zip(body["runs"], ib.published_runs(), strict=True):
        scores = theirs.get("reference_scores") or theirs["stored_scores"]
        assert (ours.name, ours.system, ours.setting) == (theirs["name"], theirs["system"], theirs["setting"])
        assert (ours.split, ours.protocol) == (theirs["items"], theirs.get("protocol", "paper"))
        assert (ours.n, ours.total, ours.accuracy) == (scores["n_items"], scores["total"], scores.get("accuracy"))
        assert ours.timing_accuracy == scores.get("timing_accuracy")
        assert ours.silence_compliance == scores.get("silence_compliance")


def test_tables_by_split():
    everything = ib.published()
    assert len(everything.rows) == 58
    counts = {split: len(ib.published(split).rows) for split in ("all1060", "subset103", "mcq688", "frozen218")}
    assert counts == {"all1060": 34, "subset103": 13, "mcq688": 1, "frozen218": 6}
    best = ib.published("all1060").rows[0]
    assert (best[1], best[5]) == ("Claude Sonnet 5 agent + frame tools", 66.1)
    assert any("not comparable" in note for note in ib.published("frozen218").notes)
    with pytest.raises(ValueError, match="split: expected one of"):
        ib.published("all")


def test_hindsight_runs():
    marked = {run.name for run in ib.published_runs() if run.hindsight}
    assert "human_reference" in marked and "claude_qwenmm_grounding" in marked and "dispider_offline_mcq" in marked
    assert "claude_builtin_polling_iv1" not in marked
    assert len(marked) == 13


@pytest.mark.parametrize("split", ["all1060", "subset103", "mcq688", "frozen218"])
def test_a_run_is_known_by_its_ids(shared_data, split):
    ids = (shared_data / "interactionbench" / "splits" / f"{split}.txt").read_text(encoding="utf-8").split()
    assert ib.split_of(ids) == (split, True)
    assert ib.split_of(reversed(ids)) == (split, True)
    assert ib.split_of(["other#0", *ids[1:]]) == (split, False)
    assert ib.split_of(ids[1:] + ["a#0", "b#0", "c#0"]) == (None, False)


def test_the_split_with_one_item_that_is_annotated_no_more(shared_data):
    ids = (shared_data / "interactionbench" / "splits" / "frozen218.txt").read_text(encoding="utf-8").split()
    assert ib.split_of(i for i in ids if i != "0afNDynOHdM#0") == ("frozen218", True)


def test_a_run_beside_the_published_ones(tmp_path):
    root = synthetic.make(tmp_path, alerts=103, tracks=0, silent=0, questions=0, narrations=0)
    evaluation = ib.evaluate(synthetic.run(root, synthetic.answering(root, 1.0)), root)
    table = ib.beside(evaluation, name="mine")
    assert table.split == "subset103" and len(table.rows) == 14
    assert table.rows[0][0] == "mine" and table.rows[0][5] == 94.5
    assert any("matched by number only" in note for note in table.notes)
    named = ib.beside(evaluation, split="all1060")
    assert named.split == "all1060" and any("matched by name only" in note for note in named.notes)
    few = ib.evaluate(synthetic.run(root, synthetic.blind("never")), root, items=["vid00000000#0"])
    with pytest.raises(ValueError, match="split: no published split has the run's 1 items"):
        ib.beside(few)
