"""`envrate run`: a trace on disk, one JSON document on stdout, errors on one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envrate import Trace, tasks
from envrate.cli._app import app

SMALL = ["--num-envs", "2", "--num-ticks", "5"]


def test_writes_a_trace_that_repeats(tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    words = ["run", "alert", "--link", "worked", "--link-delay-ms", "100", "--link-loss", "0.1", "--compute-ms", "30"]
    words += [*SMALL, "--seed", "3", "--out", str(out), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["ticks"] == 10 and document["seed"] == 3 and document["link"]["delay_ms"] == 100
    assert document["link"]["jitter"]["kind"] == "two-point"
    first = out.read_text()
    trace = Trace.load(out)
    assert trace.ticks["scored"].sum() == 10 and trace.task == tasks.get("alert") and trace.report.complete
    assert len(trace.responses["tick"]) == document["responses"]
    CliRunner().invoke(app, words)
    assert out.read_text() == first


def test_micro_turn_and_task_file(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text(json.dumps(tasks.get("hold").to_dict()))
    out = tmp_path / "trace.jsonl"
    result = CliRunner().invoke(app, ["run", str(file), "--micro-turn-ms", "100", *SMALL, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert Trace.load(out).header.micro_turn_ms == 100
    assert "10 ticks" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "task: expected one of"),
        (["EnvRate/No-v0"], "env: expected EnvRate/TASK-MODALITY-v0"),
        (["EnvRate/Alert-Audio-v0", "--modality", "video"], "is shown in audio, got 'video'"),
        (["exceed"], "agent: expected one of always, never, perceiver, random, got 'reactive'"),
        (["alert", "--agent", "nobody"], "agent: expected one of"),
        (["alert", "--link", "moon"], "link: expected one of"),
        (["alert", "--link-delay-ms", "-1"], "delay_ms: expected an integer"),
        (["alert", "--out", "trace.txt"], "--out: expected a name"),
        (["alert", "--out", "no/such/folder/trace.jsonl"], "--out: expected a file in a folder that exists"),
        (["alert", "--modality", "smell"], "modality.kind: expected one of"),
    ],
)
def test_errors_name_the_argument(words: list[str], said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", *words[:1], *SMALL, "--out", str(tmp_path / "t.jsonl"), *words[1:]])
    assert isinstance(result.exception, ValueError)
    assert said in str(result.exception)
