"""The functional face equals the ordinary environment, jitted or not, and takes another link's numbers."""

from __future__ import annotations

import jax
import numpy as np

from envrate import _counters
from envrate.channels import Link, TwoPoint
from envrate.envs import EnvRateEnv, EnvRateFuncEnv


def test_equals_the_environment() -> None:
    link = Link(delay_ms=100, jitter=TwoPoint(0, 300, 0.5), loss=0.2)
    env, pure = EnvRateEnv("hold", link=link, num_ticks=4), EnvRateFuncEnv("hold", link=link, num_ticks=4)
    pure.transform(jax.jit)
    want, _ = env.reset(seed=5)
    key = _counters.keys(5, 1)[:, 0]
    params = pure.get_default_params()
    state = pure.initial(key, params)
    truncated = False
    for k in range(pure.num_steps):
        got = pure.observation(state, key, params)
        for name, value in want.items():
            np.testing.assert_array_equal(got[name], value)
        action = np.array([k % 3, k % 2])
        want, paid, _, truncated, _ = env.step(action)
        before, state = state, pure.transition(state, action, key, params)
        assert float(pure.reward(before, action, state, key, params)) == paid
        assert not pure.terminal(state, key, params) and bool(pure.truncated(state)) == truncated
    assert truncated
    quick = pure.core.link_params(Link())
    assert int(pure.observation(pure.initial(key, quick), key, quick)["fresh"]) == 1
    assert int(pure.observation(pure.initial(jax.random.key(0), params), key, params)["fresh"]) == 0
