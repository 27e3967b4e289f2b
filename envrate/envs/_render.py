"""The last observation as a picture or as text, for people."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate.envs._core import Core

#: Size of drawn pictures, in pixels.
HEIGHT, WIDTH = 128, 256
#: Colours of symbols, and of an empty slot. Source: P. Green-Armytage's alphabet, a subset.
COLOURS = np.array(
    [(0, 117, 220), (255, 80, 5), (43, 206, 72), (255, 225, 0)]
    + [(153, 63, 0), (0, 153, 143), (240, 163, 255), (116, 10, 255)],
    dtype=np.uint8,
)
EMPTY = np.array((40, 40, 40), dtype=np.uint8)


def modes(core: Core) -> list[str]:
    """Render modes of a core."""
    return ["rgb_array", "ansi"] if core.renderer.kind == "symbols" else ["rgb_array"]


def checked_mode(mode: str | None, core: Core) -> str | None:
    """`mode`, if this core has it."""
    return None if mode is None else _checks.choice("render_mode", mode, modes(core))


def metadata(core: Core) -> dict[str, Any]:
    """Gymnasium's metadata: modes, and the frame rate of one observation per micro-turn."""
    return {"render_modes": modes(core), "render_fps": max(1, round(1000 / core.clock.turn_ms))}


def render(core: Core, mode: str, seen: dict[str, NDArray[Any]], now_ms: int) -> Any:
    """An observation as `mode` asks."""
    signal = np.asarray(seen["signal"])
    if mode == "ansi" and signal.ndim > 1:
        ages, said = np.asarray(seen["age_ms"]), getattr(core.renderer, "text")  # noqa: B009 - symbols have it
        words = (said(core.task, row) if age >= 0 else "." for row, age in zip(signal, ages, strict=True))
        return f"t = {now_ms} ms | {' | '.join(words)} | fresh {int(seen['fresh'])}\n"
    if mode == "ansi":
        shown = " ".join("." if token < 0 else str(token) for token in signal.tolist())
        return f"t = {now_ms} ms | {shown} | fresh {int(seen['fresh'])}\n"
    if hasattr(core.renderer, "picture"):
        return core.renderer.picture(core.task, signal)
    if core.renderer.kind == "symbols" and signal.ndim == 1:
        pixels = np.where(signal[:, None] < 0, EMPTY, COLOURS[signal % len(COLOURS)])
        return _enlarged(pixels[None])
    if core.renderer.kind == "symbols":  # values of a Gaussian latent
        reach = 3.5 * float(np.sqrt(np.diag(core.task.latent.output_covariance).max()))
        return _heat(signal, -reach, reach)
    newest = signal[-1]
    if newest.dtype == np.uint8 and newest.ndim == 3 and newest.shape[-1] == 3:
        return np.array(newest)
    return _heat(signal, core.signal.low, core.signal.high)


def _heat(signal: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Numbers as shades of grey: time to the right, channels downwards."""
    rows = signal.reshape(signal.shape[0], -1).astype(np.float64)
    if rows.shape[1] > WIDTH:  # such as audio samples: one long row
        rows = rows.reshape(1, -1)
    else:
        rows = rows.T
    low = float(rows.min()) if not np.isfinite(low) else low
    high = float(rows.max()) if not np.isfinite(high) else high
    grey = np.clip((rows - low) / max(high - low, 1e-9), 0.0, 1.0) * 255
    return _enlarged(np.repeat(grey.astype(np.uint8)[:, :, None], 3, axis=2))


def _enlarged(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """The nearest neighbours of a small picture at HEIGHT x WIDTH."""
    down = np.arange(HEIGHT) * pixels.shape[0] // HEIGHT
    across = np.arange(WIDTH) * pixels.shape[1] // WIDTH
    return np.asarray(pixels[down][:, across], dtype=np.uint8)
