"""The notebook's JSON, lmms-eval's samples and VLMEvalKit's tables, against the questions they were written from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tvbench_writers import TASKS, WRITERS, lmms_eval, notebook, questions, vlmevalkit

from envrate import bench_adapters
from envrate.bench_adapters.tvbench import ADAPTER

MADE = questions(60)
SAME = np.arange(60)
#: What the questions say: answers by letter, right ones, no answer.
GIVEN = sum(q.letter is not None for q in MADE)
RIGHT = sum(q.letter == chr(ord("A") + q.target) for q in MADE)


def test_the_fixture_holds_silent_right_and_wrong_items() -> None:
    assert 0 < RIGHT < GIVEN < 60


@pytest.mark.parametrize("kind", WRITERS)
def test_each_format_is_recognised_and_gives_the_same_outcomes(kind: str, tmp_path: Path) -> None:
    path = WRITERS[kind](tmp_path, MADE, SAME)
    found = bench_adapters.recognise(path)
    assert (found.adapter.name, found.recognition.kind) == ("tvbench", kind)
    trace = bench_adapters.load(path)
    assert len(trace) == 60
    assert [s.name for s in trace.header.strata] == ["2 options", "3 options", "4 options"]
    items = {(item.subset, item.index): item for item in ADAPTER.read(path).items}
    for question in MADE:
        item = items[question.task, question.index]
        assert (item.options, item.target) == (TASKS[question.task], question.target + 1)
        assert item.choice == (0 if question.letter is None else ord(question.letter) - ord("A") + 1)
    table = bench_adapters.scores(path)
    assert table is not None
    assert table.values["accuracy, missing counted"] == round(RIGHT / 60, 4)


def test_only_evalscope_has_latencies(tmp_path: Path) -> None:
    for number, (kind, write) in enumerate(WRITERS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        trace = bench_adapters.load(write(folder, MADE, SAME))
        within = trace.responses["time_ms"] <= trace.header.horizon_ms
        assert within.sum() == (GIVEN if kind == "evalscope" else 0)


def test_the_notebooks_rule_for_empty_replies_is_scored_anew_and_the_difference_reported(tmp_path: Path) -> None:
    path = notebook(tmp_path, MADE, SAME)
    table = bench_adapters.scores(path)
    assert table is not None
    silent = 60 - GIVEN
    assert table.values["accuracy"] == round((RIGHT + silent) / 60, 4)  # theirs: "(" is part of every answer
    assert table.values["accuracy, missing counted"] == round(RIGHT / 60, 4)
    assert any(f"{silent} item(s) that hold no answer were counted as right" in note for note in table.notes)
    notes = bench_adapters.load(path).header.notes
    assert any(f"{silent} reply(ies) without a readable letter" in note for note in notes)


def test_a_notebook_letter_out_of_range_is_no_answer_and_answers_beyond_the_task_widen_it(tmp_path: Path) -> None:
    rows = [{"pred": "(D) x", "gt": "(A) x"}, {"pred": "(B) x", "gt": "(B) x"}, {"pred": "(A", "gt": "(C) x"}]
    path = tmp_path / "toy.json"
    path.write_text(json.dumps({"acc_dict": {"Scene Transition": [1, 3]}, "res_list": rows}))
    items = ADAPTER.read(path).items
    assert [(i.options, i.target, i.choice, i.status) for i in items] == [
        (3, 1, 0, "unparsed"), (3, 2, 2, "ok"), (3, 3, 1, "ok"),
    ]  # fmt: skip


def test_a_notebook_file_that_lacks_replies_counts_them_as_missing(tmp_path: Path) -> None:
    path = notebook(tmp_path, MADE, SAME)
    value = json.loads(path.read_text())
    value["res_list"] = value["res_list"][:-7]
    path.write_text(json.dumps(value))
    trace = bench_adapters.load(path)
    assert len(trace) == 60
    assert trace.header.extra["counts"]["missing"] == 7
    value["res_list"][3] = "torn"
    path.write_text(json.dumps(value))
    counts = bench_adapters.load(path).header.extra["counts"]
    assert (counts["items"], counts["missing"], counts["damaged lines"]) == (60, 8, 1)


def test_lmms_eval_rows_of_older_versions(tmp_path: Path) -> None:
    trace = bench_adapters.load(lmms_eval(tmp_path, MADE, SAME, older=True), seconds="clip")
    assert len(trace) == 60
    assert trace.header.duration_ms == 60 * 2500  # start and end of every record
    assert (trace.responses["value"] > 0).sum() == GIVEN


def test_lmms_eval_gaps_are_missing_items_and_later_rows_win(tmp_path: Path) -> None:
    model = lmms_eval(tmp_path, MADE, SAME)
    path = model / "20260801_101010_samples_tvbench_scene_transition.jsonl"
    lines = path.read_text().splitlines()
    last = json.loads(lines[5])
    last["filtered_resps"], last["tvbench_acc"] = "B", float(last["target"] == "B")
    path.write_text("\n".join([*lines[:2], *lines[3:], json.dumps(last), lines[4][:50]]))
    run = ADAPTER.read(model)
    assert (run.counts()["missing"], run.counts()["damaged lines"], run.duplicates) == (1, 1, 1)
    changed = next(item for item in run.items if (item.subset, item.index) == ("scene_transition", 5))
    assert changed.choice == 2


def test_two_lmms_eval_runs_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    model = lmms_eval(tmp_path, MADE, SAME)
    for path in list(model.iterdir()):
        (model / path.name.replace("20260801", "20260802")).write_bytes(path.read_bytes())
    assert [len(bench_adapters.load(found.path)) for found in bench_adapters.runs(model)] == [60, 60]


@pytest.mark.parametrize("ending", ["tsv", "csv", "json", "xlsx"])
def test_vlmevalkit_tables_of_every_ending(tmp_path: Path, ending: str) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    trace = bench_adapters.load(vlmevalkit(tmp_path, MADE, SAME, ending=ending))
    assert (len(trace), len(trace.responses["value"])) == (60, GIVEN)
    assert trace.header.extra["counts"]["error"] == 60 - GIVEN


def test_a_judge_that_failed_is_not_right(tmp_path: Path) -> None:
    path = vlmevalkit(tmp_path, MADE, SAME, ending="json")
    rows = json.loads(path.read_text())
    wrong = next(i for i, q in enumerate(MADE) if q.letter is not None and q.letter != chr(ord("A") + q.target))
    for number, row in enumerate(rows):
        row["score"] = -1 if number == wrong else int(MADE[number].letter == chr(ord("A") + MADE[number].target))
    path.write_text(json.dumps(rows))
    table = bench_adapters.scores(path)
    assert table is not None
    assert table.values["accuracy"] == round(RIGHT / 60, 4)
    assert any("score -1" in note for note in bench_adapters.load(path).header.notes)


def test_a_table_that_lacks_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tvbench.tsv"
    path.write_text("index\tprediction\n0\tA\n")
    with pytest.raises(ValueError, match="question, answer, candidates missing"):
        bench_adapters.load(path, kind="vlmevalkit")
