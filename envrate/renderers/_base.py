"""What a renderer is: the one protocol between a latent and the packets that carry it.

A renderer is a frozen dataclass. The environment calls it for a batch by `vmap`, so each method below is written
for a single environment. Rendering is lazy: a packet in flight holds only the *payload*; its signal is drawn when
it arrives. Nuisance comes from the two keys alone, never from the latent, and a key never from the other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax

if TYPE_CHECKING:
    from envrate.task import Task


Array = jax.Array
PyTree = Any


@dataclass(frozen=True)
class SignalSpec:
    """Form of one rendered packet, and what an empty slot of the observation holds."""

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    empty: float  # fills slots that no packet reached
    holds: bool = False  # video and screen: an observation without arrivals keeps the last picture


@dataclass(frozen=True)
class Legend:
    """What anyone who watches a stream is told of it: its code book, and nothing of what will be said in it."""

    packet: str  # what one packet is
    meanings: tuple[str, ...]  # how each state of a chain shows, or each output of a Gaussian process
    question: str  # what a probe looks or sounds like


@runtime_checkable
class Renderer(Protocol):
    """z_t -> observation, for one modality."""

    @property
    def kind(self) -> str:
        """Name of the modality: symbols, audio, video, screen or proprio."""
        ...

    def frame_ms(self, task: Task) -> int | None:
        """Length of a captured frame; None for an event renderer, which sends a packet at each tick's onset."""
        ...

    def packet_bits(self, task: Task) -> int:
        """Bits of every packet: a function of the stream's settings, never of its content."""
        ...

    def window(self, task: Task) -> int:
        """W, the number of packets that an observation shows, newest last."""
        ...

    def signal(self, task: Task) -> SignalSpec:
        """Form of one rendered packet."""
        ...

    def legend(self, task: Task) -> Legend:
        """The stream in words, for people and for language models."""
        ...

    def init(self, task: Task, key: Array) -> PyTree:
        """State of the source of the stream at reset, such as an arm's joints; () for most."""
        ...

    def capture(self, task: Task, state: PyTree, z0: Array, z1: Array, key: Array) -> tuple[PyTree, PyTree]:
        """Advances the state by one frame and returns (state, payload); the payload of most is (z0, z1).

        `z0` and `z1` are the latent at the start and at the end of the capture (equal for an event renderer): an
        int32 scalar for a chain, (d,) float32 for a Gaussian process. `key` belongs to this packet alone.
        """
        ...

    def render(self, task: Task, payload: PyTree, end_ms: Array, probe: Array, episode_key: Array, key: Array) -> Array:
        """The signal of one packet, of the form `signal` says.

        Args:
            task: the task.
            payload: what `capture` returned.
            end_ms: int32, when the capture ended (the onset, for an event renderer).
            probe: bool, whether this packet is a question about an earlier tick; its signal then shows the question
                and nothing of any latent. It is sent `task.probes.after_ms` after the onset of the tick it asks about.
            episode_key: a key that is the same for each packet of the episode: nuisance that lasts.
            key: the packet's own key: nuisance that is fresh.
        """
        ...
