"""Products in JAX: every part draws from a key of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from envrate.latents._product import Product

if TYPE_CHECKING:
    from envrate.latents._kernels import Draws, LatentKernel

Array = jax.Array


@dataclass(frozen=True)
class ProductKernel:
    """Sampler of a product.

    The value is the number of the combined state (int32) for chains alone, (d, *batch) float32 for Gaussian
    processes alone, and {"state": ..., "value": ...} for both.
    """

    law: Product
    parts: tuple[LatentKernel, ...]

    def start(self, draws: Draws, num_ticks: int) -> tuple[tuple[Any, ...], Any]:
        """States and z_0."""
        return self._joined([part.start(self._split(draws, i), num_ticks) for i, part in enumerate(self.parts)])

    def move(self, state: tuple[Any, ...], draws: Draws, tick: Any) -> tuple[tuple[Any, ...], Any]:
        """States and value one tick later."""
        moved = [
            part.move(old, self._split(draws, i), tick)
            for i, (part, old) in enumerate(zip(self.parts, state, strict=True))
        ]
        return self._joined(moved)

    def _split(self, draws: Draws, part: int) -> Draws:
        """A block of bits of this part alone: the tick's block is the key, the part's number the counter."""
        from jax.extend.random import threefry2x32_p

        shape = jnp.shape(draws.words[0])
        counter = jnp.full(shape, part, jnp.uint32)
        words = threefry2x32_p.bind(  # type: ignore[no-untyped-call]
            draws.words[0], draws.words[1], counter, jnp.zeros(shape, jnp.uint32)
        )
        return type(draws)((words[0], words[1]))

    def _joined(self, parts: list[tuple[Any, Any]]) -> tuple[tuple[Any, ...], Any]:
        states = tuple(state for state, _ in parts)
        number: Any = None
        values = []
        for (_, z), (_, law) in zip(parts, self.law.parts, strict=True):
            if hasattr(law, "num_states"):
                number = z if number is None else number * np.int32(law.num_states) + z
            else:
                values.append(z)
        if number is None:
            return states, jnp.concatenate(values)
        return states, ({"state": number, "value": jnp.concatenate(values)} if values else number)
