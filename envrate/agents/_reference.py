"""Reference agents for symbols: what a policy of known quality scores. All are frozen and can be compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envrate import _checks, _counters
from envrate._counters import Stream
from envrate.agents import _memory
from envrate.agents._memory import Memory
from envrate.task import Task

Array = Any


def action_sizes(task: Task) -> tuple[int, ...]:
    """Sizes of the action's factors: the symbol, the tick named, the probe's answer."""
    sizes = [task.num_symbols]
    if task.reply == "named":
        sizes.append(task.ticks_nameable)
    if task.probes is not None:
        sizes.append(task.num_answers + 1)
    return tuple(sizes)


def as_action(task: Task, symbol: Array, back: Array, answer: Array) -> Array:
    """The action of the task's space: (num_envs,) or (num_envs, factors)."""
    factors = [symbol]
    if task.reply == "named":
        factors.append(back)
    if task.probes is not None:
        factors.append(answer)
    return symbol if len(factors) == 1 else jnp.stack(factors, axis=1)


def _count(observation: Any) -> int:
    return int(observation["fresh"].shape[0])


@dataclass(frozen=True)
class Never:
    """Says nothing, ever."""

    task: Task
    name: str = "never"

    def __call__(self, observation: Any, state: Any) -> tuple[Array, Any]:
        """Silence."""
        nothing = jnp.zeros(_count(observation), jnp.int32)
        return as_action(self.task, nothing, nothing, nothing), state


@dataclass(frozen=True)
class Always:
    """Gives the same response at every micro-turn, to the current tick where ticks are named.

    Args:
        task: the task.
        symbol: the response; None is the likeliest one.
    """

    task: Task
    symbol: int | None = None
    name: str = "always"

    def __call__(self, observation: Any, state: Any) -> tuple[Array, Any]:
        """The response."""
        nothing = jnp.zeros(_count(observation), jnp.int32)
        symbol = 1 + int(np.argmax(self.task.pmf[1:])) if self.symbol is None else self.symbol
        return as_action(self.task, nothing + symbol, nothing, nothing), state


class _Random(NamedTuple):
    key: Any  # two (num_envs,) uint32
    step: Any  # () int32


@dataclass(frozen=True)
class RandomGuess:
    """Draws every factor of the action uniformly at every micro-turn."""

    task: Task
    name: str = "random"

    def init(self, num_envs: int, seed: int) -> _Random:
        """Its place in the agent's stream."""
        return _Random(tuple(jnp.asarray(word) for word in _counters.keys(seed, num_envs)), jnp.int32(0))

    def __call__(self, observation: Any, state: _Random) -> tuple[Array, _Random]:
        """A uniform action."""
        words = _counters.block(state.key, state.step, jnp.int32(0), Stream.AGENT)
        sizes = action_sizes(self.task)
        draws = [_counters.scaled(words[0], np.uint32(sizes[0]))]
        word = words[1]
        for size in sizes[1:]:  # 16 bits are plenty for a named tick or an answer
            draws.append(_counters.scaled(word & np.uint32(0xFFFF0000), np.uint32(size)))
            word = word << np.uint32(16)
        factors = [d.astype(jnp.int32) for d in draws]
        action = factors[0] if len(factors) == 1 else jnp.stack(factors, axis=1)
        return action, state._replace(step=state.step + 1)


def _newest(choice: Array) -> tuple[Array, Array]:
    """(whether there is one, the first column) of a (num_envs, R) bool."""
    return choice.any(axis=1), jnp.argmax(choice, axis=1).astype(jnp.int32)


def _at(table: Array, column: Array) -> Array:
    return jnp.take_along_axis(table, column[:, None], axis=1)[:, 0]


@dataclass(frozen=True)
class Reactive:
    """Responds to what it has just heard, and to nothing else; answers probes from memory.

    Where ticks are named it answers the newest tick heard that still waits; else it can only answer the newest
    packet it has seen.
    """

    task: Task
    name: str = "reactive"

    def init(self, num_envs: int, seed: int) -> Memory:
        """An empty memory."""
        return _memory.start(num_envs, _memory.ticks_kept(self.task))

    def __call__(self, observation: Any, state: Memory) -> tuple[Array, Memory]:
        """f(z) of the newest tick heard that has no response yet."""
        memory = _memory.observe(self.task, state, observation)
        wanted = jnp.asarray(self.task.table)[jnp.maximum(memory.token, 0)]
        heard = memory.token >= 0
        if self.task.reply == "named":
            nameable = jnp.arange(heard.shape[1])[None, :] < self.task.ticks_nameable
            responds, back = _newest(heard & (wanted > 0) & ~memory.answered & nameable)
        else:
            some, back = _newest(heard)
            responds = some & (_at(wanted, back) > 0) & ~_at(memory.answered, back)
        symbol = jnp.where(responds, _at(wanted, back), 0)
        answer = _answer(self.task, memory)
        action = as_action(self.task, symbol, jnp.where(responds, back, 0), answer)
        return action, _memory.after(memory, back, responds, answer > 0)


def _answer(task: Task, memory: Memory) -> Array:
    if task.probes is None:
        return jnp.zeros(memory.token.shape[0], jnp.int32)
    return _memory.probe_answer(task, memory).astype(jnp.int32)


@dataclass(frozen=True)
class Echo:
    """Answers each tick with what was required a tick earlier, as soon as it has heard that."""

    task: Task
    name: str = "echo"

    def init(self, num_envs: int, seed: int) -> Memory:
        """An empty memory."""
        return _memory.start(num_envs, _memory.ticks_kept(self.task, self.task.ticks_nameable + 1))

    def __call__(self, observation: Any, state: Memory) -> tuple[Array, Memory]:
        """f(z of the tick before) for the newest tick it can name."""
        memory = _memory.observe(self.task, state, observation)
        wanted = jnp.asarray(self.task.table)[jnp.maximum(memory.token, 0)]
        before = jnp.roll(wanted, -1, axis=1)  # column j: the response of the tick before j
        known = jnp.roll(memory.token >= 0, -1, axis=1).at[:, -1].set(False)
        if self.task.reply == "named":
            nameable = jnp.arange(known.shape[1])[None, :] < self.task.ticks_nameable
            responds, back = _newest(known & (before > 0) & ~memory.answered & nameable)
        else:
            some, back = _newest(memory.token >= 0)
            responds = some & _at(known, back) & (_at(before, back) > 0) & ~_at(memory.answered, back)
        symbol = jnp.where(responds, _at(before, back), 0)
        answer = _answer(self.task, memory)
        action = as_action(self.task, symbol, jnp.where(responds, back, 0), answer)
        return action, _memory.after(memory, back, responds, answer > 0)


class _Guessing(NamedTuple):
    memory: Memory
    random: _Random


@dataclass(frozen=True)
class GuessUnheard:
    """Reacts to what it hears, and at `after_ms` guesses, by name, about a tick it has not heard of.

    Args:
        task: a task with reply "named".
        after_ms: from a tick's onset to the guess.
        pmf: law of the guess; None is uniform over all symbols, null included.
    """

    task: Task
    after_ms: int = 300
    pmf: tuple[float, ...] | None = None
    name: str = "guess"

    def __post_init__(self) -> None:
        """A guess has to name its tick."""
        if self.task.reply != "named":
            raise ValueError("task: guessing about an unheard tick needs reply='named'; task.replace gives one")
        _checks.integer("after_ms", self.after_ms, 0, self.task.horizon_ms, "ms")

    def init(self, num_envs: int, seed: int) -> _Guessing:
        """An empty memory and a place in the agent's stream."""
        random = RandomGuess(self.task).init(num_envs, seed)
        return _Guessing(_memory.start(num_envs, _memory.ticks_kept(self.task)), random)

    def __call__(self, observation: Any, state: _Guessing) -> tuple[Array, _Guessing]:
        """The newest tick heard that waits for a response, else the guess that is due."""
        task, random = self.task, state.random
        memory = _memory.observe(task, state.memory, observation)
        wanted = jnp.asarray(task.table)[jnp.maximum(memory.token, 0)]
        columns = jnp.arange(memory.token.shape[1])[None, :]
        free = ~memory.answered & (columns < task.ticks_nameable)
        heard, back = _newest((memory.token >= 0) & (wanted > 0) & free)
        now, current = memory.step * task.micro_turn_ms, _memory.current_tick(task, memory)
        moment = now - (current - columns) * task.tick_ms  # how long ago each tick began
        due = (moment >= self.after_ms) & (moment < self.after_ms + task.micro_turn_ms) & (columns <= current)
        guesses, target = _newest((memory.token < 0) & free & due)
        pmf = np.full(task.num_symbols, 1 / task.num_symbols) if self.pmf is None else np.asarray(self.pmf)
        limits = np.array([_counters.threshold(share) for share in np.cumsum(pmf)[:-1].tolist()])
        word = _counters.block(random.key, random.step, jnp.int32(0), Stream.AGENT)[0] >> np.uint32(1)
        guess = (word[:, None] >= limits[None, :]).sum(axis=1, dtype=jnp.int32)
        symbol = jnp.where(heard, _at(wanted, back), jnp.where(guesses, guess, 0))
        back = jnp.where(heard, back, target)
        answer = _answer(task, memory)
        action = as_action(task, symbol, jnp.where(symbol > 0, back, 0), answer)
        return action, _Guessing(
            _memory.after(memory, back, symbol > 0, answer > 0), random._replace(step=random.step + 1)
        )
