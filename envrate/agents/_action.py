"""What a live agent says at one moment, in the terms of a trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """A response, the tick it names, and an answer to a question.

    `value` is a symbol (0: nothing) or the vector of a tracking task. `back` names a tick by its distance from the
    current one; None is the newest tick observed. `answer` is the answer to the newest question, 1 ... G, or 0.
    """

    value: int | tuple[float, ...] = 0
    back: int | None = None
    answer: int = 0
