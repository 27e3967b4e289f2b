"""A watcher: the white outline of the object by matched filters over the picture."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from envrate.agents.perceivers._perceiver import Reader, Reading, is_gaussian
from envrate.renderers import _shapes, _video
from envrate.task import Task

#: Sizes that are tried where size carries a value, as factors.
SIZES = np.exp(0.5 * np.linspace(-0.9, 0.9, 7))


def reader(task: Task, renderer: Any) -> Reader:
    """Reader of a picture."""
    height, width = renderer.height, renderer.width
    question = _shapes.question(height, width)

    def read(signal: Any, end_ms: Any) -> Reading:
        pixels = signal.astype(jnp.float32)
        probe = jnp.abs(pixels - question).mean() < 12.0
        # White has a high lowest channel; the object's own colour and the background have not.
        white = pixels.min(axis=-1)
        white = white - white.mean()
        value, known = _found(task, renderer, white)
        if renderer.carrier == "motion" and not is_gaussian(task):
            age = end_ms - (end_ms - 1) // task.tick_ms * task.tick_ms
            known = known & (5 * age >= task.tick_ms)
        return Reading(value, probe, probe | known)

    return read


def _found(task: Task, renderer: Any, white: Any) -> tuple[Any, Any]:
    """(state or values, whether anything was found)."""
    shape = white.shape
    spectrum = jnp.fft.rfft2(white)
    gaussian = is_gaussian(task)
    outputs = task.latent.num_outputs if gaussian else 0
    sizes = tuple(SIZES.tolist()) if outputs == 3 else (1.0,)
    states = task.latent.num_states if not gaussian and renderer.carrier == "shape" else 1
    filters = jnp.asarray(_filters(states, sizes, *shape))
    score = jnp.fft.irfft2(spectrum[None] * jnp.conj(filters), s=shape)  # (templates, H, W)
    best = score.max(axis=(1, 2))
    k = jnp.argmax(best)
    if states > 1:
        return k.astype(jnp.int32), jnp.bool_(True)
    flat = jnp.argmax(score[k])
    row, column = flat // shape[1], flat % shape[1]
    side = min(shape)
    x = (2.0 * (column.astype(jnp.float32) + _peak(score[k][row], column)) + 1.0 - shape[1]) / side
    y = (2.0 * (row.astype(jnp.float32) + _peak(score[k][:, column], row)) + 1.0 - shape[0]) / side
    if not gaussian:
        angle = jnp.arctan2(y, x) * np.float32(task.latent.num_states / (2 * np.pi))
        return jnp.round(angle).astype(jnp.int32) % task.latent.num_states, jnp.bool_(True)
    sd = np.sqrt(np.diag(task.latent.output_covariance)).astype(np.float32)
    told = [x / _video.REACH, y / _video.REACH]
    if outputs == 3:
        told.append((jnp.log(jnp.asarray(SIZES, jnp.float32))[k] + _peak(best, k) * np.float32(0.15)) / 0.5)
    inverse = jnp.arctanh(jnp.clip(jnp.stack(told[:outputs]), -0.97, 0.97))
    return inverse * (_video.SPREAD * sd), jnp.bool_(True)


def _peak(values: Any, at: Any) -> Any:
    """Offset of a parabola's top from the largest of three neighbours, -0.5 ... 0.5."""
    count = values.shape[0]
    a, b, c = values[jnp.maximum(at - 1, 0)], values[at], values[jnp.minimum(at + 1, count - 1)]
    return jnp.clip(0.5 * (a - c) / jnp.minimum(a - 2.0 * b + c, -1e-6), -0.5, 0.5)


@lru_cache
def _filters(states: int, sizes: tuple[float, ...], height: int, width: int) -> Any:
    """(templates, H, W // 2 + 1) spectra of outlines of each shape and size, centred, of equal energy."""
    half = min(height, width) / 2
    rows, columns = (
        np.minimum(np.arange(n), n - np.arange(n)) * np.where(np.arange(n) <= n // 2, 1, -1) for n in (height, width)
    )
    templates = []
    for drawn in _shapes.atlas(states):
        for size in sizes:
            radius = _video.RADIUS * size * half
            index = [
                np.floor((a / (radius * _shapes.REACH) + 1) * (_shapes.SIDE / 2)).astype(int) for a in (rows, columns)
            ]
            inside = (
                (((index[0] >= 0) & (index[0] < _shapes.SIDE))[:, None])
                & (((index[1] >= 0) & (index[1] < _shapes.SIDE))[None])
            )
            at = drawn[np.clip(index[0], 0, _shapes.SIDE - 1)[:, None], np.clip(index[1], 0, _shapes.SIDE - 1)[None]]
            distance = np.where(inside, at, 1e3) * radius
            edge = np.clip(0.5 + _shapes.OUTLINE * radius - distance, 0, 1) - 1.4 * np.clip(0.5 - distance, 0, 1)
            around = (distance < 3.0 + _shapes.OUTLINE * radius) & (edge == 0)
            edge[around] = -edge[edge > 0].sum() / max(1, around.sum()) * 0.5
            edge -= edge.mean()
            templates.append(np.fft.rfft2(edge / np.linalg.norm(edge)))
    return np.asarray(templates, dtype=np.complex64)
