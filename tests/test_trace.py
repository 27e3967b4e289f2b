"""Trace: checks of its tables, and files that come back whole, or as whole as they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import envrate as er
from envrate._trace_io import TraceWriter
from envrate.trace import Header

HEADER = Header.for_task(er.tasks.get("alert"), duration_ms=5000, link={"kind": "link", "delay_ms": 300}, seed=3)


def small_trace() -> er.Trace:
    tick = np.arange(10)
    ticks = {"tick": tick, "onset_ms": tick * 500, "required": tick % 2, "delivered_ms": tick * 500 + 300}
    return er.Trace(HEADER, ticks, {"tick": [1, 3], "time_ms": [800, 1900], "value": [1, 1]})


def assert_same(a: er.Trace, b: er.Trace) -> None:
    assert a.header == b.header
    for mine, other in ((a.ticks, b.ticks), (a.responses, b.responses)):
        assert mine.keys() == other.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], other[name])


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_round_trip(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    trace = small_trace()
    assert_same(er.Trace.load(trace.save(tmp_path / f"run.{ending}")), trace)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_vectors_round_trip(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    required = np.random.default_rng(0).normal(size=(6, 2))
    trace = er.Trace(
        HEADER,
        {"tick": np.arange(6), "required": required, "latent": required},
        {"time_ms": [1], "value": [[0.5, -1.0]]},
    )
    assert trace.is_tracking
    assert_same(er.Trace.load(trace.save(tmp_path / f"run.{ending}")), trace)


def test_a_file_cut_at_any_byte_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with TraceWriter(path, HEADER) as writer:
        for tick in range(4):
            writer.ticks(tick=[tick], onset_ms=[tick * 500], required=[tick % 2])
            writer.responses(tick=[tick], time_ms=[tick * 500 + 300], value=[1])
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    ends = np.cumsum([len(line) for line in lines])
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        # A line is whole with or without its newline.
        kept = int((ends - 1 <= size).sum())
        if kept == 0:
            with pytest.raises(ValueError, match="empty file|no trace header"):
                er.Trace.load(path)
            continue
        trace = er.Trace.load(path)
        assert len(trace) + len(trace.responses["tick"]) == min(kept - 1, 8)
        assert trace.report is not None
        assert trace.report.complete == (kept == len(lines))
        assert bool(str(trace.report)) == (kept < len(lines))


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1, 2]",
        '"text"',
        '{"ticks": {"tick": [1, 2], "required": [0]}}',
        '{"ticks": {"tock": [1]}}',
        '{"ticks": {"tick": ["a"]}}',
        '{"ticks": 5}',
        '{"rows": {"tick": [1]}}',
        '{"ticks": {"tick": [1], "required": [NaN]}}',
        '{"ticks": {"tick": [[[1]]]}}',
        '{"end": 3}',
        "[" * 100_000,
    ],
)
def test_damaged_lines_are_left_out_and_reported(tmp_path: Path, line: str) -> None:
    path = small_trace().save(tmp_path / "run.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    trace = er.Trace.load(path)
    assert_same(trace, small_trace())
    assert trace.report is not None
    assert [number for number, _ in trace.report.damaged] == [3]
    assert "line 3 left out" in str(trace.report)
    with pytest.raises(ValueError, match="line 3"):
        er.Trace.load(path, strict=True)


@pytest.mark.parametrize(
    ("ticks", "responses", "message"),
    [
        ({"tick": [0, 1], "required": [0]}, {}, "ticks.required: expected 2 rows"),
        ({"tock": [0]}, {}, "ticks: unknown column 'tock'"),
        ({"required": [0]}, {}, "ticks: expected a column 'tick'"),
        ({"tick": [0], "required": [2]}, {}, "ticks.required: row 0 is 2, expected 0 ... 1"),
        ({"tick": [0], "required": [0.5]}, {}, "ticks.required: row 0 is 0.5, expected a whole number"),
        ({"tick": [0], "required": [float("nan")]}, {}, "ticks.required: row 0 is nan"),
        ({"tick": [0], "stratum": [1]}, {}, "ticks.stratum: expected 0 ... 0, got 1"),
        ({"tick": [0]}, {"value": [5]}, "responses.value: expected -2 ... 1"),
        ({"tick": [0]}, {"value": [1], "kind": [7]}, "responses.kind"),
    ],
)
def test_bad_tables_are_named(ticks: dict[str, object], responses: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        er.Trace(HEADER, ticks, responses)  # type: ignore[arg-type]


def test_too_large_is_refused_with_the_hint() -> None:
    from envrate.trace import check_size

    with pytest.raises(ValueError, match="record='counts'"):
        check_size(10**8, 0)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"video_id": "a", "emissions": []}) + "\n")
    with pytest.raises(ValueError, match="line 1 is no trace header"):
        er.Trace.load(path)
    with pytest.raises(ValueError, match="ends in .jsonl or .parquet"):
        small_trace().save(tmp_path / "x.csv")
