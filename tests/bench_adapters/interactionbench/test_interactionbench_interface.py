"""What the adapter takes for its own, what it refuses, and the calls through the public interface."""

from __future__ import annotations

import gzip
import json

import ib_synthetic as synthetic
import pytest

from envrate import bench_adapters
from envrate.bench_adapters import interactionbench as ib


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return synthetic.make(tmp_path_factory.mktemp("bench"), alerts=30, tracks=12, questions=40, narrations=0)


def _lines(root):
    return synthetic.run(root, synthetic.answering(root, 1.0), model="m", run="r")


def test_files_and_folders_are_recognised(root, tmp_path):
    file = synthetic.write(tmp_path / "anything.jsonl", _lines(root))
    found = bench_adapters.recognise(file)
    assert found.adapter is ib.ADAPTER
    assert found.recognition.description == "InteractionBench predictions, model m, run r"
    run = tmp_path / "runs" / "one"
    run.mkdir(parents=True)
    (run / "preds.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
    (run / "config.json").write_text('{"protocol": "sliding"}', encoding="utf-8")
    assert bench_adapters.recognise(run).recognition.description.endswith("protocol sliding")
    two = tmp_path / "runs" / "two"
    two.mkdir()
    synthetic.write(two / "preds.jsonl", _lines(root))
    assert [found.path for found in bench_adapters.runs(tmp_path / "runs")] == [run, two]
    assert bench_adapters.load(run, data=root).header.items == len(_lines(root))


def test_a_foreign_benchmark_of_the_same_name_is_refused(tmp_path):
    run = tmp_path / "runs" / "gpt-live"
    run.mkdir(parents=True)
    (run / "grade.json").write_text(json.dumps({"summary": {"n": 3, "npass": 1, "rate": 0.33}}), encoding="utf-8")
    (run / "B_model.wav").write_bytes(b"RIFF")
    for path in (run, run / "grade.json", tmp_path / "runs"):
        with pytest.raises(ValueError, match="avera-labs' InteractionBench for spoken dialogue, another project"):
            bench_adapters.load(path)


def test_the_data_folder_is_no_run(root):
    with pytest.raises(ValueError, match="this is the benchmark's data; give a run's preds.jsonl"):
        bench_adapters.load(root)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"video_id": "v"}\n', b'{"emissions": []}\n', b"\x00\xff" * 99])
def test_other_files_are_not_ours(tmp_path, body):
    path = tmp_path / "preds.jsonl"
    path.write_bytes(body)
    assert ib.ADAPTER.recognise(path) is None
    assert ib.ADAPTER.recognise(tmp_path / "nowhere") is None


def test_scores_and_load_take_the_same_options(root, tmp_path):
    path = synthetic.write(tmp_path / "preds.jsonl", _lines(root))
    table = bench_adapters.scores(path, data=root, latency="stream")
    assert table.main == "total"
    # TA 80 and SC 100 make T 88.9 and, with accuracy 100, a total of 94.5; tracks and silent items have 100.
    assert table.values == {
        "n": 88, "total": (70 * 94.5 + 18 * 100) / 88, "accuracy": 100.0, "TA": 80.0, "SC": 100.0,
        "T": round((82 * 88.9 + 6 * 100) / 88, 3),
    }  # fmt: skip
    groups = {row[0]: row[1] for row in table.rows}
    assert groups["overall"] == 88 and groups["core real-time"] == 48 and groups["IVQA+CIR"] == 40
    with pytest.raises(ValueError, match="frames: the adapter interactionbench has no such option; it takes data"):
        bench_adapters.load(path, data=root, frames=3)


def test_the_split_is_matched(tmp_path):
    root = synthetic.make(tmp_path, alerts=103, tracks=0, silent=0, questions=0, narrations=0)
    path = synthetic.write(tmp_path / "preds.jsonl", synthetic.run(root, synthetic.answering(root)))
    table = bench_adapters.scores(path)
    assert table.split == "subset103" and "taken for the split subset103 by its number" in table.notes[-1]
    assert len(ib.ADAPTER.published(table.split).rows) == 13


def test_data_beside_the_run_is_found_and_else_asked_for(root, tmp_path):
    path = synthetic.write(tmp_path / "preds.jsonl", _lines(root))
    with pytest.raises(ValueError, match="data: not given, and no annotations/ beside the run"):
        bench_adapters.load(path)
    beside = synthetic.write(root / "preds.jsonl", _lines(root))
    assert bench_adapters.load(beside).header.items == 88
    beside.unlink()


def test_damaged_lines_are_in_the_traces_report(root, tmp_path):
    path = tmp_path / "preds.jsonl"
    path.write_text("\n".join(["{torn", *map(json.dumps, _lines(root))]), encoding="utf-8")
    trace = bench_adapters.load(path, data=root)
    assert trace.report is not None and trace.report.damaged[0][0] == 1
    assert any("line 1 left out" in note for note in trace.header.notes)
    assert any("line 1 left out" in note for note in bench_adapters.scores(path, data=root).notes)
