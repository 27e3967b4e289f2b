"""Other benchmarks' runs as traces, and their own scores beside them.

`load` reads a run whose format it recognises; `recognise` only says what it is. New benchmarks join through the
entry-point group `envrate.adapters`.
"""

from envrate.bench_adapters._adapter import Adapter, Publishes, Recognition, ScoresItself, ScoreTable
from envrate.bench_adapters._discovery import Found, adapters, load, recognise, runs, scores

__all__ = [
    "Adapter",
    "Found",
    "Publishes",
    "Recognition",
    "ScoreTable",
    "ScoresItself",
    "adapters",
    "load",
    "recognise",
    "runs",
    "scores",
]
