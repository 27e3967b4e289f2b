"""Symbols need no perception."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from envrate.agents.perceivers._perceiver import Reader, Reading, is_gaussian
from envrate.renderers._symbols import PROBE_VALUE
from envrate.task import Task


def reader(task: Task, renderer: Any) -> Reader:
    """The token or the values themselves."""

    def read(signal: Any, end_ms: Any) -> Reading:
        if is_gaussian(task):
            probe = (signal >= PROBE_VALUE).all()
            return Reading(signal, probe, jnp.bool_(True))
        return Reading(signal, signal == task.latent.num_states, signal >= 0)

    return read
