"""Compiled reset and step of a core for one batch shape, with outputs packed into few arrays.

Crossing from Python into compiled code costs tens of microseconds and a few more per array, so what a step returns is
laid into one int32 array and one float32 array, which the host takes apart into views.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from envrate.channels import _kernel
from envrate.envs._core import Core, Observation, Record

Array = NDArray[Any]
#: Leaves of more numbers per environment are returned as they are.
LARGE = 64


class Packed(NamedTuple):
    """Leaves of a tree, laid end to end along the first axis by kind; what fits in neither stays as it is."""

    whole: Any  # (n, *batch) int32
    real: Any  # (n, *batch) float32
    other: tuple[Any, ...]  # such as pictures


class Layout(NamedTuple):
    """How to take a `Packed` apart."""

    tree: Any
    places: tuple[tuple[str, int, int, tuple[int, ...], np.dtype[Any]], ...]  # kind, start, stop, shape, dtype

    def open(self, packed: Packed) -> Any:
        """The tree of views, leaves as NumPy arrays."""
        whole, real = np.asarray(packed.whole), np.asarray(packed.real)
        leaves = []
        for kind, start, stop, shape, dtype in self.places:
            if kind == "other":
                leaves.append(np.asarray(packed.other[start]))
            else:
                rows = (whole if kind == "whole" else real)[start:stop]
                leaves.append(rows.reshape(shape).astype(dtype, copy=False))
        return jax.tree.unflatten(self.tree, leaves)


def pack(tree: Any, batch: tuple[int, ...]) -> Packed:
    """Lays the leaves of a tree into a `Packed`; traced."""
    groups: dict[str, list[Any]] = {"whole": [], "real": [], "other": []}
    for leaf in jax.tree.leaves(tree):
        kind = _kind(leaf, batch)
        rows = leaf if kind == "other" else leaf.reshape(-1, *batch)
        groups[kind].append(rows.astype(jnp.int32) if kind == "whole" else rows)
    whole = jnp.concatenate(groups["whole"]) if groups["whole"] else jnp.zeros((0, *batch), jnp.int32)
    real = jnp.concatenate(groups["real"]) if groups["real"] else jnp.zeros((0, *batch), jnp.float32)
    return Packed(whole, real, tuple(groups["other"]))


def layout(tree: Any, batch: tuple[int, ...]) -> Layout:
    """The layout of `pack` for leaves (arrays or their shapes) of this form."""
    leaves, structure = jax.tree.flatten(tree)
    next_row = {"whole": 0, "real": 0, "other": 0}
    places = []
    for leaf in leaves:
        kind, shape = _kind(leaf, batch), tuple(leaf.shape)
        own = shape[: len(shape) - len(batch)]
        count = 1 if kind == "other" else int(np.prod(own))
        places.append((kind, next_row[kind], next_row[kind] + count, (*own, *batch), np.dtype(leaf.dtype)))
        next_row[kind] += count
    return Layout(structure, tuple(places))


def _kind(leaf: Any, batch: tuple[int, ...]) -> str:
    if int(np.prod(leaf.shape)) > LARGE * int(np.prod(batch)):
        return "other"
    if leaf.dtype in (jnp.int32, jnp.int8, jnp.bool_):
        return "whole"
    return "real" if leaf.dtype == jnp.float32 else "other"


class Stepper:
    """`reset` and `step` of a core for the Gymnasium faces. The link is an argument: another one compiles nothing."""

    def __init__(self, core: Core, batch: tuple[int, ...], *, recording: bool) -> None:
        """Traces nothing yet; the first calls compile."""
        self.core, self.batch, self.recording = core, batch, recording
        key = (np.zeros(batch, np.uint32),) * 2
        vector = np.zeros(len(_kernel.LinkParams._fields), np.int32)
        state, first = jax.eval_shape(self._reset, vector, key, np.int32(0))
        action = jax.eval_shape(lambda: core.null_action(batch))
        self._first = layout(first, batch)
        self._later = layout(jax.eval_shape(self._step, vector, state, action)[1], batch)
        self.jitted_reset = jax.jit(self._packed_reset)
        self.jitted_step = jax.jit(self._packed_step, donate_argnums=1)

    def _reset(self, vector: Any, key: Any, episode: Any) -> tuple[Any, Any]:
        state, observation = self.core.init(_kernel.unpack(vector), key, episode)
        return state, (observation, state.z[0])

    def _step(self, vector: Any, state: Any, action: Any) -> tuple[Any, Any]:
        state, observation, reward, record = self.core.step(_kernel.unpack(vector), state, action)
        return state, (observation, reward, record if self.recording else ())

    def _packed_reset(self, vector: Any, key: Any, episode: Any) -> tuple[Any, Packed]:
        state, out = self._reset(vector, key, episode)
        return state, pack(out, self.batch)

    def _packed_step(self, vector: Any, state: Any, action: Any) -> tuple[Any, Packed]:
        state, out = self._step(vector, state, action)
        return state, pack(out, self.batch)

    def reset(self, vector: Array, key: Array, episode: int) -> tuple[Any, Observation, Any]:
        """(state, observation, latent at tick 0) of an episode; `key` (2, *batch)."""
        state, packed = self.jitted_reset(vector, (key[0], key[1]), np.int32(episode))
        observation, z = self._first.open(packed)
        return state, observation, z

    def step(self, vector: Array, state: Any, action: Array) -> tuple[Any, Observation, Array, Record]:
        """(state, observation, reward, record); the state given is used up."""
        state, packed = self.jitted_step(vector, state, action)
        observation, reward, record = self._later.open(packed)
        return state, observation, reward, record


@lru_cache(maxsize=32)
def stepper(core: Core, batch: tuple[int, ...], recording: bool) -> Stepper:
    """The stepper of these settings, compiled once for all environments that share them."""
    return Stepper(core, batch, recording=recording)


