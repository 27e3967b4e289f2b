"""What an agent has heard of each recent tick, from observations of symbols. Leading axis num_envs throughout."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from envrate.task import Task

#: Nothing was heard of a tick.
UNHEARD = -1


class Memory(NamedTuple):
    """Column j is about the tick j before the current one."""

    step: Any  # () int32, the observation's number
    token: Any  # (num_envs, R) int32, the latent's state, or UNHEARD
    answered: Any  # (num_envs, R) bool, a response was given
    asked: Any  # (num_envs, R) bool, a probe came and has no answer yet


def ticks_kept(task: Task, at_least: int = 2) -> int:
    """R: enough for every response and every answer to a probe that can still count, for a link's usual age limit."""
    age_ms = task.horizon_ms + 1000
    if task.probes is not None:
        age_ms = task.probes.after_ms + max(age_ms, task.probes.deadline_ms)
    return max(at_least, (age_ms + task.micro_turn_ms) // task.tick_ms + 2)


def start(num_envs: int, ticks: int) -> Memory:
    """Before the first observation."""
    none = jnp.zeros((num_envs, ticks), bool)
    return Memory(jnp.int32(0), jnp.full((num_envs, ticks), UNHEARD, jnp.int32), none, none)


def current_tick(task: Task, memory: Memory) -> Any:
    """The newest tick that has begun."""
    return memory.step * task.micro_turn_ms // task.tick_ms


def observe(task: Task, memory: Memory, observation: Any) -> Memory:
    """The memory after an observation; call `after` when the action is chosen."""
    now = memory.step * task.micro_turn_ms
    current = now // task.tick_ms
    moved = (memory.step > 0) & (current > (now - task.micro_turn_ms) // task.tick_ms)

    def aged(column: Any, fill: Any) -> Any:
        shifted = jnp.concatenate([jnp.full_like(column[:, :1], fill), column[:, :-1]], axis=1)
        return jnp.where(moved, shifted, column)

    token, answered, asked = aged(memory.token, UNHEARD), aged(memory.answered, False), aged(memory.asked, False)
    back = jnp.arange(token.shape[1])[None, :]
    for w in range(observation["signal"].shape[1]):
        symbol, age = observation["signal"][:, w], observation["age_ms"][:, w]
        sent = now - age
        probe = symbol == task.latent.num_states
        if task.probes is not None:
            sent = jnp.where(probe, sent - task.probes.after_ms, sent)
        here = (age >= 0)[:, None] & (back == (current - sent // task.tick_ms)[:, None])
        token = jnp.where(here & ~probe[:, None], symbol[:, None], token)
        asked = asked | (here & probe[:, None])
    return memory._replace(token=token, answered=answered, asked=asked)


def after(memory: Memory, back: Any, responds: Any, answers: Any) -> Memory:
    """The memory after an action: `responds` (num_envs,) names the tick `back`; `answers` the newest probe asked."""
    columns = jnp.arange(memory.token.shape[1])[None, :]
    answered = memory.answered | (responds[:, None] & (columns == back[:, None]))
    newest = (columns == jnp.argmax(memory.asked, axis=1)[:, None]) & memory.asked
    asked = memory.asked & ~(newest & answers[:, None])
    return memory._replace(step=memory.step + 1, answered=answered, asked=asked)


def probe_answer(task: Task, memory: Memory) -> Any:
    """(num_envs,) the answer to the newest probe that has none, plus 1; 0 where nothing is known or nothing asked."""
    newest = jnp.argmax(memory.asked, axis=1)
    token = jnp.take_along_axis(memory.token, newest[:, None], axis=1)[:, 0]
    known = memory.asked.any(axis=1) & (token >= 0)
    return jnp.where(known, jnp.asarray(task.question)[jnp.maximum(token, 0)] + 1, 0)
