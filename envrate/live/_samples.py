"""One example of each state of a task, for the page: what the legend says, to look at or to listen to."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from envrate.channels._codecs import AUDIO_RATE
from envrate.renderers._stretch import stretch
from envrate.task import Task

#: Of the nuisance in the examples.
SEED = 0


def samples(task: Task, renderer: Any) -> list[tuple[str, bytes]]:
    """(media type, file) of each state: a tick of sound or the last picture of a tick; [] for other modalities.

    The latent is held at the state and the nuisance drawn from a seed of its own, so an example tells nothing of any
    episode.
    """
    makers = {"audio": _sound, "video": _picture, "screen": _picture}
    if renderer.kind not in makers or not hasattr(task.latent, "num_states"):
        return []
    make = makers[renderer.kind]
    return [make(stretch(task, renderer, np.full(1, k, np.int32), SEED).signal) for k in range(task.latent.num_states)]


def _sound(signal: Any) -> tuple[str, bytes]:
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, signal.ravel(), AUDIO_RATE, format="WAV", subtype="PCM_16")
    return "audio/wav", buffer.getvalue()


def _picture(signal: Any) -> tuple[str, bytes]:
    import matplotlib.image

    buffer = io.BytesIO()
    matplotlib.image.imsave(buffer, signal[-1], format="png")
    return "image/png", buffer.getvalue()
