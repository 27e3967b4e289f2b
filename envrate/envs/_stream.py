"""The observations of a world in which nobody acts, one micro-turn at a time, for runs on another clock.

The latent and the link do not depend on the agent, so these are the observations of any agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _counters
from envrate.envs import _policy
from envrate.envs._compiled import observed, start, step
from envrate.envs._core import Core


def stream(core: Core, *, seed: int) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """Observation 0, 1, 2 ... of one environment, without a batch axis; rendered when asked for.

    Args:
        core: the settings.
        seed: as in `rollout` with one environment.
    """
    key = tuple(jnp.asarray(word) for word in _counters.keys(seed, 1))
    state, seen = observed(core, *start(core, key))
    null = core.null_action((1,))
    while True:
        yield jax.tree.map(lambda leaf: np.asarray(leaf)[0], _policy.observation(seen))
        state, seen, _ = step(core, state, null)
