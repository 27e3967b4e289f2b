"""One live episode: an open-loop world and what an agent answered to it.

Neither the latent nor the link depends on what the agent does, so the world of an episode is known ahead: its table
of ticks comes from a rollout with an agent that never acts, its observations from the same environment stepped with
the null action. A live run only adds responses, so that simulated, virtual and wall-clock runs share one world.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from envrate import __version__
from envrate._trace_io import TraceWriter
from envrate.agents._action import Action
from envrate.channels import Link, as_link
from envrate.envs._build import make_core
from envrate.envs._rollout import rollout
from envrate.envs._spaces import action_space, observation_space
from envrate.envs._stream import stream
from envrate.task import Task
from envrate.trace import ACT, NO_TICK, PROBE, Header, Trace

Observation = dict[str, NDArray[Any]]
MAX_EPISODE_MS = 2**31 - 1


class World:
    """The open-loop world of one episode: its ticks and, step by step, its observations.

    Args:
        task: the task.
        modality: a renderer, its dict or its name.
        link: the link, its dict or its name.
        num_ticks: ticks that are scored; the episode runs one horizon longer.
        seed: of everything random.
    """

    def __init__(
        self, task: Task, modality: Any, link: Link | dict[str, Any] | str | None, *, num_ticks: int, seed: int
    ) -> None:
        """Simulates the episode's ticks and link once, without rendering anything."""
        self.task, self.link, self.seed = task, as_link(link), seed
        self.core = make_core(task, modality, self.link, num_ticks=num_ticks, compute_ms=0)
        self.modality = self.core.renderer.kind
        quiet = rollout(task, "never", modality=modality, link=self.link, num_envs=1, num_ticks=num_ticks, seed=seed)
        assert isinstance(quiet, Trace)
        self.quiet = quiet
        self.num_ticks = num_ticks
        self.micro_turn_ms = task.micro_turn_ms
        self.num_steps = self.core.clock.num_steps
        self.end_ms = self.core.clock.end_ms
        # What draws observations is compiled now, not when the clock runs.
        self.first_observation = list(islice(self.observations(), 2))[0]

    @property
    def action_space(self) -> gym.Space[Any]:
        """The environment's action space."""
        return action_space(self.core)

    @property
    def observation_space(self) -> gym.spaces.Dict:
        """The environment's observation space."""
        return observation_space(self.core)

    def observations(self) -> Iterator[Observation]:
        """Observation k = 0, 1, ... as the environment shows it, rendered when asked for; without end."""
        return stream(self.core, seed=self.seed)

    def newest_tick(self, step: int) -> int:
        """The newest tick that a packet in observation `step` or an earlier one was about; -1 before any."""
        delivered = self.quiet.ticks["delivered_ms"]
        seen = np.flatnonzero((delivered >= 0) & (delivered <= step * self.micro_turn_ms))
        return int(self.quiet.ticks["tick"][seen].max()) if seen.size else NO_TICK

    def open_question(self, seen_ms: int, answered_ms: int, answered: set[int]) -> int:
        """The newest question seen by `seen_ms`, not in `answered` and within its deadline; -1 where there is none."""
        probes = self.task.probes
        if probes is None:
            return NO_TICK
        ticks = self.quiet.ticks
        deadline = ticks["onset_ms"] + probes.after_ms + probes.deadline_ms
        is_open = (ticks["probe_ms"] >= 0) & (ticks["probe_ms"] <= seen_ms) & (answered_ms <= deadline)
        return max((int(t) for t in ticks["tick"][is_open] if int(t) not in answered), default=NO_TICK)


def parse_action(task: Task, space: gym.Space[Any], action: Any) -> Action:
    """An action of the environment's space in the terms of a trace; raises ValueError where it lies outside."""
    if isinstance(action, Action):
        return action
    array = np.asarray(action)
    if array.ndim and array.shape[0] == 1 and array.shape != space.shape:
        array = array[0]
    if not space.contains(array.astype(space.dtype) if array.dtype.kind in "iuf" else array):
        raise ValueError(f"action: expected a member of {space}, got {action!r}")
    if isinstance(space, gym.spaces.Box):
        return Action(tuple(float(x) for x in array))
    parts = [int(x) for x in np.atleast_1d(array)]
    back = parts[1] if task.reply == "named" else None
    return Action(parts[0], back, parts[-1] if task.num_answers else 0)


@dataclass
class Episode:
    """Books what an agent says against a world, and writes it down as it happens.

    Args:
        world: the episode's world.
        clock: "wall" or "simulated" (a virtual run).
        agent: a name for the trace.
        path: a JSONL file that is readable up to the last second whatever happens; None keeps it in memory.
    """

    world: World
    clock: str
    agent: str
    path: Path | None = None
    responses: list[tuple[int, int, Any, int, int]] = field(default_factory=list)  # time, tick, value, kind, compute
    notes: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Opens the file with the ticks that are known ahead."""
        self._last_ms = 0
        self._answered: set[int] = set()
        self._written_ticks = 0
        self._writer = None if self.path is None else TraceWriter(self.path, self._header(complete=False))

    def _header(self, *, complete: bool) -> Header:
        world = self.world
        return Header.for_task(
            world.task,
            modality=world.modality,
            link=world.quiet.header.link,
            agent=self.agent,
            clock=self.clock,
            seed=world.seed,
            duration_ms=world.end_ms,
            version=__version__,
            notes=tuple(self.notes) if complete else (),
            extra=dict(self.extra) if complete else {},
        )

    def act(self, action: Action, *, step: int, time_ms: int, compute_ms: int = 0) -> None:
        """Books an action computed from observation `step` that arrived at `time_ms`; null actions book nothing."""
        world, task = self.world, self.world.task
        time_ms = max(self._last_ms, time_ms + world.link.uplink_ms)
        self._last_ms = time_ms
        if not isinstance(action.value, int):
            self._book(time_ms, world.newest_tick(step), action.value, ACT, compute_ms)
            return
        if action.value:
            tick = world.newest_tick(step)
            if action.back is not None:
                named = step * task.micro_turn_ms // task.tick_ms - action.back
                tick = named if named >= 0 else NO_TICK
            self._book(time_ms, tick, action.value, ACT, compute_ms)
        if action.answer:
            asked = world.open_question(step * task.micro_turn_ms, time_ms, self._answered)
            self._answered.add(asked)
            self._book(time_ms, asked, action.answer - 1, PROBE, compute_ms)

    def _book(self, time_ms: int, tick: int, value: Any, kind: int, compute_ms: int) -> None:
        self.responses.append((time_ms, tick, value, kind, compute_ms))
        if self._writer is not None:
            self._writer.responses(time_ms=[time_ms], tick=[tick], value=[value], kind=[kind], compute_ms=[compute_ms])

    def begin(self, time_ms: int) -> None:
        """Writes down the ticks that have begun by `time_ms`."""
        if self._writer is None:
            return
        onset = self.world.quiet.ticks["onset_ms"]
        upto = int(np.searchsorted(onset, time_ms, side="right"))
        if upto > self._written_ticks:
            rows = slice(self._written_ticks, upto)
            self._writer.ticks(**{name: column[rows] for name, column in self.world.quiet.ticks.items()})
            self._written_ticks = upto

    def finish(self, *, ended_ms: int | None = None) -> Trace:
        """The trace, whole; after `ended_ms` (the agent left) ticks whose horizon was not over are not scored."""
        ticks = {name: column.copy() for name, column in self.world.quiet.ticks.items()}
        if ended_ms is not None:
            kept = ticks["onset_ms"] <= ended_ms
            ticks = {name: column[kept] for name, column in ticks.items()}
            ticks["scored"] &= ticks["onset_ms"] + self.world.task.horizon_ms < ended_ms
        columns = ("time_ms", "tick", "value", "kind", "compute_ms")
        responses = {name: np.asarray([row[i] for row in self.responses]) for i, name in enumerate(columns)}
        header = self._header(complete=True)
        if self._writer is not None:
            self.begin(MAX_EPISODE_MS if ended_ms is None else ended_ms)
            self._writer.close(notes=list(header.notes), extra=header.extra)
        return Trace(header, ticks, responses if self.responses else {})
