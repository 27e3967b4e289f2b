"""What the estimators return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A number in bits from samples. No bound in either direction: an information may come out below 0."""

    value: float
    method: str
    samples: int

    @property
    def kind(self) -> str:
        """Always "estimate"."""
        return "estimate"
