"""Reference agents by name, as the command line takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envrate import _checks
from envrate.agents._ideal import IdealObserver
from envrate.agents._reference import Always, Echo, GuessUnheard, Never, RandomGuess, Reactive
from envrate.task import Task

#: Name -> agent for a task shown in symbols. A new one is one line.
AGENTS: dict[str, Callable[[Task], Any]] = {
    "reactive": Reactive,
    "never": Never,
    "always": Always,
    "random": RandomGuess,
    "echo": Echo,
    "guess": GuessUnheard,
    "ideal": IdealObserver,
}
#: Agents that look at no signal and so run in any modality.
BLIND = ("never", "always", "random")


def get(name: str, task: Task, *, modality: str = "symbols") -> Any:
    """The reference agent of that name for `task`; raises ValueError with the names there are."""
    known = AGENTS if modality == "symbols" else {name: AGENTS[name] for name in BLIND}
    return known[_checks.choice("agent", name, known)](task)


def names() -> list[str]:
    """Names of the reference agents."""
    return list(AGENTS)
