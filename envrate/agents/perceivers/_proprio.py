"""A filter for the arm; written with its renderer."""

from __future__ import annotations

from typing import Any

from envrate.agents.perceivers._perceiver import Reader
from envrate.task import Task


def reader(task: Task, renderer: Any) -> Reader:
    """Not there yet."""
    raise ValueError("modality: the arm has no reader")
