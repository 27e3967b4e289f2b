"""What a language model is shown of an observation, and what its reply means."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate.task import Task

SILENCE = "-"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SAMPLE_RATE = 16_000

_ONE_LETTER = re.compile(r"^\W*(?:answer|option|choice)?\W*([A-Z])\W*$", re.IGNORECASE)
_LAST_ANSWER = re.compile(r"answer\s*(?:is)?\s*[:=]?\s*\(?([A-Z])\)?\s*\.?\s*$", re.IGNORECASE)
_ONE_NUMBER = re.compile(r"^\W*(?:it was|state|answer)?\W*(\d{1,3})\W*$", re.IGNORECASE)


@dataclass(frozen=True)
class Packet:
    """One thing the model was shown: when it was captured relative to the episode's polls, and its content parts."""

    parts: tuple[dict[str, Any], ...]


def instructions(task: Task, modality: str) -> str:
    """The system prompt: what is watched, the options, silence, and questions where the task has them."""
    options = []
    for symbol in range(1, task.num_symbols):
        states = [z for z, a in enumerate(task.response) if a == symbol] if isinstance(task.response, tuple) else []
        when = f" when the state is {' or '.join(map(str, states))}" if states else ""
        options.append(f"{LETTERS[symbol - 1]}: response {symbol}{when}")
    lines = [
        f"You watch a live stream ({modality}) of a process with {task.latent.num_states} states. "
        f"A new state begins every {task.tick_ms} ms.",
        "After each update decide at once whether a response is due. Options:",
        *options,
        f"Reply with exactly one option letter, or with {SILENCE} to stay silent. No other words.",
    ]
    if task.num_answers:
        lines.append(
            f"When a question is shown, reply instead with the number (0 to {task.num_answers - 1}) of the state that "
            f"was current {task.probes.after_ms if task.probes else 0} ms before it."
        )
    return "\n".join(lines)


def new_packets(observation: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], list[int]]:
    """Signals and ages of what is new in a single environment's observation, oldest first."""
    window = len(observation["age_ms"])
    first = window - min(int(observation["fresh"]), window)
    return observation["signal"][first:], [int(age) for age in observation["age_ms"][first:]]


def content(task: Task, modality: str, signal: NDArray[Any], age_ms: int) -> list[dict[str, Any]]:
    """Content parts of one packet in the chat-completions form: text, an image or input audio."""
    when = {"type": "text", "text": f"({age_ms} ms ago)"}
    if modality == "symbols":
        token = int(signal)
        asked = token >= task.latent.num_states
        return [{"type": "text", "text": f"({age_ms} ms ago) " + ("QUESTION" if asked else f"state {token}")}]
    if modality in ("video", "screen"):
        return [when, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_png(signal)}"}}]
    if modality == "audio":
        return [when, {"type": "input_audio", "input_audio": {"data": _wav(signal), "format": "wav"}}]
    numbers = " ".join(f"{x:.3f}" for x in np.ravel(signal))
    return [{"type": "text", "text": f"({age_ms} ms ago) sensors {numbers}"}]


def _png(picture: NDArray[Any]) -> str:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("pictures for a model need pillow: pip install 'envrate[live]'") from error
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(picture, dtype=np.uint8)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _wav(samples: NDArray[Any]) -> str:
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, np.ravel(samples), SAMPLE_RATE, format="WAV", subtype="PCM_16")
    return base64.b64encode(buffer.getvalue()).decode()


def parse_reply(task: Task, text: str) -> tuple[int, int]:
    """(response, answer to a question) that a reply asks for; (0, 0) for silence and for anything unreadable."""
    text = text.strip()
    number = _ONE_NUMBER.match(text)
    if number is not None:
        state = int(number.group(1))
        return 0, state + 1 if state < task.num_answers else 0
    letter = _ONE_LETTER.match(text) or _LAST_ANSWER.search(text)
    if letter is None:
        return 0, 0
    symbol = LETTERS.index(letter.group(1).upper()) + 1
    return (symbol, 0) if symbol < task.num_symbols else (0, 0)
