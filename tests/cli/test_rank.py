"""`envrate rank` on real runs, and on wrong input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import envrate as er
from envrate.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("runs")
    agents = ("reactive", "random", "never")
    settings: dict[str, Any] = {"link": "worked", "num_envs": 8, "num_ticks": 100, "seed": 1}
    return [str(er.rollout("alert", agent, **settings).save(folder / f"{agent}.jsonl")) for agent in agents]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(["rank", *arguments])
    out, err = capsys.readouterr()
    return int(exit_.value.code or 0), out, err


def test_the_order_and_how_sure_it_is(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, *runs, "--latency-ms", "600", "--json")
    document = json.loads(out)
    assert status == 0 and document["paired"]
    assert document["runs"][0]["name"] == "reactive" and document["runs"][0]["rank"] == 1
    assert document["order_right"][0][1] == document["order_right"][0][2] == 1.0
    assert document["runs"][0]["low"] <= document["runs"][0]["credited"] <= document["runs"][0]["high"]


def test_a_table_that_a_person_reads(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, *runs)
    assert status == 0 and "reactive" in out and "100.0%" in out
    assert max(map(len, out.splitlines())) <= 80


def test_another_ranking_is_too_short_to_test(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"reactive": 0.9, "random": 0.5, "elsewhere": 0.1}))
    status, out, _ = call(capsys, *runs, "--transfer", str(other), "--json")
    found = json.loads(out)["transfer"]
    assert status == 0 and found["kendall"] is None
    assert "not testable: 2 systems" in found["reason"]
    assert found["left_out"] == ["elsewhere", "never"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "runs: expected at least 2, got 1"),
        (("--reading", "guess"), "reading: expected one of"),
        (("--latency-ms", "-5"), "latency_ms"),
        (("--transfer", "{folder}/reactive.jsonl"), "--transfer"),
    ],
)
def test_bad_input_is_named(
    runs: list[str], arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [a.format(folder=Path(runs[0]).parent) for a in arguments]
    status, out, err = call(capsys, *(runs if given else runs[:1]), *given)
    assert status == 2 and out == "" and message in err
