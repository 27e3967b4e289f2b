"""What a response does: which tick it answers, whether in time, what that costs; answers to probes likewise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate._responses import Threshold
from envrate.envs import _rings
from envrate.envs._clock import Tempo
from envrate.task import Task

if TYPE_CHECKING:
    from envrate.envs._core import Core
    from envrate.envs._packets import Transit

Array = jax.Array

#: In `Pending.due`: answered, or no tick yet.
SETTLED = -1
#: Tables of at most this many entries are read by selects.
SELECT_ENTRIES = 32


@dataclass(frozen=True)
class Letters:
    """z -> required symbol."""

    table: tuple[int, ...]
    edges: tuple[float, ...] | None  # of a Threshold; None where z is the letter itself
    output: int = 0

    @classmethod
    def of(cls, task: Task) -> Letters:
        """The letters of a task that does not track."""
        if isinstance(task.response, Threshold):
            return cls(task.table, task.response.edges, task.response.output)
        return cls(task.table, None)

    def letter(self, z: Any) -> Any:
        """Index into the task's table: the chain's state, or the interval of a value."""
        if self.edges is not None:
            value = z[self.output]
            return sum(((value >= np.float32(edge)).astype(jnp.int32) for edge in self.edges), jnp.int32(0))
        return z["state"] if isinstance(z, dict) else z

    def required(self, z: Any) -> Any:
        """The required symbol, int32."""
        return lookup(np.asarray(self.table, np.int32), self.letter(z))


class Pending(NamedTuple):
    """Ticks that can still be answered, and what the agent has seen of them."""

    due: Any  # (R, *batch) int8 or int32 required symbol, SETTLED; (R, d, *batch) float32 values where the task tracks
    newest: Any  # (*batch) int32, the newest tick with a packet in an observation; -1 none
    unanswered: Any  # (P, *batch) bool, ticks whose probe has no answer yet; () without probes
    outputs: Any  # (C, d, *batch) float32, the newest responses where the task tracks; else ()


def lookup(table: np.ndarray, index: Any) -> Any:
    """table[index] for a small table of one dimension."""
    if (table == np.arange(len(table))).all():
        return index
    if len(table) > SELECT_ENTRIES:
        return jnp.asarray(table)[index]
    values, counts = np.unique(table, return_counts=True)
    common = values[np.argmax(counts)]
    result = jnp.full(jnp.shape(index), common)
    for i, value in enumerate(table):
        if value != common:
            result = jnp.where(index == i, value, result)
    return result


def severity(core: Core, required: Any, given: Any) -> Any:
    """d[required, given] as float32, 0 on the diagonal; `required` may be `SETTLED`, which costs nothing."""
    d = core.distortion
    off = d[~np.eye(len(d), dtype=bool)]
    known = (required >= 0) & (required != given)
    if (off == off[0]).all():
        return jnp.where(known, off[0], np.float32(0))
    return jnp.where(known, lookup(d.reshape(-1), jnp.maximum(required, 0) * len(d) + given), np.float32(0))


def start(core: Core, z: Any, batch: tuple[int, ...]) -> Pending:
    """Tick 0 has begun; nothing has been seen."""
    slots = core.clock.ticks_open()
    unanswered: Any = jnp.ones((core.probe_slots, *batch), bool) if core.task.probes is not None else ()
    outputs: Any = ()
    if core.task.is_tracking:
        due = _rings.filled(slots, z)
        outputs = _rings.filled(output_slots(core), z)
    else:
        small = core.task.num_symbols <= 127
        due = jnp.full((slots, *batch), SETTLED, jnp.int8 if small else jnp.int32)
    pending = Pending(due, jnp.full(batch, -1, jnp.int32), unanswered, outputs)
    return begin(core, pending, z, core.tempo.start(), jnp.bool_(True))


def output_slots(core: Core) -> int:
    """Responses of a tracking agent that can be on their way or in effect."""
    return (core.compute_ms + core.link.uplink_ms) // core.clock.turn_ms + 2


def begin(core: Core, pending: Pending, z: Any, now: Any, onset: Any) -> Pending:
    """The state after a tick has begun, where `onset` (a scalar)."""
    wanted = z if core.task.is_tracking else core.letters.required(z).astype(pending.due.dtype)
    pending = pending._replace(due=_rings.put(pending.due, now[Tempo.SLOT], wanted, onset))
    if core.task.probes is None:
        return pending
    slot = now[Tempo.TICK] % core.probe_slots
    return pending._replace(unanswered=_rings.put(pending.unanswered, slot, jnp.bool_(True), onset))


def answer(
    core: Core, pending: Pending, transit: Transit, action: Any, before: Any, now: Any, effect: Any
) -> tuple[Pending, Any, tuple[Any, Any, Any, Any]]:
    """Takes the action of the micro-turn from counters `before` to counters `now`.

    Returns:
        The state, the reward of the step, and (tick, value, probe tick, probe value) as in `Record`.
    """
    if core.task.is_tracking:
        return _track(core, pending, action, before, now, effect)
    factors = list(action) if core.num_factors() else [action]
    symbol, current = factors.pop(0), before[Tempo.TICK]
    tick = jnp.maximum(current - factors.pop(0), -1) if core.task.reply == "named" else pending.newest
    responds = symbol > 0
    valid = responds & (effect - tick * core.clock.tick_ms <= core.clock.horizon_ms) & (tick >= 0)
    slots = pending.due.shape[0]
    held = current - _rings.ages(slots, before[Tempo.SLOT])  # the tick in each slot
    settled = jnp.full(jnp.shape(symbol), SETTLED, jnp.int32)
    for i in range(slots):
        settled = jnp.where(tick == held[i], pending.due[i].astype(jnp.int32), settled)
    settled = jnp.where(valid & (tick < core.clock.num_ticks), settled, SETTLED)
    cost = severity(core, settled, symbol)

    expiring = now[Tempo.DUE]
    scored = (expiring > before[Tempo.DUE]) & (expiring >= 0) & (expiring < core.clock.num_ticks)
    left = _rings.read(pending.due, now[Tempo.DUE_SLOT]).astype(jnp.int32)
    left = jnp.where(scored & ~(valid & (tick == expiring)), left, SETTLED)
    cost = cost + severity(core, left, jnp.zeros_like(symbol))

    hit = valid[None] & (tick[None] == held.reshape(-1, *(1,) * jnp.ndim(symbol)))
    pending = pending._replace(due=jnp.where(hit, np.asarray(SETTLED, pending.due.dtype), pending.due))
    given_tick = jnp.where(responds, tick, -1)
    if core.task.probes is None:
        nothing = jnp.zeros_like(symbol)
        return pending, -cost, (given_tick, symbol, nothing - 1, nothing)
    pending, asked = _answer_probe(core, pending, transit, factors[0], before, effect)
    return pending, -cost, (given_tick, symbol, asked, factors[0])


def _answer_probe(
    core: Core, pending: Pending, transit: Transit, given: Any, before: Any, effect: Any
) -> tuple[Pending, Any]:
    """The answer goes to the newest probe seen that has none yet and is within its deadline."""
    probes = core.task.probes
    assert probes is not None
    now, newest, slots = before[Tempo.NOW], before[Tempo.TICK], core.probe_slots
    held = newest - _rings.ages(slots, newest % slots)
    open_until = held * core.clock.tick_ms + probes.after_ms + probes.deadline_ms
    column = (-1, *(1,) * jnp.ndim(given))
    can = (transit.probe_arrival <= now) & pending.unanswered & ((open_until >= effect) & (held >= 0)).reshape(column)
    asked = jnp.where(can, held.reshape(column), -1).max(axis=0)
    asked = jnp.where(given > 0, asked, -1)
    unanswered = pending.unanswered & ~(can & (held.reshape(column) == asked[None]))
    return pending._replace(unanswered=unanswered), asked


def _track(
    core: Core, pending: Pending, action: Any, before: Any, now: Any, effect: Any
) -> tuple[Pending, Any, tuple[Any, Any, Any, Any]]:
    """A tick costs the squared error of the output in effect at onset + horizon; before the first output that is 0."""
    count = pending.outputs.shape[0]
    outputs = _rings.write(pending.outputs, before[Tempo.STEP] % count, action)
    expiring = now[Tempo.DUE]
    moment = expiring * core.clock.tick_ms + core.clock.horizon_ms
    source = (moment - (effect - before[Tempo.NOW])) // core.clock.turn_ms
    output = jnp.where(source >= 0, _rings.read(outputs, source % count), np.float32(0))
    wanted = _rings.read(pending.due, now[Tempo.DUE_SLOT])
    scored = (expiring > before[Tempo.DUE]) & (expiring >= 0) & (expiring < core.clock.num_ticks)
    cost = jnp.where(scored, ((wanted - output) ** 2).sum(axis=0), np.float32(0))
    nothing = jnp.zeros_like(pending.newest)
    return pending._replace(outputs=outputs), -cost, (pending.newest, action, nothing - 1, nothing)
