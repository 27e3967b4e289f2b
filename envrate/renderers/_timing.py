"""What a captured frame says about ticks: pure functions of its end and the task's times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate.latents import GaussianProcess, Product

if TYPE_CHECKING:
    from envrate.task import Task

Array = jax.Array


class Onsets(NamedTuple):
    """Onsets of the ticks at the start and at the end of a frame, ms relative to the frame's start, int32."""

    first: Array  # <= 0
    last: Array  # first, or inside the frame


def onsets(task: Task, end_ms: Array, frame_ms: int) -> Onsets:
    """Where the ticks of a frame began; a frame is at most one tick long, so it holds at most one onset inside."""
    start = end_ms - frame_ms
    first = (start // task.tick_ms) * task.tick_ms
    last = ((end_ms - 1) // task.tick_ms) * task.tick_ms
    return Onsets(first - start, last - start)


def scale_of(law: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """(d,) standard deviations of a Gaussian latent's outputs; raises ValueError for a latent with states."""
    if not isinstance(law, GaussianProcess) and not (isinstance(law, Product) and not law.chains):
        raise ValueError("latent: expected a Gaussian process")
    return np.sqrt(np.diag(law.output_covariance)).astype(np.float32)


def is_gaussian(task: Task) -> bool:
    """Whether the latent's value is a vector of real numbers."""
    return hasattr(task.latent, "num_outputs") and not getattr(task.latent, "chains", ())


def num_outputs(task: Task) -> int:
    """How many values a Gaussian latent has; 0 for a chain."""
    return int(task.latent.num_outputs) if is_gaussian(task) else 0


def shown(z: Any) -> Array:
    """What a renderer shows of a value: of a product of both sorts, the chains' state, which alone can be required."""
    value: Array = z["state"] if isinstance(z, dict) else z
    return value


def uniforms(key: Array, count: int) -> Array:
    """(count,) uniforms in [0, 1)."""
    return jax.random.uniform(key, (count,), dtype=jnp.float32)
