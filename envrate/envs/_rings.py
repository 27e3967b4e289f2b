"""Rings: (slots, *batch) arrays whose head the shared clock fixes, and what has arrived in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

Array = jax.Array
PyTree = Any
#: Rings of at most this many slots are read and written as a whole.
SMALL = 32


def read(ring: PyTree, slot: Any) -> PyTree:
    """The row at `slot` of each leaf."""
    return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, slot, 0, keepdims=False), ring)


def write(ring: PyTree, slot: Any, row: PyTree) -> PyTree:
    """The rings with `row` at `slot`."""
    return jax.tree.map(lambda leaf, new: jax.lax.dynamic_update_index_in_dim(leaf, new, slot, 0), ring, row)


def put(ring: PyTree, slot: Any, row: PyTree, when: Any) -> PyTree:
    """The rings with `row` at `slot` where `when`, a scalar.

    A small ring is written as a whole, which XLA does in place and together with what else it does to the ring.
    """

    def one(leaf: Array, new: Array) -> Array:
        new = jnp.broadcast_to(new, leaf.shape[1:])
        if leaf.shape[0] <= SMALL and leaf.ndim <= 2:
            mine = (jnp.arange(leaf.shape[0]) == slot) & when
            whole: Array = jnp.where(mine.reshape(-1, *(1,) * (leaf.ndim - 1)), new[None], leaf)
            return whole
        kept = jax.lax.dynamic_index_in_dim(leaf, slot, 0, keepdims=False)
        written: Array = jax.lax.dynamic_update_index_in_dim(leaf, jnp.where(when, new, kept), slot, 0)
        return written

    return jax.tree.map(one, ring, row)


def ages(slots: int, newest: Any) -> Array:
    """(slots,) int32: how many rows ago each slot was written, 0 at `newest`."""
    back = newest - jnp.arange(slots)
    return jnp.where(back < 0, back + slots, back)


def filled(slots: int, row: PyTree, fill: int = 0) -> PyTree:
    """Rings of `slots` rows like `row`, filled with one number."""
    return jax.tree.map(lambda leaf: jnp.full((slots, *jnp.shape(leaf)), fill, jnp.asarray(leaf).dtype), row)


def newest(arrived: Array, order: Array, count: int) -> list[Array]:
    """The `count` newest arrivals of each environment by their `order`, newest first; -1 where there are no more.

    Args:
        arrived: (slots, *batch) bool.
        order: (slots,) int32 >= 0, all different.
        count: how many.
    """
    rank = jnp.where(arrived, order.reshape(-1, *(1,) * (arrived.ndim - 1)), -1)
    if arrived.shape[0] * count <= 64:  # unrolled, one fused loop
        rows = [rank[i] for i in range(arrived.shape[0])]
        found = []
        for i in range(count):
            best = _largest(rows)
            found.append(best)
            if i < count - 1:
                rows = [jnp.where(row == best, -1, row) for row in rows]
        return found

    def take(rest: Array, _: None) -> tuple[Array, Array]:
        best = rest.max(axis=0)
        return jnp.where(rest == best[None], -1, rest), best

    stacked = jax.lax.scan(take, rank, None, length=count)[1]
    return [stacked[i] for i in range(count)]


def _largest(rows: Sequence[Array]) -> Array:
    best = rows[0]
    for row in rows[1:]:
        best = jnp.maximum(best, row)
    return best


def pick(ring: PyTree, slot: Array, slots: int) -> PyTree:
    """ring[slot[b], ..., b] of each leaf; `slot` (*batch) is read as 0 where it is negative."""
    slot = jnp.maximum(slot, 0)

    def one(leaf: Array) -> Array:
        small = leaf.ndim == slot.ndim + 1 and slots <= 16
        if small:
            value = leaf[0]
            for i in range(1, slots):
                value = jnp.where(slot == i, leaf[i], value)
            return value
        index = jnp.broadcast_to(slot.reshape((1,) * (leaf.ndim - slot.ndim) + slot.shape), (1, *leaf.shape[1:]))
        return jnp.take_along_axis(leaf, index, axis=0)[0]

    return jax.tree.map(one, ring)


def over_batch(function: Callable[..., PyTree], batch: tuple[int, ...]) -> Callable[..., PyTree]:
    """`function` of single environments for arguments whose last axes are the batch."""
    for _ in batch:
        function = jax.vmap(function, in_axes=-1, out_axes=-1)
    return function
