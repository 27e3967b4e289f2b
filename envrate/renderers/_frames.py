"""What renderers that capture frames share: the length of a frame, a codec, packets of one size."""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from envrate import _checks
from envrate._spec import from_dict, to_dict
from envrate.channels import _codecs

if TYPE_CHECKING:
    from envrate.task import Task


class Frames(abc.ABC):
    """A renderer of captured frames. A subclass is a frozen dataclass with these two fields."""

    capture_ms: int | None
    codec: Any

    #: "raw" and the codecs of its signal, from best to worst; bits of a raw number, or of a raw pixel.
    ladder: ClassVar[tuple[Any, ...]]
    raw_bits: ClassVar[int]

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """The modality."""

    @abc.abstractmethod
    def numbers(self, task: Task) -> int | tuple[int, int]:
        """Numbers in a frame, or a picture's (height, width)."""

    def _check_frames(self) -> None:
        """Checks the two fields; a codec's dict becomes the codec."""
        if self.capture_ms is not None:
            _checks.integer("capture_ms", self.capture_ms, 1, unit="ms")
        if isinstance(self.codec, str):
            _checks.choice("codec", self.codec, ("raw", "auto"))
            return
        codec, sort = from_dict("codec", self.codec), type(self.ladder[-1])
        if not isinstance(codec, sort):
            kinds = [to_dict(one)["kind"] for one in (self.ladder[-1], codec)]
            raise ValueError(f"codec: {self.kind} takes a {kinds[0]} codec, 'raw' or 'auto', got a {kinds[1]} codec")
        object.__setattr__(self, "codec", codec)

    def for_link(self, task: Task, bandwidth_bps: float | None) -> Self:
        """This renderer with "auto" settled: the best codec whose rate fits the bandwidth."""
        if self.codec != "auto":
            return self
        found = _codecs.fitting(self.ladder, bandwidth_bps, self.frame_ms(task), self.numbers(task), self.raw_bits)
        return dataclasses.replace(self, codec=found)  # type: ignore[type-var]

    def frame_ms(self, task: Task) -> int:
        """Length of a frame: the micro-turn by default; raises ValueError where it is longer than that."""
        if self.capture_ms is None:
            return task.micro_turn_ms
        if self.capture_ms > task.micro_turn_ms:
            raise ValueError(
                f"capture_ms: expected at most the micro-turn of {task.micro_turn_ms} ms, got {self.capture_ms}; "
                "shorten the frame"
            )
        return self.capture_ms

    def packet_bits(self, task: Task) -> int:
        """Bits of a frame."""
        return _codecs.packet_bits(self.codec, self.numbers(task), self.raw_bits)


def two_turns(task: Task, frame_ms: int) -> int:
    """Frames that cover at least two micro-turns, and at least two."""
    return max(2, -(-2 * task.micro_turn_ms // frame_ms))
