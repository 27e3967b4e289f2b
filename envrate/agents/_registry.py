"""Reference agents by name, as the command line takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envrate import _checks
from envrate.agents._reference import Always, Echo, GuessUnheard, Never, RandomGuess, Reactive
from envrate.task import Task

#: Name -> agent for a task. A new one is one line.
AGENTS: dict[str, Callable[[Task], Any]] = {
    "reactive": Reactive,
    "never": Never,
    "always": Always,
    "random": RandomGuess,
    "echo": Echo,
    "guess": GuessUnheard,
}


def get(name: str, task: Task) -> Any:
    """The reference agent of that name for `task`; raises ValueError with the names there are."""
    return AGENTS[_checks.choice("agent", name, AGENTS)](task)


def names() -> list[str]:
    """Names of the reference agents."""
    return list(AGENTS)
