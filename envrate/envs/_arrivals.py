"""What has arrived: the newest packets of an observation, rendered when they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _counters
from envrate._counters import Stream
from envrate.envs import _rings
from envrate.envs._clock import Tempo

if TYPE_CHECKING:
    from envrate.envs._core import Core
    from envrate.envs._packets import Stamps, Transit

PyTree = Any

#: Longer than anything is under way: no packet is kept beyond max_age_ms and a few ticks.
LONGEST_MS = 2**29
#: Signals of at most this many numbers are rendered without asking first whether anything arrived.
SMALL_SIGNAL = 8
#: Environments whose larger signals are drawn together.
BLOCK_ENVS = 128


class BatchFirst(NamedTuple):
    """A large signal whose first axis is the batch: each picture lies in one piece."""

    value: Any  # (B, W, ...)


def batch_first(leaf: Any, xp: Any) -> Any:
    """A leaf of an observation with the batch as its first axis; `xp` is numpy or jax.numpy."""
    if isinstance(leaf, BatchFirst):
        return xp.asarray(leaf.value)
    array = xp.asarray(leaf)
    return array.T if array.ndim <= 2 else xp.moveaxis(array, -1, 0)  # `T` is ten times as fast as `moveaxis`


def is_small(core: Core) -> bool:
    """Whether the signal is small enough to be kept with the batch as its last axis."""
    return int(np.prod(core.signal.shape)) * core.window <= SMALL_SIGNAL


class Window(NamedTuple):
    """The newest arrivals of an observation, newest last."""

    packet: Any  # (W, *batch) int32, the packet's number, or the tick of a probe; -1 empty
    probe: Any  # (W, *batch) bool
    age_ms: Any  # (W, *batch) int32 since capture end; -1 empty
    payload: Any  # (W, ..., *batch)
    newest_tick: Any  # (*batch) int32, the newest tick that any arrival of the signal is about; -1 none


def arrivals(core: Core, transit: Transit, now: Any, begin: Any, batch: tuple[int, ...]) -> tuple[Window, Any]:
    """What arrives from `begin` to the counters `now`: the newest W, and (*batch) int32 the count of all."""
    if core.clock.frame_ms is None and core.task.probes is None and core.slots <= _rings.SMALL:
        return _events(core, transit, now, begin)
    clock, slots, end = core.clock, core.slots, now[Tempo.NOW]
    last = clock.newest_packet(end)
    number = last - (last - jnp.arange(slots)) % slots  # the packet in each slot
    arrived = (transit.arrival > begin) & (transit.arrival <= end)
    fresh = arrived.sum(axis=0, dtype=jnp.int32)
    if core.task.probes is None:
        found = jnp.stack(_rings.newest(arrived, number, core.window)[::-1])
        probe = jnp.zeros(found.shape, bool)
        packet, sent = found, found * clock.packet_ms
        newest_packet = found[-1]
    else:
        tick = clock.newest_tick(end)
        asked = tick - (tick - jnp.arange(core.probe_slots)) % core.probe_slots
        probe_here = (transit.probe_arrival > begin) & (transit.probe_arrival <= end)
        fresh = fresh + probe_here.sum(axis=0, dtype=jnp.int32)
        # Order of sending, counted from a moment before anything that can still arrive.
        base = end - LONGEST_MS
        moments = jnp.concatenate(
            [(number * clock.packet_ms - base) * 2, (asked * clock.tick_ms + clock.probe_after_ms - base) * 2 + 1]
        )
        here = jnp.concatenate([arrived, probe_here])
        found = jnp.stack(_rings.newest(here, moments, core.window)[::-1])
        probe, sent = (found >= 0) & (found % 2 == 1), base + found // 2
        packet = jnp.where(probe, (sent - clock.probe_after_ms) // clock.tick_ms, sent // clock.packet_ms)
        packet = jnp.where(found >= 0, packet, -1)
        column = (-1, *(1,) * len(batch))
        newest_packet = jnp.where(arrived, number.reshape(column), -1).max(axis=0)
    age = jnp.where(found >= 0, end - sent, -1)
    payload = jax.tree.map(
        lambda *rows: jnp.stack(rows),
        *(_rings.pick(transit.payload, packet[w] % slots, slots) for w in range(core.window)),
    )
    newest_tick = jnp.where(newest_packet >= 0, clock.tick_of_packet(newest_packet), -1)
    return Window(packet, probe, age, payload, newest_tick), fresh


def _events(core: Core, transit: Transit, now: Any, begin: Any) -> tuple[Window, Any]:
    """`arrivals` where a tick is a packet and few are kept: one bit per packet, the newest lowest."""
    slots, count, end = core.slots, core.window, now[Tempo.NOW]
    back = _rings.ages(slots, now[Tempo.PACKET_SLOT])
    shape = jnp.shape(transit.arrival)[1:]
    bits = jnp.zeros(shape, jnp.uint32)
    for i in range(slots):
        arrived = (transit.arrival[i] > begin) & (transit.arrival[i] <= end)
        bits = bits | (arrived.astype(jnp.uint32) << back[i].astype(jnp.uint32))
    place = jnp.arange(count - 1, -1, -1).reshape(-1, *(1,) * len(shape))  # newest last
    rest = jnp.broadcast_to(bits, (count, *shape))
    for i in range(1, count):  # without the `place` newest
        rest = jnp.where(place >= i, rest & (rest - np.uint32(1)), rest)
    some = rest != 0
    age = jax.lax.population_count((rest & (~rest + np.uint32(1))) - np.uint32(1)).astype(jnp.int32)
    packet = jnp.where(some, now[Tempo.TICK] - age, -1)

    def shown(leaf: Any) -> Any:
        value = jnp.broadcast_to(leaf[0], (count, *shape))
        for i in range(1, slots):
            value = jnp.where(age == back[i], leaf[i][None], value)
        return value

    small = all(leaf.ndim == 1 + len(shape) for leaf in jax.tree.leaves(transit.payload))
    if small:
        payload = jax.tree.map(shown, transit.payload)
    else:
        chosen = [_rings.pick(transit.payload, packet[w] % slots, slots) for w in range(count)]
        payload = jax.tree.map(lambda *rows: jnp.stack(rows), *chosen)
    age_ms = jnp.where(some, now[Tempo.AGE] + age * core.clock.tick_ms, -1)
    newest = jax.lax.population_count((bits & (~bits + np.uint32(1))) - np.uint32(1)).astype(jnp.int32)
    newest_tick = jnp.where(bits != 0, now[Tempo.TICK] - newest, -1)
    window = Window(packet, jnp.zeros((count, *shape), bool), age_ms, payload, newest_tick)
    return window, jax.lax.population_count(bits).astype(jnp.int32)


def shown(
    core: Core, stamps: Stamps, window: Window, fresh: Any, held: PyTree, batch: tuple[int, ...]
) -> tuple[Any, PyTree]:
    """The rendered window and the picture to hold: (W, ..., *batch), or `BatchFirst` where the signal is large."""
    spec = core.signal
    empty = jnp.asarray(spec.empty, spec.dtype)

    keys = tuple(jnp.broadcast_to(word, window.packet.shape) for word in stamps.key)
    own = _counters.block(keys, window.packet, stamps.episode, Stream.RENDER)
    if core.task.probes is not None:
        asked = _counters.block(keys, window.packet, stamps.episode, Stream.RENDER_PROBE)
        own = tuple(jnp.where(window.probe, a, b) for a, b in zip(asked, own, strict=True))
    end_ms = jnp.where(
        window.probe,
        window.packet * core.clock.tick_ms + core.clock.probe_after_ms,
        window.packet * core.clock.packet_ms,
    )
    lasting = _counters.as_key(stamps.bits(0, Stream.EPISODE))

    def one(there: Any, payload: Any, end: Any, probe: Any, episode_key: Any, key: Any) -> Any:
        picture = core.renderer.render(core.task, payload, end, probe, episode_key, key).astype(spec.dtype)
        return jnp.where(there, picture, empty)

    there = window.packet >= 0
    packets = (there, window.payload, end_ms, window.probe, _counters.as_key(own))
    if is_small(core):

        def all_of_one(there: Any, payload: Any, end: Any, probe: Any, episode_key: Any, key: Any) -> Any:
            return jax.vmap(one, in_axes=(0, 0, 0, 0, None, 0))(there, payload, end, probe, episode_key, key)

        arguments = (*packets[:4], lasting, packets[4])
        signal = _rings.over_batch(all_of_one, batch)(*arguments)
    else:
        signal = _pictures(one, packets, lasting, jnp.full(spec.shape, empty), batch)
        if spec.holds:
            signal = jnp.where((fresh > 0).reshape(*batch, 1, *(1,) * len(spec.shape)), signal, held)
        return as_signal(core, signal, batch), (signal if spec.holds else ())
    if not spec.holds:
        return signal, ()
    kept = jnp.where((fresh > 0).reshape(1, *(1,) * len(spec.shape), *batch), signal, held)
    return kept, kept


def blank(core: Core, batch: tuple[int, ...]) -> Any:
    """A window of empty slots."""
    shape = (core.window, *core.signal.shape)
    return jnp.full((*shape, *batch) if is_small(core) else (*batch, *shape), core.signal.empty, core.signal.dtype)


def as_signal(core: Core, window: Any, batch: tuple[int, ...]) -> Any:
    """A window as an observation holds it: marked where the batch is its first axis."""
    return BatchFirst(window) if batch and not is_small(core) else window


def _pictures(one: Any, packets: Any, lasting: Any, empty: Any, batch: tuple[int, ...]) -> Any:
    """(*batch, W, ...) large signals, slot by slot and some environments at a time, skipping those where none arrived.

    Pixels are drawn with the environment as the first axis: with it last, neighbours in memory would come from
    different pictures. Blocks of environments keep what is half drawn small.
    """

    def drawn(block: Any) -> Any:
        render = one
        for _ in batch:
            render = jax.vmap(render)
        shape = (*block[0].shape, *empty.shape)
        return jax.lax.cond(block[0].any(), lambda: render(*block), lambda: jnp.broadcast_to(empty, shape))

    def slot(packet: Any) -> Any:
        parts = (*packet[:4], lasting, packet[4])
        first = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0) if batch else leaf, parts)
        if not batch or batch[0] <= BLOCK_ENVS:
            return drawn(first)
        whole = batch[0] // BLOCK_ENVS * BLOCK_ENVS
        cut = jax.tree.map(lambda leaf: leaf[:whole].reshape(-1, BLOCK_ENVS, *leaf.shape[1:]), first)
        done = jax.lax.map(drawn, cut).reshape(whole, *empty.shape)
        if whole == batch[0]:
            return done
        return jnp.concatenate([done, drawn(jax.tree.map(lambda leaf: leaf[whole:], first))])

    rendered = jax.lax.map(slot, packets)
    return jnp.moveaxis(rendered, 1, 0) if batch else rendered
