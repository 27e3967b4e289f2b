"""Counters: none is used twice in a run, streams do not touch, environments and episodes differ."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envrate import _counters, tasks
from envrate._counters import Stream
from envrate.agents import RandomGuess
from envrate.channels import GilbertElliott, Link, Uniform
from envrate.envs import Core, _policy
from envrate.renderers import Symbols

LINK = Link(bandwidth_bps=1000.0, jitter=Uniform(0, 300), loss=GilbertElliott(0.2, 0.5))


@pytest.mark.parametrize("name", ["alert-probed", "watch"])
def test_no_counter_is_used_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block that a run asks for, collected by running it uncompiled; the renderer's are lazy, so unused here."""
    used: list[tuple[int, int, int, int]] = []
    block = _counters.block

    def collecting(key, index, episode, stream):
        lazy = stream in (Stream.CAPTURE, Stream.RENDER, Stream.RENDER_PROBE, Stream.EPISODE)
        if not lazy and not isinstance(index, jax.core.Tracer):
            for first, second in zip(np.ravel(key[0]).tolist(), np.ravel(key[1]).tolist(), strict=True):
                used.append((first, second, int(index), int(episode) * 16 + int(stream)))
        return block(key, index, episode, stream)

    monkeypatch.setattr(_counters, "block", collecting)
    core = Core(tasks.get(name), Symbols(), LINK, num_ticks=3)
    agent = RandomGuess(core.task)
    with jax.disable_jit():
        key = tuple(jnp.asarray(word) for word in _counters.keys(4, 2))
        memory = agent.init(2, 4)
        for episode in range(2):
            state, seen = core.init(core.params, key, jnp.int32(episode))
            for _ in range(min(core.clock.num_steps, 30)):
                action, memory = agent(_policy.observation(seen), memory)
                inner, _ = _policy.traced_action(core, action, 2)
                state, seen, _, _ = core.step(core.params, state, inner)
    streams = {counter % 16 for *_, counter in used}
    wanted = {Stream.LATENT, Stream.LINK, Stream.LINK_STATE, Stream.AGENT}
    assert wanted | ({Stream.PROBE} if name == "alert-probed" else set()) <= streams
    assert len(used) > 100
    assert len(set(used)) == len(used)


def test_keys() -> None:
    one, many = _counters.keys(7, 1), _counters.keys(7, 5)
    np.testing.assert_array_equal(one[:, 0], many[:, 0])
    assert len({tuple(column) for column in many.T.tolist()}) == 5
    np.testing.assert_array_equal(_counters.keys([3, 7], 2)[:, 1], one[:, 0])
    assert len({tuple(_counters.keys(seed, 1)[:, 0].tolist()) for seed in range(1000)}) == 1000
    with pytest.raises(ValueError, match="seed: expected an integer >= 0"):
        _counters.keys(-1, 2)


def test_scaled_is_the_exact_product() -> None:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, 1000, dtype=np.uint32)
    words[:3] = 0, 2**32 - 1, 2**31
    for n in (1, 2, 7, 1000, 65_537, 2**31 + 3):
        got = np.asarray(_counters.scaled(jnp.asarray(words), np.uint32(n)))
        np.testing.assert_array_equal(got, words.astype(object) * n >> 32)


def test_bits_are_uniform_and_uncorrelated_between_streams() -> None:
    """10^5 blocks per stream: bit means within 5 standard errors, correlations between streams likewise."""
    key = tuple(jnp.asarray(word) for word in _counters.keys(0, 100_000))
    words = np.stack([np.asarray(_counters.block(key, jnp.int32(3), 0, s)[0]) for s in list(Stream)[:6]])
    bits = (words[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1
    assert np.abs(bits.mean(axis=1) - 0.5).max() < 5 * 0.5 / np.sqrt(100_000)
    correlation = np.corrcoef(words.astype(float))
    assert np.abs(correlation - np.eye(6)).max() < 5 / np.sqrt(100_000)
