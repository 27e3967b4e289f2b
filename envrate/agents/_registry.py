"""Reference agents by name, as the command line takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envrate import _checks
from envrate._responses import Threshold
from envrate.agents._ideal import IdealObserver
from envrate.agents._reference import Always, Echo, GuessUnheard, Never, RandomGuess, Reactive
from envrate.agents._tracking import Kalman, Rest
from envrate.agents.perceivers import Perceiver, ScreenReader, VoiceActivity
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


#: Agents for tracking tasks, likewise; an echo gives the newest value that it has.
TRACKERS: dict[str, Callable[[Task], Any]] = {
    "never": Rest,
    "echo": lambda task: Perceiver(task, name="echo"),
    "ideal": Kalman,
}


def get(name: str, task: Task, *, modality: Any = "symbols") -> Any:
    """The reference agent of that name for `task`; raises ValueError with the names there are.

    Args:
        name: a name; "perceiver" reads any modality. Those of `TIMED` are for `envrate.live.run` alone.
        task: the task.
        modality: a renderer or its kind.
    """
    if name in TIMED:
        raise ValueError(f"agent: {name} takes real time, so it plays live only: envrate.live.run, or `envrate live`")
    kind = getattr(modality, "kind", modality)
    known = TRACKERS if task.is_tracking else AGENTS
    if kind != "symbols" or not (task.is_tracking or shows_tokens(task)):
        known = {name: make for name, make in known.items() if name in BLIND}
    if name == "ideal" and name in known and not task.is_tracking and task.reply == "newest":
        raise ValueError(
            f"agent: ideal decides at the horizon and has to name its tick, {task.name or 'the task'} takes replies to "
            "the newest tick; play 'reactive', or IdealObserver(task, latency_ms=...) for one latency. What the "
            "ideal observer gets at each latency is in `envrate report`"
        )
    known = known | {"perceiver": lambda task: Perceiver(task, modality)}
    return known[_checks.choice("agent", name, known)](task)


def shows_tokens(task: Task) -> bool:
    """Whether symbols show the letters of an alphabet, which agents by rule read, and not real values."""
    return hasattr(task.latent, "num_states") and not isinstance(task.response, Threshold)


#: Perceivers from packages that ship their weights. They are called one observation at a time and take real time, so
#: they play in `envrate.live.run` only.
TIMED: dict[str, Callable[[Task], Any]] = {"voice-activity": VoiceActivity, "screen-reader": ScreenReader}


def names() -> list[str]:
    """Names of the reference agents."""
    return [*AGENTS, "perceiver"]
