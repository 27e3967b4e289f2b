"""Reference agents for tracking tasks shown in symbols, and the one that looks at nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from envrate.latents import GaussianProcess
from envrate.renderers._symbols import PROBE_VALUE
from envrate.task import Task

Array = Any

#: Steps of prediction that are tabulated; beyond it nothing of the past is left to speak of.
MOST_STEPS = 64


@dataclass(frozen=True)
class Rest:
    """Says the mean, 0, for ever."""

    task: Task
    name: str = "never"

    def __call__(self, observation: Any, state: Any) -> tuple[Array, Any]:
        """Zeros."""
        return jnp.zeros((observation["fresh"].shape[0], self.task.latent.num_outputs), jnp.float32), state


class Belief(NamedTuple):
    """The law of the state at the newest tick received."""

    step: Any  # () int32
    tick: Any  # (num_envs,) int32, -1 before any
    mean: Any  # (num_envs, p, d) float32
    covariance: Any  # (num_envs, p, p) float32, of one output of unit variance


@dataclass(frozen=True)
class Kalman:
    """The best estimate of the value now, from exact values that arrive late: the Kalman filter and its prediction.

    Args:
        task: a tracking task on a process with a state space of finite order.
    """

    task: Task
    name: str = "ideal"

    def __post_init__(self) -> None:
        """Checks the law."""
        law = self.task.latent
        if not self.task.is_tracking or not isinstance(law, GaussianProcess) or law.state_order is None:
            raise ValueError("task: the Kalman filter needs tracking of a process with kernel ou, matern32 or matern52")

    def init(self, num_envs: int, seed: int) -> Belief:
        """The stationary law."""
        space = self.task.latent.state_space(self.task.tick_ms)
        order, outputs = len(space.transition), self.task.latent.num_outputs
        covariance = jnp.broadcast_to(jnp.asarray(space.stationary, jnp.float32), (num_envs, order, order))
        nothing = jnp.full(num_envs, -1, jnp.int32)
        return Belief(jnp.int32(0), nothing, jnp.zeros((num_envs, order, outputs), jnp.float32), covariance)

    def __call__(self, observation: Any, state: Belief) -> tuple[Array, Belief]:
        """E z(now) given what has arrived."""
        space, tick_ms = self.task.latent.state_space(self.task.tick_ms), self.task.tick_ms
        powers, noises = (jnp.asarray(table, jnp.float32) for table in _tables(space.transition, space.noise))
        now = state.step * self.task.micro_turn_ms
        tick, mean, covariance = state.tick, state.mean, state.covariance
        for w in range(observation["age_ms"].shape[1]):
            age, value = observation["age_ms"][:, w], observation["signal"][:, w]
            about = (now - age) // tick_ms
            here = (age >= 0) & (value < PROBE_VALUE).all(axis=1) & (about > tick)
            steps = jnp.clip(about - tick, 0, MOST_STEPS)
            move = powers[steps]
            mean_then = move @ mean
            covariance_then = move @ covariance @ jnp.swapaxes(move, 1, 2) + noises[steps]
            # An exact observation of the first component.
            gain = covariance_then[:, :, 0] / jnp.maximum(covariance_then[:, :1, 0], 1e-9)
            mean_new = mean_then + gain[:, :, None] * (value[:, None, :] - mean_then[:, :1])
            covariance_new = covariance_then - gain[:, :, None] * covariance_then[:, :1, :]
            tick = jnp.where(here, about, tick)
            mean = jnp.where(here[:, None, None], mean_new, mean)
            covariance = jnp.where(here[:, None, None], covariance_new, covariance)
        ahead = jnp.clip(now // tick_ms - tick, 0, MOST_STEPS)
        estimate = (powers[ahead] @ mean)[:, 0]
        return jnp.where((tick >= 0)[:, None], estimate, 0.0), Belief(state.step + 1, tick, mean, covariance)


def _tables(transition: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(MOST_STEPS + 1, p, p) transition and noise covariance over 0, 1, 2 ... ticks."""
    powers, noises = [np.eye(len(transition))], [np.zeros_like(noise)]
    for _ in range(MOST_STEPS):
        powers.append(transition @ powers[-1])
        noises.append(transition @ noises[-1] @ transition.T + noise)
    return np.stack(powers), np.stack(noises)
