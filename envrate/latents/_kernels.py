"""Samplers of latents in JAX, with a trailing batch shape. A new family of laws is a class and a line in `KERNELS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _counters
from envrate._counters import Words
from envrate.latents._gaussian_process import GaussianProcess
from envrate.latents._gp_kernels import gaussian_kernel
from envrate.latents._laws import MarkovChain
from envrate.latents._product import Product
from envrate.latents._product_kernels import ProductKernel

Array = jax.Array
PyTree = Any

#: Up to this many states, rows of the transition matrix are read by a chain of selects instead of a gather.
SELECT_STATES = 8


class Draws:
    """The random bits of one move: a block of 64 per environment, or as many normals as asked for, not both."""

    def __init__(self, words: Words) -> None:
        """Holds a block; see `_counters.block`."""
        self.words = words

    @property
    def batch(self) -> tuple[int, ...]:
        """The trailing batch shape."""
        return tuple(jnp.shape(self.words[0]))

    def normals(self, shape: tuple[int, ...]) -> Array:
        """(*shape, *batch) standard normals, float32, with the block as a fresh key."""
        key = _counters.as_key(self.words)
        if not self.batch:
            return jax.random.normal(key, shape, jnp.float32)
        return jax.vmap(lambda k: jax.random.normal(k, shape, jnp.float32), out_axes=-1)(key)


class LatentKernel(Protocol):
    """A sampler of one law at one tick length. Values have their own axes first, the batch last."""

    def start(self, draws: Draws, num_ticks: int) -> tuple[PyTree, Any]:
        """State and value z_0; `num_ticks` is how many ticks the episode can have."""
        ...

    def move(self, state: PyTree, draws: Draws, tick: Any) -> tuple[PyTree, Any]:
        """State and value at `tick` >= 1 (an int32 scalar), from those a tick earlier."""
        ...


def inverse_cdf(rows: np.ndarray) -> np.ndarray:
    """(R, K-1) uint32: the state drawn by 31 bits u is the number of thresholds that are <= u."""
    cumulative = np.cumsum(rows, axis=1)[:, :-1]
    return np.round(np.clip(cumulative, 0.0, 1.0) * _counters.HALF).astype(np.uint32)


@dataclass(frozen=True)
class MarkovKernel:
    """A chain; its value, an int32, is its state."""

    law: MarkovChain

    def start(self, draws: Draws, num_ticks: int) -> tuple[PyTree, Any]:
        """Draws z_0 from the initial law."""
        first = self.law.stationary if self.law.initial is None else np.asarray(self.law.initial)
        z = _drawn(draws, list(inverse_cdf(first[None])[0]))
        return z, z

    def move(self, state: PyTree, draws: Draws, tick: Any) -> tuple[PyTree, Any]:
        """Draws the next state by inverting the cdf of the present one's row."""
        limits = inverse_cdf(self.law.matrix)
        if (limits == limits[0]).all():
            z = _drawn(draws, list(limits[0]))
        elif self.law.num_states <= SELECT_STATES:
            z = _drawn(draws, [_selected(column, state) for column in limits.T])
        else:
            z = _drawn(draws, list(jnp.moveaxis(jnp.asarray(limits)[state], -1, 0)))
        return z, z


def _selected(column: np.ndarray, state: Any) -> Any:
    """column[state] by selects."""
    value = jnp.full(jnp.shape(state), column[-1])
    for i in range(len(column) - 1):
        if column[i] != column[-1]:
            value = jnp.where(state == i, column[i], value)
    return value


def _drawn(draws: Draws, limits: list[Any]) -> Any:
    """The number of limits that the draw reaches."""
    u = draws.words[0] >> np.uint32(1)
    z = jnp.zeros(draws.batch, jnp.int32)
    for limit in limits:
        z = z + (u >= limit).astype(jnp.int32)
    return z


#: Law -> sampler at a tick length.
KERNELS: dict[type, Callable[[Any, int], LatentKernel]] = {
    MarkovChain: lambda law, tick_ms: MarkovKernel(law),
    GaussianProcess: gaussian_kernel,
    Product: lambda law, tick_ms: ProductKernel(law, tuple(kernel(part, tick_ms) for _, part in law.parts)),
}


def kernel(law: Any, tick_ms: int) -> LatentKernel:
    """The sampler of `law`; raises ValueError where there is none."""
    for family, make in KERNELS.items():
        if isinstance(law, family):
            return make(law, tick_ms)
    raise ValueError(f"latent: {type(law).__name__} has no sampler")
