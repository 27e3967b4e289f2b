"""The link's kernel in JAX equals a plain queue, packet by packet."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from channels.link_reference import FULL, LATE, LOST, ReferenceLink, random_link

from envrate.channels import Exponential, GilbertElliott, Link, TwoPoint, Uniform, _kernel, _oldest

PACKETS = 48
CODES = {LOST: _kernel.LOST, FULL: _kernel.DROPPED_FULL, LATE: _kernel.DROPPED_LATE}


def sent_times(rng: np.random.Generator) -> np.ndarray:
    if rng.random() < 0.5:
        return np.arange(PACKETS) * int(rng.integers(1, 500))
    return np.cumsum(rng.integers(1, 500, PACKETS)) - 1


@jax.jit
@jax.vmap
def run(vector: jax.Array, sent: jax.Array, bits: jax.Array, chain: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Arrivals by the kernel that drops the newest (as at sending) and by the one that can drop the oldest."""
    p = _kernel.unpack(vector)

    def newest(carry, i):
        link, now = carry
        link = _kernel.wait(link, (sent[i] - now) * 1000)
        chance = _kernel.draw(p, link.bad, (bits[i, 0], bits[i, 1]), (chain[i], chain[i]))
        link, arrival = _kernel.send(p, link, sent[i], chance, True)
        return (link, sent[i]), arrival

    def oldest(carry, i):
        link, now, queue, arrival = carry
        link = _kernel.wait(link, (sent[i] - now) * 1000)
        chance = _kernel.draw(p, link.bad, (bits[i, 0], bits[i, 1]), (chain[i], chain[i]))
        known = jnp.where(jnp.arange(PACKETS) <= i, sent, -1)
        link, queue, arrival = _oldest.send(p, link, queue, arrival, known, known * 2, i, sent[i], chance, True)
        return (link, sent[i], queue, arrival), None

    start = _kernel.init(())
    by_newest = jax.lax.scan(newest, (start, jnp.int32(0)), jnp.arange(PACKETS))[1]
    empty = jnp.full(PACKETS, _kernel.NOT_SENT, jnp.int32)
    by_oldest = jax.lax.scan(oldest, (start, jnp.int32(0), _oldest.init(PACKETS, ()), empty), jnp.arange(PACKETS))[0][3]
    return by_newest, by_oldest


def test_equals_the_queue_on_1000_random_links() -> None:
    rng = np.random.default_rng(20240611)
    cases = [(*random_link(rng), sent_times(rng)) for _ in range(1000)]
    words = rng.integers(0, 2**32, (len(cases), PACKETS, 3), dtype=np.uint32)
    vectors = np.stack([_kernel.pack(_kernel.params(link, bits, horizon)) for link, bits, horizon, _ in cases])
    sent = np.stack([times for *_, times in cases]).astype(np.int32)
    by_newest, by_oldest = (np.asarray(a) for a in run(vectors, sent, words[..., :2], words[..., 2]))
    fates: dict[object, int] = {}
    for i, (link, bits, horizon, times) in enumerate(cases):
        reference = ReferenceLink(link, bits, horizon)
        for n, moment in enumerate(times.tolist()):
            reference.send(moment, tuple(words[i, n, :2].tolist()), int(words[i, n, 2]))
        arrivals = reference.arrivals()
        for fate in arrivals:
            name = f"{link.drop} {fate}" if isinstance(fate, str) else "arrived"
            fates[name] = fates.get(name, 0) + 1
        expected = np.array([CODES[a] if isinstance(a, str) else a for a in arrivals])
        np.testing.assert_array_equal(by_oldest[i], expected, err_msg=f"case {i}: {link}")
        if link.drop == "newest":
            np.testing.assert_array_equal(by_newest[i], expected, err_msg=f"case {i}: {link}")
    # Every fate comes up often enough to be tested.
    assert min(fates.values()) > 100 and len(fates) == 7, fates


def test_parameters_that_are_closed_over_give_the_same() -> None:
    rng = np.random.default_rng(5)
    for _ in range(12):
        link, bits, horizon = random_link(rng)
        p = _kernel.params(link, bits, horizon)
        words = tuple(jnp.asarray(rng.integers(0, 2**32, 3, dtype=np.uint32)) for _ in range(2))
        busy = jnp.array([0, 10, 10**6]) if link.bandwidth_bps else jnp.zeros(3, jnp.int32)
        state = _kernel.LinkState(busy, jnp.array([0, 50, 900]), jnp.array([False, True, False]))
        traced = _kernel.unpack(jnp.asarray(_kernel.pack(p)))
        outcomes = []
        for params in (p, traced):
            chance = _kernel.draw(params, state.bad, words, words[::-1])
            outcomes.append(_kernel.send(params, state, jnp.int32(100), chance, True))
        np.testing.assert_array_equal(outcomes[0][1], outcomes[1][1])
        jax.tree.map(np.testing.assert_array_equal, outcomes[0][0], outcomes[1][0])


def test_worked_example_by_hand() -> None:
    """1000-bit packets at 10 kb/s take 100 ms each: the second waits for the first, the third finds a full buffer."""
    link = Link(bandwidth_bps=1e4, delay_ms=50, buffer_bits=1500)
    p = _kernel.params(link, 1000, 2000)
    state, zero = _kernel.init(()), jnp.zeros((), jnp.uint32)
    arrivals = []
    for now, sent in [(0, 0), (0, 60), (60, 70), (70, 300)]:
        state = _kernel.wait(state, (sent - now) * 1000)
        chance = _kernel.draw(p, state.bad, (zero, zero), (zero, zero))
        state, arrival = _kernel.send(p, state, jnp.int32(sent), chance, True)
        arrivals.append(int(arrival))
    assert arrivals == [150, 250, _kernel.DROPPED_FULL, 450]


@pytest.mark.parametrize(
    ("jitter", "mean", "low", "high"),
    [
        (Uniform(10, 19), 14.5, 10, 19),
        (TwoPoint(5, 105, 0.25), 30.0, 5, 105),
        # floor of an exponential: mean 1 / (exp(1/40) - 1)
        (Exponential(40.0), 1 / np.expm1(1 / 40.0), 0, 40 * 24 * np.log(2)),
    ],
)
def test_jitter_law(jitter: object, mean: float, low: float, high: float) -> None:
    p = _kernel.params(Link(jitter=jitter), 8, 1000)
    words = jnp.asarray(np.random.default_rng(1).integers(0, 2**32, 200_000, dtype=np.uint32))
    extra = np.asarray(_kernel.draw(p, False, (words, words), (words, words)).jitter_ms) + int(p.delay_ms)
    assert low <= extra.min() and extra.max() <= high
    # Standard error of the mean times 4.5: false alarm 1e-5.
    assert abs(extra.mean() - mean) < 4.5 * extra.std() / np.sqrt(extra.size)


def test_gilbert_elliott_law() -> None:
    """Share lost: pi_bad loss_bad + pi_good loss_good; losses come in bursts of mean 1 / p_bad_to_good."""
    loss = GilbertElliott(0.05, 0.25, 0.0, 1.0)
    p = _kernel.params(Link(loss=loss), 8, 1000)
    rng = np.random.default_rng(2)
    words = jnp.asarray(rng.integers(0, 2**32, (3, 20_000, 32), dtype=np.uint32))

    def one(bad, w):
        chance = _kernel.draw(p, bad, (w[0], w[1]), (w[2], w[2]))
        return chance.bad, chance.lost

    lost = np.asarray(jax.lax.scan(one, jnp.zeros(32, bool), jnp.moveaxis(words, 0, 1))[1])
    assert abs(lost.mean() - 0.05 / 0.30) < 0.005
    bursts = (lost[1:] & ~lost[:-1]).sum()
    assert abs(lost.sum() / bursts - 4.0) < 0.15
