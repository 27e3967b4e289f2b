"""Real EvalScope folders of two schema generations; what each must give is in its own report and server log."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from envrate import bench_adapters
from envrate.bench_adapters.tvbench import ADAPTER
from envrate.trace import Trace

#: Folder: rows that can be read (predictions or reviews), damaged lines, items that were asked for and have no row.
#: Counted by hand from the files; the last from the report's execution summary.
ROWS = {
    "v1.10.0_http_slow": (23, 0, 0),
    "v1.10.0_http_stream": (23, 0, 0),
    "v1.10.0_http_zip_subsets": (10, 0, 0),
    "v1.10.0_mock_default": (23, 0, 0),
    "v1.14.1_http_concurrent": (23, 0, 0),
    "v1.14.1_http_crash": (7, 0, 0),
    "v1.14.1_http_fast": (23, 0, 0),
    "v1.14.1_http_flaky": (19, 0, 4),
    "v1.14.1_http_killed": (3, 1, 0),
    "v1.14.1_http_logprobs": (8, 0, 0),
    "v1.14.1_http_no_cot": (8, 0, 0),
    "v1.14.1_http_noperf": (8, 0, 0),
    "v1.14.1_http_repeats3": (27, 0, 0),
    "v1.14.1_http_resume": (8, 1, 0),
    "v1.14.1_http_slow": (23, 0, 0),
    "v1.14.1_http_stream": (23, 0, 0),
    "v1.14.1_http_zip_subsets": (10, 0, 0),
    "v1.14.1_mock_custom": (23, 0, 0),
    "v1.14.1_mock_default": (23, 0, 0),
}
NO_REPORT = ("v1.14.1_http_crash", "v1.14.1_http_killed")
TIMED = [name for name in ROWS if "http" in name]


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> Path:
    return shared_data / "evalscope_runs"


def test_the_list_above_holds_every_folder(runs: Path) -> None:
    assert sorted(ROWS) == sorted(path.name for path in runs.iterdir() if path.name.startswith("v"))


@pytest.mark.parametrize("name", ROWS)
def test_every_folder_loads_with_torn_glued_and_missing_rows_counted(runs: Path, name: str, tmp_path: Path) -> None:
    trace = bench_adapters.load(runs / name)
    assert Trace.load(trace.save(tmp_path / "trace.jsonl"), strict=True).header == trace.header
    rows, damaged, missing = ROWS[name]
    counts = trace.header.extra["counts"]
    assert (counts["items"] - counts["missing"], counts["damaged lines"], counts["missing"]) == (rows, damaged, missing)
    assert len(trace) == rows + missing
    assert trace.header.demand.kind == "nominal"


@pytest.mark.parametrize("name", [name for name in ROWS if name not in NO_REPORT])
def test_micro_and_macro_from_the_rows_equal_the_report(runs: Path, name: str) -> None:
    report = json.loads(next((runs / name).rglob("reports/*/tvbench.json")).read_text())
    metric = report["metrics"][0]
    table = bench_adapters.scores(runs / name)
    assert table is not None
    assert table.values["accuracy"] == metric["score"]
    assert table.values["macro accuracy"] == metric["categories"][0]["macro_score"]
    per_task = {row[0]: row[table.columns.index("accuracy")] for row in table.rows if row[4]}
    assert per_task == {s["name"]: s["score"] for s in metric["categories"][0]["subsets"]}


def test_options_are_right_for_all_questions(runs: Path) -> None:
    truth = json.loads((runs / "_inputs" / "truth.json").read_text())
    items = {(item.subset, item.index): item for item in ADAPTER.read(runs / "v1.14.1_http_slow").items}
    assert len(items) == 23
    for subset, questions in truth.items():
        for index, question in enumerate(questions):
            item = items[subset, index]
            assert item.options_from == "prompt"
            assert item.options == len(question["candidates"])
            assert item.target == question["candidates"].index(question["answer"]) + 1


def _server_log(runs: Path) -> dict[tuple[str, str, int, int], dict[str, float]]:
    lines = (runs / "_inputs" / "server_log.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return {(row["model"], row["subset"], row["i"], row["attempt"]): row for row in rows}


@pytest.mark.parametrize("name", TIMED)
def test_latencies_agree_with_the_servers_own_log(runs: Path, name: str) -> None:
    log = _server_log(runs)
    run = ADAPTER.read(runs / name)
    attempts = {}
    for path in (runs / name).rglob("predictions/*/*.jsonl"):
        for line in path.read_text().splitlines():
            found = re.match(r'\{"index": (\d+),.*?"id": "chatcmpl-\d+-(\d+)"', line)
            if found:  # the toy server's reply id ends in the attempt, counted per question over all runs
                attempts[path.stem.removeprefix("tvbench_"), int(found[1])] = int(found[2])
    repeats = run.settings["repeats"]
    compared = retried = 0
    for item in run.items:
        attempt = attempts.get((item.subset, item.index * repeats + item.repeat))
        entry = log.get((run.model, item.subset, item.index, attempt)) if attempt is not None else None
        if item.latency_s is None:
            continue
        if name.endswith("flaky") and item.latency_s > 0.5:  # the client tried again: both tries are in the latency
            retried += 1
            continue
        assert entry is not None, (item.subset, item.index)
        assert abs(item.latency_s - entry["t_done"]) <= 0.07, (item.subset, item.index)
        compared += 1
    timed = sum(item.latency_s is not None for item in run.items)
    assert (compared + retried, retried) == (timed, 3 * name.endswith("flaky"))


def test_settings_are_carried_along(runs: Path) -> None:
    def settings(name: str) -> dict[str, object]:
        return dict(bench_adapters.load(runs / name).header.extra["settings"])

    assert settings("v1.14.1_http_concurrent")["concurrency"] == 4
    assert settings("v1.14.1_http_stream")["stream"] is True
    assert settings("v1.14.1_http_slow")["stream"] is False
    assert settings("v1.14.1_http_flaky")["retries"] == 2
    assert settings("v1.14.1_http_repeats3")["repeats"] == 3
    assert settings("v1.14.1_http_resume")["resumed"] is True


def test_streamed_rows_keep_the_time_to_the_first_token(runs: Path) -> None:
    streamed = [item.ttft_s for item in ADAPTER.read(runs / "v1.14.1_http_stream").items]
    assert sum(ttft is not None for ttft in streamed) == 22  # one reply is empty: no first token
    assert all(item.ttft_s is None for item in ADAPTER.read(runs / "v1.14.1_http_slow").items)


def test_filtered_and_failed_items_stay_in_the_denominator(runs: Path) -> None:
    table = bench_adapters.scores(runs / "v1.14.1_http_flaky")
    assert table is not None
    # 12 right of 19 rows; 23 were asked for.
    assert table.values["accuracy"] == round(12 / 19, 4)
    assert table.values["accuracy, missing counted"] == round(12 / 23, 4)
    counts = bench_adapters.load(runs / "v1.14.1_http_flaky").header.extra["counts"]
    assert (counts["filtered"], counts["missing"]) == (2, 4)


def test_repeats_are_ticks_of_one_episode(runs: Path) -> None:
    trace = bench_adapters.load(runs / "v1.14.1_http_repeats3")
    assert (len(trace), trace.num_episodes) == (27, 9)


def test_without_latency_no_answer_is_within_the_horizon(runs: Path) -> None:
    trace = bench_adapters.load(runs / "v1.14.1_mock_custom")
    assert len(trace.responses["time_ms"]) == 13
    assert (trace.responses["time_ms"] > trace.header.horizon_ms).all()


TAILS = ["", "reviews", *(f"{kind}/vlm-slow" for kind in ("reviews", "predictions", "reports"))]


@pytest.mark.parametrize("tail", [*TAILS, "reports/vlm-slow/tvbench.json"])
def test_any_folder_of_the_run_names_it(runs: Path, tail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(bench_adapters.load(runs / "v1.14.1_http_slow" / tail)) == 23
    monkeypatch.chdir(runs / "v1.14.1_http_slow" / tail if not tail.endswith(".json") else runs)
    assert tail.endswith(".json") or len(bench_adapters.load(".")) == 23


@pytest.mark.parametrize("kind", ["reviews", "predictions"])
def test_one_file_of_rows_is_its_subset(runs: Path, kind: str, tmp_path: Path) -> None:
    file = runs / "v1.14.1_http_slow" / kind / "vlm-slow" / "tvbench_object_shuffle.jsonl"
    assert len(bench_adapters.load(file)) == 3
    alone = tmp_path / file.name
    alone.write_bytes(file.read_bytes())
    trace = bench_adapters.load(alone)
    assert len(trace) == 3
    assert trace.responses["value"].tolist() == [2, 1, 1]  # B, A, A; the right ones are B, C, A


def test_a_folder_of_several_runs_lists_them(runs: Path) -> None:
    with pytest.raises(ValueError, match="19 runs, expected one; load one of"):
        bench_adapters.load(runs)
    found = bench_adapters.runs(runs)  # one lies in a time-stamped folder
    assert sorted(run.path.relative_to(runs).parts[0] for run in found) == sorted(ROWS)


def test_two_models_in_one_work_folder_are_two_runs(runs: Path, tmp_path: Path) -> None:
    for name, model in (("v1.14.1_http_slow", "vlm-slow"), ("v1.14.1_http_fast", "vlm-fast")):
        for path in (runs / name).rglob(f"*/{model}/*.json*"):
            target = tmp_path / path.relative_to(runs / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    found = bench_adapters.runs(tmp_path)
    assert sorted(run.path.name for run in found) == ["vlm-fast", "vlm-slow"]
    accuracies = [bench_adapters.scores(run.path).values["accuracy"] for run in found]  # type: ignore[union-attr]
    assert sorted(accuracies) == [0.5217, 0.6957]


def test_the_data_set_fills_in_what_no_row_tells(runs: Path) -> None:
    trace = bench_adapters.load(runs / "v1.14.1_http_killed", data=runs / "_inputs" / "TVBench")
    assert len(trace) == 8  # 3 + 3 + 2 questions of the three subsets that were asked for
    assert trace.header.extra["counts"]["missing"] == 5
    with pytest.raises(ValueError, match="have no clip length"):
        bench_adapters.load(runs / "v1.14.1_http_slow", seconds="clip")


def test_a_number_of_seconds_is_each_items_clock(runs: Path) -> None:
    trace = bench_adapters.load(runs / "v1.14.1_http_slow", seconds=8.0)
    assert trace.header.duration_ms == 23 * 8000
    # 7 questions of 2 options, 3 of 3, 13 of 4: bits over seconds.
    bits = 7 * 1.0 + 3 * 1.584962500721156 + 13 * 2.0
    assert trace.header.demand.lower == pytest.approx(bits / (23 * 8.0), abs=1e-12)
