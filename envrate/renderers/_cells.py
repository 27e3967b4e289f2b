"""A screen as a grid of character cells, each one number: glyph, ink and paper."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envrate.renderers import _font

Array = jax.Array

#: Position of the two colours in a cell's number.
INK_SHIFT, PAPER_SHIFT = 8, 12


def cells(glyphs: Any, ink: Any, paper: Any) -> Array:
    """Packed cells of the glyphs' shape; `ink` and `paper` are scalars or of that shape too."""
    glyphs = jnp.asarray(glyphs, jnp.int32)
    ink, paper = (jnp.broadcast_to(jnp.asarray(c, jnp.int32), glyphs.shape) for c in (ink, paper))
    packed: Array = glyphs | (ink << INK_SHIFT) | (paper << PAPER_SHIFT)
    return packed


def text(content: str, ink: Any, paper: Any, width: int | None = None) -> Array:
    """(width,) cells of a fixed text."""
    return cells(_font.glyphs(content, width), ink, paper)


def piece(name: str, ink: Any, paper: Any) -> Array:
    """(1,) one icon."""
    return cells(np.array([_font.INDEX[name]], np.int32), ink, paper)


def line(parts: list[Array], width: int, paper: Any) -> Array:
    """(width,) the parts side by side on the paper, cut or filled to the width."""
    joined = jnp.concatenate(parts)
    if joined.shape[0] >= width:
        return joined[:width]
    return jnp.concatenate([joined, cells(np.zeros(width - joined.shape[0], np.int32), 0, paper)])


def digits(number: Array, count: int) -> Array:
    """(count,) glyph numbers of a whole number >= 0 with leading zeros."""
    powers = jnp.asarray(10 ** np.arange(count - 1, -1, -1), jnp.int32)
    return (number // powers) % 10 + _font.INDEX["0"]


def signed(value: Array) -> Array:
    """(5,) glyph numbers of a value in -9.99 ... 9.99 as in +1.27; values beyond show the end of the scale."""
    hundredths = jnp.round(jnp.clip(value, -9.99, 9.99) * 100.0).astype(jnp.int32)
    shown = digits(jnp.abs(hundredths), 3)
    sign = jnp.where(hundredths < 0, _font.INDEX["-"], _font.INDEX["+"])
    return jnp.concatenate([sign[None], shown[:1], jnp.full((1,), _font.INDEX["."], jnp.int32), shown[1:]])


def lay(grid: Array, block: Array, row: Array, column: Array) -> Array:
    """The grid with a block of cells over it; the block has to lie inside."""
    return jax.lax.dynamic_update_slice(grid, block, (row, column))


def raster(grid: Array, palette: Array) -> Array:
    """(rows x 6, columns x 4, 3) uint8 pixels of (rows, columns) cells in a (16, 3) palette."""
    rows, columns = grid.shape
    # A glyph's 24 pixels are the bits of one number.
    order = np.arange(_font.CELL_HEIGHT * _font.CELL_WIDTH, dtype=np.uint32)
    packed = (_font.table().reshape(len(_font.NAMES), -1).astype(np.uint32) << order[None]).sum(1, dtype=np.uint32)
    word = jnp.asarray(packed)[grid & 0xFF]
    shifts = order.reshape(1, _font.CELL_HEIGHT, 1, _font.CELL_WIDTH)
    lit = ((word[:, None, :, None] >> shifts) & np.uint32(1)) == 1
    ink, paper = palette[(grid >> INK_SHIFT) & 0xF], palette[(grid >> PAPER_SHIFT) & 0xF]
    pixels = jnp.where(lit[..., None], ink[:, None, :, None], paper[:, None, :, None])
    return pixels.reshape(rows * _font.CELL_HEIGHT, columns * _font.CELL_WIDTH, 3)
