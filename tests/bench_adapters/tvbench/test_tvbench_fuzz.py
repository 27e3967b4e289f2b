"""Damaged files: what is whole is read and the rest counted, or one sentence is raised; never anything else."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvbench_writers import WRITERS, evalscope_rows, notebook, questions, vlmevalkit

from envrate import bench_adapters
from envrate.bench_adapters.tvbench import ADAPTER

MADE = questions(9, right=0.6, silent=0.2)
#: Values that have no business where a number, text, list or object is expected.
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**400, 1e308, math.nan, math.inf,
    "", "x" * 5000, "\ud800", "\u2028", [], [[]], {}, {"a": 1},
)


def _lines(kind: str) -> list[str]:
    """Rows of one subset as EvalScope writes them."""
    return [json.dumps(evalscope_rows(q, q)[kind == "reviews"]) for q in MADE if q.task == "action_count"]


def _write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _outcome(path: Path, kind: str | None = None) -> int | str:
    """Number of items read and not missing, or the sentence of a ValueError."""
    try:
        counts = bench_adapters.load(path, kind=kind).header.extra["counts"]
        bench_adapters.scores(path, kind=kind)
    except ValueError as error:
        message = str(error)
        assert message and "\n" not in message and len(message) < 2000
        return message
    return int(counts["items"] - counts["missing"])


@pytest.mark.parametrize("kind", ["reviews", "predictions"])
def test_rows_cut_at_every_byte_lose_the_cut_line_only(kind: str, tmp_path: Path) -> None:
    lines = _lines(kind)[:2]
    data = ("\n".join(lines) + "\n").encode()
    ends = np.cumsum([len(line.encode()) + 1 for line in lines]) - 1  # a line is whole without its line feed
    for cut in range(len(data)):
        path = _write(tmp_path, "tvbench_action_count.jsonl", data[:cut])
        whole = int((ends <= cut).sum())
        if whole == 0:
            assert isinstance(_outcome(path, "evalscope"), str)
            continue
        counts = bench_adapters.load(path, kind="evalscope").header.extra["counts"]
        assert (counts["items"], counts["damaged lines"]) == (whole, cut > ends[whole - 1] + 1), cut


@pytest.mark.parametrize("kind", ["tvbench-notebook", "lmms-eval", "vlmevalkit"])
def test_other_formats_cut_at_every_byte(kind: str, tmp_path: Path) -> None:
    whole = WRITERS[kind](tmp_path, MADE, np.arange(9))
    file = next(whole.glob("*samples*action_count*")) if whole.is_dir() else whole
    data = file.read_bytes()
    for cut in range(len(data)):
        file.write_bytes(data[:cut])
        _outcome(file, kind)


@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: f"{type(value).__name__}-{str(value)[:8]!a}")
@pytest.mark.parametrize("kind", ["reviews", "predictions"])
def test_every_field_may_hold_anything(kind: str, strange: Any, tmp_path: Path) -> None:
    good, victim = _lines(kind)[0], json.loads(_lines(kind)[1])
    for place in _places(victim):
        row = json.loads(_lines(kind)[1])
        _put(row, place, strange)
        data = f"{good}\n{_dump(row)}\n".encode("utf-8", "surrogatepass")
        header = bench_adapters.load(_write(tmp_path, "tvbench_action_count.jsonl", data), kind="evalscope").header
        counts = header.extra["counts"]
        told = counts["damaged lines"] + counts["replaced replies"] + _left_out(header.notes)
        assert counts["items"] - counts["missing"] >= 1, place
        assert counts["items"] - counts["missing"] + told >= 2, place


def _left_out(notes: tuple[str, ...]) -> int:
    """Items that a note names as left out for want of options."""
    return sum(int(note.split()[0]) for note in notes if "item(s) left out" in note)


def _places(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything inside a JSON value."""
    found: list[tuple[Any, ...]] = [prefix] if prefix else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += _places(child, (*prefix, key))
    return found


def _put(row: Any, place: tuple[Any, ...], value: Any) -> None:
    for key in place[:-1]:
        row = row[key]
    row[place[-1]] = value


def _dump(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False)


def _deep(lines: list[str]) -> bytes:
    return ("\n".join([*lines, '{"index": 9, "a": ' + "[" * 200_000 + "]" * 200_000 + "}"])).encode()


DISGUISES: dict[str, tuple[Callable[[list[str]], bytes], int]] = {
    "crlf": (lambda lines: ("\r\n".join(lines) + "\r\n").encode(), 0),
    "bom": (lambda lines: b"\xef\xbb\xbf" + "\n".join(lines).encode(), 0),
    "utf-16": (lambda lines: "\n".join(lines).encode("utf-16"), 0),
    "blank lines": (lambda lines: "\n\n  \n".join(lines).encode(), 0),
    "gz": (lambda lines: gzip.compress("\n".join(lines).encode()), 0),
    "cut gz": (lambda lines: gzip.compress(("\n".join([*lines, " " * 100_000])).encode())[:-12], 1),
    "10 MB line": (lambda lines: "\n".join([lines[0], '{"index": "' + "x" * 10_000_000, *lines[1:]]).encode(), 1),
    "10 MB row": (
        lambda lines: "\n".join([lines[0][:-1] + ', "more": "' + "x" * 10_000_000 + '"}', *lines[1:]]).encode(), 0,
    ),
    "nested deeply": (_deep, 1),
    "not UTF-8": (lambda lines: "\n".join([*lines, ""]).encode() + b'{"index": 9, "a": "\xff\xfe"}', 1),
    "no object": (lambda lines: "\n".join(['[1, 2]', '"x"', "17", *lines]).encode(), 3),
    "glued": (lambda lines: "\n".join([lines[0][:80] + lines[0], *lines]).encode(), 1),
    "zeros": (lambda lines: ("\n".join(lines) + "\n").encode() + b"\0" * 4096, 1),
}


@pytest.mark.parametrize("name", DISGUISES)
def test_disguised_files_keep_their_good_lines(name: str, tmp_path: Path) -> None:
    make, damaged = DISGUISES[name]
    ending = ".jsonl.gz" if "gz" in name else ".jsonl"
    path = _write(tmp_path, f"tvbench_action_count{ending}", make(_lines("reviews")))
    counts = bench_adapters.load(path).header.extra["counts"]
    assert (counts["items"], counts["damaged lines"]) == (3, damaged)


@pytest.mark.parametrize("kind", ADAPTER.kinds)
@pytest.mark.parametrize(
    "data", [b"", b"\0" * 100, b"{}", b"[]", b"null", b"\xff\xfe", b"PK\x03\x04", b"\x1f\x8b\x08", b"{" * 10_000]
)
def test_files_that_are_nothing(kind: str, data: bytes, tmp_path: Path) -> None:
    for name in ("tvbench_action_count.jsonl", "x_samples_tvbench_action_count.jsonl", "tvbench.json", "tvbench.tsv"):
        outcome = _outcome(_write(tmp_path, name, data), kind)
        assert isinstance(outcome, str)


@pytest.mark.parametrize(
    "text",
    [
        "a: [", "repeats: 1e999\n", "repeats: -3\nlimit: x\n", "- 1\n", "a: &a [*a]\n", "x: !!python/none\n", "\0",
        "timeout: .inf\nlimit: 2026-11-30\neval_batch_size: [1]\ngeneration_config: {temperature: .nan, stream: 3}\n",
        "repeats: 90000\n", "limit: .nan\n", "dataset_args: {tvbench: {subset_list: {a: 1}}}\n",
    ],
)
def test_a_damaged_configuration_takes_no_reply_away(text: str, tmp_path: Path) -> None:
    work = WRITERS["evalscope"](tmp_path, MADE, np.arange(9))
    (work / "configs" / "task_config.yaml").write_text(text)
    assert _outcome(work) == 9
    bench_adapters.load(work).save(tmp_path / "trace.jsonl")


def test_a_damaged_report_is_left_out_with_a_note(tmp_path: Path) -> None:
    work = WRITERS["evalscope"](tmp_path, MADE, np.arange(9))
    folder = work / "reports" / "toy"
    folder.mkdir(parents=True)
    huge = '{"metrics": 3, "execution_summary": {"subsets": {"action_count": {"requested": 1e300}}}}'
    for text in ('{"metrics": [', huge):
        (folder / "tvbench.json").write_text(text)
        assert _outcome(work) == 9
    (folder / "tvbench.json").write_text('{"metrics": [')
    assert any("report left out" in note for note in bench_adapters.load(work).header.notes)


def _json_of(kind: str, folder: Path) -> tuple[Path, Path, Any]:
    """A run of a format whose file is JSON: the path to load, the file, its value (rows for JSONL)."""
    if kind == "lmms-eval":
        run = WRITERS[kind](folder, MADE, np.arange(9))
        file = run / "20260801_101010_samples_tvbench_action_count.jsonl"
        return run, file, [json.loads(line) for line in file.read_text().splitlines()]
    if kind == "lmms-eval results":
        run = WRITERS["lmms-eval"](folder, MADE, np.arange(9))
        file = run / "20260801_101010_results.json"
        return run, file, json.loads(file.read_text())
    if kind == "vlmevalkit":
        file = vlmevalkit(folder, MADE, np.arange(9), ending="json")
    else:
        file = notebook(folder, MADE, np.arange(9))
    return file, file, json.loads(file.read_text())


@pytest.mark.parametrize("kind", ["lmms-eval", "lmms-eval results", "vlmevalkit", "tvbench-notebook"])
def test_every_field_of_the_other_formats_may_hold_anything(kind: str, tmp_path: Path) -> None:
    run, file, value = _json_of(kind, tmp_path)
    places = [place for place in _places(value) if len(place) < 2 or place[0] in (0, "acc_dict", "res_list", "results")]
    for place in places[:60]:
        for strange in STRANGE:
            changed = json.loads(json.dumps(value))
            _put(changed, place, strange)
            lines = [_dump(row) for row in changed] if kind == "lmms-eval" else [_dump(changed)]
            file.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
            outcome = _outcome(run, kind.split()[0])
            assert isinstance(outcome, (int, str)), (place, strange)
            if kind in ("lmms-eval", "lmms-eval results"):  # one field of one row spoils that row at most
                assert isinstance(outcome, int) and outcome >= 8, (place, strange, outcome)
