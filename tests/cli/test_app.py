"""What every command shares: exit status, one line of error, clean stdout."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from envrate.cli import main


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, err = capfd.readouterr()
    return int(stop.value.code or 0), out, err


def test_help_and_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd)[0] == 0
    status, out, err = run(capfd, "--help")
    assert (status, err) == (0, "")
    assert "tasks" in out
    assert run(capfd, "--version")[1].startswith("envrate ")


@pytest.mark.parametrize("arguments", [("taskz",), ("tasks", "--jsn"), ("tasks", "alert", "extra"), ("tasks", "alrt")])
def test_bad_usage_is_one_line_and_status_2(capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    status, out, err = run(capfd, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("envrate")


def test_tasks_as_json_is_one_document(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "tasks", "--json")
    assert status == 0
    rows = {row["name"]: row for row in json.loads(out)["tasks"]}
    assert rows["alert"]["demand"] == {"lower": 2.0, "upper": 2.0, "kind": "exact"}


def test_importing_the_package_is_light() -> None:
    heavy = "jax numba mujoco matplotlib scipy.signal scipy.stats typer rich".split()
    code = f"import sys, envrate; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_page_of_a_task_says_how_its_states_show(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "tasks", "alert-probed", "--modality", "audio")
    assert status == 0 and "- state 2: a tone of 524 Hz" in out and "- a question: a chirp" in out
    status, out, _ = run(capfd, "tasks", "track3", "--modality", "proprio", "--json")
    assert status == 0 and len(json.loads(out)["legend"]["meanings"]) == 3
