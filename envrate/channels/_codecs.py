"""Constant-rate codecs: the bits of a packet depend on the settings alone, never on what the packet holds.

A codec whose packets grew with their content would let arrival times tell the latent. The JAX side, which puts a
signal through a codec, is in `_codec_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envrate import _checks
from envrate._spec import tagged

#: Sampling rate of rendered sound, Hz, and bits of its raw samples.
AUDIO_RATE, PCM_BITS = 16000, 16
#: Bits of a raw pixel.
PIXEL_BITS = 24
#: Side of the blocks that a picture is transformed in.
BLOCK = 8
#: Share of a link's bandwidth that "auto" fills at most.
FILL = 0.9


@tagged("codec", "mu-law")
@dataclass(frozen=True)
class MuLaw:
    """Sound at a lower sampling rate in logarithmic steps (ITU-T G.711 has 8 bits and mu = 255).

    Args:
        sample_rate: Hz; 16000 divided by a whole number.
        bits: per sample, 2 to 12.
    """

    sample_rate: int = 8000
    bits: int = 8

    def __post_init__(self) -> None:
        """Checks the rate and the bits."""
        rate = _checks.integer("codec.sample_rate", self.sample_rate, 1000, AUDIO_RATE, "Hz")
        if AUDIO_RATE % rate:
            raise ValueError(f"codec.sample_rate: expected {AUDIO_RATE} Hz divided by a whole number, got {rate}")
        _checks.integer("codec.bits", self.bits, 2, 12)

    def packet_bits(self, samples: int) -> int:
        """Bits of a frame of `samples` samples at 16 kHz."""
        step = AUDIO_RATE // self.sample_rate
        return -(-samples // step) * self.bits


@tagged("codec", "picture")
@dataclass(frozen=True)
class Picture:
    """A smaller picture in 8 x 8 blocks of which the low frequencies are kept, each in so many bits.

    Args:
        scale: whole number by which each side is divided.
        keep: side of the square of cosine coefficients kept of each 8 x 8 block; 8 keeps the pixels themselves.
        bits: per kept number and colour.
    """

    scale: int = 1
    keep: int = 8
    bits: int = 8

    def __post_init__(self) -> None:
        """Checks every field."""
        _checks.integer("codec.scale", self.scale, 1, 16)
        _checks.integer("codec.keep", self.keep, 1, BLOCK)
        _checks.integer("codec.bits", self.bits, 1, 8)

    def packet_bits(self, height: int, width: int) -> int:
        """Bits of a picture of that size, three colours."""
        h, w = -(-height // self.scale), -(-width // self.scale)
        if self.keep == BLOCK:
            return 3 * h * w * self.bits
        return 3 * -(-h // BLOCK) * -(-w // BLOCK) * self.keep**2 * self.bits


@tagged("codec", "uniform")
@dataclass(frozen=True)
class UniformSteps:
    """Numbers within a known range in equal steps.

    Args:
        bits: per number, 2 to 16.
    """

    bits: int = 12

    def __post_init__(self) -> None:
        """Checks the bits."""
        _checks.integer("codec.bits", self.bits, 2, 16)

    def packet_bits(self, numbers: int) -> int:
        """Bits of a packet of so many numbers."""
        return numbers * self.bits


#: Codecs from best to worst for "auto"; "raw" comes first.
AUDIO_LADDER: tuple[Any, ...] = (
    "raw",
    MuLaw(16000, 10),
    MuLaw(16000, 8),
    MuLaw(8000, 8),
    MuLaw(8000, 6),
    MuLaw(8000, 4),
    MuLaw(4000, 4),
    MuLaw(4000, 3),
    MuLaw(2000, 3),
)
PICTURE_LADDER: tuple[Any, ...] = (
    "raw",
    Picture(1, 6, 8),
    Picture(1, 4, 7),
    Picture(1, 3, 6),
    Picture(2, 4, 6),
    Picture(2, 3, 5),
    Picture(4, 4, 5),
    Picture(4, 3, 4),
    Picture(8, 4, 4),
)
PROPRIO_LADDER: tuple[Any, ...] = (
    "raw",
    UniformSteps(16),
    UniformSteps(12),
    UniformSteps(10),
    UniformSteps(8),
    UniformSteps(6),
)


def packet_bits(codec: Any, numbers: int | tuple[int, int], raw_bits: int) -> int:
    """Bits of a packet: of a codec, or `raw_bits` per number (per pixel for a picture's (height, width))."""
    shape = (numbers,) if isinstance(numbers, int) else numbers
    if codec == "auto":
        raise ValueError("codec: 'auto' depends on the link; give the link to `for_link` first")
    if codec == "raw":
        total = raw_bits
        for n in shape:
            total *= n
        return total
    return int(codec.packet_bits(*shape))


def fitting(
    ladder: Sequence[Any],
    bandwidth_bps: float | None,
    frame_ms: int,
    numbers: int | tuple[int, int],
    raw_bits: int = PCM_BITS,
) -> Any:
    """The best codec whose stream fills at most 90 % of the bandwidth; the smallest where none does."""
    if bandwidth_bps is None:
        return ladder[0]
    for codec in ladder:
        if packet_bits(codec, numbers, raw_bits) * 1000.0 / frame_ms <= FILL * bandwidth_bps:
            return codec
    return ladder[-1]
