"""Damaged files: what is whole is read and the rest is named, or one sentence is raised. Never a traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import fuzz
import ib_synthetic as synthetic
import pytest

from envrate.bench_adapters import interactionbench as ib


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    return synthetic.make(folder, alerts=2, tracks=1, silent=1, questions=2, narrations=1, per_item=2)


@pytest.fixture(scope="module")
def lines(root):
    say = synthetic.answering(root, 0.5)
    rows = synthetic.run(root, say, model="m", n_polls=3, poll_latencies=[0.5, 0.25, 0.5])
    for row in rows:
        for emission in row["emissions"]:
            emission["latency_s"] = 0.5
    return rows


def _text(lines):
    return [json.dumps(line) for line in lines]


def _outcome(path: Path, root: Path) -> tuple[int, int] | str:
    """Lines read and lines named as left out; or the sentence of the error."""
    try:
        run = ib.load_run(path)
        result = ib.evaluate(run, root, mcq_key=True)
        ib.load(run, root)
        ib.delays(run, root)
    except ValueError as error:
        return fuzz.check_sentence(error)
    json.dumps(result.records, allow_nan=False)
    json.dumps(result.summary, allow_nan=False)
    named = [note for note in run.notes if "left out" in note]
    assert len(named) == len(run.damaged)
    return len(run.predictions), len(run.damaged)


def test_predictions_cut_at_every_byte_lose_the_cut_line_only(root, lines, tmp_path):
    data = ("\n".join(_text(lines[:2])) + "\n").encode()
    benchmark = ib.load_benchmark(root)
    path = tmp_path / "preds.jsonl"
    for size, part in fuzz.cuts(data):
        path.write_bytes(part)
        whole = fuzz.whole_lines(data, size)
        torn = bool(part) and part[-1:] not in (b"\n",) and size not in [i for i, byte in enumerate(data) if byte == 10]
        if whole == 0:
            assert "no predictions" in _outcome(path, benchmark)
        else:
            assert _outcome(path, benchmark) == (whole, int(torn)), size


@pytest.mark.parametrize("name", fuzz.damaged_lines(['{"a": 1}', '{"a": 2}']))
def test_disguised_predictions_keep_their_good_lines(name, root, lines, tmp_path):
    data, damaged = fuzz.damaged_lines(_text(lines))[name]
    path = tmp_path / ("preds.jsonl.gz" if "gz" in name else "preds.jsonl")
    path.write_bytes(data)
    assert _outcome(path, root) == (len(lines), damaged)
    assert ib.ADAPTER.recognise(path) is not None


def test_every_field_of_a_prediction_may_hold_anything(root, lines, tmp_path):
    benchmark = ib.load_benchmark(root)
    good, victim = _text(lines)[2], lines[0]
    path = tmp_path / "preds.jsonl"
    for place, value, line in fuzz.strange_rows(victim):
        path.write_bytes(good.encode() + b"\n" + line + b"\n")
        outcome = _outcome(path, benchmark)
        # Two lines read, or one read and one named: nothing is dropped silently.
        assert isinstance(outcome, tuple) and sum(outcome) == 2, (place, value, outcome)


def test_annotations_cut_at_every_byte_raise_a_sentence(root, tmp_path):
    file = next((root / "annotations").rglob("*.json"))
    data = file.read_bytes()
    folder = tmp_path / "annotations" / "demo"
    folder.mkdir(parents=True)
    for _, part in fuzz.cuts(data[:-1]):
        (folder / file.name).write_bytes(part)
        with pytest.raises(ValueError) as caught:
            ib.load_benchmark(tmp_path)
        fuzz.check_sentence(caught.value)


def test_every_field_of_an_annotation_may_hold_anything(root, lines, tmp_path):
    files = sorted((root / "annotations").rglob("*.json"))
    body = json.loads(files[0].read_text(encoding="utf-8"))
    folder = tmp_path / "annotations" / "demo"
    folder.mkdir(parents=True)
    (folder / files[-1].name).write_bytes(files[-1].read_bytes())
    shutil.copytree(root / "mcq", tmp_path / "mcq")
    path = synthetic.write(tmp_path / "preds.jsonl", lines)
    read = 0
    for _, _, line in fuzz.strange_rows(body):
        (folder / files[0].name).write_bytes(line)
        read += isinstance(_outcome(path, tmp_path), tuple)
    assert read > 20  # some strange values are harmless


def test_damaged_keys_and_verdicts_are_named(root, tmp_path):
    key = (root / "mcq" / "mcq_key_v4.jsonl").read_text(encoding="utf-8").splitlines()
    benchmark = ib.load_benchmark(root)
    for place, value, line in fuzz.strange_rows(json.loads(key[0])):
        path = tmp_path / "key.jsonl"
        path.write_bytes(line + b"\n" + key[1].encode() + b"\n")
        try:
            result = ib.evaluate([{"video_id": "x", "emissions": []}], benchmark, mcq_key=path)
        except ValueError as error:
            fuzz.check_sentence(error)
            continue
        scored = sum(bool(record.get("mcq")) for record in result.records)
        assert scored + any("key.jsonl: line 1 left out" in note for note in result.notes) >= (
            1 if place[0] == "item_id" else 2
        ), (place, value)
    cache = tmp_path / "cache.jsonl"
    good = json.dumps({"k": "0" * 32, "s": 1.0})
    for _, _, line in fuzz.strange_rows({"k": "1" * 32, "s": 0.0}):
        cache.write_bytes(line + b"\n" + good.encode())
        verdicts = ib.VerdictCache(cache)
        assert len(verdicts.verdicts) + len(verdicts.notes) == 2
