"""InteractionBench (Espere-1119-Song/InteractionBench): its runs as traces, and its own scores.

`evaluate` is the benchmark's arithmetic, `load` gives the trace that bits are scored from, `delays` lists what became
of each event, `published` and `beside` set a run beside the published ones.
"""

from envrate.bench_adapters.interactionbench._content import (
    OptionMatcher,
    last_number,
    lexical,
    option_chosen,
    token_f1,
)
from envrate.bench_adapters.interactionbench._data import Benchmark, Item, load_benchmark
from envrate.bench_adapters.interactionbench._evaluate import Evaluation, evaluate
from envrate.bench_adapters.interactionbench._interface import InteractionBench
from envrate.bench_adapters.interactionbench._judges import Ensemble, VerdictCache, cache_key, parse_verdict
from envrate.bench_adapters.interactionbench._matching import match, timing
from envrate.bench_adapters.interactionbench._protocol import decision_times, parse_timed_lines
from envrate.bench_adapters.interactionbench._published import (
    PublishedRun,
    beside,
    published,
    published_runs,
    split_of,
)
from envrate.bench_adapters.interactionbench._restraint import EventDelay, delays
from envrate.bench_adapters.interactionbench._runs import Emission, Prediction, Run, load_run
from envrate.bench_adapters.interactionbench._scores import Protocol, score_item
from envrate.bench_adapters.interactionbench._trace import load

#: The adapter that the entry point `interactionbench` of group `envrate.adapters` names.
ADAPTER = InteractionBench()

__all__ = [
    "ADAPTER",
    "Benchmark",
    "Emission",
    "Ensemble",
    "Evaluation",
    "EventDelay",
    "InteractionBench",
    "Item",
    "OptionMatcher",
    "Prediction",
    "Protocol",
    "PublishedRun",
    "Run",
    "VerdictCache",
    "beside",
    "cache_key",
    "decision_times",
    "delays",
    "evaluate",
    "last_number",
    "lexical",
    "load",
    "load_benchmark",
    "load_run",
    "match",
    "option_chosen",
    "parse_timed_lines",
    "parse_verdict",
    "published",
    "published_runs",
    "score_item",
    "split_of",
    "timing",
    "token_f1",
]
