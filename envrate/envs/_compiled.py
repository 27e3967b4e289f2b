"""The compiled functions of a run: its start, its scan, its steps one by one.

A scan that draws pictures or sounds takes long to compile, so it takes the link's numbers as an argument and serves
every link of the same sizes; it draws when the agent looks, and nothing for one that never does. A scan of small
signals compiles in about a second; closing over the numbers makes it up to a sixth faster, and carrying the
observation, which XLA then fuses with what led to it, up to a third.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate.channels import _kernel
from envrate.envs import _arrivals, _build, _policy, _rings
from envrate.envs._core import Core, Record, State
from envrate.envs._counts import Counter, Counts

PyTree = Any


class Carry(NamedTuple):
    """What the scan hands from step to step."""

    state: State
    seen: Any  # the state's observation; None where it is drawn when the agent looks
    agent: PyTree
    outside: Any  # (num_envs,) bool, the agent has left the action space


def _shared(core: Core) -> tuple[Core, Any]:
    """The core whose compiled functions serve this one, and the numbers of the link that they take."""
    if _arrivals.is_small(core):
        return core, None
    return _build.without_numbers(core), jnp.asarray(_kernel.pack(core.params))


def _link(core: Core, numbers: Any) -> Any:
    """The link of a compiled function."""
    return core.params if numbers is None else _kernel.unpack(numbers)


def start(core: Core, key: Any) -> tuple[State, Any]:
    """The state at reset, and its observation or None, as in `Carry`."""
    shared, numbers = _shared(core)
    return _compiled_start(shared)(numbers, key)  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _compiled_start(core: Core) -> Callable[..., Any]:
    def run(numbers: Any, key: Any) -> tuple[State, Any]:
        state = core.start(_link(core, numbers), key, jnp.int32(0))
        return core.observe(state) if _arrivals.is_small(core) else (state, None)

    return jax.jit(run)


def observed(core: Core, state: State, seen: Any) -> tuple[State, Any]:
    """A state and its observation, drawn now if it has not been."""
    return (state, seen) if seen is not None else _compiled_observe(_shared(core)[0])(state)


@lru_cache(maxsize=32)
def _compiled_observe(core: Core) -> Callable[..., Any]:
    return jax.jit(core.observe)


def _small(core: Core, record: Record) -> Record:
    """The record in as few bytes as hold it."""
    if core.task.is_tracking or core.task.num_symbols > 127:
        return record
    return record._replace(value=record.value.astype(jnp.int8))


def _is_value(agent: Any) -> bool:
    """Whether the agent is a frozen dataclass, whose compiled run can be found again; others may change inside."""
    settings: Any = getattr(type(agent), "__dataclass_params__", None)
    return settings is not None and bool(settings.frozen)


def scan(core: Core, agent: Any, num_envs: int, length: int) -> Callable[[Carry, int], tuple[Carry, Record]]:
    """The compiled run of a chunk of at most `length` steps, and its records in so many rows.

    It takes the number of steps, since none may be made after the end: the state holds the last packets' arrivals.
    """
    shared, numbers = _shared(core)
    make = _cached_scan if _is_value(agent) else _new_scan
    return partial(make(shared, agent, num_envs, length), numbers)


def _turn(core: Core, agent: Any, num_envs: int) -> Callable[[Any, Carry], tuple[Carry, Record]]:
    """One action and one step of the world, traced."""
    call = _policy.as_callable(agent)
    if not callable(agent):
        raise ValueError("agent: an object with `predict` is not compiled; pass jit=False")

    def turn(link: Any, carry: Carry) -> tuple[Carry, Record]:
        try:
            state, seen = _seen(core, call, carry)
            action, agent_state = call(_policy.observation(seen), carry.agent)
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
            raise ValueError(f"agent: JAX could not trace it, pass jit=False ({str(error).splitlines()[0]})") from error
        inner, outside = _policy.traced_action(core, action, num_envs)
        state, _, record = core.advance(link, state, inner)
        state, ahead = (state, None) if carry.seen is None else core.observe(state)
        return Carry(state, ahead, agent_state, carry.outside | outside), record

    return turn


def _seen(core: Core, call: Any, carry: Carry) -> tuple[State, Any]:
    """The state and the observation that the agent acts on, traced."""
    if carry.seen is not None:
        return carry.state, carry.seen
    state, blank = core.observe(carry.state, render=False)
    if not _policy.looks(call, _policy.observation(blank), carry.agent):
        return state, blank
    return core.observe(carry.state)


def _new_scan(core: Core, agent: Any, num_envs: int, length: int) -> Callable[..., tuple[Carry, Record]]:
    turn = _turn(core, agent, num_envs)

    def run(numbers: Any, carry: Carry, steps: Any) -> tuple[Carry, Record]:
        link = _link(core, numbers)

        def body(i: Any, both: tuple[Carry, Record]) -> tuple[Carry, Record]:
            carry, record = turn(link, both[0])
            return carry, _rings.write(both[1], i, _small(core, record))

        row = jax.eval_shape(lambda: _small(core, core.advance(link, carry.state, core.null_action((num_envs,)))[2]))
        rows = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), row)
        return jax.lax.fori_loop(0, steps, body, (carry, rows))

    return jax.jit(run)


@lru_cache(maxsize=32)
def _cached_scan(core: Core, agent: Any, num_envs: int, length: int) -> Callable[..., tuple[Carry, Record]]:
    return _new_scan(core, agent, num_envs, length)


def counting(core: Core, agent: Any, num_envs: int) -> Callable[[Carry, Counts, int], tuple[Carry, Counts]]:
    """The compiled run of any number of steps that keeps counts only."""
    shared, numbers = _shared(core)
    make = _cached_counting if _is_value(agent) else _new_counting
    return partial(make(shared, agent, num_envs), numbers)


def _new_counting(core: Core, agent: Any, num_envs: int) -> Callable[..., tuple[Carry, Counts]]:
    turn, counter = _turn(core, agent, num_envs), Counter(core, num_envs)

    def run(numbers: Any, carry: Carry, counts: Counts, steps: Any) -> tuple[Carry, Counts]:
        link = _link(core, numbers)

        def body(_: Any, both: tuple[Carry, Counts]) -> tuple[Carry, Counts]:
            carry, record = turn(link, both[0])
            return carry, counter.step(both[1], link.uplink_ms, carry.state, record)

        return jax.lax.fori_loop(0, steps, body, (carry, counts))

    return jax.jit(run)


@lru_cache(maxsize=32)
def _cached_counting(core: Core, agent: Any, num_envs: int) -> Callable[..., tuple[Carry, Counts]]:
    return _new_counting(core, agent, num_envs)


def step(core: Core, state: State, action: Any) -> tuple[State, Any, Record]:
    """The state after a micro-turn and its observation, that, and the record."""
    shared, numbers = _shared(core)
    return _compiled_step(shared)(numbers, state, action)  # type: ignore[no-any-return]


@lru_cache(maxsize=32)
def _compiled_step(core: Core) -> Callable[..., Any]:
    def run(numbers: Any, state: State, action: Any) -> Any:
        state, observation, _, record = core.step(_link(core, numbers), state, action)
        return state, observation, _small(core, record)

    return jax.jit(run)


def loop(core: Core, agent: Any, num_envs: int) -> Callable[[Carry, int], tuple[Carry, Record]]:
    """The same chunk with the agent called from Python on NumPy arrays."""
    call = _policy.as_callable(agent)

    def run(carry: Carry, steps: int) -> tuple[Carry, Record]:
        rows = []
        agent_state = carry.agent
        state, obs = observed(core, carry.state, carry.seen)
        for _ in range(steps):
            seen = {name: np.asarray(value) for name, value in _policy.observation(obs).items()}
            action, agent_state = call(seen, agent_state)
            state, obs, row = step(core, state, _policy.checked_action(core, action, num_envs))
            rows.append(jax.tree.map(np.asarray, row))
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
        return Carry(state, obs, agent_state, carry.outside), stacked

    return run
