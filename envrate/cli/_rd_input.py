"""Numbers for `envrate rd`: inline, or from a CSV or JSON file."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def matrix(name: str, text: str) -> FloatArray:
    """A matrix from "0,1;1,0", from a .csv file of numbers or from a .json file.

    A JSON file holds nested lists, or an object with the option's name as a key, so that one file can serve several
    options. A header line in a CSV file is skipped.
    """
    rows = _from_file(name, Path(text)) if Path(text).suffix.lower() in (".csv", ".json") else _inline(name, text)
    lengths = {len(row) for row in rows}
    if not rows or len(lengths) != 1:
        raise ValueError(f"--{name}: expected rows of equal length, got lengths {sorted(lengths)}")
    return np.array(rows, dtype=np.float64)


def vector(name: str, text: str) -> FloatArray:
    """A vector from "0.5,0.5" or a file with one row or one column."""
    array = matrix(name, text)
    if 1 not in array.shape:
        raise ValueError(f"--{name}: expected one row or one column of numbers, got shape {array.shape}")
    return array.ravel()


def integers(name: str, text: str, *, rows: bool = False) -> NDArray[np.int64]:
    """Whole numbers: a vector, or with `rows` a matrix."""
    array = matrix(name, text) if rows else vector(name, text)
    if not (np.isfinite(array) & (array == np.round(array))).all():
        raise ValueError(f"--{name}: expected whole numbers, got {array.ravel()[:6].tolist()}")
    return array.astype(np.int64)


def distortion(text: str, letters: int) -> FloatArray:
    """A distortion matrix, or one by name: hamming, squared or absolute (letters 0, 1, 2 ...)."""
    index = np.arange(letters, dtype=np.float64)
    gap = np.abs(index[:, None] - index[None, :])
    named = {"hamming": (gap > 0).astype(np.float64), "squared": gap**2, "absolute": gap}
    if text.isalpha() and text not in named:
        raise ValueError(f"--distortion: expected {', '.join(named)}, a file or rows of numbers, got {text!r}")
    return named[text] if text in named else matrix("distortion", text)


def _number(name: str, text: Any) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError):
        raise ValueError(f"--{name}: expected a number, got {text!r}") from None
    if math.isnan(value):
        raise ValueError(f"--{name}: expected a number, got {text!r}")
    return value


def _inline(name: str, text: str) -> list[list[float]]:
    return [[_number(name, item) for item in row.split(",")] for row in text.strip().strip(";").split(";")]


def _from_file(name: str, path: Path) -> list[list[float]]:
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"--{name}: {path} cannot be read: {error.strerror}") from error
    if path.suffix.lower() == ".csv":
        lines = [line for line in csv.reader(content.splitlines()) if any(item.strip() for item in line)]
        if lines and not _is_number(lines[0][0]):
            lines = lines[1:]
        return [[_number(name, item) for item in line] for line in lines]
    try:
        value = json.loads(content)
    except json.JSONDecodeError as error:
        raise ValueError(f"--{name}: {path} is not JSON: {error}") from error
    if isinstance(value, dict):
        if name not in value:
            raise ValueError(f"--{name}: {path} has no key {name!r}; its keys are {', '.join(map(str, value))}")
        value = value[name]
    if isinstance(value, (int, float)):
        value = [value]
    if not isinstance(value, list):
        raise ValueError(f"--{name}: expected a list of numbers in {path}, got {value!r:.80}")
    rows = value if value and isinstance(value[0], list) else [value]
    return [[_number(name, item) for item in row] for row in rows]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
