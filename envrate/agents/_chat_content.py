"""What a language model is told and shown, and what its reply means."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate._responses import Threshold
from envrate.agents._action import Action
from envrate.channels._codecs import AUDIO_RATE
from envrate.renderers import Legend, SignalSpec, Symbols
from envrate.task import Task

SILENCE = "-"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_ONE_LETTER = re.compile(r"^\W*(?:answer|option|choice)?\W*([A-Z])\W*$", re.IGNORECASE)
_LAST_ANSWER = re.compile(r"answer\s*(?:is)?\s*[:=]?\s*\(?([A-Z])\)?\s*\.?\s*$", re.IGNORECASE)
_ONE_NUMBER = re.compile(r"^\W*(?:it was|state|answer)?\W*(\d{1,3})\W*$", re.IGNORECASE)
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,2})?"
_NUMBERS = re.compile(rf"^\W*?({_NUMBER}(?:[\s,;]+{_NUMBER})*)\W*$", re.IGNORECASE)


def instructions(task: Task, legend: Legend) -> str:
    """The system prompt: what is watched, how it shows, the options, silence, and questions where the task has them."""
    if task.num_symbols > len(LETTERS) + 1:
        raise ValueError(
            f"task: a chat agent has {len(LETTERS)} option letters, the task {task.num_symbols - 1} responses"
        )
    lines = [f"You watch a live stream. Each update is {legend.packet}."]
    about = _about_states if hasattr(task.latent, "num_states") else _about_values
    lines += about(task, legend)
    if task.is_tracking:
        count = len(legend.meanings)
        lines.append(
            f"After each update reply with your estimate of the newest value{'s' * (count > 1)}: "
            f"{count} decimal number{'s' * (count > 1)}, nothing else, or {SILENCE} to keep your last one."
        )
        return "\n".join(lines)
    lines += ["After each update decide at once whether a response is due. Options:", *_options(task)]
    lines.append(f"Reply with exactly one option letter, or with {SILENCE} to stay silent. No other words.")
    if task.probes is not None:
        lines.append(
            f"A question is {legend.question}. It asks what was current {task.probes.after_ms} ms before it was sent. "
            f"To a question reply with one number only, 0 to {task.num_answers - 1}: {_answers(task)}."
        )
    return "\n".join(lines)


def _about_states(task: Task, legend: Legend) -> list[str]:
    shown = [f"  state {k}: {meaning}" for k, meaning in enumerate(legend.meanings)]
    count = task.latent.num_states
    return [f"It shows a process with {count} states; a state begins every {task.tick_ms} ms. How states show:", *shown]


def _about_values(task: Task, legend: Legend) -> list[str]:
    shown = [f"  value {i + 1}: {meaning}" for i, meaning in enumerate(legend.meanings)]
    return [f"It shows a process that moves every {task.tick_ms} ms. How its values show:", *shown]


def _options(task: Task) -> list[str]:
    return [f"  {LETTERS[a - 1]}: {_when(task.response, a)}" for a in range(1, task.num_symbols)]


def _when(response: tuple[int, ...] | Threshold, symbol: int) -> str:
    """When a response is due."""
    if isinstance(response, Threshold):
        edges = [None, *response.edges, None]
        parts = [_interval(edges[i], edges[i + 1]) for i, a in enumerate(response.symbols) if a == symbol]
        return f"when value {response.output + 1} is " + " or ".join(parts)
    return "in state " + " or ".join(str(z) for z, a in enumerate(response) if a == symbol)


def _interval(low: float | None, high: float | None) -> str:
    if low is None:
        return f"below {high:g}"
    return f"{low:g} or more" if high is None else f"from {low:g} to {high:g}"


def _answers(task: Task) -> str:
    """What each answer to a question stands for."""
    question = task.probes.question if task.probes is not None else None
    if question is None:
        return "the state"
    states = [[z for z, answer in enumerate(question) if answer == g] for g in range(task.num_answers)]
    return ", ".join(f"{g} for state {' or '.join(map(str, zs))}" for g, zs in enumerate(states))


def new_packets(observation: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], list[int]]:
    """Signals and ages of what is new in a single environment's observation, oldest first."""
    window = len(observation["age_ms"])
    first = window - min(int(observation["fresh"]), window)
    return observation["signal"][first:], [int(age) for age in observation["age_ms"][first:]]


def is_picture(signal: SignalSpec) -> bool:
    """Whether a packet is an RGB picture."""
    return len(signal.shape) == 3 and signal.dtype == "uint8"


def content(task: Task, renderer: Any, signal: NDArray[Any], number: int, age_ms: int) -> list[dict[str, Any]]:
    """Content parts of packet `number` in the chat-completions form: text, an image or input audio."""
    label = f"#{number}, {age_ms} ms old when it came:"
    if isinstance(renderer, Symbols):
        return [{"type": "text", "text": f"{label} {renderer.text(task, signal)}"}]
    when = {"type": "text", "text": label}
    if renderer.kind == "audio":
        return [when, {"type": "input_audio", "input_audio": {"data": _base64(wav(signal)), "format": "wav"}}]
    if is_picture(renderer.signal(task)):
        return [when, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_base64(png(signal))}"}}]
    numbers = " ".join(f"{x:.3f}" for x in np.ravel(signal))
    return [{"type": "text", "text": f"{label} {numbers}"}]


def _base64(file: bytes) -> str:
    return base64.b64encode(file).decode()


def png(picture: NDArray[Any]) -> bytes:
    """An RGB picture as a PNG file."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("pictures need pillow: pip install 'envrate[live]'") from error
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return buffer.getvalue()


def wav(samples: NDArray[Any]) -> bytes:
    """Sound as a 16-bit WAV file."""
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, np.ravel(samples), AUDIO_RATE, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def parse_reply(task: Task, text: str) -> Action | None:
    """What a reply asks for; None for silence and for anything unreadable."""
    text = text.strip()
    if task.is_tracking:
        return _estimate(text, task.latent.num_outputs)
    number = _ONE_NUMBER.match(text)
    if number is not None:
        answer = int(number.group(1)) + 1
        return Action(answer=answer) if answer <= task.num_answers else None
    letter = _ONE_LETTER.match(text) or _LAST_ANSWER.search(text)
    symbol = LETTERS.index(letter.group(1).upper()) + 1 if letter is not None else 0
    return Action(symbol) if 0 < symbol < task.num_symbols else None


def _estimate(text: str, count: int) -> Action | None:
    found = _NUMBERS.match(text)
    values: Sequence[float] = [float(x) for x in re.findall(_NUMBER, found.group(1))] if found is not None else []
    if len(values) != count or not np.isfinite(values).all():
        return None
    return Action(tuple(values))
