"""Random numbers by counter: Threefry with key (seed, environment) and counter (index, episode and stream).

A trajectory is then the same at any batch size, any episode can be had without the ones before it, and two streams
never share bits. Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from envrate import _checks

Array = jax.Array
Words = tuple[Any, ...]  # two uint32 arrays of one shape: 64 random bits, or a key

#: Episodes per environment; the rest of the counter's second word names the stream.
MAX_EPISODES = 2**28
#: Of Threefry-2x32, by group of four rounds.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
#: 2^31, the denominator of a 31-bit comparison.
HALF = 2**31


class Stream(enum.IntEnum):
    """What a block of bits is for. The index counts ticks, packets or micro-turns, as each says."""

    LATENT = 0  # per tick
    LINK = 1  # per packet of the signal: jitter and loss
    LINK_STATE = 2  # per packet of the signal: Gilbert-Elliott
    PROBE = 3  # per tick: whether it is probed
    AGENT = 4  # per micro-turn
    CAPTURE = 5  # per packet of the signal: the renderer's source
    RENDER = 6  # per packet of the signal: the renderer's nuisance
    EPISODE = 7  # index 0: nuisance that lasts
    SOURCE = 8  # index 0: the renderer's state at reset
    LINK_PROBE = 9  # per tick: jitter and loss of its probe
    LINK_STATE_PROBE = 10
    RENDER_PROBE = 11


def keys(seed: int | Sequence[int], num_envs: int) -> NDArray[np.uint32]:
    """(2, num_envs) key words. One seed numbers the environments; a sequence gives each a seed, as environment 0."""
    if np.ndim(seed) == 0:
        return _keys_of(_checks.integer("seed", seed, 0), np.arange(num_envs, dtype=np.uint64))
    seeds = [_checks.integer("seed", s, 0) for s in seed]  # type: ignore[union-attr]
    if len(seeds) != num_envs:
        raise ValueError(f"seed: expected {num_envs} seeds, one per environment, got {len(seeds)}")
    return np.concatenate([_keys_of(s, np.zeros(1, np.uint64)) for s in seeds], axis=1)


def _keys_of(seed: int, index: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Two words of a hash of the seed, the environment's number added to the second."""
    digest = hashlib.blake2b(str(seed).encode(), digest_size=8).digest()
    high, low = np.frombuffer(digest, dtype="<u4")
    return np.stack([np.full(index.shape, high, np.uint32), (np.uint64(low) + index).astype(np.uint32)])


def block(key: Words, index: Any, episode: Any, stream: Stream) -> Words:
    """64 bits per environment: two uint32 arrays of the key's shape."""
    shape = jnp.shape(key[0])
    low = jnp.broadcast_to(jnp.asarray(index).astype(jnp.uint32), shape)
    high = jnp.asarray(episode).astype(jnp.uint32) * np.uint32(16) + np.uint32(stream)
    words: Words = threefry(key, (low, jnp.broadcast_to(high, shape)))
    return words


@jax.jit
def threefry(key: Words, counter: Words) -> Words:
    """Threefry-2x32 with 20 rounds, written out.

    On a CPU this is faster than the rolled loop that `jax.random` compiles to, ten times so for a single number. The
    barrier keeps XLA from computing the bits anew in everything that uses them.
    """
    keys = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for r in ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(r)) | (y >> np.uint32(32 - r))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + (keys[(group + 2) % 3] + np.uint32(group + 1))
    words: Words = jax.lax.optimization_barrier((x, y))  # type: ignore[no-untyped-call]
    return words


def as_key(words: Words) -> Array:
    """The block as typed keys of its shape, for draws wider than 64 bits."""
    return jax.random.wrap_key_data(jnp.stack(words, axis=-1), impl="threefry2x32")


def threshold(probability: float) -> np.uint32:
    """The number that 31 random bits fall below with this probability."""
    return np.uint32(round(probability * HALF))


def below(word: Any, limit: Any) -> Any:
    """Whether the word's upper 31 bits are below a `threshold`."""
    return (word >> np.uint32(1)) < limit


def scaled(word: Any, n: Any) -> Any:
    """floor(word * n / 2^32), a whole number 0 ... n-1, in 32-bit arithmetic."""
    half, mask = np.uint32(16), np.uint32(0xFFFF)
    low, high, n_low, n_high = word & mask, word >> half, n & mask, n >> half
    middle = high * n_low + ((low * n_low) >> half)
    cross = (middle & mask) + low * n_high
    return high * n_high + (middle >> half) + (cross >> half)
