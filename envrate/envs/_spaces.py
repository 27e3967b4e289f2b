"""Observation and action spaces of a core, and the check of an action that comes from outside."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from envrate.envs._core import Core

#: Largest age that an observation can show, in milliseconds.
MAX_AGE_MS = 2**31 - 1
#: Bound of a tracked value, in standard deviations.
WIDEST_SD = 10.0


def observation_space(core: Core) -> spaces.Dict:
    """`signal` (W, ...), `age_ms` (W,) and `fresh` ()."""
    spec, window = core.signal, core.window
    return spaces.Dict(
        {
            "signal": spaces.Box(spec.low, spec.high, (window, *spec.shape), np.dtype(spec.dtype).type),
            "age_ms": spaces.Box(-1, MAX_AGE_MS, (window,), np.int32),
            "fresh": spaces.Box(0, MAX_AGE_MS, (), np.int32),
        }
    )


def action_shape(core: Core) -> tuple[int, ...]:
    """Shape of one environment's action."""
    if core.task.is_tracking:
        return (core.task.latent.num_outputs,)
    return (core.num_factors(),) if core.num_factors() else ()


def action_space(core: Core) -> spaces.Space[Any]:
    """`Discrete(A)`; `MultiDiscrete` with named ticks or probes; `Box` where the task tracks."""
    if core.task.is_tracking:
        # Wide enough for any value that comes up; Gymnasium warns of an unbounded box.
        bound = np.float32(WIDEST_SD * np.sqrt(np.diag(core.task.latent.output_covariance).max()))
        return spaces.Box(-bound, bound, action_shape(core), np.float32)
    sizes = core.action_sizes
    return spaces.MultiDiscrete(list(sizes)) if len(sizes) > 1 else spaces.Discrete(sizes[0])


def checked_values(core: Core, array: NDArray[Any]) -> NDArray[Any]:
    """The array in the core's dtype; raises ValueError on a value outside the space."""
    if core.task.is_tracking:
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise ValueError(f"action: expected finite numbers, got {array!r:.200}")
        return array.astype(np.float32)
    if array.dtype.kind not in "iu":
        raise ValueError(f"action: expected whole numbers, got dtype {array.dtype}")
    sizes = np.asarray(core.action_sizes if core.num_factors() else core.action_sizes[0])
    if ((array < 0) | (array >= sizes)).any():
        raise ValueError(f"action: expected values within {action_space(core)}, got {array!r:.200}")
    return array.astype(np.int32)


def checked_action(core: Core, action: Any) -> NDArray[Any]:
    """One environment's action in the core's form."""
    return checked_values(core, _shaped(np.asarray(action), action_shape(core)))


def checked_actions(core: Core, actions: Any, num_envs: int) -> NDArray[Any]:
    """A batch of actions in the core's form, the batch last."""
    return checked_values(core, _shaped(np.asarray(actions), (num_envs, *action_shape(core)))).T


def _shaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if array.shape != shape:
        raise ValueError(f"action: expected shape {shape}, got {array.shape}")
    return array
