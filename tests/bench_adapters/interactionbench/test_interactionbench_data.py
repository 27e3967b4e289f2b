"""The data folder: layouts, order, fallbacks, what counts as an item, options, lists of ids."""

from __future__ import annotations

import json

import pytest

from envrate.bench_adapters import interactionbench as ib
from envrate.bench_adapters.interactionbench._options import load_options, read_ids


def _item(**changes):
    base = {"capability": "PTR", "time_type": "B", "answers": [{"time_s": 5.0, "content": "x"}]}
    return base | changes


def _write(path, items, **body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"items": items, "duration_s": 20} | body), encoding="utf-8")


def test_order_and_the_three_ways_to_name_the_folder(tmp_path):
    for domain, video in (("b", "v1"), ("a", "v3"), ("a", "v2"), ("a-x", "v4")):
        _write(tmp_path / "annotations" / domain / f"{video}.json", [_item()])
    expected = ["v2#0", "v3#0", "v4#0", "v1#0"]
    for root in (tmp_path, tmp_path / "annotations"):
        assert [item.item_id for item in ib.load_benchmark(root).items] == expected
    assert [i.item_id for i in ib.load_benchmark(tmp_path / "annotations" / "a").items] == ["v2#0", "v3#0"]


def test_the_old_layout_is_read_alone_where_it_is_there(tmp_path):
    _write(tmp_path / "results" / "cooking" / "v9" / "annotation.json", [_item()])
    _write(tmp_path / "results" / "cooking" / "other.json", [_item()])
    (item,) = ib.load_benchmark(tmp_path).items
    assert (item.item_id, item.domain) == ("v9#0", "cooking")


def test_fallbacks(tmp_path):
    _write(tmp_path / "demo" / "v.json", [{"time_type": "B", "answers": [{"time_s": 1, "content": "x"}]}], category="c")
    (item,) = ib.load_benchmark(tmp_path).items
    assert (item.video_id, item.domain, item.capability, item.question) == ("v", "c", "UNKNOWN", "")
    assert (item.question_time_s, item.duration_s, item.interaction_type) == (0.0, 20.0, None)
    _write(tmp_path / "demo" / "v.json", [_item()], duration_s=None)
    assert ib.load_benchmark(tmp_path).items[0].duration_s == 0.0


def test_items_that_cannot_be_scored_keep_their_number(tmp_path):
    items = [
        _item(time_type="D"),
        _item(answers=[{"time_s": None, "content": "x"}]),
        _item(),
        _item(answers=[]),
        _item(answers=[], is_negative=True),
        _item(answers=[{"time_s": None, "content": "should_remain_silent."}]),
    ]
    _write(tmp_path / "d" / "v.json", items)
    benchmark = ib.load_benchmark(tmp_path)
    assert [item.item_id for item in benchmark.items] == ["v#2", "v#4", "v#5"]
    assert [item.family for item in benchmark.items] == ["B_trigger", "negative", "negative"]
    assert benchmark.notes == ("3 annotated items cannot be scored (no time, no type): left out",)


@pytest.mark.parametrize("changes, family", [
    ({"time_type": "A", "capability": "LCG"}, "A_retro_qa"),
    ({"capability": "LCG"}, "C_segments"),
    ({"capability": "BRC", "auto_number": True}, "C_segments"),
    ({"auto_number": True}, "C_counting"),
    ({"sub_tag": "counting"}, "C_counting"),
    ({"sub_tag": "计数型"}, "C_counting"),
    ({"sub_tag": "narration", "time_type": "C"}, "B_trigger"),
    ({"is_negative": True, "time_type": "A"}, "negative"),
])  # fmt: skip
def test_families(tmp_path, changes, family):
    _write(tmp_path / "d" / "v.json", [_item(**changes)])
    assert ib.load_benchmark(tmp_path).items[0].family == family


def test_events_of_equal_time_are_joined_in_order_of_time(tmp_path):
    answers = [(9.0, "c"), (4.0, "a"), (9.0, None), (9.0, ""), (9.0, "d"), (None, "x"), (12.0, "SHOULD_REMAIN_SILENT")]
    _write(tmp_path / "d" / "v.json", [_item(answers=[{"time_s": t, "content": c} for t, c in answers])])
    events = ib.load_benchmark(tmp_path).items[0].events
    assert [(e.time_s, e.content) for e in events] == [(4.0, "a"), (9.0, "c; d")]


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="data: no folder"):
        ib.load_benchmark(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has no annotated items"):
        ib.load_benchmark(tmp_path)
    _write(tmp_path / "d" / "v.json", [_item(answers=[{"time_s": "5", "content": "x"}])])
    with pytest.raises(ValueError, match=r"items\[0\].answers\[0\].time_s: expected seconds or null, got '5'"):
        ib.load_benchmark(tmp_path)
    _write(tmp_path / "d" / "v.json", [_item()], video_id="same")
    _write(tmp_path / "d" / "w.json", [_item()], video_id="same")
    with pytest.raises(ValueError, match="1 item ids come up twice"):
        ib.load_benchmark(tmp_path)


def test_a_json_file_that_is_no_annotation_is_named(tmp_path):
    _write(tmp_path / "d" / "v.json", [_item()])
    (tmp_path / "dataset_info.json").write_text('{"name": "x"}', encoding="utf-8")
    assert ib.load_benchmark(tmp_path).notes == ("dataset_info.json: no annotation, left out: it has no 'items'",)


def test_options_of_a_key_and_of_an_options_file(tmp_path):
    key = {"item_id": "v#0", "correct_index": 1, "correct_letter": "B", "answer_text": "blue",
           "distractors": ["red", "green"]}  # fmt: skip
    shown = {"item_id": "v#0", "stem": "?", "options": ["red", "blue", "green"]}
    for row, correct in ((key, 1), (shown, None)):
        (tmp_path / "f.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        options, notes = load_options(tmp_path / "f.jsonl")
        assert (options["v#0"].options, options["v#0"].correct, notes) == (("red", "blue", "green"), correct, [])


def test_lists_of_ids(tmp_path, shared_data):
    (tmp_path / "split.txt").write_bytes(b"\xef\xbb\xbfa#0\r\nb#1\r\n\r\n")
    assert read_ids(tmp_path / "split.txt") == read_ids(["b#1", "a#0"]) == {"a#0", "b#1"}
    with pytest.raises(ValueError, match="items: no item ids"):
        read_ids([])
    splits = shared_data / "interactionbench" / "splits"
    assert len(read_ids(splits / "all1060.txt")) == 1060
