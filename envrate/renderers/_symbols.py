"""Symbols: the latent's state as a token, one packet at each tick's onset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from envrate import _checks
from envrate._spec import tagged
from envrate.renderers import _timing
from envrate.renderers._base import Array, Legend, PyTree, SignalSpec

if TYPE_CHECKING:
    from envrate.task import Task

#: What every output shows when a packet is a question; no Gaussian value comes near.
PROBE_VALUE = 1e6


@tagged("renderer", "symbols")
@dataclass(frozen=True)
class Symbols:
    """Tokens 0 ... K-1 for the latent's states and K for a probe; -1 fills the slots that no packet reached.

    Args:
        bits: bits of every packet.
        shown: W, packets that an observation shows.
    """

    bits: int = 64
    shown: int = 4

    def __post_init__(self) -> None:
        """Checks both numbers."""
        object.__setattr__(self, "bits", _checks.integer("renderer.bits", self.bits, 1, 2**30))
        object.__setattr__(self, "shown", _checks.integer("renderer.shown", self.shown, 1, 64))

    @property
    def kind(self) -> str:
        """Name of the modality."""
        return "symbols"

    def frame_ms(self, task: Task) -> int | None:
        """None: a packet at each tick's onset."""
        return None

    def packet_bits(self, task: Task) -> int:
        """The same for every packet."""
        return self.bits

    def window(self, task: Task) -> int:
        """W packets."""
        return self.shown

    def signal(self, task: Task) -> SignalSpec:
        """One int32 token; (d,) float32 values of a Gaussian latent, large numbers for a probe."""
        if _timing.is_gaussian(task):
            shape = (_timing.num_outputs(task),)
            return SignalSpec(shape, dtype="float32", low=-PROBE_VALUE, high=PROBE_VALUE, empty=0)
        return SignalSpec(shape=(), dtype="int32", low=-1, high=task.latent.num_states, empty=-1)

    def legend(self, task: Task) -> Legend:
        """The words of `text`."""
        if _timing.is_gaussian(task):
            count = _timing.num_outputs(task)
            meanings = tuple(f"number {i + 1} of {count}, as it is" for i in range(count))
        else:
            meanings = tuple(self.text(task, state) for state in range(task.latent.num_states))
        return Legend("a line of text at the onset of each state", meanings, 'the word "question"')

    def init(self, task: Task, key: Array) -> PyTree:
        """No state."""
        return ()

    def capture(self, task: Task, state: PyTree, z0: Array, z1: Array, key: Array) -> tuple[PyTree, PyTree]:
        """The token, in 8 bits where they suffice; a Gaussian latent's values."""
        if _timing.is_gaussian(task):
            return state, z1
        z1 = z1["state"] if isinstance(z1, dict) else z1
        return state, z1.astype(jnp.int8 if task.latent.num_states <= 127 else jnp.int32)

    def text(self, task: Task, token: Any) -> str:
        """One packet in words, for language models: `state 2`, `value +0.31 -1.20`, `question`, or `nothing`."""
        values = np.asarray(token)
        if _timing.is_gaussian(task):
            if (values >= PROBE_VALUE).all():
                return "question"
            return "value " + " ".join(f"{value:+.2f}" for value in np.atleast_1d(values).tolist())
        if int(values) < 0:
            return "nothing"
        return "question" if int(values) == task.latent.num_states else f"state {int(values)}"

    def render(self, task: Task, payload: PyTree, end_ms: Array, probe: Array, episode_key: Array, key: Array) -> Array:
        """The token, or K for a probe."""
        if _timing.is_gaussian(task):
            return jnp.where(probe, np.float32(PROBE_VALUE), payload)
        token: Array = payload.astype(jnp.int32)
        return jax.lax.select(probe, jnp.full_like(token, task.latent.num_states), token)
