"""Reference agents and ideal observers. An agent is any callable `(observation, state) -> (action, state)`."""

from envrate.agents._reference import Always, Echo, GuessUnheard, Never, RandomGuess, Reactive
from envrate.agents._registry import get, names

__all__ = ["Always", "Echo", "GuessUnheard", "Never", "RandomGuess", "Reactive", "get", "names"]
