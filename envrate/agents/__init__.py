"""Reference agents and ideal observers. An agent is any callable `(observation, state) -> (action, state)`."""

from envrate.agents._action import Action
from envrate.agents._chat import ChatAgent, HFAgent, Poller
from envrate.agents._ideal import IdealObserver
from envrate.agents._reference import Always, Echo, GuessUnheard, Never, RandomGuess, Reactive
from envrate.agents._registry import get, names

__all__ = [
    "Action",
    "Always",
    "ChatAgent",
    "Echo",
    "GuessUnheard",
    "HFAgent",
    "IdealObserver",
    "Never",
    "Poller",
    "RandomGuess",
    "Reactive",
    "get",
    "names",
]
