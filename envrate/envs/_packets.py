"""Packets on their way: sent at onsets or captures, kept until they arrive, rendered when they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _counters
from envrate._counters import Stream, Words
from envrate.channels import _kernel, _oldest
from envrate.channels._kernel import LinkParams, LinkState
from envrate.envs import _rings

if TYPE_CHECKING:
    from envrate.envs._core import Core

Array = jax.Array
PyTree = Any

#: In `Transit.probe_arrival`: the tick will be asked about, the question is not sent yet.
TO_ASK = _kernel.NEVER + 1
#: Longer than anything is under way: no packet is kept beyond max_age_ms and a few ticks.
LONGEST_MS = 2**29
#: Signals of at most this many numbers are rendered without asking first whether anything arrived.
SMALL_SIGNAL = 8
#: Environments whose larger signals are drawn together.
BLOCK_ENVS = 128


class Stamps(NamedTuple):
    """Where the random bits of an episode come from."""

    key: Words
    episode: Any  # () int32

    def bits(self, index: Any, stream: Stream) -> Words:
        """The block of packet or tick `index`."""
        return _counters.block(self.key, index, self.episode, stream)


class Transit(NamedTuple):
    """The link and the packets that it carries. Slot of packet n: n % slots; of tick i's probe: i % probe slots."""

    link: LinkState
    source: Any  # the renderer's state
    arrival: Any  # (S, *batch) int32 ms, or a code of the link kernel
    payload: Any  # (S, ..., *batch)
    queue: Any  # what a link that drops its oldest packet needs to know of those that wait; else ()
    probe_arrival: Any  # (P, *batch) int32; () without probes


class BatchFirst(NamedTuple):
    """A large signal whose first axis is the batch: each picture lies in one piece."""

    value: Any  # (B, W, ...)


def batch_first(leaf: Any, xp: Any) -> Any:
    """A leaf of an observation with the batch as its first axis; `xp` is numpy or jax.numpy."""
    return xp.asarray(leaf.value) if isinstance(leaf, BatchFirst) else xp.moveaxis(xp.asarray(leaf), -1, 0)


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


def start(core: Core, stamps: Stamps, z: Any, batch: tuple[int, ...]) -> Transit:
    """Nothing is under way."""
    key = _counters.as_key(stamps.bits(0, Stream.SOURCE))
    source = _rings.over_batch(lambda k: core.renderer.init(core.task, k), batch)(key)
    payload = jax.eval_shape(lambda: _capture(core, stamps, source, z, z, jnp.int32(0), batch)[1])
    probe_arrival: Any = ()
    if core.task.probes is not None:
        probe_arrival = jnp.full((core.probe_slots, *batch), _kernel.NOT_SENT, jnp.int32)
    transit = Transit(
        link=_kernel.init(batch),
        source=source,
        arrival=jnp.full((core.slots, *batch), _kernel.NOT_SENT, jnp.int32),
        payload=jax.tree.map(lambda leaf: jnp.zeros((core.slots, *leaf.shape), leaf.dtype), payload),
        queue=_oldest.init(core.slots + core.probe_slots, batch) if core.drops_oldest else (),
        probe_arrival=probe_arrival,
    )
    return begin_probe(core, transit, stamps, z, jnp.int32(0), jnp.bool_(True))[0]


def _capture(
    core: Core, stamps: Stamps, source: PyTree, z0: Any, z1: Any, packet: Any, batch: tuple[int, ...]
) -> tuple[PyTree, PyTree]:
    """The renderer's (state, payload) of one packet."""
    key = _counters.as_key(stamps.bits(packet, Stream.CAPTURE))
    capture = _rings.over_batch(lambda s, a, b, k: core.renderer.capture(core.task, s, a, b, k), batch)
    return capture(source, z0, z1, key)  # type: ignore[no-any-return]


def begin_probe(
    core: Core, transit: Transit, stamps: Stamps, z: Any, tick: Any, onset: Any
) -> tuple[Transit, Any]:
    """Decides at a tick's onset whether it will be asked about; also returns what its slot held before."""
    if core.task.probes is None:
        return transit, ()
    slot = tick % core.probe_slots
    old = _rings.read(transit.probe_arrival, slot)
    rates = np.broadcast_to(np.asarray(core.task.probes.rate, float), (len(core.task.table),))
    limits = np.array([_counters.threshold(rate) for rate in rates.tolist()])
    if (limits == limits[0]).all():
        limit: Any = limits[0]
    else:
        limit = jnp.asarray(limits)[core.letters.letter(z)]
    asks = _counters.below(stamps.bits(tick, Stream.PROBE)[0], limit)
    row = jnp.where(onset, jnp.where(asks, TO_ASK, _kernel.NOT_SENT), old)
    transit = transit._replace(probe_arrival=_rings.write(transit.probe_arrival, slot, row))
    if core.drops_oldest:
        departure, place = transit.queue.departure_us, core.slots + slot
        gone = jnp.where(onset, _oldest.GONE_US, _rings.read(departure, place))
        queue = transit.queue._replace(departure_us=_rings.write(departure, place, gone))
        transit = transit._replace(queue=queue)
    return transit, old


def send_step(
    core: Core, p: LinkParams, transit: Transit, stamps: Stamps, values: Any, begin: Any, end: Any, tick: Any
) -> tuple[Transit, Any]:
    """Everything sent in (begin, end], in order of time; a packet of the signal before a probe of the same moment.

    Returns:
        The state and (packets per step, *batch) arrivals of the packets whose slots were taken.
    """
    clock = core.clock
    first = clock.newest_packet(begin) + 1
    count = clock.newest_packet(end) - first + 1
    most = clock.packets_per_step
    now = begin
    asked = None
    if core.task.probes is not None:
        asked = clock.newest_probe(end)
        ask_ms = asked * clock.tick_ms + clock.probe_after_ms
        asks = (asked >= 0) & (ask_ms > begin)
        position = jnp.where(asks, clock.newest_packet(ask_ms) - first + 1, most + 1)

    def packet(carry: tuple[Transit, Any], number: Any) -> tuple[tuple[Transit, Any], Any]:
        transit, now = carry
        sent = number * clock.packet_ms
        old = _rings.read(transit.arrival, number % core.slots)
        due = number < first + count
        moved = send_signal(core, p, transit, stamps, values, number, now, due, tick)
        return (moved, jnp.where(due, sent, now)), old

    def question(carry: tuple[Transit, Any]) -> tuple[Transit, Any]:
        transit, now = carry
        return _send_probe(core, p, transit, stamps, asked, now, asks), jnp.where(asks, ask_ms, now)

    carry = (transit, now)
    if asked is None and most <= 2:
        gone = []
        for j in range(most):
            carry, old = packet(carry, first + j)
            gone.append(old)
        transit, now = carry
        gone_rows = jnp.stack(gone)
    else:

        def body(carry: tuple[Transit, Any], j: Any) -> tuple[tuple[Transit, Any], Any]:
            if asked is not None:
                carry = jax.lax.cond(j == position, question, lambda c: c, carry)
            return packet(carry, first + j)

        carry, gone_rows = jax.lax.scan(body, carry, jnp.arange(most))
        if asked is not None:
            carry = jax.lax.cond(position == most, question, lambda c: c, carry)
        transit, now = carry
    link = _kernel.wait(transit.link, (end - now) * 1000)
    return transit._replace(link=link), gone_rows


def send_signal(
    core: Core,
    p: LinkParams,
    transit: Transit,
    stamps: Stamps,
    values: Any,
    number: Any,
    now: Any,
    due: Any,
    tick: Any = 0,
) -> Transit:
    """Captures packet `number` and offers it to the link, where `due` (a scalar).

    Args:
        core: settings.
        p: the link.
        transit: the state, its link as of `now`.
        stamps: random bits.
        values: the latent at the newest three ticks, newest first.
        number: int32 scalar.
        now: int32 scalar, the moment of the last send.
        due: bool scalar.
        tick: int32 scalar, the newest of the three ticks.
    """
    batch = tuple(jnp.shape(stamps.key[0]))
    slot, sent = number % core.slots, number * core.clock.packet_ms

    def go() -> tuple[LinkState, PyTree, Any, Any, PyTree]:
        if core.clock.frame_ms is None:
            z0 = z1 = values[0]
        else:
            z0 = _at(values, tick - core.clock.newest_tick(sent - core.clock.packet_ms))
            z1 = _at(values, tick - core.clock.newest_tick(sent - 1))
        source, payload = _capture(core, stamps, transit.source, z0, z1, number, batch)
        link = _kernel.wait(transit.link, (sent - now) * 1000)
        bits, chain_bits = stamps.bits(number, Stream.LINK), stamps.bits(number, Stream.LINK_STATE)
        chance = _kernel.draw(p, link.bad, bits, chain_bits)
        if core.drops_oldest:
            link, queue, arrival = _offer(core, p, transit, link, slot, sent, chance, True)
            return link, source, queue, arrival, payload
        link, arrival = _kernel.send(p, link, sent, chance, True)
        return link, source, (), jnp.broadcast_to(arrival, batch), payload

    def stay() -> tuple[LinkState, PyTree, Any, Any, PyTree]:
        kept = (transit.arrival, transit.probe_arrival) if core.drops_oldest else _rings.read(transit.arrival, slot)
        return transit.link, transit.source, transit.queue, kept, _rings.read(transit.payload, slot)

    link, source, queue, arrival, payload = jax.lax.cond(due, go, stay)
    transit = transit._replace(
        link=link, source=source, queue=queue, payload=_rings.write(transit.payload, slot, payload)
    )
    if core.drops_oldest:
        return transit._replace(arrival=arrival[0], probe_arrival=arrival[1])
    return transit._replace(arrival=_rings.write(transit.arrival, slot, arrival))


def _offer(
    core: Core, p: LinkParams, transit: Transit, link: LinkState, slot: Any, sent: Any, chance: Any, mask: Any
) -> tuple[LinkState, Any, tuple[Any, Any]]:
    """A packet at `sent` for a link that may drop its oldest; slots of probes come after those of the signal.

    Returns:
        The link, its queue, and the arrivals of the signal and of the probes.
    """
    clock = core.clock
    last = clock.newest_packet(sent)
    packet = last - (last - jnp.arange(core.slots)) % core.slots
    moments, order, arrival = packet * clock.packet_ms, (packet * clock.packet_ms - sent) * 2, transit.arrival
    moments = jnp.where(packet >= clock.first_packet, moments, -1)
    if core.probe_slots:
        last = clock.newest_probe(sent)
        tick = last - (last - jnp.arange(core.probe_slots)) % core.probe_slots
        asked = tick * clock.tick_ms + clock.probe_after_ms
        moments = jnp.concatenate([moments, jnp.where(tick >= 0, asked, -1)])
        order = jnp.concatenate([order, (asked - sent) * 2 + 1])
        arrival = jnp.concatenate([arrival, transit.probe_arrival])
    link, queue, arrival = _oldest.send(p, link, transit.queue, arrival, moments, order, slot, sent, chance, mask)
    probes = arrival[core.slots :] if core.probe_slots else transit.probe_arrival
    return link, queue, (arrival[: core.slots], probes)


def _at(values: Any, back: Any) -> Any:
    """The latent `back` = 0, 1 or 2 ticks before the newest."""
    return jax.tree.map(lambda a, b, c: jnp.where(back <= 0, a, jnp.where(back == 1, b, c)), *values)


def _send_probe(
    core: Core, p: LinkParams, transit: Transit, stamps: Stamps, tick: Any, now: Any, asks: Any
) -> Transit:
    """Offers the question about `tick` to the link, in the environments that ask."""
    slot, sent = tick % core.probe_slots, tick * core.clock.tick_ms + core.clock.probe_after_ms
    row = _rings.read(transit.probe_arrival, slot)
    link = _kernel.wait(transit.link, (sent - now) * 1000)
    bits, chain_bits = stamps.bits(tick, Stream.LINK_PROBE), stamps.bits(tick, Stream.LINK_STATE_PROBE)
    mask = (row == TO_ASK) & asks
    chance = _kernel.draw(p, link.bad, bits, chain_bits)
    if core.drops_oldest:
        link, queue, arrivals_now = _offer(core, p, transit, link, core.slots + slot, sent, chance, mask)
        restored = jnp.where(mask, _rings.read(arrivals_now[1], slot), row)
        return transit._replace(
            link=link,
            queue=queue,
            arrival=arrivals_now[0],
            probe_arrival=_rings.write(arrivals_now[1], slot, restored),
        )
    moved, arrival = _kernel.send(p, link, sent, chance, mask)
    return transit._replace(
        link=moved, probe_arrival=_rings.write(transit.probe_arrival, slot, jnp.where(mask, arrival, row))
    )


def arrivals(
    core: Core, transit: Transit, begin: Any, end: Any, step: Any, batch: tuple[int, ...]
) -> tuple[Transit, Window, Any]:
    """What arrives in (begin, end]: the window of the newest W, and (*batch) int32 the count of all."""
    clock, slots = core.clock, core.slots
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
    return transit, Window(packet, probe, age, payload, newest_tick), fresh


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
        return (BatchFirst(signal) if batch else signal), (signal if spec.holds else ())
    if not spec.holds:
        return signal, ()
    kept = jnp.where((fresh > 0).reshape(1, *(1,) * len(spec.shape), *batch), signal, held)
    return kept, kept


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
        first = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0) if batch else leaf, (*packet[:4], lasting, packet[4]))
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
