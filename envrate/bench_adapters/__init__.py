"""Other benchmarks' runs as traces, and their own scores beside them.

`load` reads a run whose format it recognises; `recognise` only says what it is. New benchmarks join through the
entry-point group `envrate.adapters`.
"""

from envrate.bench_adapters import interactionbench, tvbench
from envrate.bench_adapters._adapter import Adapter, Publishes, Recognition, ScoresItself, ScoreTable
from envrate.bench_adapters._conformance import Conformance, check_adapter
from envrate.bench_adapters._discovery import Found, adapters, load, option_names, recognise, runs, scores
from envrate.bench_adapters._rates import Disagreement, ItemRate, bits_per_item, disagreements, with_run
from envrate.bench_adapters._scored import ScoredRun, on_one_grid, score_run

__all__ = [
    "Adapter",
    "Conformance",
    "Disagreement",
    "Found",
    "ItemRate",
    "Publishes",
    "Recognition",
    "ScoreTable",
    "ScoredRun",
    "ScoresItself",
    "adapters",
    "bits_per_item",
    "check_adapter",
    "disagreements",
    "interactionbench",
    "load",
    "on_one_grid",
    "option_names",
    "recognise",
    "runs",
    "score_run",
    "scores",
    "tvbench",
    "with_run",
]
