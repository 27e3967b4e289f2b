"""Agents as the rollout calls them: `(observation, state) -> (action, state)` with leading axis num_envs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from envrate.envs import _spaces
from envrate.envs._arrivals import batch_first
from envrate.envs._core import Core, Observation

if TYPE_CHECKING:
    from numpy.typing import NDArray

Agent = Callable[[Any, Any], tuple[Any, Any]]


def name_of(agent: Any) -> str:
    """How a trace names the agent."""
    named = getattr(agent, "name", None)
    if isinstance(named, str):
        return named
    return getattr(agent, "__name__", type(agent).__name__)


def as_callable(agent: Any) -> Agent:
    """The agent's call; an object with `predict`, as in Stable-Baselines3, is asked for deterministic actions."""
    if callable(agent):
        return agent  # type: ignore[no-any-return]
    if hasattr(agent, "predict"):

        def predict(observation: Any, state: Any) -> tuple[Any, Any]:
            result: tuple[Any, Any] = agent.predict(observation, state=state, deterministic=True)
            return result

        return predict
    raise ValueError(f"agent: expected a callable (observation, state) -> (action, state), got {type(agent).__name__}")


def start(agent: Any, num_envs: int, seed: int) -> Any:
    """The agent's first state: `agent.init(num_envs, seed)`, or None where it has no `init`."""
    return agent.init(num_envs, seed) if hasattr(agent, "init") else None


def observation(obs: Observation) -> dict[str, Any]:
    """The observation as a dict, with the batch as the leading axis."""
    return {name: batch_first(value, jnp) for name, value in obs._asdict().items()}


def looks(call: Agent, seen: dict[str, Any], state: Any) -> bool:
    """Whether anything that the agent computes reads the signal; one that reads only its shape does not look."""
    jaxpr = jax.make_jaxpr(lambda signal: call(seen | {"signal": signal}, state))(seen["signal"]).jaxpr
    (signal,) = jaxpr.invars
    read = [*jaxpr.outvars, *(variable for equation in jaxpr.eqns for variable in equation.invars)]
    return any(variable is signal for variable in read)


def traced_action(core: Core, action: Any, num_envs: int) -> tuple[Any, Any]:
    """The action as the core takes it, and (num_envs,) bool where it lies outside the space."""
    array = jnp.asarray(action)
    _check_shape(core, jnp.shape(array), num_envs)
    if core.task.is_tracking:
        array = array.astype(jnp.float32).T
        return array, ~jnp.isfinite(array).all(axis=0)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(f"action: expected whole numbers, got dtype {array.dtype}")
    array = array.astype(jnp.int32)
    if not core.num_factors():
        return array, (array < 0) | (array >= core.action_sizes[0])
    array = array.T
    outside = jnp.zeros(num_envs, bool)
    for factor, size in zip(array, core.action_sizes, strict=True):
        outside = outside | (factor < 0) | (factor >= size)
    return array, outside


def checked_action(core: Core, action: Any, num_envs: int) -> NDArray[Any]:
    """A NumPy action as the core takes it; raises ValueError where it lies outside the space."""
    return _spaces.checked_actions(core, action, num_envs)


def _check_shape(core: Core, shape: tuple[int, ...], num_envs: int) -> None:
    expected = _spaces.action_shape(core)
    if tuple(shape) != (num_envs, *expected):
        raise ValueError(f"action: expected shape {(num_envs, *expected)}, got {tuple(shape)}")
