"""A stretch of the latent as one modality shows it, without a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from envrate.task import Task


@dataclass(frozen=True)
class Stretch:
    """What one modality shows of a latent."""

    renderer: Any
    end_ms: NDArray[np.int64]  # (n,) end of each packet's capture
    signal: NDArray[Any]  # (n, ...)


def stretch(task: Task, renderer: Any, z: NDArray[Any], seed: int) -> Stretch:
    """Every packet of the latent `z` at ticks 0, 1, ...: (ticks,) states or (ticks, d) values."""
    lasting, fresh = jax.random.split(jax.random.key(seed))
    frame = renderer.frame_ms(task)
    if frame is None:
        ends = np.arange(len(z)) * task.tick_ms
        first = last = np.arange(len(z))
    else:
        ends = np.arange(1, len(z) * task.tick_ms // frame + 1) * frame
        first, last = (ends - frame) // task.tick_ms, (ends - 1) // task.tick_ms
    values = jnp.asarray(z)
    given = (jnp.asarray(ends, jnp.int32), values[first], values[last], jnp.arange(len(ends)))
    return Stretch(renderer, ends, np.asarray(_scan(task, renderer)(given, lasting, fresh)))


@lru_cache(maxsize=16)
def _scan(task: Task, renderer: Any) -> Callable[..., Any]:
    def run(given: Any, lasting: Any, fresh: Any) -> Any:
        def packet(state: Any, packet_given: Any) -> Any:
            end, z0, z1, number = packet_given
            key = jax.random.fold_in(fresh, number)
            state, payload = renderer.capture(task, state, z0, z1, key)
            return state, renderer.render(task, payload, end, jnp.bool_(False), lasting, key)

        return jax.lax.scan(packet, renderer.init(task, lasting), given)[1]

    return jax.jit(run)
