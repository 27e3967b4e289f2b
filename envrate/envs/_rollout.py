"""Rollout: an agent in a batch of environments, one episode each, in one compiled scan per chunk of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _checks, _counters
from envrate.envs import _arrivals, _build, _compiled, _policy, _record
from envrate.envs._compiled import Carry
from envrate.envs._core import Core
from envrate.envs._counts import Counter
from envrate.scorers import Tally
from envrate.task import Task
from envrate.trace import MAX_BYTES, RESPONSE_COLUMNS, TICK_COLUMNS, Trace

#: Records of one chunk take at most this much.
CHUNK_BYTES = 64 * 1024**2
#: Parts of a run that only counts, or that draws, between which its progress is told.
PARTS = 20


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
    state, seen = _compiled.start(core, key)
    carry = Carry(state, seen, _policy.start(agent, num_envs, seed), jnp.zeros(num_envs, bool))
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
    num_steps = core.clock.num_steps
    length = _chunk(core, num_envs) if jit else num_steps
    first_z = jax.tree.map(np.asarray, state.z[0])
    run = _compiled.scan(core, agent, num_envs, length) if jit else _compiled.loop(core, agent, num_envs)
    records = []
    for begin in range(0, num_steps, length):
        steps = min(length, num_steps - begin)
        carry, rows = run(carry, steps)
        _check_inside(core, carry)
        records.append(jax.tree.map(np.asarray, rows))
        progress((begin + steps) / num_steps)
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num_steps], *records)
    transit = jax.tree.map(np.asarray, (carry.state.transit.arrival, carry.state.transit.probe_arrival))
    made = _record.Steps(*joined, first_z, *transit)  # type: ignore[call-arg]  # a record's fields, in order
    return _record.trace(core, [_record.tables(core, made, uplink_ms=core.link.uplink_ms)], **about)


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
    run = _compiled.counting(core, agent, num_envs)
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


def _chunk(core: Core, num_envs: int) -> int:
    """Steps per chunk."""
    values = 4 * core.task.latent.num_outputs if core.task.is_tracking else 8
    per_step = num_envs * (12 + 2 * values + 4 * core.clock.packets_per_step)
    chunks = -(-core.clock.num_steps * per_step // CHUNK_BYTES)
    if not _arrivals.is_small(core):
        chunks = max(chunks, PARTS)
    return -(-core.clock.num_steps // chunks)
