"""Packets on their way: sent at onsets or captures, and kept until they arrive."""

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
from envrate.envs._clock import Tempo

if TYPE_CHECKING:
    from envrate.envs._core import Core

Array = jax.Array
PyTree = Any

#: In `Transit.probe_arrival`: the tick will be asked about, the question is not sent yet.
TO_ASK = _kernel.NEVER + 1


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

    def decided() -> Any:
        return jnp.where(_counters.below(stamps.bits(tick, Stream.PROBE)[0], limit), TO_ASK, _kernel.NOT_SENT)

    row = jax.lax.cond(onset, decided, lambda: old)
    transit = transit._replace(probe_arrival=_rings.write(transit.probe_arrival, slot, row))
    if core.drops_oldest:
        departure, place = transit.queue.departure_us, core.slots + slot
        gone = jnp.where(onset, _oldest.GONE_US, _rings.read(departure, place))
        queue = transit.queue._replace(departure_us=_rings.write(departure, place, gone))
        transit = transit._replace(queue=queue)
    return transit, old


def chance(core: Core, p: LinkParams, transit: Transit, stamps: Stamps, number: Any) -> Any:
    """The jitter and the loss of a packet of the signal."""
    bits, chain_bits = stamps.bits(number, Stream.LINK), stamps.bits(number, Stream.LINK_STATE)
    return _kernel.draw(p, transit.link.bad, bits, chain_bits)


def send_step(
    core: Core, p: LinkParams, transit: Transit, stamps: Stamps, values: Any, before: Any, now: Any, drawn: Any
) -> tuple[Transit, Any]:
    """Everything sent in a micro-turn, in order of time; a packet of the signal before a probe of the same moment.

    Args:
        core: settings.
        p: the link.
        transit: the state, its link as of the micro-turn's start.
        stamps: random bits.
        values: the latent at the newest three ticks, newest first.
        before: the clock's counters at the start.
        now: those at the end.
        drawn: the chance of the tick's packet, where that is all that can be sent.

    Returns:
        The state and (packets per step, *batch) arrivals of the packets whose slots were taken.
    """
    begin, end, tick = before[Tempo.NOW], now[Tempo.NOW], now[Tempo.TICK]
    if core.clock.frame_ms is None and core.task.probes is None:
        old = _rings.read(transit.arrival, now[Tempo.PACKET_SLOT])
        due = tick > before[Tempo.TICK]
        transit = send_signal(core, p, transit, stamps, values, tick, begin, due, tick, drawn)
        sent = jnp.where(due, end - now[Tempo.AGE], begin)
        return transit._replace(link=_kernel.wait(transit.link, (end - sent) * 1000)), old[None]
    return _send_several(core, p, transit, stamps, values, begin, end, tick)


def _send_several(
    core: Core, p: LinkParams, transit: Transit, stamps: Stamps, values: Any, begin: Any, end: Any, tick: Any
) -> tuple[Transit, Any]:
    """`send_step` where one micro-turn can send several packets."""
    clock = core.clock
    first = clock.newest_packet(begin) + 1
    count = clock.newest_packet(end) - first + 1
    most = clock.packets_per_step
    if core.task.probes is not None:
        asked = clock.newest_probe(end)
        ask_ms = asked * clock.tick_ms + clock.probe_after_ms
        asks = (asked >= 0) & (ask_ms > begin)
        position = jnp.where(asks, clock.newest_packet(ask_ms) - first + 1, most + 1)

    def packet(carry: tuple[Transit, Any], j: Any) -> tuple[tuple[Transit, Any], Any]:
        transit, now = carry
        number, due = first + j, j < count
        old = _rings.read(transit.arrival, number % core.slots)
        moved = send_signal(core, p, transit, stamps, values, number, now, due, tick)
        return (moved, jnp.where(due, number * clock.packet_ms, now)), old

    def question(carry: tuple[Transit, Any]) -> tuple[Transit, Any]:
        transit, now = carry
        return _send_probe(core, p, transit, stamps, asked, now, asks), jnp.where(asks, ask_ms, now)

    def body(carry: tuple[Transit, Any], j: Any) -> tuple[tuple[Transit, Any], Any]:
        if core.task.probes is not None:
            carry = jax.lax.cond(j == position, question, lambda c: c, carry)
        return packet(carry, j)

    carry, gone = jax.lax.scan(body, (transit, begin), jnp.arange(most))
    if core.task.probes is not None:
        carry = jax.lax.cond(position == most, question, lambda c: c, carry)
    transit, now = carry
    return transit._replace(link=_kernel.wait(transit.link, (end - now) * 1000)), gone


def send_signal(
    core: Core,
    p: LinkParams,
    transit: Transit,
    stamps: Stamps,
    values: Any,
    number: Any,
    now: Any,
    due: Any,
    tick: Any,
    drawn: Any = None,
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
        drawn: the packet's chance; None draws it here.
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
        own = chance(core, p, transit, stamps, number) if drawn is None else drawn
        if core.drops_oldest:
            link, queue, arrival = _offer(core, p, transit, link, slot, sent, own, True)
            return link, source, queue, arrival, payload
        link, arrival = _kernel.send(p, link, sent, own, True)
        return link, source, (), jnp.broadcast_to(arrival, batch), payload

    def stay() -> tuple[LinkState, PyTree, Any, Any, PyTree]:
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype), transit.payload)
        if core.drops_oldest:
            return transit.link, transit.source, transit.queue, (transit.arrival, transit.probe_arrival), nothing
        return transit.link, transit.source, (), jnp.zeros(batch, jnp.int32), nothing

    link, source, queue, arrival, payload = jax.lax.cond(due, go, stay)
    ring = _rings.put(transit.payload, slot, payload, due)
    transit = transit._replace(link=link, source=source, queue=queue, payload=ring)
    if core.drops_oldest:
        return transit._replace(arrival=arrival[0], probe_arrival=arrival[1])
    return transit._replace(arrival=_rings.put(transit.arrival, slot, arrival, due))


def _offer(
    core: Core, p: LinkParams, transit: Transit, link: LinkState, slot: Any, sent: Any, own: Any, mask: Any
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
    link, queue, arrival = _oldest.send(p, link, transit.queue, arrival, moments, order, slot, sent, own, mask)
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
    own = _kernel.draw(p, link.bad, bits, chain_bits)
    if core.drops_oldest:
        link, queue, arrivals_now = _offer(core, p, transit, link, core.slots + slot, sent, own, mask)
        restored = jnp.where(mask, _rings.read(arrivals_now[1], slot), row)
        return transit._replace(
            link=link,
            queue=queue,
            arrival=arrivals_now[0],
            probe_arrival=_rings.write(arrivals_now[1], slot, restored),
        )
    moved, arrival = _kernel.send(p, link, sent, own, mask)
    return transit._replace(
        link=moved, probe_arrival=_rings.write(transit.probe_arrival, slot, jnp.where(mask, arrival, row))
    )
