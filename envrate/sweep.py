"""Sweeps: many runs, each a pure function of a JSON spec, on local processes or a Ray cluster.

A job's result is one JSON file named by the hash of its spec, so a sweep that was interrupted goes on where it
stopped, and the same job never runs twice into one folder. Jobs that differ in link, seed or resamples alone run in
one process one after the other, since they share what is compiled; what a job gives does not depend on that.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from envrate import __version__, _checks
from envrate.channels import as_link

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
#: Of these, the least value of each number.
LEAST = {"num_envs": 1, "num_ticks": 1, "compute_ms": 0, "seed": 0, "resamples": 100}
#: Keys that nothing compiled depends on.
NUMBERS_ONLY = ("link", "seed", "resamples")
ENGINES = ("local", "ray")
Spec = dict[str, Any]
#: A job, its result as JSON, and what went wrong where there is none.
Attempt = tuple[Spec, str | None, str]


def expand(sweep: dict[str, Any]) -> list[Spec]:
    """Job specs of a sweep: every combination of the keys that hold a list.

    Raises:
        ValueError: an unknown key, no task, a name that does not exist, a number out of range.
    """
    if not isinstance(sweep, dict) or "task" not in sweep:
        raise ValueError(f"sweep: expected a mapping with the key 'task', got {sweep!r:.100}")
    unknown = sorted(str(key) for key in set(sweep) - set(DEFAULTS) - {"task"})
    if unknown:
        raise ValueError(f"sweep: unknown key {unknown[0]!r}; expected task, {', '.join(DEFAULTS)}")
    given = DEFAULTS | sweep
    axes = [value if isinstance(value, list) else [value] for value in given.values()]
    empty = [key for key, values in zip(given, axes, strict=True) if not values]
    if empty:
        raise ValueError(f"{empty[0]}: expected at least one value, got an empty list")
    specs = [_checked(dict(zip(given, values, strict=True))) for values in itertools.product(*axes)]
    return list({job_name(spec): spec for spec in specs}.values())


def _checked(spec: Spec) -> Spec:
    from envrate import agents
    from envrate.envs import _build

    numbers = {key: _checks.integer(key, spec[key], least) for key, least in LEAST.items()}
    as_link(spec["link"])
    if not isinstance(spec["agent"], str):
        raise ValueError(f"agent: expected the name of a reference agent, got {spec['agent']!r:.100}")
    agents.get(spec["agent"], _build.as_task(spec["task"]), modality=_build.as_renderer(spec["modality"]))
    return spec | numbers


def job_name(spec: Spec) -> str:
    """File name of a job's result: what it is, and the hash of its whole spec."""
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:12]
    words = [str(spec[key]) for key in ("task", "modality", "link", "agent") if isinstance(spec[key], str)]
    return "-".join([*words, digest]) + ".json"


def run_job(spec: Spec) -> dict[str, Any]:
    """One run and its frontier: `{"spec", "version", "frontier"}`. Reads nothing but the spec."""
    from envrate import scorers
    from envrate.envs import rollout

    kept = ("modality", "link", "num_envs", "num_ticks", "seed", "compute_ms")
    trace = rollout(spec["task"], spec["agent"], **{key: spec[key] for key in kept})
    frontier = scorers.frontier(trace, seed=spec["seed"], resamples=spec["resamples"])
    return {"spec": spec, "version": __version__, "frontier": frontier.to_json()}


def results(specs: Sequence[Spec], folder: Path) -> Iterator[dict[str, Any] | None]:
    """The result of each job that has one, else None."""
    for spec in specs:
        path = folder / job_name(spec)
        yield _read(path) if path.exists() else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{path}: not a job's result ({error}); delete it and run the sweep again") from error


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

    Raises:
        ValueError: an argument out of range; or some jobs failed, then all others have run and are kept.
    """
    _checks.choice("engine", engine, ENGINES)
    if jobs != -1:
        _checks.integer("jobs", jobs, 1, unit="or -1, which is one per core")
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise ValueError(f"folder: expected a folder, new or of results, got the file {str(place)!r}")
    place.mkdir(parents=True, exist_ok=True)
    missing = [spec for spec in specs if not (place / job_name(spec)).exists()]
    done = len(specs) - len(missing)
    if on_done is not None:
        on_done(done, len(specs))
    failed = []
    for spec, error in _local(missing, place, jobs) if engine == "local" else _ray(missing, place):
        done += not error
        failed += [f"{job_name(spec)}: {error}"] if error else []
        if on_done is not None:
            on_done(done, len(specs))
    if failed:
        raise ValueError(
            f"sweep: {len(failed)} of {len(specs)} jobs failed, the results of the others are in {place}; "
            f"the first that failed is {failed[0]}"
        )
    return [result for result in results(specs, place) if result is not None]


def batches(specs: Sequence[Spec], workers: int) -> list[list[Spec]]:
    """Jobs that share what is compiled, each list for one process; cut where there are fewer lists than workers."""
    groups: dict[str, list[Spec]] = {}
    for spec in specs:
        key = json.dumps({name: value for name, value in spec.items() if name not in NUMBERS_ONLY}, sort_keys=True)
        groups.setdefault(key, []).append(spec)
    most = max(1, -(-len(specs) // workers))
    return [group[i : i + most] for group in groups.values() for i in range(0, len(group), most)]


def _attempts(specs: Sequence[Spec]) -> Iterator[Attempt]:
    for spec in specs:
        try:
            yield spec, json.dumps(run_job(spec), allow_nan=False), ""
        except Exception as error:  # whatever it is, the other jobs go on
            yield spec, None, f"{type(error).__name__}: {error}"


def _kept(attempts: Iterable[Attempt], folder: Path) -> Iterator[tuple[Spec, str]]:
    """Writes each result whole or not at all; gives the job, and what went wrong."""
    for spec, text, error in attempts:
        if text is not None:
            path = folder / job_name(spec)
            part = path.with_suffix(f".part{os.getpid()}")
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        yield spec, error


def _local(specs: Sequence[Spec], folder: Path, jobs: int) -> Iterator[tuple[Spec, str]]:
    import joblib

    workers = joblib.effective_n_jobs(jobs)
    parts = batches(specs, workers)
    if workers == 1 or len(parts) <= 1:
        return _kept(_attempts([spec for part in parts for spec in part]), folder)
    parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
    finished = parallel(joblib.delayed(_local_batch)(part, folder) for part in parts)
    return itertools.chain.from_iterable(finished)


def _local_batch(specs: Sequence[Spec], folder: Path) -> list[tuple[Spec, str]]:
    return list(_kept(_attempts(specs), folder))


def _ray(specs: Sequence[Spec], folder: Path) -> Iterator[tuple[Spec, str]]:
    try:
        import ray
    except ImportError as error:
        raise ImportError("the ray engine needs ray: pip install 'envrate[ray]'") from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False, configure_logging=False)
    remote = ray.remote(_ray_batch)
    resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
    parts = batches(specs, max(1, int(resources.get("CPU", 1))))
    waiting = {remote.remote(part): part for part in parts}
    while waiting:
        (ready,), _ = ray.wait(list(waiting), num_returns=1)
        part = waiting.pop(ready)
        try:
            attempts = ray.get(ready)
        except ray.exceptions.RayError as error:  # its process is gone
            attempts = [(spec, None, f"{type(error).__name__}: {error}") for spec in part]
        yield from _kept(attempts, folder)


def _ray_batch(specs: Sequence[Spec]) -> list[Attempt]:
    return list(_attempts(specs))
