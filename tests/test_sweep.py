"""Sweeps: jobs are pure functions of their specs, resumable, the same on every engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envrate import sweep

SMALL: dict[str, Any] = {"task": "alert", "num_envs": 4, "num_ticks": 50, "resamples": 100}
#: More ticks than the clock can count: found out when the job runs.
TOO_LONG = 10**8


def test_lists_are_combined() -> None:
    specs = sweep.expand(SMALL | {"link": ["lan", "worked"], "seed": [0, 1]})
    assert [(s["link"], s["seed"]) for s in specs] == [("lan", 0), ("lan", 1), ("worked", 0), ("worked", 1)]
    assert len({sweep.job_name(s) for s in specs}) == 4


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"link": "lan"}, "expected a mapping with the key 'task'"),
        ([], "expected a mapping"),
        (SMALL | {"lnk": "lan"}, "unknown key 'lnk'"),
        (SMALL | {"task": "alrt"}, "task: expected one of"),
        (SMALL | {"link": "5g"}, "link: expected one of"),
        (SMALL | {"link": []}, "link: expected at least one value, got an empty list"),
        (SMALL | {"modality": "smell"}, "modality.kind: expected one of"),
        (SMALL | {"agent": "idael"}, "agent: expected one of .*, got 'idael'"),
        (SMALL | {"agent": {"name": "never"}}, "agent: expected the name of a reference agent"),
        (SMALL | {"modality": "audio", "agent": ["perceiver", "ideal"]}, "agent: expected one of .*, got 'ideal'"),
        (SMALL | {"task": "exceed"}, "agent: expected one of always, never, perceiver, random, got 'reactive'"),
        (SMALL | {"num_envs": "many"}, "num_envs: expected an integer >= 1, got 'many'"),
        (SMALL | {"resamples": 0}, "resamples: expected an integer >= 100, got 0"),
    ],
)
def test_bad_specs_are_named(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sweep.expand(spec)


def test_a_job_twice_in_a_spec_is_one_job() -> None:
    assert len(sweep.expand(SMALL | {"seed": [0, 0, 1], "link": ["lan", "lan"]})) == 2


def test_jobs_that_share_what_is_compiled_stay_together() -> None:
    axes = {"agent": ["never", "always"], "link": ["lan", "wifi", "4g"], "seed": [0, 1]}
    specs = sweep.expand(SMALL | axes)
    for workers, lengths in ((1, [6, 6]), (2, [6, 6]), (3, [4, 2, 4, 2]), (50, [1] * 12)):
        parts = sweep.batches(specs, workers)
        assert [len(part) for part in parts] == lengths
        assert all(len({spec["agent"] for spec in part}) == 1 for part in parts)
        assert {sweep.job_name(spec) for part in parts for spec in part} == {sweep.job_name(spec) for spec in specs}
    assert sweep.batches([], 2) == []


def test_finished_jobs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = sweep.expand(SMALL | {"agent": ["reactive", "never"]})
    seen: list[tuple[int, int]] = []
    first = sweep.run(specs, tmp_path, jobs=1, on_done=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 2), (1, 2), (2, 2)]
    assert [r["spec"]["agent"] for r in first] == ["reactive", "never"]
    assert first[1]["frontier"]["points"][-1]["credited"] == 0.0
    monkeypatch.setattr(sweep, "run_job", lambda spec: pytest.fail("ran again"))
    assert sweep.run(specs, tmp_path, jobs=1) == first
    assert not list(tmp_path.glob("*.part*"))


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    specs = sweep.expand(SMALL)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="folder: expected a folder, new or of results, got the file"):
        sweep.run(specs, tmp_path / "file")
    with pytest.raises(ValueError, match="jobs: expected an integer >= 1 or -1"):
        sweep.run(specs, tmp_path, jobs=0)
    with pytest.raises(ValueError, match="engine: expected one of local, ray, got 'slurm'"):
        sweep.run(specs, tmp_path, engine="slurm")


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    specs = sweep.expand(SMALL)
    path = tmp_path / sweep.job_name(specs[0])
    path.write_text('{"spec":')
    with pytest.raises(ValueError, match="not a job's result .* delete it and run the sweep again"):
        sweep.run(specs, tmp_path, jobs=1)


def test_a_job_depends_on_its_spec_alone() -> None:
    (spec,) = sweep.expand(SMALL | {"link": {"kind": "link", "delay_ms": 100}})
    assert sweep.run_job(spec) == sweep.run_job(json.loads(json.dumps(spec)))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_job_that_fails_loses_no_other(jobs: int, tmp_path: Path) -> None:
    specs = sweep.expand(SMALL | {"num_ticks": [TOO_LONG, 50], "seed": [0, 1]})
    seen: list[tuple[int, int]] = []
    with pytest.raises(ValueError, match="2 of 4 jobs failed, .* ValueError: num_ticks: expected at most"):
        sweep.run(specs, tmp_path, jobs=jobs, on_done=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 4) and seen[-1] == (2, 4)
    good = [spec for spec in specs if spec["num_ticks"] == 50]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(sweep.job_name(spec) for spec in good)
    assert [result["spec"] for result in sweep.run(good, tmp_path, jobs=1)] == good


ON_A_CLUSTER = """
import sys, ray
from envrate.cli import main
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
statuses = []
for spec in ("bad.json", "good.json"):
    try:
        main(["sweep", spec, "--out", "ray", "--engine", "ray", "--json"])
    except SystemExit as end:
        statuses.append(end.code)
ray.shutdown()
sys.exit(0 if statuses == [2, 0] else f"statuses {statuses}")
"""


def test_a_ray_cluster_gives_what_local_processes_do(tmp_path: Path) -> None:
    """Two workers; a job that fails, then resumption. In a process of its own, since JAX warns where Ray forks."""
    pytest.importorskip("ray")
    good = SMALL | {"seed": [0, 1], "link": ["lan", "worked"]}
    (tmp_path / "good.json").write_text(json.dumps(good))
    (tmp_path / "bad.json").write_text(json.dumps(good | {"num_ticks": [50, TOO_LONG]}))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ON_A_CLUSTER],
        cwd=tmp_path,
        env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "envrate: sweep: 4 of 8 jobs failed" in done.stderr and "num_ticks: expected at most" in done.stderr
    here = sweep.run(sweep.expand(good), tmp_path / "local", jobs=1)
    names = sorted(path.name for path in (tmp_path / "local").iterdir())
    assert sorted(path.name for path in (tmp_path / "ray").iterdir()) == names
    for name in names:
        assert (tmp_path / "ray" / name).read_text() == (tmp_path / "local" / name).read_text()
    found = json.loads(done.stdout)["frontiers"]
    assert found == [result["frontier"] | {"spec": result["spec"]} for result in here]
