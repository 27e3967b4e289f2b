"""The perceiver as an agent: a reader of one modality in front of a reactive policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate._responses import Threshold
from envrate.agents._reference import Reactive
from envrate.latents import MarkovChain
from envrate.renderers import _timing
from envrate.task import Task

Array = Any


class Reading(NamedTuple):
    """What one packet says."""

    value: Any  # () int32 state, or (d,) float32 values
    probe: Any  # () bool, it is a question
    known: Any  # () bool, it says anything


#: A reader of one packet: (signal, end of its capture in ms) -> Reading.
Reader = Callable[[Array, Array], Reading]


class Percept(NamedTuple):
    """State of a perceiver."""

    memory: Any  # the policy's, or () where the task tracks
    step: Any  # () int32
    estimate: Any  # (num_envs, d) float32 where the task tracks, else ()


def reader(task: Task, renderer: Any) -> Reader:
    """The reference reader of a renderer's packets.

    Raises:
        ValueError: a modality, or a way of carrying the latent, that no reader knows.
    """
    from envrate.agents.perceivers import _audio, _proprio, _screen, _symbols, _video

    makers = {"symbols": _symbols, "audio": _audio, "video": _video, "screen": _screen, "proprio": _proprio}
    if renderer.kind not in makers:
        raise ValueError(f"modality: expected one of {', '.join(makers)}, got {renderer.kind!r}")
    made: Reader = makers[renderer.kind].reader(task, renderer)
    return made


def letters(task: Task) -> Task:
    """A task with the same responses whose states are the letters of `task`: what the policy behind a reader plays."""
    if hasattr(task.latent, "num_states") and not isinstance(task.response, Threshold):
        return task
    size = len(task.table)
    return task.replace(latent=MarkovChain(((1.0 / size,) * size,) * size), response=task.table)


@dataclass(frozen=True)
class Perceiver:
    """Reads each packet by itself and responds to what it reads, at once; tracks with the newest value read.

    Args:
        task: the task.
        modality: the renderer, its dict or its kind, as the environment has it.
    """

    task: Task
    modality: Any = "symbols"
    name: str = "perceiver"

    def __post_init__(self) -> None:
        """Settles the renderer."""
        from envrate.envs._build import as_renderer

        object.__setattr__(self, "modality", as_renderer(self.modality))

    def init(self, num_envs: int, seed: int) -> Percept:
        """Nothing has been seen."""
        if self.task.is_tracking:
            return Percept((), jnp.int32(0), jnp.zeros((num_envs, self.task.latent.num_outputs), jnp.float32))
        return Percept(Reactive(letters(self.task)).init(num_envs, seed), jnp.int32(0), ())

    def __call__(self, observation: Any, state: Percept) -> tuple[Array, Percept]:
        """The response to what has just been read."""
        now = state.step * self.task.micro_turn_ms
        age = observation["age_ms"]
        end = now - age
        reading = self._read(observation, end)
        known = reading.known & (age >= 0)
        if self.task.is_tracking:
            newest = state.estimate
            for w in range(age.shape[1]):
                usable = known[:, w] & ~reading.probe[:, w]
                newest = jnp.where(usable[:, None], reading.value[:, w], newest)
            return newest, Percept((), state.step + 1, newest)
        task = letters(self.task)
        token = reading.value
        if isinstance(self.task.response, Threshold):
            edges = np.asarray(self.task.response.edges, np.float32)[None, None, :]
            token = (token[..., self.task.response.output, None] >= edges).sum(-1, dtype=jnp.int32)
        onset = end
        if self.modality.frame_ms(self.task) is not None:
            onset = (end - 1) // self.task.tick_ms * self.task.tick_ms
        seen = {
            "signal": jnp.where(reading.probe, np.int32(task.latent.num_states), token),
            # As if the token had been sent at the onset of the tick that the frame is about.
            "age_ms": jnp.where(known, now - jnp.where(reading.probe, end, onset), -1),
            "fresh": observation["fresh"],
        }
        action, memory = Reactive(task)(seen, state.memory)
        return action, Percept(memory, state.step + 1, ())

    def _read(self, observation: Any, end: Array) -> Reading:
        """Readings of (num_envs, W) packets, skipped where nothing has arrived anywhere."""
        read = reader(self.task, self.modality)
        every = jax.vmap(jax.vmap(read))
        shapes = jax.eval_shape(every, observation["signal"], end)

        def nothing() -> Reading:
            return Reading(*(jnp.zeros(leaf.shape, leaf.dtype) for leaf in shapes))

        found: Reading = jax.lax.cond(
            (observation["fresh"] > 0).any(), lambda: every(observation["signal"], end), nothing
        )
        return found


def is_gaussian(task: Task) -> bool:
    """Whether packets show real values."""
    return _timing.is_gaussian(task)
