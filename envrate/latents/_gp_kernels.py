"""Gaussian processes in JAX: exact samplers with a trailing batch shape.

Markovian kernels move a state of p numbers per output; others draw their whole path at the episode's start by
circulant embedding. Both take standard normals from the caller, so that the caller's counters decide what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envrate.latents._gaussian_process import GaussianProcess, embedding_spectrum

if TYPE_CHECKING:
    from envrate.latents._kernels import Draws

Array = jax.Array


class Recursion(NamedTuple):
    """Constants of a state-space sampler, float32."""

    transition: np.ndarray  # (p, p)
    noise_root: np.ndarray  # (p, p) lower
    stationary_root: np.ndarray  # (p, p) lower
    output: np.ndarray  # (p,)
    mixing: np.ndarray  # (d, d)


class Embedding(NamedTuple):
    """Constants of a circulant sampler, float32."""

    root: np.ndarray  # (m,) square roots of the eigenvalues over sqrt(m)
    ticks: int
    mixing: np.ndarray  # (d, d)


def _root(covariance: np.ndarray) -> np.ndarray:
    """A factor L with L L' = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def recursion(law: GaussianProcess, tick_ms: int) -> Recursion:
    """The sampler of a Markovian kernel."""
    ss = law.state_space(tick_ms)
    arrays = (ss.transition, _root(ss.noise), _root(ss.stationary), ss.output, law.mixing)
    return Recursion(*(np.asarray(array, dtype=np.float32) for array in arrays))


def start(sampler: Recursion, normals: Array) -> Array:
    """Stationary state (p, d, *batch) from as many standard normals."""
    return jnp.einsum("pq,qd...->pd...", sampler.stationary_root, normals)


def advance(sampler: Recursion, state: Array, normals: Array) -> Array:
    """The state one tick later; state and normals (p, d, *batch)."""
    move = jnp.einsum("pq,qd...->pd...", sampler.transition, state)
    return move + jnp.einsum("pq,qd...->pd...", sampler.noise_root, normals)


def value(sampler: Recursion, state: Array) -> Array:
    """z_t (d, *batch) of a state (p, d, *batch)."""
    return jnp.einsum("ed,d...->e...", sampler.mixing, jnp.einsum("p,pd...->d...", sampler.output, state))


def embedding(law: GaussianProcess, tick_ms: int, ticks: int) -> Embedding:
    """The sampler of any kernel for paths of `ticks` values.

    The circle is widened until the correlation has died out on it, where it does, so that no eigenvalue is negative.
    """
    length = max(2, ticks)
    for _ in range(4):
        try:
            root = embedding_spectrum(law.correlation(length + 1, tick_ms), ticks)
            break
        except ValueError:
            length *= 2
    else:
        root = embedding_spectrum(law.correlation(length + 1, tick_ms), ticks)
    scaled = np.asarray(root / np.sqrt(len(root)), dtype=np.float32)
    return Embedding(scaled, ticks, np.asarray(law.mixing, dtype=np.float32))


def path(sampler: Embedding, normals: Array) -> Array:
    """A path (ticks, d, *batch) from standard normals (2, m, d, *batch), real and imaginary parts.

    With eigenvalues lambda and complex normals w, the real part of FFT(sqrt(lambda / m) w) has exactly the wanted
    covariance; Dietrich and Newsam (1997).
    """
    weight = jnp.asarray(sampler.root).reshape(-1, *(1,) * (normals.ndim - 2))
    noise = jax.lax.complex(weight * normals[0], weight * normals[1])
    sample = jnp.fft.fft(noise, axis=0).real[: sampler.ticks]
    return jnp.einsum("ed,td...->te...", sampler.mixing, sample)


@dataclass(frozen=True)
class RecursionKernel:
    """Sampler of a Markovian kernel for the environment; the value is (d, *batch) float32."""

    constants: Recursion

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.constants.transition), len(self.constants.mixing)

    def start(self, draws: Draws, num_ticks: int) -> tuple[Array, Array]:
        """A stationary state and z_0."""
        state = start(self.constants, draws.normals(self._shape))
        return state, value(self.constants, state)

    def move(self, state: Array, draws: Draws, tick: Any) -> tuple[Array, Array]:
        """The state and the value one tick later."""
        state = advance(self.constants, state, draws.normals(self._shape))
        return state, value(self.constants, state)


@dataclass(frozen=True)
class PathKernel:
    """Sampler of any kernel for the environment: the state is the episode's whole path."""

    law: GaussianProcess
    tick_ms: int

    def start(self, draws: Draws, num_ticks: int) -> tuple[Array, Array]:
        """The path and z_0."""
        constants = embedding(self.law, self.tick_ms, num_ticks)
        drawn = path(constants, draws.normals((2, len(constants.root), self.law.num_outputs)))
        return drawn, drawn[0]

    def move(self, state: Array, draws: Draws, tick: Any) -> tuple[Array, Array]:
        """Reads the path at `tick`."""
        return state, jax.lax.dynamic_index_in_dim(state, tick, keepdims=False)


def gaussian_kernel(law: GaussianProcess, tick_ms: int) -> RecursionKernel | PathKernel:
    """The sampler of a Gaussian process: by recursion where it is Markovian."""
    if law.state_order is None:
        return PathKernel(law, tick_ms)
    return RecursionKernel(recursion(law, tick_ms))
