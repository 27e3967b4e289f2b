"""Rates of humans and of brain-computer interfaces, as labelled lines beside a frontier.

They are no competitors: each has a definition of its own (the entropy of what was performed, Wolpaw's rate, a Gaussian
model of endpoints), and none is credited throughput against a known demand.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

#: To be printed wherever one of these rates is.
CAUTION = (
    "Reference rates have definitions of their own (entropy of a performance, Wolpaw's rate, Fitts' throughput): read "
    "them as orders of magnitude, not as results on this task."
)


@dataclass(frozen=True)
class ReferenceRate:
    """A published rate, its definition and its source."""

    name: str
    bits_per_s: float
    definition: str
    source: str


@lru_cache(maxsize=1)
def reference_rates() -> tuple[ReferenceRate, ...]:
    """Published rates of humans and brain-computer interfaces, bits per second; print `CAUTION` beside them."""
    text = (resources.files("envrate") / "data" / "reference_rates.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return tuple(
        ReferenceRate(row["name"], float(row["bits_per_s"]), row["definition"], row["source"]) for row in rows
    )
