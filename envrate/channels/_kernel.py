"""The link in JAX: one packet of each environment at a time, with a trailing batch shape.

Times: the clock is whole milliseconds. What the transmitter is busy with is kept in microseconds relative to the
moment of the last send, so that 32 bits hold it whatever the length of the run. As every other term is whole
milliseconds, rounding a departure up to the next millisecond changes no comparison with the clock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _counters
from envrate._counters import Words
from envrate.channels._link import Constant, Exponential, GilbertElliott, Link, TwoPoint, Uniform

Array = jax.Array

#: Arrival times of packets that never arrive, above any time of the clock.
NOT_SENT, LOST, DROPPED_FULL, DROPPED_LATE = (2**31 - 1 - code for code in range(4))
#: Times at or above this are one of the codes above.
NEVER = 2**31 - 16
#: Longest transmission that is told apart, in microseconds; longer ones are later than any max_age_ms.
LONGEST_US = 2**30

CONSTANT, UNIFORM, TWO_POINT, EXPONENTIAL = range(4)


class LinkParams(NamedTuple):
    """A link for one packet size, as numbers: NumPy scalars that a kernel closes over, or traced scalars."""

    transmission_us: Any  # int32
    room_us: Any  # int32, a packet is taken while the backlog is below this
    delay_ms: Any  # int32, jitter's least value included
    max_age_ms: Any  # int32
    uplink_ms: Any  # int32
    jitter: Any  # int32, CONSTANT ... EXPONENTIAL
    span: Any  # uint32: high - low of two points, number of values of a uniform jitter
    p_high: Any  # uint32 threshold
    mean_ms: Any  # float32 of an exponential jitter
    bursts: Any  # int32, whether the loss is Gilbert-Elliott
    to_bad: Any  # uint32 threshold
    to_good: Any  # uint32 threshold
    loss_good: Any  # uint32 threshold; iid loss too
    loss_bad: Any  # uint32 threshold
    oldest: Any  # int32, whether a full buffer drops its oldest waiting packet


FLOATS = ("mean_ms",)
WORDS = ("span", "p_high", "to_bad", "to_good", "loss_good", "loss_bad")


class LinkState(NamedTuple):
    """What the link remembers of the packets before."""

    busy_us: Any  # (*batch) int32, from the last send to the end of the last transmission
    last_ms: Any  # (*batch) int32, the last arrival
    bad: Any  # (*batch) bool, the Gilbert-Elliott state


class Draws(NamedTuple):
    """A packet's own chance: its jitter, whether it is lost, the loss chain's next state."""

    jitter_ms: Any  # (*batch) int32
    lost: Any  # (*batch) bool
    bad: Any  # (*batch) bool


def max_age(link: Link, horizon_ms: int) -> int:
    """The age beyond which a packet is dropped, in milliseconds."""
    return horizon_ms + 1000 if link.max_age_ms is None else link.max_age_ms


def params(link: Link, packet_bits: int, horizon_ms: int) -> LinkParams:
    """`link` for packets of `packet_bits`, as NumPy scalars."""
    transmission = 0
    if link.bandwidth_bps is not None:
        transmission = min(LONGEST_US, round(packet_bits * 1e6 / link.bandwidth_bps))
    if link.buffer_bits is None:
        room = 2**31 - 1
    else:  # a packet of `packet_bits` takes `transmission` us, so the buffer is as long as its bits say
        room = min(2**31 - 1, max(-1, (link.buffer_bits - packet_bits) * transmission // packet_bits) + 1)
        room = 0 if link.buffer_bits < packet_bits else room
    least, span, p_high, mean, kind = 0, 0, 0.0, 1.0, CONSTANT
    match link.jitter:
        case Constant(value_ms=value):
            least = value
        case Uniform(low_ms=low, high_ms=high):
            kind, least, span = UNIFORM, low, high - low + 1
        case TwoPoint(low_ms=low, high_ms=high, p_high=probability):
            kind, least, span, p_high = TWO_POINT, low, high - low, probability
        case Exponential(mean_ms=mean_ms):
            kind, mean = EXPONENTIAL, mean_ms
    chain = link.loss if isinstance(link.loss, GilbertElliott) else None
    loss_good = link.loss if isinstance(link.loss, float) else link.loss.loss_good
    return LinkParams(
        transmission_us=np.int32(transmission),
        room_us=np.int32(room),
        delay_ms=np.int32(min(link.delay_ms + least, 2 * 10**6)),
        max_age_ms=np.int32(max_age(link, horizon_ms)),
        uplink_ms=np.int32(link.uplink_ms),
        jitter=np.int32(kind),
        span=np.uint32(min(span, 2 * 10**6)),
        p_high=_counters.threshold(p_high),
        mean_ms=np.float32(mean),
        bursts=np.int32(chain is not None),
        to_bad=_counters.threshold(chain.p_good_to_bad if chain else 0.0),
        to_good=_counters.threshold(chain.p_bad_to_good if chain else 0.0),
        loss_good=_counters.threshold(loss_good),
        loss_bad=_counters.threshold(chain.loss_bad if chain else 0.0),
        oldest=np.int32(link.drop == "oldest" and link.buffer_bits is not None),
    )


def pack(values: LinkParams) -> np.ndarray:
    """The parameters as one int32 vector, to be passed to a compiled step without another compilation."""
    return np.array([np.asarray(value).view(np.int32) for value in values], dtype=np.int32)


def unpack(vector: Array) -> LinkParams:
    """The traced parameters of a packed vector."""
    dtypes = {name: jnp.float32 for name in FLOATS} | {name: jnp.uint32 for name in WORDS}
    return LinkParams(
        *(
            jax.lax.bitcast_convert_type(vector[i], dtypes[name]) if name in dtypes else vector[i]
            for i, name in enumerate(LinkParams._fields)
        )
    )


def is_static(value: Any) -> bool:
    """Whether a parameter is a number that the kernel closes over."""
    return isinstance(value, (int, float, np.generic))


def init(batch: tuple[int, ...]) -> LinkState:
    """An idle link whose loss chain is in the good state."""
    return LinkState(jnp.zeros(batch, jnp.int32), jnp.zeros(batch, jnp.int32), jnp.zeros(batch, bool))


def draw(p: LinkParams, bad: Any, bits: Words, chain_bits: Words) -> Draws:
    """The packet's chance from 64 bits of its own, and 64 more where the loss comes in bursts."""
    jitter = _jitter(p, bits[0])
    if is_static(p.bursts) and not p.bursts:
        return Draws(jitter, _counters.below(bits[1], p.loss_good), bad)
    moved = jnp.where(bad, ~_counters.below(chain_bits[0], p.to_good), _counters.below(chain_bits[0], p.to_bad))
    if not is_static(p.bursts):
        moved = jnp.where(p.bursts == 1, moved, bad)
    lost = _counters.below(bits[1], jnp.where(moved, p.loss_bad, p.loss_good))
    return Draws(jitter, lost, moved)


def _jitter(p: LinkParams, word: Any) -> Any:
    """Extra delay beyond the jitter's least value, whole milliseconds."""
    kinds = (
        lambda: jnp.zeros(jnp.shape(word), jnp.int32),
        lambda: _counters.scaled(word, p.span).astype(jnp.int32),
        lambda: jnp.where(_counters.below(word, p.p_high), p.span, np.uint32(0)).astype(jnp.int32),
        lambda: _exponential(p, word),
    )
    if is_static(p.jitter):
        return kinds[int(p.jitter)]()
    return jax.lax.select_n(jnp.broadcast_to(p.jitter, jnp.shape(word)), *(kind() for kind in kinds))


def _exponential(p: LinkParams, word: Any) -> Any:
    """floor(-mean log u), u uniform on (0, 1] in steps of 2^-24."""
    uniform = ((word >> np.uint32(8)) + np.uint32(1)).astype(jnp.float32) * np.float32(2.0**-24)
    return jnp.floor(-p.mean_ms * jnp.log(uniform)).astype(jnp.int32)


def wait(state: LinkState, elapsed_us: Any) -> LinkState:
    """The link `elapsed_us` after the last send."""
    return state._replace(busy_us=jnp.maximum(state.busy_us - elapsed_us, 0))


def to_ms(departure_us: Any) -> Any:
    """Microseconds >= 0, rounded up to milliseconds."""
    return jax.lax.div(departure_us + 999, jnp.int32(1000))


def send(p: LinkParams, state: LinkState, sent_ms: Any, chance: Draws, mask: Any) -> tuple[LinkState, Any]:
    """Offers one packet at `sent_ms`, where `mask`; a full buffer drops it.

    Args:
        p: the link.
        state: as of `sent_ms`; see `wait`.
        sent_ms: int32 scalar.
        chance: from `draw`.
        mask: (*batch) bool, or True: which environments send.

    Returns:
        The state, and (*batch) int32 arrival times or one of the codes `NOT_SENT`, `LOST`, `DROPPED_FULL`,
        `DROPPED_LATE`.
    """
    departure_us = state.busy_us + p.transmission_us
    departure_ms = sent_ms + to_ms(departure_us) if _queues(p) else sent_ms
    arrival = jnp.maximum(state.last_ms, departure_ms + p.delay_ms + chance.jitter_ms)
    late = arrival - sent_ms > p.max_age_ms
    full = state.busy_us >= p.room_us
    taken = ~(late | full) & mask
    arrives = taken & ~chance.lost
    told = jnp.where(arrives, arrival, jnp.where(full, DROPPED_FULL, jnp.where(late, DROPPED_LATE, LOST)))
    if mask is not True:
        told = jnp.where(mask, told, NOT_SENT)
    state = LinkState(
        busy_us=jnp.where(taken, departure_us, state.busy_us),
        last_ms=jnp.where(arrives, arrival, state.last_ms),
        bad=chance.bad if mask is True else jnp.where(mask, chance.bad, state.bad),
    )
    return state, told


def _queues(p: LinkParams) -> bool:
    return not (is_static(p.transmission_us) and p.transmission_us == 0)
