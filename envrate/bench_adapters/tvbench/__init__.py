"""TVBench runs (EvalScope, the benchmark's notebook, lmms-eval, VLMEvalKit) as traces, and their accuracy."""

from envrate.bench_adapters.tvbench._adapter import TVBench
from envrate.bench_adapters.tvbench._items import Item, Run
from envrate.bench_adapters.tvbench._logprobs import InformationBound, information_bound

#: The adapter that the entry point `tvbench` of group `envrate.adapters` names.
ADAPTER = TVBench()

__all__ = ["ADAPTER", "InformationBound", "Item", "Run", "TVBench", "information_bound"]
