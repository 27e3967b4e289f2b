"""The ideal observer as an agent: the exact posterior of each tick, and one decision about it at a set latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _checks
from envrate.agents import _memory
from envrate.agents._memory import Memory
from envrate.agents._reference import as_action
from envrate.task import Task

Array = Any


class Belief(NamedTuple):
    """What has been delivered, and the law of the oldest tick kept given all before it."""

    memory: Memory
    oldest: Any  # (num_envs, K) float32


@dataclass(frozen=True)
class IdealObserver:
    """Decides about each tick once, at its allowed latency, by Bayes' rule on everything delivered by then.

    Packets show the state of their tick, and when they arrive tells nothing else (codecs are constant-rate), so the
    posterior follows from the forward and backward recursions over the known chain.

    Args:
        task: a task on a Markov chain; with reply "newest" it can only answer the newest tick it has heard of.
        latency_ms: allowed latency l; None is the task's horizon.
        weights: (A, A) nested tuple, cost of giving y where a was required; None is the task's severity. The weights
            of largest C come from `envrate.scorers`.
        delay_ms: the agent's own time and the uplink's, by which it has to decide earlier.
    """

    task: Task
    latency_ms: int | None = None
    weights: tuple[tuple[float, ...], ...] | None = None
    delay_ms: int = 0
    name: str = "ideal"

    def __post_init__(self) -> None:
        """Checks the latency and the weights."""
        if self.task.is_tracking or not hasattr(self.task.latent, "matrix"):
            raise ValueError("task: the ideal observer needs a Markov chain for its latent")
        latency = self.task.horizon_ms if self.latency_ms is None else self.latency_ms
        _checks.integer("delay_ms", self.delay_ms, 0, 10**6, "ms")
        _checks.integer("latency_ms", latency, self.delay_ms, self.task.horizon_ms, "ms, at least delay_ms")
        if self.weights is not None:
            size = self.task.num_symbols
            shape = _checks.finite_array("weights", self.weights, 2).shape
            if shape != (size, size):
                raise ValueError(f"weights: expected shape {(size, size)}, got {shape}")

    @property
    def _wait_ms(self) -> int:
        """From a tick's onset to the last moment at which its response can be chosen."""
        return (self.task.horizon_ms if self.latency_ms is None else self.latency_ms) - self.delay_ms

    @property
    def _ticks(self) -> int:
        return _memory.ticks_kept(self.task, self._wait_ms // self.task.tick_ms + 3)

    def init(self, num_envs: int, seed: int) -> Belief:
        """Nothing delivered."""
        law = jnp.broadcast_to(jnp.asarray(self.task.latent.stationary, jnp.float32), (num_envs, self._states))
        return Belief(_memory.start(num_envs, self._ticks), law)

    @property
    def _states(self) -> int:
        return int(self.task.latent.num_states)

    def __call__(self, observation: Any, state: Belief) -> tuple[Array, Belief]:
        """The decision that is due, if any."""
        task, before = self.task, state.memory
        now = before.step * task.micro_turn_ms
        current = now // task.tick_ms
        moved = (before.step > 0) & (current > (now - task.micro_turn_ms) // task.tick_ms)
        leaving = current - 1 - (self._ticks - 1)  # the tick in the last column until now
        oldest = jnp.where(moved, self._next(state.oldest, before.token[:, -1], leaving), state.oldest)
        memory = _memory.observe(task, before, observation)

        decided = ((before.step + 1) * task.micro_turn_ms - 1 - self._wait_ms) // task.tick_ms
        due = (decided >= 0) & (decided * task.tick_ms + self._wait_ms >= now)
        back = jnp.clip(current - decided, 0, self._ticks - 1)
        symbol = jax.lax.cond(
            due,
            lambda: self._decide(oldest, memory.token, current, back),
            lambda: jnp.zeros(memory.token.shape[0], jnp.int32),
        )
        if task.reply == "newest":
            symbol = jnp.where(jnp.argmax(memory.token >= 0, axis=1) == back, symbol, 0)
            symbol = jnp.where((memory.token >= 0).any(axis=1), symbol, 0)
        backs = jnp.broadcast_to(back, symbol.shape).astype(jnp.int32)
        answer = _memory.probe_answer(task, memory).astype(jnp.int32) if task.probes is not None else symbol
        action = as_action(task, symbol, jnp.where(symbol > 0, backs, 0), answer)
        return action, Belief(_memory.after(memory, backs, symbol > 0, answer > 0), oldest)

    def _likelihood(self, token: Array) -> Array:
        """(num_envs, K): 1 at the state heard, 1 everywhere where nothing was."""
        states = jnp.arange(self._states)[None, :]
        return ((token[:, None] == states) | (token[:, None] < 0)).astype(jnp.float32)

    def _next(self, law: Array, token: Array, tick: Array) -> Array:
        """The law of the tick after `tick`, of which `law` says what was known before and `token` what was heard."""
        seen = law * self._likelihood(token)
        seen = seen / jnp.maximum(seen.sum(axis=1, keepdims=True), np.float32(1e-30))
        moved = seen @ jnp.asarray(self.task.latent.matrix, jnp.float32)
        initial = self.task.latent.initial
        if initial is None:
            return moved
        return jnp.where(tick + 1 == 0, jnp.asarray(initial, jnp.float32)[None, :], moved)

    def _decide(self, oldest: Array, token: Array, current: Array, back: Array) -> Array:
        """(num_envs,) symbol of least expected cost for the tick `back` before the current one."""
        matrix = jnp.asarray(self.task.latent.matrix, jnp.float32)
        forward, laws = oldest, [oldest]
        for j in range(self._ticks - 1, 0, -1):
            forward = self._next(forward, token[:, j], current - j)
            laws.append(forward)
        laws.reverse()
        later, laters = jnp.ones_like(oldest), [jnp.ones_like(oldest)]
        for j in range(self._ticks - 1):
            later = (later * self._likelihood(token[:, j])) @ matrix.T
            later = later / jnp.maximum(later.max(axis=1, keepdims=True), np.float32(1e-30))
            laters.append(later)
        index = (back, slice(None), slice(None))
        heard = self._likelihood(jnp.take(token, back, axis=1))
        posterior = jnp.stack(laws)[index] * heard * jnp.stack(laters)[index]
        posterior = posterior / jnp.maximum(posterior.sum(axis=1, keepdims=True), np.float32(1e-30))
        costs = np.asarray(self.task.distortion if self.weights is None else self.weights, np.float32)
        by_state = costs[np.asarray(self.task.table)]  # (K, A)
        return jnp.argmin(posterior @ jnp.asarray(by_state), axis=1).astype(jnp.int32)
