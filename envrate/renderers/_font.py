"""A small bitmap font and a few icons, drawn here: 3 x 5 pixels in cells of 4 x 6."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
IntArray = NDArray[np.int32]

#: Size of a cell in pixels.
CELL_WIDTH, CELL_HEIGHT = 4, 6

#: Five rows per glyph, an octal digit each: its bits are the pixels from left to right.
_GLYPHS = {
    " ": "00000", "A": "25755", "B": "65656", "C": "34443", "D": "65556", "E": "74647", "F": "74644", "G": "34553",
    "H": "55755", "I": "72227", "J": "11152", "K": "55655", "L": "44447", "M": "57755", "N": "65555", "O": "75557",
    "P": "65644", "Q": "25563", "R": "65655", "S": "34216", "T": "72222", "U": "55557", "V": "55552", "W": "55775",
    "X": "55255", "Y": "55222", "Z": "71247", "0": "25552", "1": "26227", "2": "61247", "3": "61216", "4": "55711",
    "5": "74616", "6": "34757", "7": "71222", "8": "75757", "9": "75716", ".": "00002", ",": "00024", ":": "02020",
    "-": "00700", "+": "02720", "%": "51245", "/": "11244", "?": "71202", "!": "22202", "(": "12221", ")": "42224",
    "=": "07070", "<": "12421", ">": "42124", "_": "00007", "#": "57575", "*": "52725", "|": "22222",
}  # fmt: skip

#: Icons and interface pieces, six rows of four pixels, a hexadecimal digit per row.
_PIECES = {
    "full": "FFFFFF",  # a filled cell
    "close": "0A4A00",
    "dot": "066000",
    "line": "00F000",  # a rule
    "bell": "06FF60",
    "warn": "04EEF0",
    "mail": "0FBDF0",
    "disk": "0F9BF0",
    "gear": "0A5A50",
    "left": "888888",  # the left edge of a window
    "gauge": "0FFFF0",
}

#: Every glyph's name in the order of the table.
NAMES: tuple[str, ...] = (*_GLYPHS, *_PIECES)
INDEX = {name: i for i, name in enumerate(NAMES)}


def bitmap(name: str) -> Bits:
    """(CELL_HEIGHT, CELL_WIDTH) pixels of one glyph."""
    cell = np.zeros((CELL_HEIGHT, CELL_WIDTH), dtype=bool)
    if name in _GLYPHS:
        for row, digit in enumerate(_GLYPHS[name]):
            cell[row, :3] = [int(digit, 8) >> shift & 1 for shift in (2, 1, 0)]
    else:
        for row, digit in enumerate(_PIECES[name]):
            cell[row] = [int(digit, 16) >> shift & 1 for shift in (3, 2, 1, 0)]
    return cell


@lru_cache
def table() -> Bits:
    """(G, CELL_HEIGHT, CELL_WIDTH) pixels of all glyphs, in the order of `NAMES`."""
    return np.stack([bitmap(name) for name in NAMES])


def glyphs(text: str, width: int | None = None) -> IntArray:
    """(width,) glyph numbers of a text, padded with blanks; characters without a glyph are an error."""
    unknown = sorted({c for c in text.upper() if c not in _GLYPHS})
    if unknown:
        raise ValueError(f"text: the font has no {unknown[0]!r}, got {text!r}")
    padded = text.upper() if width is None else text.upper()[:width].ljust(width)
    return np.asarray([INDEX[c] for c in padded], dtype=np.int32)


def lines(texts: Sequence[str], width: int) -> Any:
    """(len(texts), width) glyph numbers."""
    return np.stack([glyphs(text, width) for text in texts])
