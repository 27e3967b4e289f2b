"""Rollout: an agent in a batch of environments, one episode each, in one compiled scan per chunk of steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _checks, _counters
from envrate.envs import _build, _policy, _record
from envrate.envs._core import Core, Record, State
from envrate.envs._counts import Counter, Counts
from envrate.scorers import Tally
from envrate.task import Task
from envrate.trace import MAX_BYTES, RESPONSE_COLUMNS, TICK_COLUMNS, Trace

PyTree = Any
#: Records of one chunk take at most this much.
CHUNK_BYTES = 64 * 1024**2
#: Parts of a run that only counts, between which its progress is told.
PARTS = 20


class Carry(NamedTuple):
    """What the scan hands from step to step."""

    state: State
    observation: Any
    agent: PyTree
    outside: Any  # (num_envs,) bool, the agent has left the action space


def rollout(
    env: str | Task | dict[str, Any],
    agent: Any,
    *,
    modality: Any = "symbols",
    link: Any = None,
    num_envs: int = 64,
    num_ticks: int = 2000,
    seed: int = 0,
    compute_ms: int = 0,
    record: str = "trace",
    jit: bool = True,
) -> Trace | Tally:
    """Runs an agent for one episode in each of `num_envs` environments.

    Args:
        env: an id, a preset's name, a `Task` or its dict.
        agent: the name of a reference agent, or a callable (observation, state) -> (action, state). Observations are
            dicts with leading axis num_envs. `agent.init(num_envs, seed)`, where there is one, gives the first state,
            which else is None.
        modality: a renderer, its dict or its kind; an id brings its own.
        link: a `Link`, its dict, a standard link's name, or None for the ideal one.
        num_envs: environments.
        num_ticks: ticks that each scores; the run goes on for a horizon more.
        seed: of everything random.
        compute_ms: the agent's own time, from observation to response.
        record: "trace", or "counts" for a `Tally` of any length in constant memory.
        jit: compile the agent too; False for NumPy callables and for objects with a Stable-Baselines `predict`.

    Returns:
        A `Trace`, or with record="counts" an `envrate.scorers.Tally`.

    Raises:
        ValueError: an argument out of range, an action outside the space, a trace above 2 GB.
    """
    task, modality = _build.task_and_modality(env, modality)
    return simulate(
        _build.make_core(
            task, modality, link, num_ticks=num_ticks, compute_ms=compute_ms, keep=record == "counts"
        ),
        agent,
        num_envs=num_envs,
        seed=seed,
        record=record,
        jit=jit,
    )


def simulate(
    core: Core,
    agent: Any,
    *,
    num_envs: int,
    seed: int,
    record: str,
    jit: bool,
    progress: Callable[[float], None] = lambda share: None,
) -> Trace | Tally:
    """`rollout` on a core; `progress` is told the share that is done."""
    num_envs = _checks.integer("num_envs", num_envs, 1, 2**24)
    seed = _checks.integer("seed", seed, 0)
    _checks.choice("record", record, ("trace", "counts"))
    if isinstance(agent, str):
        from envrate import agents

        agent = agents.get(agent, core.task, modality=core.renderer)
    key = tuple(jnp.asarray(word) for word in _counters.keys(seed, num_envs))
    state, obs = _initial(core)(key)
    carry = Carry(state, obs, _policy.start(agent, num_envs, seed), jnp.zeros(num_envs, bool))
    about = {
        "link": core.link,
        "modality": core.renderer.kind,
        "agent": _policy.name_of(agent),
        "seed": seed,
        "duration_ms": num_envs * core.clock.end_ms,
    }
    if record == "counts":
        return _count(core, agent, carry, num_envs, jit, progress, about)
    _check_size(core, num_envs)
    length, chunks = _chunks(core, num_envs) if jit else (core.clock.num_steps, 1)
    first_z = jax.tree.map(np.asarray, state.z[0])
    run = _scan(core, agent, num_envs, length) if jit else _loop(core, agent, num_envs, length)
    records = []
    for i in range(chunks):
        carry, rows = run(carry)
        _check_inside(core, carry)
        records.append(jax.tree.map(np.asarray, rows))
        progress((i + 1) / chunks)
    num_steps = core.clock.num_steps
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num_steps], *records)
    transit = jax.tree.map(np.asarray, (carry.state.transit.arrival, carry.state.transit.probe_arrival))
    steps = _record.Steps(*joined, first_z, *transit)  # type: ignore[call-arg]  # a record's fields, in order
    return _record.trace(core, [_record.tables(core, steps, uplink_ms=core.link.uplink_ms)], **about)


def _count(
    core: Core,
    agent: Any,
    carry: Carry,
    num_envs: int,
    jit: bool,
    progress: Callable[[float], None],
    about: dict[str, Any],
) -> Tally:
    """The run with record="counts"."""
    if core.task.is_tracking:
        raise ValueError("record: 'counts' expected symbols, this task tracks real values; use record='trace'")
    if not jit:
        raise ValueError("jit: record='counts' expected a compiled agent; use record='trace' with jit=False")
    counter = Counter(core, num_envs)
    run = _counting(core, agent, num_envs)
    counts, done, total = counter.start(carry.state), 0, core.clock.num_steps
    part = max(1, -(-total // PARTS))
    while done < total:
        part = min(part, total - done)
        carry, counts = run(carry, counts, part)
        done += part
        _check_inside(core, carry)
        progress(done / total)
    counts = jax.jit(counter.flush)(counts, carry.state)
    header = _record.header(core, {}, **about)
    return counter.tally(counts, header)


def _check_inside(core: Core, carry: Carry) -> None:
    outside = np.asarray(carry.outside)
    if outside.any():
        raise ValueError(
            f"action: environment {int(np.argmax(outside))} got one outside the space; expected sizes "
            f"{core.action_sizes or 'finite numbers'}"
        )


def _check_size(core: Core, num_envs: int) -> None:
    """Refuses a trace whose ticks alone would be above 2 GB before it is simulated."""
    rows = num_envs * core.clock.total_ticks
    size = 8 * rows * len(TICK_COLUMNS)
    if size > MAX_BYTES:
        raise ValueError(
            f"trace: {rows} ticks take {size / 1024**3:.1f} GB before any response ({8 * len(RESPONSE_COLUMNS)} bytes "
            f"each), more than {MAX_BYTES / 1024**3:.0f} GB; use record='counts', which keeps counts only"
        )


def _chunks(core: Core, num_envs: int) -> tuple[int, int]:
    """(steps per chunk, chunks): equal chunks, the last of which may run past the end."""
    values = 4 * core.task.latent.num_outputs if core.task.is_tracking else 8
    per_step = num_envs * (12 + 2 * values + 4 * core.clock.packets_per_step)
    chunks = -(-core.clock.num_steps * per_step // CHUNK_BYTES)
    return -(-core.clock.num_steps // chunks), chunks


@lru_cache(maxsize=64)
def _initial(core: Core) -> Callable[..., Any]:
    return jax.jit(lambda key: core.init(core.params, key, jnp.int32(0)))


def _small(core: Core, record: Record) -> Record:
    """The record in as few bytes as hold it."""
    if core.task.is_tracking or core.task.num_symbols > 127:
        return record
    return record._replace(value=record.value.astype(jnp.int8))


def _is_value(agent: Any) -> bool:
    """Whether the agent is a frozen dataclass, whose compiled run can be found again; others may change inside."""
    settings: Any = getattr(type(agent), "__dataclass_params__", None)
    return settings is not None and bool(settings.frozen)


def _scan(core: Core, agent: Any, num_envs: int, length: int) -> Callable[[Carry], tuple[Carry, Record]]:
    """The compiled scan of a chunk."""
    make = _cached_scan if _is_value(agent) else _new_scan
    return make(core, agent, num_envs, length)


def _turn(core: Core, agent: Any, num_envs: int) -> Callable[[Carry], tuple[Carry, Record]]:
    """One action and one step of the world, traced."""
    call = _policy.as_callable(agent)
    if not callable(agent):
        raise ValueError("agent: an object with `predict` is not compiled; pass jit=False")

    def turn(carry: Carry) -> tuple[Carry, Record]:
        try:
            action, agent_state = call(_policy.observation(carry.observation), carry.agent)
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
            raise ValueError(f"agent: JAX could not trace it, pass jit=False ({str(error).splitlines()[0]})") from error
        inner, outside = _policy.traced_action(core, action, num_envs)
        state, observation, _, record = core.step(core.params, carry.state, inner)
        return Carry(state, observation, agent_state, carry.outside | outside), record

    return turn


def _new_scan(core: Core, agent: Any, num_envs: int, length: int) -> Callable[[Carry], tuple[Carry, Record]]:
    turn = _turn(core, agent, num_envs)

    def body(carry: Carry, _: None) -> tuple[Carry, Record]:
        carry, record = turn(carry)
        return carry, _small(core, record)

    return jax.jit(lambda carry: jax.lax.scan(body, carry, None, length=length))


@lru_cache(maxsize=32)
def _cached_scan(core: Core, agent: Any, num_envs: int, length: int) -> Callable[[Carry], tuple[Carry, Record]]:
    return _new_scan(core, agent, num_envs, length)


def _counting(core: Core, agent: Any, num_envs: int) -> Callable[[Carry, Counts, int], tuple[Carry, Counts]]:
    """The compiled run of any number of steps that keeps counts only."""
    make = _cached_counting if _is_value(agent) else _new_counting
    return make(core, agent, num_envs)


def _new_counting(core: Core, agent: Any, num_envs: int) -> Callable[[Carry, Counts, int], tuple[Carry, Counts]]:
    turn, counter = _turn(core, agent, num_envs), Counter(core, num_envs)

    def body(_: Any, both: tuple[Carry, Counts]) -> tuple[Carry, Counts]:
        carry, record = turn(both[0])
        return carry, counter.step(both[1], core.params.uplink_ms, carry.state, record)

    return jax.jit(lambda carry, counts, n: jax.lax.fori_loop(0, n, body, (carry, counts)))


@lru_cache(maxsize=32)
def _cached_counting(core: Core, agent: Any, num_envs: int) -> Callable[[Carry, Counts, int], tuple[Carry, Counts]]:
    return _new_counting(core, agent, num_envs)


@lru_cache(maxsize=32)
def _one_step(core: Core) -> Callable[..., Any]:
    def step(state: State, action: Any) -> Any:
        state, observation, _, record = core.step(core.params, state, action)
        return state, observation, _small(core, record)

    return jax.jit(step)


def _loop(core: Core, agent: Any, num_envs: int, length: int) -> Callable[[Carry], tuple[Carry, Record]]:
    """The same chunk with the agent called from Python on NumPy arrays."""
    call, step = _policy.as_callable(agent), _one_step(core)

    def run(carry: Carry) -> tuple[Carry, Record]:
        rows = []
        state, obs, agent_state, outside = carry
        for _ in range(length):
            seen = {name: np.asarray(value) for name, value in _policy.observation(obs).items()}
            action, agent_state = call(seen, agent_state)
            state, obs, row = step(state, _policy.checked_action(core, action, num_envs))
            rows.append(jax.tree.map(np.asarray, row))
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
        return Carry(state, obs, agent_state, outside), stacked

    return run


