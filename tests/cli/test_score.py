"""`envrate score` and `envrate frontier` on synthetic runs: tables, JSON, figures, and one line for every mistake."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envrate import bench_adapters, tasks
from envrate.cli import main
from envrate.trace import Header, Trace

sys.path.insert(0, str(Path(__file__).parents[1] / "bench_adapters" / "tvbench"))
from tvbench_writers import evalscope, notebook, questions

SAME = np.arange(90)
EXAMPLES = Path(__file__).parents[2] / "examples"


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two EvalScope runs, better and worse, a run without times, and one of our own traces."""
    root = tmp_path_factory.mktemp("runs")
    for name, right in (("better", 0.9), ("worse", 0.6)):
        (root / name).mkdir()
        evalscope(root / name, questions(90, right=right), SAME).rename(root / name / "run")
        for path in (root / name / "run").iterdir():
            path.rename(root / name / path.name)
    notebook(root, questions(90), SAME).rename(root / "untimed.json")
    task = tasks.get("alert")
    t = np.arange(60)
    ticks = {"episode": 0 * t, "tick": t, "onset_ms": 500 * t, "required": t % 2, "delivered_ms": 500 * t + 100}
    said = t[(t % 2 == 1) & (t % 5 != 0)]
    responses = {"episode": 0 * said, "tick": said, "time_ms": 500 * said + 200, "value": 0 * said + 1}
    Trace(Header.for_task(task), ticks, responses).save(root / "own.jsonl")
    return root


def test_one_run_shows_what_it_is_its_own_scores_its_bits_and_its_frontier(
    capfd: pytest.CaptureFixture[str], folder: Path
) -> None:
    status, out, err = run(capfd, "score", folder / "better")
    assert (status, err) == (0, "")
    rate = bench_adapters.bits_per_item(bench_adapters.load(folder / "better"))
    assert "EvalScope 1.14.1 work folder, 3 subset(s), TVBench, model toy" in out
    assert f"{rate.bits:.4f}" in out
    assert "keeps up" in out and "object_shuffle" in out
    assert "no ranking uses it" in out


def test_several_runs_are_one_table_with_the_same_numbers_as_json(
    capfd: pytest.CaptureFixture[str], folder: Path
) -> None:
    paths = [folder / "better", folder / "worse"]
    status, out, _ = run(capfd, "score", *paths, "--seconds", "5")
    assert status == 0 and "accuracy and bits put these runs in the same order" in out
    status, text, err = run(capfd, "score", *paths, "--seconds", "5", "--json")
    document = json.loads(text)
    assert (status, err) == (0, "")
    assert [row["name"] for row in document["runs"]] == ["better", "worse"]
    better, worse = document["runs"]
    assert better["bits_per_item"]["bits"] > worse["bits_per_item"]["bits"]
    for row in document["runs"]:
        assert f"{row['bits_per_item']['bits']:.4f}" in out
        assert f"{row['bits_per_second']['credited']:.4f}" in out
        assert row["bits_per_second"]["clock"] == "5 s per item"
        assert row["own_scores"]["values"]["accuracy"] > 0.4
        assert "no ranking uses it" in row["service"]["note"]
    assert [f["run"] for f in document["frontiers"]] == ["better", "worse"]
    # One grid for runs on one clock.
    latencies = [[p["latency_ms"] for p in f["points"] if p["reading"] == "output-only"] for f in document["frontiers"]]
    assert latencies[0] == latencies[1]


def test_order_flags(capfd: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    """A run that is right more often by answering the two-option questions only carries fewer bits."""
    made = questions(90, right=1.0, silent=0.0)
    for name, keep, miss in (("two", "scene_transition", 0), ("four", "action_count", 6)):
        work = evalscope(tmp_path / name, made, SAME) if (tmp_path / name).mkdir() is None else tmp_path
        for path in work.glob("*/toy/*.jsonl"):
            if keep not in path.name:
                path.unlink()
            elif miss:  # some wrong answers among the four-option questions
                rows = [json.loads(line) for line in path.read_text().splitlines()]
                for row in rows[:miss]:
                    if path.parent.parent.name == "reviews":
                        row["sample_score"]["score"] |= {"value": {"accuracy": 0.0}, "extracted_prediction": "B"}
                        row["target"] = row["target"] if row["target"] != ["B"] else ["C"]
                path.write_text("\n".join(json.dumps(row) for row in rows))
    status, out, _ = run(capfd, "score", tmp_path / "two", tmp_path / "four")
    assert status == 0
    assert "order differs: two is more accurate than four" in out


def test_runs_without_latencies_have_bits_and_no_frontier(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    status, out, _ = run(capfd, "score", folder / "untimed.json")
    assert status == 0 and "no latency was measured" in out
    status, _, err = run(capfd, "frontier", folder / "untimed.json")
    assert (status, err.count("\n")) == (2, 1) and "no latency was measured" in err


def test_our_own_traces_are_scored_too(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    status, text, err = run(capfd, "score", folder / "own.jsonl", "--json")
    assert (status, err) == (0, "")
    document = json.loads(text)
    assert document["runs"][0]["bits_per_item"] is None
    assert document["frontiers"][0]["demand"]["lower"] == 2.0
    # Alerts at odd ticks, missed at ticks 5, 15, ... of 30: miss rate 0.2, null otherwise: the Z-channel,
    # H(.4) - .5 H(.2) = 0.609987 bits per tick at 2 Hz.
    assert document["runs"][0]["bits_per_second"]["credited"] == pytest.approx(2 * 0.609987, abs=1e-4)


@pytest.mark.parametrize("name", ["watch", "hold"])
def test_the_chain_of_rates_holds_in_what_is_printed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    # 0 <= R(D achieved) <= C <= I <= h / T, a tenth of the ticks wrong or silent.
    task = tasks.get(name)
    rng, n = np.random.default_rng(0), 4000
    latent = np.zeros(n, dtype=int)
    for t in range(1, n):
        latent[t] = rng.choice(len(task.table), p=task.latent.matrix[latent[t - 1]])
    required = np.asarray(task.table)[latent]
    given = np.where(rng.random(n) < 0.1, rng.integers(0, task.num_symbols, n), required)
    t, said = np.arange(n), np.flatnonzero(given)
    onset = task.tick_ms * t
    ticks = {"episode": 0 * t, "tick": t, "onset_ms": onset, "required": required, "delivered_ms": onset}
    responses = {"episode": 0 * said, "tick": said, "time_ms": onset[said] + 100, "value": given[said]}
    Trace(Header.for_task(task), ticks, responses).save(tmp_path / "own.jsonl")
    document = json.loads(run(capfd, "score", tmp_path / "own.jsonl", "--json")[1])
    bounds = {bound["reading"]: bound for bound in document["runs"][0]["information"]}
    frontier = document["frontiers"][0]
    for point in frontier["points"]:
        if point["latency_ms"] == task.horizon_ms:
            rate = bounds[point["reading"]]["rate"]
            chain = [0.0, point["rate_equivalent"], point["credited"], rate, frontier["demand"]["upper"]]
            assert chain == sorted(chain) and chain[1] > 0.05
    printed = run(capfd, "score", tmp_path / "own.jsonl")[1]
    assert f"at least {bounds['output-only']['rate']:.4f} bits/s whatever the coding" in printed


def test_figure_and_csv_for_papers(capfd: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    paths = [folder / "better", folder / "worse"]
    png, table = tmp_path / "f.png", tmp_path / "f.csv"
    status, out, err = run(capfd, "frontier", *paths, "--png", png, "--csv", table)
    assert (status, err) == (0, "") and png.name in out
    assert png.read_bytes().startswith(b"\x89PNG")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    status, text, _ = run(capfd, "frontier", *paths, "--json")
    points = [p | {"run": f["run"]} for f in json.loads(text)["frontiers"] for p in f["points"]]
    assert len(rows) == len(points)
    for row, point in zip(rows, points, strict=True):
        assert (row["run"], row["latency_ms"], row["reading"]) == (
            point["run"], str(point["latency_ms"]), point["reading"],
        )  # fmt: skip
        assert (float(row["credited"]) if row["credited"] else None) == point["credited"]
    printed = run(capfd, "frontier", folder / "better")[1]
    assert "output-only, bits/s" in printed and f"{points[-1]['latency_ms']:5d}" in printed
    assert run(capfd, "score", *paths, "--png", tmp_path / "g.svg")[0] == 0
    assert (tmp_path / "g.svg").stat().st_size > 1000


MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "nothing given": ((), "Missing argument"),
    "no such path": (("{}/absent",), "nothing at"),
    "no run": (("{}/better/configs",), "no run that one of the adapters"),
    "unknown kind": (("{}/better", "--kind", "x"), "kind: expected one of"),
    "wrong kind": (("{}/better", "--kind", "vlmevalkit"), "expected"),
    "unknown flag": (("{}/better", "--nonsense"), "No such option"),
    "seconds": (("{}/better", "--seconds", "-4"), "seconds: expected a number"),
    "seconds in words": (("{}/better", "--seconds", "four"), "seconds: expected a number"),
    "clips unknown": (("{}/better", "--seconds", "clip"), "have no clip length"),
    "no data": (("{}/better", "--data", "{}/absent"), "data: nothing at"),
    "data of another kind": (("{}/better", "--data", "{}/own.jsonl"), "data: "),
    "option of nobody": (("{}/better", "-o", "colour=red"), "--colour: no such option for tvbench"),
    "option without value": (("{}/better", "-o", "colour"), "NAME=VALUE"),
    "against what": (("{}/better", "--against", "x"), "expected 'published'"),
    "nothing published": (("{}/better", "--against", "published"), "carries no published runs"),
    "figure": (("{}/better", "--png", "{}/f.exe"), "expected a name that ends in"),
    "figure nowhere": (("{}/better", "--png", "{}/absent/f.png"), "absent"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("as_json", [False, True])
def test_every_mistake_is_one_line_and_status_2(
    capfd: pytest.CaptureFixture[str], folder: Path, name: str, as_json: bool
) -> None:
    arguments, message = MISTAKES[name]
    given = [argument.format(folder) for argument in arguments]
    status, out, err = run(capfd, "score", *given, *(["--json"] if as_json else []))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err and "Traceback" not in err


def test_a_strangers_adapter_that_fails_is_one_line(
    capfd: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("surprise\nof two lines")

    monkeypatch.setattr("envrate.bench_adapters.tvbench.TVBench.load", broken)
    status, _, err = run(capfd, "score", folder / "better")
    assert (status, err.count("\n")) == (2, 1)
    assert "the adapter tvbench failed: KeyError" in err


def test_published_runs_stand_beside_ones_own(capfd: pytest.CaptureFixture[str], shared_data: Path) -> None:
    fixture = shared_data / "interactionbench" / "fixture_synthetic"
    run_file = fixture / "preds_good_run.jsonl"
    status, text, err = run(
        capfd, "score", run_file, "--data", fixture, "--against", "published", "--json"
    )
    assert (status, err) == (0, "")
    rows = json.loads(text)["published"][0]["groups"]
    assert len(rows) == 59  # 58 published runs and this one
    totals = [row["total"] for row in rows]
    assert totals == sorted(totals, reverse=True)
    assert any(row["run"] == run_file.name for row in rows)


def test_a_foreign_project_of_the_same_name_is_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "grade.json").write_text("{}")
    status, _, err = run(capfd, "score", tmp_path)
    assert (status, err.count("\n")) == (2, 1)
    assert "another project of the same name" in err


def test_the_command_never_imports_jax(folder: Path) -> None:
    code = (
        "import sys\nfrom envrate.cli import main\n"
        f"try:\n    main(['score', {str(folder / 'better')!r}, '--json'])\nexcept SystemExit as stop:\n"
        "    assert not stop.code\nassert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _example(name: str, *arguments: object, cwd: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run(folder: Path, tmp_path: Path) -> None:
    out = _example("score_vlm_run.py", folder / "better", folder / "worse", "--seconds", 5, cwd=tmp_path)
    rate = bench_adapters.bits_per_item(bench_adapters.load(folder / "better"))
    assert f"{rate.bits:.4f}" in out
    out = _example("plot_frontier.py", folder / "better", folder / "worse", "-o", "both", cwd=tmp_path)
    assert "written: both.pdf" in out
    assert all((tmp_path / f"both.{ending}").stat().st_size > 1000 for ending in ("pdf", "png", "csv"))
