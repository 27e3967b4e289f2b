"""Streams: which frames are captured when, of which latent, and what of them is shown; with a renderer made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import envrate
from envrate import tasks
from envrate.channels import Link, Uniform
from envrate.envs import EnvRateEnv
from envrate.renderers import Legend, SignalSpec
from envrate.scorers import tally

FRAME = 70


@dataclass(frozen=True)
class Frames:
    """Shows (latent at the start, latent at the end, frames captured so far, end of capture)."""

    holds: bool = False

    @property
    def kind(self) -> str:
        return "frames"

    def frame_ms(self, task: Any) -> int:
        return FRAME

    def packet_bits(self, task: Any) -> int:
        return 8

    def window(self, task: Any) -> int:
        return 1 if self.holds else 6

    def signal(self, task: Any) -> SignalSpec:
        return SignalSpec((4,), "int32", -1, 10**6, -1, holds=self.holds)

    def legend(self, task: Any) -> Legend:
        return Legend("numbers", ("the number itself",) * task.latent.num_states, "nothing")

    def init(self, task: Any, key: Any) -> Any:
        return jnp.int32(0)

    def capture(self, task: Any, state: Any, z0: Any, z1: Any, key: Any) -> tuple[Any, Any]:
        return state + 1, jnp.stack([z0, z1, state + 1])

    def render(self, task: Any, payload: Any, end_ms: Any, probe: Any, episode_key: Any, key: Any) -> Any:
        return jnp.concatenate([payload, end_ms[None]])


TASK = tasks.get("hold").replace(tick_ms=450, micro_turn_ms=200)


@pytest.mark.parametrize("holds", [False, True])
def test_frames(holds: bool) -> None:
    """Frame n covers [70 (n-1), 70 n) ms and is about the tick of its last millisecond; delay 130 ms."""
    env = EnvRateEnv(TASK, Frames(holds), link=Link(delay_ms=130), num_ticks=12)
    observation, _ = env.reset(seed=3)
    rows = [observation]
    steps = env.core.clock.num_steps
    for _ in range(steps):
        observation, *_ = env.step(np.array([0, 0]))
        rows.append(observation)
    trace = env.trace()
    z = trace.ticks["latent"]
    last = None
    for k, seen in enumerate(rows):
        frames = [n for n in range(1, steps * 200 // FRAME + 1) if (k - 1) * 200 < n * FRAME + 130 <= k * 200]
        assert seen["fresh"] == len(frames)
        want = [[z[(n - 1) * FRAME // 450], z[(n * FRAME - 1) // 450], n, n * FRAME] for n in frames]
        ages = [k * 200 - n * FRAME for n in frames]
        if holds:
            last = want[-1] if want else last
            np.testing.assert_array_equal(seen["signal"], [last or [-1] * 4])
            assert seen["age_ms"].tolist() == (ages[-1:] or [-1])
        else:
            pad = 6 - len(frames)
            np.testing.assert_array_equal(seen["signal"], [[-1] * 4] * pad + want)
            assert seen["age_ms"].tolist() == [-1] * pad + ages
    first = [min(n for n in range(1, 200) if (n * FRAME - 1) // 450 == i) for i in range(len(z))]
    delivered = [-(-(n * FRAME + 130) // 200) * 200 for n in first]
    assert trace.ticks["delivered_ms"].tolist() == [d if d <= steps * 200 else -1 for d in delivered]


def test_counts_of_a_stream() -> None:
    """A stream that the link cannot carry whole: counts equal the tally of the trace."""
    link = Link(bandwidth_bps=100.0, delay_ms=90, jitter=Uniform(0, 300), loss=0.3, buffer_bits=24)
    settings = {"modality": Frames(), "link": link, "num_envs": 3, "num_ticks": 20, "seed": 4}

    def agent(observation: Any, state: Any) -> tuple[Any, Any]:
        newest = observation["signal"][:, -1, 1]
        return jnp.stack([newest + 1, jnp.zeros_like(newest)], axis=1), state

    trace = envrate.rollout(TASK, agent, **settings)
    want, got = tally(trace), envrate.rollout(TASK, agent, record="counts", **settings)
    np.testing.assert_array_equal(got.counts[0], want.counts[0])
    assert trace.header.extra["packets"]["dropped_full"] > 0 < trace.header.extra["packets"]["lost"]
    assert want.num_ticks == 60
