"""Other benchmarks' runs as traces, and their own scores beside them.

`load` reads a run whose format it recognises; `recognise` only says what it is. New benchmarks join through the
entry-point group `envrate.adapters`.
"""

from envrate.bench_adapters._adapter import Adapter, Publishes, Recognition, ScoresItself, ScoreTable
from envrate.bench_adapters._conformance import Conformance, check_adapter
from envrate.bench_adapters._discovery import Found, adapters, load, recognise, runs, scores
from envrate.bench_adapters._rates import Disagreement, ItemRate, bits_per_item, disagreements

__all__ = [
    "Adapter",
    "Conformance",
    "Disagreement",
    "Found",
    "ItemRate",
    "Publishes",
    "Recognition",
    "ScoreTable",
    "ScoresItself",
    "adapters",
    "bits_per_item",
    "check_adapter",
    "disagreements",
    "load",
    "recognise",
    "runs",
    "scores",
]
