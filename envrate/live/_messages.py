"""Messages of the live protocol, version 1: JSON texts, and binary frames for sound, pictures and joints.

A binary frame is a 4-byte little-endian length, a JSON header of that length, then the payload; docs/live.md has the
table of messages.
"""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from envrate.agents._action import Action
from envrate.agents._chat_content import new_packets
from envrate.channels._codecs import AUDIO_RATE
from envrate.live._episode import World
from envrate.live._mailbox import Observation

PROTOCOL = 1
#: Encoding of the payload by modality; pictures may be sent as "jpeg" too.
ENCODINGS = {"symbols": "json", "audio": "pcm_f32le", "video": "png", "screen": "png", "proprio": "f32le"}
PICTURES = ("png", "jpeg")
JPEG_QUALITY = 90


class Start(msgspec.Struct, tag="start", tag_field="type"):
    """The client is ready: the clock starts when this arrives."""


class Leave(msgspec.Struct, tag="leave", tag_field="type"):
    """The client ends the episode early."""


class ActionMessage(msgspec.Struct, tag="action", tag_field="type"):
    """What the client does. `step` is the number of the newest observation that it was computed from."""

    step: int
    value: int | list[float] = 0
    back: int | None = None
    answer: int = 0
    compute_ms: int = 0


_DECODER = msgspec.json.Decoder(Start | Leave | ActionMessage)


def decode(message: str | bytes) -> Start | Leave | ActionMessage:
    """A client's message; raises ValueError saying what is wrong with it."""
    if isinstance(message, bytes):
        raise ValueError("expected a JSON text, got a binary message")
    try:
        decoded: Start | Leave | ActionMessage = _DECODER.decode(message)
        return decoded
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ValueError(f"malformed message: {error}") from None


def to_action(message: ActionMessage, world: World, newest_step: int) -> Action:
    """The action that a message asks for; raises ValueError where it is outside the action space or the episode."""
    task = world.task
    if not 0 <= message.step <= newest_step:
        raise ValueError(f"action.step: expected 0 ... {newest_step}, the newest observation sent, got {message.step}")
    if message.back is not None and not (task.reply == "named" and 0 <= message.back < task.ticks_nameable):
        nameable = f"0 ... {task.ticks_nameable - 1}" if task.reply == "named" else "none, replies name no tick here"
        raise ValueError(f"action.back: expected {nameable}, got {message.back}")
    if not 0 <= message.answer <= task.num_answers:
        raise ValueError(f"action.answer: expected 0 ... {task.num_answers}, got {message.answer}")
    if isinstance(message.value, list):
        space = world.action_space
        if space.shape != (len(message.value),) or not np.isfinite(message.value).all():
            raise ValueError(f"action.value: expected a member of {space}, got {message.value!r:.100}")
        return Action(tuple(message.value), None, message.answer)
    if not 0 <= message.value < task.num_symbols:
        raise ValueError(f"action.value: expected 0 ... {task.num_symbols - 1}, got {message.value}")
    return Action(message.value, message.back, message.answer)


def hello(world: World, encoding: str, num_samples: int) -> dict[str, Any]:
    """The first message to a client: what it may know of the task, which is everything but the seed and the latent."""
    task = world.task
    signal = world.observation_space["signal"]
    legend = world.core.renderer.legend(task)
    return {
        "type": "hello",
        "protocol": PROTOCOL,
        "task": task.to_dict(),
        "modality": world.modality,
        "legend": {"packet": legend.packet, "meanings": list(legend.meanings), "question": legend.question},
        "num_samples": num_samples,
        "encoding": encoding,
        "shape": list(signal.shape or ())[1:],
        "num_symbols": task.num_symbols,
        "num_answers": task.num_answers,
        "ticks_nameable": task.ticks_nameable if task.reply == "named" else 0,
        "num_ticks": world.num_ticks,
        "duration_ms": world.end_ms,
        "sample_rate": AUDIO_RATE if world.modality == "audio" else None,
    }


def encode_observation(step: int, time_ms: int, observation: Observation, encoding: str) -> str | bytes:
    """Observation `step` as a JSON text (symbols, or nothing new) or as a binary frame."""
    signals, ages = new_packets(observation)
    header = {
        "type": "observation",
        "step": step,
        "time_ms": time_ms,
        "fresh": int(observation["fresh"]),
        "age_ms": ages,
        "encoding": encoding,
    }
    if encoding == "json" or not ages:
        return json.dumps(header | {"signal": signals.tolist() if encoding == "json" else []})
    return pack(header, _payload(signals, encoding))


def _payload(signals: NDArray[Any], encoding: str) -> bytes:
    if encoding in PICTURES:
        try:
            from PIL import Image
        except ImportError as error:
            raise ImportError("pictures need pillow: pip install 'envrate[live]'") from error
        buffer = io.BytesIO()
        Image.fromarray(np.asarray(signals[-1], dtype=np.uint8)).save(buffer, encoding.upper(), quality=JPEG_QUALITY)
        return buffer.getvalue()
    return np.ascontiguousarray(signals, dtype="<f4").tobytes()


def pack(header: dict[str, Any], payload: bytes) -> bytes:
    """A binary frame."""
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + payload


def unpack(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and payload of a binary frame."""
    (size,) = struct.unpack_from("<I", frame)
    return dict(json.loads(frame[4 : 4 + size])), frame[4 + size :]


def decode_payload(header: dict[str, Any], payload: bytes, shape: list[int]) -> NDArray[Any]:
    """Signals of a frame: (n, *shape) float32, or (1, H, W, 3) uint8 for a picture."""
    if header["encoding"] in PICTURES:
        from PIL import Image

        return np.asarray(Image.open(io.BytesIO(payload)).convert("RGB"))[None]
    return np.frombuffer(payload, dtype="<f4").reshape(-1, *shape)
