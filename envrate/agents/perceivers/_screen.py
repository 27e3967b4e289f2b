"""A reader of screens: every cell against every glyph, then texts and numbers by the sum over their cells."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from envrate.agents.perceivers._perceiver import Reader, Reading, is_gaussian
from envrate.renderers import _font, _screen, _screen_text, _shapes
from envrate.task import Task

#: Mean correlation per character below which nothing was read.
LEGIBLE = 0.45


def reader(task: Task, renderer: Any) -> Reader:
    """Reader of a screen shot."""
    height, width = renderer.height, renderer.width
    question = _shapes.question(height, width)

    def read(signal: Any, end_ms: Any) -> Reading:
        pixels = signal.astype(jnp.float32)
        probe = jnp.abs(pixels - question).mean() < 12.0
        scores = glyph_scores(pixels)
        value, sure = _values(task, scores) if is_gaussian(task) else _notice(task, scores)
        return Reading(value, probe, probe | (sure > LEGIBLE))

    return read


def glyph_scores(pixels: Any) -> Any:
    """(rows, columns, G) correlation of each cell's pixels with each glyph, -1 ... 1; 0 for blank cells."""
    rows, columns = pixels.shape[0] // _font.CELL_HEIGHT, pixels.shape[1] // _font.CELL_WIDTH
    cut = pixels[: rows * _font.CELL_HEIGHT, : columns * _font.CELL_WIDTH]
    blocks = cut.reshape(rows, _font.CELL_HEIGHT, columns, _font.CELL_WIDTH, 3).transpose(0, 2, 1, 3, 4)
    cells = blocks.reshape(rows, columns, -1, 3)
    cells = cells - cells.mean(axis=2, keepdims=True)
    # Colours by their contrast: the channel mix that varies most is near enough to the sum with signs.
    grey = cells.sum(axis=3)
    norm = jnp.sqrt((grey * grey).sum(axis=2, keepdims=True))
    grey = jnp.where(norm > 40.0, grey / jnp.maximum(norm, 1e-6), 0.0)
    shapes: Any = _font.table().reshape(len(_font.NAMES), -1).astype(np.float32)
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    shapes = shapes / np.maximum(np.linalg.norm(shapes, axis=1, keepdims=True), 1e-6)
    return jnp.einsum("rcp,gp->rcg", grey, jnp.asarray(shapes))


def _at(scores: Any, glyph: Any, shift: int) -> Any:
    """(rows, columns) score of a glyph `shift` cells to the right; 0 beyond the edge."""
    plane = scores[:, :, glyph]
    return jnp.pad(plane[:, shift:], ((0, 0), (0, shift)))


def _notice(task: Task, scores: Any) -> tuple[Any, Any]:
    """(state, mean correlation per character) of the notification that fits best."""
    found = []
    for k in range(task.latent.num_states):
        text = _screen_text.notice(k)
        glyphs = _font.glyphs(text)
        total = sum(_at(scores, int(g), i) for i, g in enumerate(glyphs) if text[i] != " ")
        # Dark on light or light on dark.
        found.append(jnp.abs(total).max() / len(text.replace(" ", "")))
    sums = jnp.stack(found)
    return jnp.argmax(sums).astype(jnp.int32), sums.max()


def _values(task: Task, scores: Any) -> tuple[Any, Any]:
    """((d,) values, the least mean correlation) of the fields of a Gaussian latent."""
    digits = _font.INDEX["0"]
    sd = np.sqrt(np.diag(task.latent.output_covariance)).astype(np.float32)
    values, sure = [], []
    for i in range(task.latent.num_outputs):
        best = []
        for sign in (1.0, -1.0):
            s = sign * scores
            number = s[:, :, digits : digits + 10].max(axis=2)
            signs = jnp.maximum(s[:, :, _font.INDEX["+"]], s[:, :, _font.INDEX["-"]])
            total = s[:, :, _font.INDEX[_screen.FIELDS[i]]] + _at(s, _font.INDEX["."], 4)
            for plane, shift in ((signs, 2), (number, 3), (number, 5), (number, 6)):
                total = total + jnp.pad(plane[:, shift:], ((0, 0), (0, shift)))
            best.append(total)
        both = jnp.stack(best)
        flat = jnp.argmax(both)
        polarity = 1.0 - 2.0 * (flat // best[0].size).astype(jnp.float32)
        row, column = (flat % best[0].size) // scores.shape[1], flat % scores.shape[1]
        line = polarity * scores[row]

        def digit(shift: int, line: Any = line, column: Any = column) -> Any:
            cell = line[jnp.minimum(column + shift, line.shape[0] - 1)]
            return jnp.argmax(cell[digits : digits + 10]).astype(jnp.float32)

        size = digit(3) + digit(5) / 10.0 + digit(6) / 100.0
        cell = line[jnp.minimum(column + 2, line.shape[0] - 1)]
        negative = cell[_font.INDEX["-"]] > cell[_font.INDEX["+"]]
        values.append(jnp.where(negative, -size, size) * sd[i])
        sure.append(both.max() / 6.0)
    return jnp.stack(values), jnp.stack(sure).min()
