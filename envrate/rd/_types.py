"""What the rate-distortion functions return: a number is never without the bounds that enclose it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Bracket:
    """A rate with its certificate: lower <= rate <= upper.

    `kind` is "exact" (the bracket encloses the truth), "estimate" (it does not) or "nominal" (a convention, as for
    real benchmarks whose law is unknown). `method` says in a few words how it was had.
    """

    lower: float
    upper: float
    kind: str = "exact"
    method: str = ""

    def __post_init__(self) -> None:
        """Checks that the bounds are in order."""
        if not self.lower <= self.upper:
            raise ValueError(f"Bracket: expected lower <= upper, got {self.lower} and {self.upper}")

    @property
    def mid(self) -> float:
        """Middle of the bracket."""
        return 0.5 * (self.lower + self.upper)

    @property
    def width(self) -> float:
        """Its width, upper - lower."""
        return self.upper - self.lower

    def scaled(self, factor: float) -> Bracket:
        """The bracket in another unit, factor > 0."""
        return replace(self, lower=self.lower * factor, upper=self.upper * factor)


@dataclass(frozen=True)
class RDPoint:
    """One point of a rate-distortion function, in bits per source letter.

    `lower <= R(distortion) <= upper` is certified; `rate` lies between.
    """

    rate: float
    lower: float
    upper: float
    distortion: float
    slope: float  # s >= 0, bits per unit of distortion: -dR/dD
    output: NDArray[np.float64]  # (M,) law of the reproduction
    make_channel: Callable[[], NDArray[np.float64]] = field(repr=False, compare=False)

    @cached_property
    def channel(self) -> NDArray[np.float64]:
        """(K, M) law of the reproduction given the source letter, made when first asked for."""
        return self.make_channel()
