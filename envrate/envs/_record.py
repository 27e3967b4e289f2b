"""From the steps' records to the columns of a Trace, in NumPy; the schedule follows from the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envrate._spec import to_dict
from envrate.channels import Link, _kernel
from envrate.channels._kernel import DROPPED_FULL, DROPPED_LATE, LOST, NOT_SENT
from envrate.envs._packets import TO_ASK
from envrate.trace import ACT, NEVER, PROBE, Header, Trace, check_size

if TYPE_CHECKING:
    from envrate.envs._core import Core

Array = NDArray[Any]


@dataclass(frozen=True)
class Steps:
    """One episode of each environment, or its first N steps. Leaves as in `Record`, with the steps as first axis."""

    tick: Array  # (N, B)
    value: Array  # (N, B) or (N, d, B)
    probe_tick: Array  # (N, B)
    probe_value: Array  # (N, B)
    z: Any  # (N, ..., B)
    gone: Array  # (N, packets per step, B)
    gone_probe: Array  # (N, B)
    first_z: Any  # (..., B), the latent at tick 0
    arrival: Array  # (slots, B), as the state holds them after the last step
    probe_arrival: Array  # (probe slots, B)


def tables(core: Core, steps: Steps, *, uplink_ms: int, first_episode: int = 0) -> tuple[dict[str, Array], ...]:
    """(ticks, responses, losses): columns of both tables, and counts of packets by what became of them.

    Environment b is episode `first_episode` + b; rows are in order of episode, then time.
    """
    clock, num_steps = core.clock, len(steps.tick)
    end = num_steps * clock.turn_ms
    finished = num_steps >= clock.num_steps
    batch = steps.tick.shape[1]
    tick = np.arange(max(1, -(-end // clock.tick_ms)))
    onset = tick * clock.tick_ms
    at = np.maximum((onset - 1) // clock.turn_ms, 0)  # the step in which it began
    z = _map(lambda all_z, first: np.concatenate([first[None], all_z[at[1:]]]), steps.z, steps.first_z)
    packets = _arrivals(core, steps, end)
    scored = (onset + clock.horizon_ms < end) & (tick < clock.num_ticks)
    columns: dict[str, Array] = {
        "episode": np.broadcast_to(first_episode + np.arange(batch), (len(tick), batch)),
        "tick": np.broadcast_to(tick[:, None], (len(tick), batch)),
        "onset_ms": np.broadcast_to(onset[:, None], (len(tick), batch)),
        "scored": np.broadcast_to(scored[:, None], (len(tick), batch)),
        "delivered_ms": _delivered(core, packets, len(tick), end),
        **_latent(core, z),
    }
    if core.task.probes is not None:
        columns |= _probed(core, steps, z, at, len(tick), end)
    ticks = {name: _by_environment(values) for name, values in columns.items()}
    given = _responses(core, steps, uplink_ms, first_episode)
    check_size(batch * len(tick), len(given["tick"]))
    return ticks, given, _losses(packets) | {"finished": np.asarray(finished)}


def _map(function: Any, *trees: Any) -> Any:
    """`function` on the leaves of arrays or dicts of arrays."""
    if isinstance(trees[0], dict):
        return {key: _map(function, *(tree[key] for tree in trees)) for key in trees[0]}
    return function(*trees)


def _by_environment(values: Array) -> Array:
    """(N, ..., B) to (B N, ...): one environment after the other."""
    moved = np.moveaxis(values, -1, 0)
    return moved.reshape(moved.shape[0] * moved.shape[1], *moved.shape[2:])


def _latent(core: Core, z: Any) -> dict[str, Array]:
    """The columns `required` and `latent` as (N, ..., B)."""
    if core.task.is_tracking:
        return {"required": z.astype(np.float64), "latent": z.astype(np.float64)}
    letter = letters(core, z)
    latent = letter if isinstance(z, dict) or core.letters.edges is None else z.astype(np.float64)
    return {"required": np.asarray(core.task.table)[letter], "latent": latent}


def letters(core: Core, z: Any) -> Array:
    """Index into the task's table of each value; as `Letters.letter`, in NumPy."""
    if core.letters.edges is not None:
        value = z[:, core.letters.output]
        return np.asarray(sum((value >= np.float32(edge)).astype(np.int64) for edge in core.letters.edges))
    return np.asarray(z["state"] if isinstance(z, dict) else z, dtype=np.int64)


def _arrivals(core: Core, steps: Steps, end: int) -> Array:
    """(packets, B) arrivals, or codes, of all packets sent by `end`."""
    clock, slots = core.clock, core.slots
    number = np.arange(clock.first_packet, clock.newest_packet(end) + 1)
    found = np.full((len(number), steps.arrival.shape[-1]), NOT_SENT, dtype=np.int64)
    last = number[max(0, len(number) - slots) :]
    found[last - clock.first_packet] = steps.arrival[last % slots]
    later = number[number - slots >= clock.first_packet]  # each took the slot of an earlier one
    sent_in = (later * clock.packet_ms - 1) // clock.turn_ms
    first = clock.newest_packet(sent_in * clock.turn_ms) + 1
    found[later - slots - clock.first_packet] = steps.gone[sent_in, later - first]
    return found


def _delivered(core: Core, packets: Array, num_ticks: int, end: int) -> Array:
    """(ticks, B): the observation that first showed a packet about the tick; -1 where none did."""
    clock = core.clock
    seen = _observed(core, packets, end, none=np.iinfo(np.int64).max)
    about = clock.tick_of_packet(np.arange(clock.first_packet, clock.first_packet + len(packets)))
    inside = about < num_ticks
    found = np.full((num_ticks, packets.shape[1]), np.iinfo(np.int64).max)
    starts = np.flatnonzero(np.diff(about[inside], prepend=-1))
    if len(starts):
        found[about[starts]] = np.minimum.reduceat(seen[inside], starts, axis=0)
    return np.where(found == np.iinfo(np.int64).max, NEVER, found)


def _observed(core: Core, arrival: Array, end: int, none: int = NEVER) -> Array:
    """The time of the observation that shows an arrival; `none` for codes and what comes after the end."""
    turn = core.clock.turn_ms
    seen = -(-np.asarray(arrival, np.int64) // turn) * turn
    return np.where((arrival < _kernel.NEVER) & (seen <= end), seen, none)


def _probed(core: Core, steps: Steps, z: Any, at: Array, num_ticks: int, end: int) -> dict[str, Array]:
    """The columns `probe_ms` and `probe_required`."""
    slots = core.probe_slots
    tick = np.arange(num_ticks)
    arrival = np.full((num_ticks, steps.arrival.shape[-1]), NOT_SENT, dtype=np.int64)
    newest = core.clock.newest_tick(end)
    kept = tick[tick > newest - slots]
    arrival[kept] = steps.probe_arrival[kept % slots]
    gone = tick[tick + slots <= newest]
    taken_in = ((gone + slots) * core.clock.tick_ms - 1) // core.clock.turn_ms
    arrival[gone] = steps.gone_probe[taken_in]
    asked = (arrival != NOT_SENT) & (arrival != TO_ASK)
    answers = np.asarray(core.task.question)[letters(core, z)]
    # The observation at the very end can no longer be answered: a question in it was not put.
    asked_ms = _observed(core, arrival, end - 1)
    return {"probe_ms": asked_ms, "probe_required": np.where(asked, answers, -1)}


def _responses(core: Core, steps: Steps, uplink_ms: int, first_episode: int) -> dict[str, Array]:
    """One row per emission."""
    delay = core.compute_ms + uplink_ms
    acted = np.moveaxis(steps.tick if core.task.is_tracking else steps.value, -1, 0)
    env, step = np.nonzero(np.ones_like(acted) if core.task.is_tracking else acted > 0)
    value = steps.value[step, ..., env]
    parts = [(env, step, steps.tick[step, env], value, np.full(len(env), ACT))]
    if core.task.probes is not None:
        env, step = np.nonzero(np.moveaxis(steps.probe_value, -1, 0) > 0)
        answer = steps.probe_value[step, env].astype(np.int64) - 1
        parts.append((env, step, steps.probe_tick[step, env], answer, np.full(len(env), PROBE)))
    env, step, tick, value, kind = (np.concatenate(column) for column in zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.lexsort((kind, step, env))
        env, step, tick, value, kind = env[order], step[order], tick[order], value[order], kind[order]
    return {
        "episode": first_episode + env,
        "time_ms": step * core.clock.turn_ms + delay,
        "tick": tick,
        "value": value.astype(np.float64) if core.task.is_tracking else value,
        "kind": kind,
        "compute_ms": np.full(len(env), core.compute_ms),
    }


def _losses(packets: Array) -> dict[str, Array]:
    """Counts of the signal's packets by fate."""
    counts = {"sent": packets.size, "lost": (packets == LOST).sum()}
    counts |= {"dropped_full": (packets == DROPPED_FULL).sum(), "dropped_late": (packets == DROPPED_LATE).sum()}
    return {name: np.asarray(count) for name, count in counts.items()}


def joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    """Tables laid end to end."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def header(
    core: Core,
    fates: dict[str, int],
    *,
    link: Link,
    modality: str,
    agent: str,
    seed: int | None,
    duration_ms: int,
) -> Header:
    """What a trace says about itself; `fates` counts packets of the signal by what became of them."""
    said = {
        "lost": "were lost",
        "dropped_full": "met a full buffer",
        "dropped_late": "would have come later than max_age_ms and were dropped",
    }
    return Header.for_task(
        core.task,
        modality=modality,
        link=to_dict(link),
        agent=agent,
        seed=seed,
        duration_ms=duration_ms,
        notes=tuple(f"{fates[n]} of {fates['sent']} packets {words}" for n, words in said.items() if fates.get(n)),
        extra={"packets": fates} if fates else {},
    )


def trace(core: Core, parts: list[tuple[dict[str, Array], ...]], **about: Any) -> Trace:
    """A Trace of the tables of one or more episodes; `about` as in `header`."""
    names = ("sent", "lost", "dropped_full", "dropped_late")
    fates = {name: sum(int(part[2][name]) for part in parts) for name in names}
    return Trace(header(core, fates, **about), joined([part[0] for part in parts]), joined([part[1] for part in parts]))
