"""One example of each state of a task, for the page: what the legend says, to look at or to listen to."""

from __future__ import annotations

from typing import Any

import numpy as np

from envrate.agents._chat_content import png, wav
from envrate.renderers._stretch import stretch
from envrate.task import Task

#: Of the nuisance in the examples.
SEED = 0


def samples(task: Task, renderer: Any) -> list[tuple[str, bytes]]:
    """(media type, file) of each state: a tick of sound or the last picture of a tick; [] for other modalities.

    The latent is held at the state and the nuisance drawn from a seed of its own, so an example tells nothing of any
    episode.
    """
    if renderer.kind not in ("audio", "video", "screen") or not hasattr(task.latent, "num_states"):
        return []
    ticks = (stretch(task, renderer, np.full(1, k, np.int32), SEED).signal for k in range(task.latent.num_states))
    if renderer.kind == "audio":
        return [("audio/wav", wav(tick)) for tick in ticks]
    return [("image/png", png(tick[-1])) for tick in ticks]
