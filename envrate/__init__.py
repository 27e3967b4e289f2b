"""EnvRate: task-relevant bits per second within an allowed latency, for any agent in any modality.

Names load when first used (Scientific Python SPEC 1); importing the package registers the Gymnasium ids and nothing
else.
"""

import lazy_loader as _lazy

from envrate._ids import register_with_gymnasium as _register

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = _lazy.attach(
    __name__,
    submodules=[
        "agents",
        "bench_adapters",
        "channels",
        "envs",
        "latents",
        "live",
        "plots",
        "rd",
        "renderers",
        "scorers",
        "tasks",
    ],
    submod_attrs={
        "_responses": ["Threshold"],
        "envs": ["rollout"],
        "scorers": ["Frontier", "compare", "frontier", "rank", "split", "transfer"],
        "task": ["Probes", "Severity", "Task"],
        "trace": ["Trace"],
    },
)

_register()
