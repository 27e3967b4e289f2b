"""Sweeps: jobs are pure functions of their specs, resumable, the same on every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envrate import sweep

SMALL: dict[str, Any] = {"task": "alert", "num_envs": 4, "num_ticks": 50, "resamples": 100}


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
    ],
)
def test_bad_specs_are_named(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sweep.expand(spec)


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


def test_a_job_depends_on_its_spec_alone() -> None:
    (spec,) = sweep.expand(SMALL | {"link": {"kind": "link", "delay_ms": 100}})
    assert sweep.run_job(spec) == sweep.run_job(json.loads(json.dumps(spec)))


def test_local_processes_and_a_ray_cluster_agree(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    specs = sweep.expand(SMALL | {"seed": [0, 1]})
    here = sweep.run(specs, tmp_path / "local", jobs=1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        assert sweep.run(specs, tmp_path / "ray", engine="ray") == here
    finally:
        ray.shutdown()
