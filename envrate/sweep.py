"""Sweeps: many runs, each a pure function of a JSON spec, on local processes or a Ray cluster.

A job's result is one JSON file named by the hash of its spec, so a sweep that was interrupted goes on where it
stopped, and the same job never runs twice into one folder.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from envrate import __version__, _checks
from envrate.channels import as_link
from envrate.task import Task

#: Keys of a job with their defaults; `task` has none.
DEFAULTS: dict[str, Any] = {
    "modality": "symbols",
    "link": "ideal",
    "agent": "reactive",
    "num_envs": 32,
    "num_ticks": 250,
    "compute_ms": 0,
    "seed": 0,
    "resamples": 1000,
}
ENGINES = ("local", "ray")
Spec = dict[str, Any]


def expand(sweep: dict[str, Any]) -> list[Spec]:
    """Job specs of a sweep: every combination of the keys that hold a list.

    Raises:
        ValueError: an unknown key, no task, or a task or link that does not exist.
    """
    if not isinstance(sweep, dict) or "task" not in sweep:
        raise ValueError("sweep: expected a mapping with the key 'task'")
    unknown = sorted(set(sweep) - set(DEFAULTS) - {"task"})
    if unknown:
        raise ValueError(f"sweep: unknown key {unknown[0]!r}; expected task, {', '.join(DEFAULTS)}")
    given = DEFAULTS | sweep
    axes = [value if isinstance(value, list) else [value] for value in given.values()]
    specs = [dict(zip(given, combination, strict=True)) for combination in itertools.product(*axes)]
    for spec in specs:
        _task(spec)
        as_link(spec["link"])
    return specs


def _task(spec: Spec) -> Task:
    from envrate import tasks

    return tasks.get(spec["task"]) if isinstance(spec["task"], str) else Task.from_dict(spec["task"])


def job_name(spec: Spec) -> str:
    """File name of a job's result: what it is, and the hash of its whole spec."""
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:12]
    words = [str(spec[key]) for key in ("task", "modality", "link", "agent") if isinstance(spec[key], str)]
    return "-".join([*words, digest]) + ".json"


def run_job(spec: Spec) -> dict[str, Any]:
    """One run and its frontier: `{"spec", "version", "frontier"}`. Reads nothing but the spec."""
    from envrate import agents, scorers
    from envrate.envs import rollout

    task = _task(spec)
    agent = agents.get(spec["agent"], task, modality=spec["modality"])
    trace = rollout(
        task,
        agent,
        modality=spec["modality"],
        link=as_link(spec["link"]),
        num_envs=spec["num_envs"],
        num_ticks=spec["num_ticks"],
        seed=spec["seed"],
        compute_ms=spec["compute_ms"],
    )
    frontier = scorers.frontier(trace, seed=spec["seed"], resamples=spec["resamples"])
    return {"spec": spec, "version": __version__, "frontier": frontier.to_json()}


def _run_into(spec: Spec, folder: Path) -> str:
    """Runs a job and writes its result whole or not at all."""
    path = folder / job_name(spec)
    part = path.with_suffix(f".part{os.getpid()}")
    part.write_text(json.dumps(run_job(spec), allow_nan=False), encoding="utf-8")
    part.replace(path)
    return path.name


def results(specs: Sequence[Spec], folder: Path) -> Iterator[dict[str, Any] | None]:
    """The result of each job that has one, else None."""
    for spec in specs:
        path = folder / job_name(spec)
        yield json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def run(
    specs: Sequence[Spec],
    folder: str | os.PathLike[str],
    *,
    engine: str = "local",
    jobs: int = -1,
    on_done: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Runs the jobs that have no result yet and returns the results of all, in the order of `specs`.

    Args:
        specs: from `expand`.
        folder: where the results are kept; made if it is not there.
        engine: "local" (joblib processes) or "ray" (the cluster that the environment names, else a local one).
        jobs: processes of the local engine; -1 is one per core.
        on_done: called with (done, total) as jobs finish.
    """
    _checks.choice("engine", engine, ENGINES)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    missing = [spec for spec in specs if not (place / job_name(spec)).exists()]
    done = len(specs) - len(missing)
    if on_done is not None:
        on_done(done, len(specs))
    finished = _local(missing, place, jobs) if engine == "local" else _ray(missing, place)
    for _ in finished:
        done += 1
        if on_done is not None:
            on_done(done, len(specs))
    return [result for result in results(specs, place) if result is not None]


def _local(specs: Sequence[Spec], folder: Path, jobs: int) -> Iterator[str]:
    if jobs == 1 or len(specs) <= 1:
        return (_run_into(spec, folder) for spec in specs)
    import joblib

    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    return iter(parallel(joblib.delayed(_run_into)(spec, folder) for spec in specs))


def _ray(specs: Sequence[Spec], folder: Path) -> Iterator[str]:
    try:
        import ray
    except ImportError as error:
        raise ImportError("the ray engine needs ray: pip install 'envrate[ray]'") from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False, configure_logging=False)
    remote = ray.remote(run_job)
    waiting = {remote.remote(spec): spec for spec in specs}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        spec = waiting.pop(ready[0])
        path = folder / job_name(spec)
        path.write_text(json.dumps(ray.get(ready[0]), allow_nan=False), encoding="utf-8")
        yield path.name
