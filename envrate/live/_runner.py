"""The real-time runner: the world never waits for the agent."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from envrate import _checks, agents
from envrate.agents._action import Action
from envrate.agents._registry import TIMED
from envrate.channels import Link
from envrate.live._episode import Episode, World, parse_action
from envrate.live._mailbox import Mailbox, Observation
from envrate.task import Task
from envrate.trace import Trace

Agent = Callable[[Observation, Any], Any]
#: A run whose scheduling error at p99 exceeds this share of a micro-turn is flagged.
MAX_SCHEDULING_ERROR = 0.1


def _batched(observation: Observation) -> Observation:
    """The observation with a leading axis of one environment, as agents are called."""
    return {name: np.asarray(value)[None] for name, value in observation.items()}


async def _result_of(pending: Awaitable[Any]) -> Any:
    return await pending


class _Caller:
    """Calls an agent, sync or async, and reads what it returned: (action, state) or (action, state, compute_ms)."""

    def __init__(self, world: World, agent: Agent, compute_ms: int) -> None:
        self.world, self.agent, self.compute_ms = world, agent, compute_ms
        self.space = world.action_space
        self.state = agent.init(1, world.seed) if hasattr(agent, "init") else None  # `init` is optional by contract
        self.is_async = inspect.iscoroutinefunction(agent) or inspect.iscoroutinefunction(type(agent).__call__)

    def read(self, returned: Any) -> tuple[Action, int]:
        action, self.state, *declared = returned
        return parse_action(self.world.task, self.space, action), int(declared[0]) if declared else self.compute_ms

    def now(self, observation: Observation) -> tuple[Action, int]:
        """Calls the agent to its end and returns its action and declared compute time."""
        returned = self.agent(_batched(observation), self.state)
        return self.read(asyncio.run(_result_of(returned)) if inspect.isawaitable(returned) else returned)

    async def later(self, observation: Observation) -> tuple[Action, int]:
        """Awaits the agent; a sync one runs in a worker thread so that the clock goes on."""
        if self.is_async:
            pending: Awaitable[Any] = self.agent(_batched(observation), self.state)
            return self.read(await pending)
        return self.read(await asyncio.to_thread(self.agent, _batched(observation), self.state))


@dataclass(frozen=True)
class _Compiled:
    """A reference agent whose call is compiled: uncompiled, JAX takes tens of milliseconds for each."""

    agent: Any
    call: Agent

    def init(self, num_envs: int, seed: int) -> Any:
        return self.agent.init(num_envs, seed) if hasattr(self.agent, "init") else None

    def __call__(self, observation: Observation, state: Any) -> Any:
        return jax.tree.map(np.asarray, self.call(observation, state))

    def warm(self, observation: Observation) -> None:
        """Compiles the call before the clock runs; the agent is pure, so this leaves no trace."""
        state = self.init(1, 0)
        for _ in range(2):
            _, state = self(_batched(observation), state)


def named(task: Task, agent: Agent | str, modality: Any) -> tuple[Agent, str]:
    """The agent as it is called, and its name in traces."""
    if not isinstance(agent, str):
        return agent, str(getattr(agent, "name", None) or getattr(agent, "__name__", type(agent).__name__))
    if agent in TIMED:
        made = TIMED[agent](task)
        return made, str(made.name)
    reference = agents.get(agent, task, modality=modality)
    return _Compiled(reference, jax.jit(reference)), agent


def run(
    task: Task,
    agent: Agent | str,
    *,
    modality: Any = "symbols",
    link: Link | dict[str, Any] | str | None = None,
    clock: str = "wall",
    speed: float = 1.0,
    num_ticks: int = 100,
    seed: int = 0,
    compute_ms: int = 0,
    out: str | Path | None = None,
) -> Trace:
    """Runs one episode in real time and returns its trace.

    Args:
        task: the task.
        agent: `(observation, state) -> (action, state)`, sync (runs in a worker thread) or async, or the name of a
            reference agent; observations have a leading axis of 1. It may return a third item, its compute time in ms:
            a virtual run books it, on the wall clock its action is held until then.
        modality: a renderer, its dict or its name.
        link: the link, its dict or its name.
        clock: "wall": observations leave on schedule, an action counts when it arrives, steps that pass while the
            agent is busy are merged into its next observation and counted as missed. "virtual": the same schedule as
            fast as possible with declared compute times; the trace equals the simulated environment's.
        speed: world seconds per second of the wall clock.
        num_ticks: length of the episode; it runs one horizon longer so that each of these ticks is scored.
        seed: of the world.
        compute_ms: declared compute time where the agent declares none.
        out: a JSONL file to write as it happens.

    Returns:
        The trace; `header.extra` has `missed_steps` and, on the wall clock, the scheduling error's p50 and p99 in ms.

    Raises:
        ValueError: an argument out of range, or an action outside the action space.
    """
    _checks.choice("clock", clock, ("wall", "virtual"))
    _checks.number("speed", speed, 0.0, 1e3, open_low=True)
    _checks.integer("compute_ms", compute_ms, 0, unit="ms")
    world = World(task, modality, link, num_ticks=num_ticks, seed=seed)
    called, name = named(task, agent, world.core.renderer)
    kind = "wall" if clock == "wall" else "simulated"
    episode = Episode(world, kind, name, None if out is None else Path(out))
    caller = _Caller(world, called, compute_ms)
    if isinstance(called, _Compiled):
        called.warm(world.first_observation)
    if clock == "virtual":
        return _run_virtual(episode, caller)
    return asyncio.run(_run_wall(episode, caller, speed))


def _run_virtual(episode: Episode, caller: _Caller) -> Trace:
    world = episode.world
    for step, observation in enumerate(world.observations()):
        if step == world.num_steps:
            break
        now = step * world.micro_turn_ms
        episode.begin(now)
        action, compute_ms = caller.now(observation)
        episode.act(action, step=step, time_ms=now + compute_ms, compute_ms=compute_ms)
    return episode.finish()


async def _run_wall(episode: Episode, caller: _Caller, speed: float) -> Trace:
    world = episode.world
    mailbox = Mailbox(world.micro_turn_ms)
    loop = asyncio.get_running_loop()
    errors: list[float] = []
    views = world.observations()
    observation = next(views)  # drawn ahead, so that only the sending is on the clock
    start = loop.time()

    def now_ms() -> int:
        return math.ceil((loop.time() - start) * 1000.0 * speed)

    async def serve_agent() -> None:
        while (taken := await mailbox.take()) is not None:
            step, seen = taken
            began = loop.time()
            action, declared_ms = await caller.later(seen)
            # An agent may declare more than it took, such as a reply that it has from a log: it is held until then.
            await asyncio.sleep(max(0.0, began + declared_ms / 1000.0 / speed - loop.time()))
            spent = round((loop.time() - began) * 1000.0 * speed)
            if now_ms() <= world.end_ms:
                episode.act(action, step=step, time_ms=now_ms(), compute_ms=spent)

    agent_task = asyncio.create_task(serve_agent())
    try:
        for step in range(world.num_steps):
            due = start + step * world.micro_turn_ms / 1000.0 / speed
            await asyncio.sleep(max(0.0, due - loop.time()))
            errors.append((loop.time() - due) * 1000.0)
            mailbox.put(step, observation)
            episode.begin(step * world.micro_turn_ms)
            observation = await asyncio.to_thread(next, views)
            if agent_task.done():
                break
        await asyncio.sleep(max(0.0, start + world.end_ms / 1000.0 / speed - loop.time()))
    finally:
        mailbox.close()
        # An agent still busy at the end has until then a whole horizon and is not waited for beyond its call.
        await agent_task
    report_scheduling(episode, errors, mailbox.missed)
    return episode.finish()


def report_scheduling(episode: Episode, errors_ms: list[float], missed: int) -> None:
    """Puts the scheduling error and the missed steps into the trace, with a flag where the clock was not kept."""
    p50, p99 = (float(np.percentile(errors_ms, q)) for q in (50, 99)) if errors_ms else (0.0, 0.0)
    episode.extra |= {"missed_steps": missed, "scheduling_error_ms": {"p50": round(p50, 3), "p99": round(p99, 3)}}
    limit = MAX_SCHEDULING_ERROR * episode.world.micro_turn_ms
    if p99 > limit:
        episode.notes.append(f"scheduling error p99 {p99:.1f} ms exceeds {limit:.1f} ms: latencies are not trustworthy")
