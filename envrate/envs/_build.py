"""From what a user writes (an id, names, dicts) to a task, a renderer, a link and their core."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from envrate import _ids, tasks
from envrate.channels import Link, as_link
from envrate.envs._core import Core
from envrate.renderers._base import Renderer
from envrate.task import Task


def as_task(value: Task | dict[str, Any] | str) -> Task:
    """A task from a `Task`, its dict, or a preset's name."""
    return tasks.get(value) if isinstance(value, str) else Task.from_dict(value)


def as_renderer(value: Renderer | dict[str, Any] | str) -> Renderer:
    """A renderer from an object, its dict or its kind."""
    from envrate import renderers  # noqa: F401  registers the kinds
    from envrate._spec import from_dict

    if isinstance(value, Renderer) and not isinstance(value, (dict, str)):
        return value
    found: Renderer = from_dict("renderer", {"kind": value} if isinstance(value, str) else value, "modality")
    return found


def task_and_modality(env: str | Task | dict[str, Any], modality: Any) -> tuple[Task, Any]:
    """What an id stands for; a task or a preset's name goes with `modality`."""
    if isinstance(env, str) and env in _ids.IDS:
        preset, kind = _ids.IDS[env]
        return as_task(preset), kind
    if isinstance(env, str) and "/" in env:
        raise ValueError(
            f"env: expected EnvRate/TASK-MODALITY-v0 with TASK one of {', '.join(_ids.TASKS.values())} and MODALITY "
            f"one of {', '.join(_ids.MODALITIES.values())}, a preset's name or a Task, got {env!r}"
        )
    return as_task(env), modality


@lru_cache(maxsize=64)
def core(
    task: Task,
    renderer: Renderer,
    link: Link,
    num_ticks: int,
    compute_ms: int,
    max_steps: int | None = None,
    keep: bool = False,
) -> Core:
    """The core of these settings; the same object for the same settings, so that what it compiled is found again."""
    if hasattr(renderer, "for_link"):  # codec="auto" is settled by the bandwidth
        renderer = renderer.for_link(task, link.bandwidth_bps)
    return Core(task, renderer, link, num_ticks=num_ticks, compute_ms=compute_ms, max_steps=max_steps, keep=keep)


def without_numbers(given: Core) -> Core:
    """The one core for all that differ in nothing but their links' numbers; only what fixes sizes is kept of a link."""
    sizes = Link(
        max_age_ms=given.link.max_age_ms,
        buffer_bits=0 if given.drops_oldest else None,
        drop="oldest" if given.drops_oldest else "newest",
        uplink_ms=given.link.uplink_ms if given.task.is_tracking else 0,
    )
    clock, renderer = given.clock, cast(Any, given.renderer)  # a frozen dataclass, so it can be looked up
    return core(given.task, renderer, sizes, clock.num_ticks, given.compute_ms, clock.max_steps, given.keep)


def make_core(task: Any, modality: Any, link: Any, *, num_ticks: int, compute_ms: int, keep: bool = False) -> Core:
    """The core of what a user wrote."""
    renderer: Any = as_renderer(modality)  # a frozen dataclass, so it can be looked up
    return core(as_task(task), renderer, as_link(link), num_ticks, compute_ms, keep=keep)
