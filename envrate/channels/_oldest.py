"""A full buffer that drops its oldest waiting packet, for packets of one size.

Dropping the oldest of the packets that wait moves each later one forward by one transmission, so their arrivals are
computed anew. What that takes is kept per packet in rings, beside the arrivals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envrate.channels import _kernel
from envrate.channels._kernel import DROPPED_FULL, DROPPED_LATE, LOST, NEVER, NOT_SENT, Draws, LinkParams, LinkState

Array = jax.Array

#: Departure of packets that are not in the queue: long before any time.
GONE_US = -(2**30)


class Queue(NamedTuple):
    """What is kept of each packet; slots as in the ring of arrivals."""

    departure_us: Any  # (N, *batch) int32, relative to its own sending; GONE_US where it was not taken
    hop_ms: Any  # (N, *batch) int32, propagation and jitter
    lost: Any  # (N, *batch) bool


def init(slots: int, batch: tuple[int, ...]) -> Queue:
    """No packets."""
    shape = (slots, *batch)
    return Queue(jnp.full(shape, GONE_US, jnp.int32), jnp.zeros(shape, jnp.int32), jnp.zeros(shape, bool))


def send(
    p: LinkParams,
    state: LinkState,
    queue: Queue,
    arrival: Array,
    sent_ms: Array,
    order: Array,
    slot: Any,
    moment: Any,
    chance: Draws,
    mask: Any,
) -> tuple[LinkState, Queue, Array]:
    """Offers a packet at `moment` where `mask`, in place of whatever `slot` held.

    Args:
        p: the link.
        state: as of `moment`.
        queue: what is known of the packets.
        arrival: (N, *batch) int32 arrivals or codes.
        sent_ms: (N,) int32, when each slot's packet was sent; -1 before the first.
        order: (N,) int32, the order of sending, no two alike.
        slot: int32 scalar.
        moment: int32 scalar.
        chance: the packet's own.
        mask: (*batch) bool or True.
    """
    column = (-1, *(1,) * jnp.ndim(state.busy_us))
    mask = jnp.broadcast_to(jnp.asarray(mask), jnp.shape(state.busy_us))
    mine = (jnp.arange(arrival.shape[0]) == slot).reshape(column)
    offset_us = ((moment - sent_ms) * 1000).reshape(column)
    waits = (queue.departure_us - p.transmission_us > offset_us) & ~mine & (sent_ms >= 0).reshape(column)
    place = jnp.where(waits, order.reshape(column), NEVER)
    oldest = place.min(axis=0)
    full = state.busy_us >= p.room_us
    drops = full & (oldest < NEVER) & (p.oldest == 1)

    # The queue without its oldest waiting packet.
    removed = waits & (place == oldest[None]) & drops[None]
    later = waits & ~removed & drops[None]
    earlier = queue.departure_us - p.transmission_us
    departure = jnp.where(removed, GONE_US, jnp.where(later, earlier, queue.departure_us))
    raw = sent_ms.reshape(column) + _kernel.to_ms(departure) + queue.hop_ms
    known = jnp.where((arrival < NEVER) & ~waits & ~mine, arrival, -1)
    reached = jnp.where(later & ~queue.lost, raw, known)
    latest = _running_max(reached, order)
    moved = jnp.where(removed, DROPPED_FULL, jnp.where(later & ~queue.lost, latest, arrival))
    last_ms = jnp.where(drops, latest.max(axis=0), state.last_ms)

    departure_us = state.busy_us + jnp.where(drops, 0, p.transmission_us)
    hop = p.delay_ms + chance.jitter_ms
    when = jnp.maximum(last_ms, moment + _kernel.to_ms(departure_us) + hop)
    late = when - moment > p.max_age_ms
    taken = mask & ~late & (drops | ~full)
    changes = (taken & drops)[None]
    refused = jnp.where(full & ~drops, DROPPED_FULL, DROPPED_LATE)
    told = jnp.where(taken, jnp.where(chance.lost, LOST, when), jnp.where(mask, refused, NOT_SENT))
    arrives = taken & ~chance.lost
    state = LinkState(
        busy_us=jnp.where(taken, departure_us, state.busy_us),
        last_ms=jnp.where(arrives, when, jnp.where(changes[0], last_ms, state.last_ms)),
        bad=jnp.where(mask, chance.bad, state.bad),
    )
    arrival = jnp.where(mine, told[None], jnp.where(changes, moved, arrival))
    queue = Queue(
        departure_us=jnp.where(
            mine, jnp.where(taken, departure_us, GONE_US)[None], jnp.where(changes, departure, queue.departure_us)
        ),
        hop_ms=jnp.where(mine, hop[None], queue.hop_ms),
        lost=jnp.where(mine, chance.lost[None], queue.lost),
    )
    return state, queue, arrival


def _running_max(values: Array, order: Array) -> Array:
    """The largest value of each slot and those before it in `order`."""
    rank = jnp.argsort(order)
    return jax.lax.cummax(values[rank], axis=0)[jnp.argsort(rank)]
