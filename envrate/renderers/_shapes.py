"""Shapes that a video shows, drawn once into arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float32]
Field = NDArray[np.float64]

#: Side of a drawn shape; its half side reaches 1.2 radii, so that the outline fits.
SIDE, REACH = 64, 1.2
#: Thickness of the outline and of a hollow shape's wall, in radii.
OUTLINE, WALL = 0.14, 0.3


def _disc(x: Field, y: Field) -> Field:
    return np.hypot(x, y) - 0.8


def _square(x: Field, y: Field) -> Field:
    return np.maximum(abs(x), abs(y)) - 0.72


def _triangle(x: Field, y: Field) -> Field:
    return np.maximum(y - 0.6, np.maximum(0.866 * x - 0.5 * y, -0.866 * x - 0.5 * y) - 0.45)


def _cross(x: Field, y: Field) -> Field:
    a, b = abs(x), abs(y)
    return np.minimum(np.maximum(a - 0.9, b - 0.28), np.maximum(b - 0.9, a - 0.28))


def _diamond(x: Field, y: Field) -> Field:
    return (abs(x) + abs(y) - 1.0) * 0.7071


def _bar(x: Field, y: Field) -> Field:
    return np.maximum(abs(x) - 0.95, abs(y) - 0.3)


def _pillar(x: Field, y: Field) -> Field:
    return _bar(y, x)


def _moon(x: Field, y: Field) -> Field:
    return np.maximum(np.hypot(x, y) - 0.9, 0.62 - np.hypot(x - 0.5, y))


#: Signed distances, about: negative inside, in radii.
SHAPES: tuple[Callable[[Field, Field], Field], ...] = (
    _disc,
    _triangle,
    _cross,
    _square,
    _bar,
    _moon,
    _diamond,
    _pillar,
)
NAMES = ("disc", "triangle", "cross", "square", "flat bar", "crescent", "diamond", "upright bar")
#: Each shape is there filled and hollow.
MOST = 2 * len(SHAPES)


@lru_cache
def atlas(count: int) -> Image:
    """(count, SIDE, SIDE) signed distance to the edge of each shape, in radii, over -REACH ... REACH.

    Raises:
        ValueError: more shapes than there are.
    """
    if count > MOST:
        raise ValueError(f"video: there are {MOST} shapes, got {count} states; use carrier='position'")
    grid = ((np.arange(SIDE) + 0.5) / SIDE * 2 - 1) * REACH
    x, y = np.meshgrid(grid, grid)
    drawn = np.empty((count, SIDE, SIDE), dtype=np.float32)
    for k in range(count):
        distance = SHAPES[k % len(SHAPES)](x, y)
        drawn[k] = distance if k < len(SHAPES) else np.abs(distance + WALL / 2) - WALL / 2
    return drawn


def name(index: int) -> str:
    """A shape in words."""
    filled = "filled" if index < len(SHAPES) else "hollow"
    return f"{filled} {NAMES[index % len(SHAPES)]}"


def question(height: int, width: int) -> NDArray[Any]:
    """(height, width, 3) float32 picture of a question mark on a dark panel: what a probe looks like."""
    from envrate.renderers import _font

    picture = np.full((height, width, 3), (24.0, 26.0, 40.0), dtype=np.float32)
    glyph = _font.bitmap("?")[:5, :3]
    zoom = max(1, min(height // 7, width // 5))
    mark = np.kron(glyph, np.ones((zoom, zoom), dtype=bool))
    top, left = (height - mark.shape[0]) // 2, (width - mark.shape[1]) // 2
    picture[top : top + mark.shape[0], left : left + mark.shape[1]][mark] = (255.0, 214.0, 64.0)
    return picture
