"""Which adapter reads a path: entry points, recognition, and the calls that go through them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from envrate.bench_adapters._adapter import Adapter, Recognition, ScoresItself, ScoreTable
from envrate.bench_adapters._own_trace import OwnTrace
from envrate.trace import Trace

#: The entry-point group that a package with an adapter of its own names in its metadata.
GROUP = "envrate.adapters"


@dataclass(frozen=True)
class Found:
    """An adapter and what it takes a path for."""

    adapter: Adapter
    recognition: Recognition
    path: Path

    @property
    def runs(self) -> tuple[Path, ...]:
        """The paths that hold one run each."""
        return self.recognition.runs or (self.path,)


@cache
def _loaded() -> tuple[dict[str, Adapter], dict[str, str]]:
    """Adapters by name, and the entry points that could not be loaded with the reason."""
    found: dict[str, Adapter] = {OwnTrace.name: OwnTrace()}
    failed: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            adapter = point.load()
        except Exception as error:  # a stranger's package may fail in any way, and must not take ours down
            failed[point.name] = f"{type(error).__name__}: {error}"
            continue
        if not isinstance(adapter, Adapter):
            failed[point.name] = f"{point.value} has no name, recognise and load"
        elif adapter.name in found and found[adapter.name] is not adapter:
            failed[point.name] = f"another adapter is called {adapter.name!r}"
        else:
            found[adapter.name] = adapter
    return found, failed


def adapters() -> dict[str, Adapter]:
    """Every adapter that could be loaded, by name: the built-in ones, our own traces, and installed packages'."""
    return dict(_loaded()[0])


def recognise(path: str | os.PathLike[str], kind: str | None = None) -> Found:
    """The adapter that is surest of `path`.

    Args:
        path: a file or folder.
        kind: an adapter's name or one of its formats, where the choice is the caller's. A format that the adapter
            does not recognise at `path` is still handed to it.

    Raises:
        ValueError: no adapter knows the path, two are equally sure, the kind is unknown, or the run is refused.
    """
    where = Path(path)
    if not where.exists():
        raise ValueError(f"path: nothing at {str(where)!r}, expected a file or folder with a benchmark's run")
    candidates = []
    failed = dict(_loaded()[1])
    for adapter in adapters().values():
        try:
            recognition = adapter.recognise(where)
        except Exception as error:  # see _loaded
            failed[adapter.name] = f"{type(error).__name__}: {error}"
            continue
        if recognition is not None:
            candidates.append(Found(adapter, recognition, where))
    if kind is not None:
        return _of_kind(where, kind, candidates)
    trouble = "".join(f"; the adapter {name} failed: {reason:.200}" for name, reason in failed.items())
    if not candidates:
        raise ValueError(
            f"path: {str(where)!r} is no run that one of the adapters {', '.join(adapters())} knows; "
            f"name the format with kind (--kind){trouble}"
        )
    candidates.sort(key=lambda found: -found.recognition.confidence)
    best = candidates[0]
    if len(candidates) > 1 and candidates[1].recognition.confidence == best.recognition.confidence:
        names = " or ".join(found.recognition.kind for found in candidates[:2])
        raise ValueError(f"path: {str(where)!r} could be {names}; choose one with kind (--kind)")
    return _unless_refused(best)


def _of_kind(path: Path, kind: str, candidates: list[Found]) -> Found:
    """The candidate of that name or format; an adapter asked for by name gets the path in any case."""
    for found in candidates:
        if kind in (found.adapter.name, found.recognition.kind):
            return _unless_refused(found)
    known = adapters()
    for adapter in known.values():
        if kind == adapter.name or kind in getattr(adapter, "kinds", ()):
            return Found(adapter, Recognition(kind, f"taken for {kind} as asked", 1.0), path)
    formats = sorted({*known, *(k for adapter in known.values() for k in getattr(adapter, "kinds", ()))})
    failed = _loaded()[1]
    reason = f" (that adapter failed: {failed[kind]})" if kind in failed else ""
    raise ValueError(f"kind: expected one of {', '.join(formats)}, got {kind!r}{reason}")


def _unless_refused(found: Found) -> Found:
    if found.recognition.refusal is not None:
        raise ValueError(f"path: {str(found.path)!r}: {found.recognition.refusal}")
    return found


def option_names(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Names of the keyword-only options of an adapter's method; None where it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    return tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


def _call(found: Found, method: Callable[..., Any], options: dict[str, Any]) -> Any:
    """`method(path, **options)`, with the format if it wants it; an option it lacks is refused by name."""
    names = option_names(method)
    if names is not None:
        for option in sorted(set(options) - set(names)):
            takes = ", ".join(name for name in names if name != "kind") or "none"
            raise ValueError(f"{option}: the adapter {found.adapter.name} has no such option; it takes {takes}")
        if "kind" in names and found.recognition.kind != found.adapter.name:
            options = {"kind": found.recognition.kind} | options
    if len(found.runs) > 1:
        listed = ", ".join(str(run) for run in found.runs[:5])
        raise ValueError(f"path: {str(found.path)!r} holds {len(found.runs)} runs, expected one; load one of {listed}")
    return method(found.runs[0], **options)


def runs(path: str | os.PathLike[str], kind: str | None = None) -> list[Found]:
    """Each run that `path` holds, recognised on its own; one for a path that is one run.

    Raises:
        ValueError: as `recognise`.
    """
    found = recognise(path, kind)
    return [found] if found.runs == (found.path,) else [recognise(run, kind) for run in found.runs]


def load(path: str | os.PathLike[str], kind: str | None = None, **options: Any) -> Trace:
    """A benchmark's run as a trace.

    Args:
        path: a file or folder that holds one run; `runs` lists those of a folder with several.
        kind: an adapter's name or format; None recognises it.
        **options: the adapter's own, such as `data` (the benchmark's annotations) or `seconds`.

    Raises:
        ValueError: as `recognise`, or an option the adapter lacks, or an unreadable or empty run.
    """
    found = recognise(path, kind)
    trace = _call(found, found.adapter.load, options)
    if not isinstance(trace, Trace):
        raise ValueError(f"adapter {found.adapter.name}: load returned {type(trace).__name__}, expected a Trace")
    return trace


def scores(path: str | os.PathLike[str], kind: str | None = None, **options: Any) -> ScoreTable | None:
    """The benchmark's own numbers of the run at `path`; None where its adapter has none.

    Options that only `load` takes are left out, so that both can be called with the same ones.

    Raises:
        ValueError: as `load`.
    """
    found = recognise(path, kind)
    if not isinstance(found.adapter, ScoresItself):
        return None
    method, loader = found.adapter.scores, option_names(found.adapter.load)
    own = option_names(method)
    if own is not None and loader is not None:
        options = {name: value for name, value in options.items() if name in own or name not in loader}
    table: ScoreTable = _call(found, method, options)
    return table
