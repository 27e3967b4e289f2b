"""What a captured frame says about ticks: pure functions of its end and the task's times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _counters
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


def fold(key: Array, number: int) -> Array:
    """`jax.random.fold_in`, its block written out: for a key or two the rolled loop of JAX takes far longer."""
    x, y = _blocks(key, jnp.full((1,), number, jnp.uint32))
    return _counters.as_key((x[0], y[0]))


def normals(key: Array, count: int) -> Array:
    """(count,) the numbers of `jax.random.normal`, from blocks written out; see `fold`."""
    x, y = _blocks(key, jnp.arange(count, dtype=jnp.uint32))
    low = np.nextafter(np.float32(-1.0), np.float32(0.0))
    # 23 random bits as the mantissa of a number in [1, 2).
    unit = jax.lax.bitcast_convert_type(((x ^ y) >> np.uint32(9)) | np.uint32(0x3F800000), jnp.float32) - 1.0
    normal: Array = np.float32(np.sqrt(2.0)) * jax.lax.erf_inv(jnp.maximum(low, unit * (np.float32(1.0) - low) + low))
    drawn: Array = jax.lax.optimization_barrier(normal)  # type: ignore[no-untyped-call]
    return drawn


def _blocks(key: Array, index: Array) -> _counters.Words:
    words = jax.random.key_data(key)
    own = tuple(jnp.broadcast_to(words[i], index.shape) for i in range(2))
    return _counters.threefry(own, (jnp.zeros_like(index), index))
