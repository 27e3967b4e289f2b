"""Checks of input from outside: each names the argument, what was expected, what came and what to do."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

#: How far a probability vector's sum may be from 1.
SUM_TOLERANCE = 1e-9


def finite_array(name: str, value: ArrayLike, ndim: int | None = None) -> FloatArray:
    """Returns `value` as a float64 array; raises ValueError on NaN, infinity or another rank."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers in a regular array, got {value!r:.200}") from error
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected {ndim} dimension(s), got shape {array.shape}")
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{name}: entry {where} is {array[tuple(where)]}, expected finite numbers")
    return array


def pmf(name: str, value: ArrayLike) -> FloatArray:
    """Returns a probability vector (K,); entries >= 0 that sum to 1 within 1e-9."""
    array = finite_array(name, value, 1)
    if array.size == 0:
        raise ValueError(f"{name}: expected at least one probability, got none")
    if (array < 0).any():
        k = int(np.argmin(array))
        raise ValueError(f"{name}: entry {k} is {array[k]:g}, expected a probability >= 0")
    total = float(array.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ValueError(f"{name}: sums to {total:.12g}, expected 1 within {SUM_TOLERANCE:g}; divide by the sum")
    return array


def stochastic_matrix(name: str, value: ArrayLike) -> FloatArray:
    """Returns a (K, K) matrix whose rows are probability vectors."""
    array = finite_array(name, value, 2)
    if array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(f"{name}: expected a square matrix, got shape {array.shape}")
    if (array < 0).any():
        row, column = np.argwhere(array < 0)[0]
        raise ValueError(f"{name}: entry ({row}, {column}) is {array[row, column]:g}, expected a probability >= 0")
    sums = array.sum(axis=1)
    bad = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if bad.size:
        raise ValueError(f"{name}: row {bad[0]} sums to {sums[bad[0]]:.12g}, expected 1 within {SUM_TOLERANCE:g}")
    return array


def integer(name: str, value: Any, low: int, high: int | None = None, unit: str = "") -> int:
    """Returns `value` as an int in [low, high]; integral floats are taken, booleans are not."""
    integral = isinstance(value, (int, np.integer)) or (
        isinstance(value, (float, np.floating)) and value == int(value)
        if isinstance(value, (float, np.floating)) and math.isfinite(value)
        else False
    )
    bounds = f">= {low}" if high is None else f"in [{low}, {high}]"
    if isinstance(value, (bool, np.bool_)) or not integral or value < low or (high is not None and value > high):
        raise ValueError(f"{name}: expected an integer {bounds}{' ' + unit if unit else ''}, got {value!r}")
    return int(value)


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> float:
    """Returns `value` as a finite float in [low, high] (or (low, high] with `open_low`)."""
    bounds = f"{'(' if open_low else '['}{low:g}, {high:g}]"
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
    if not real or not math.isfinite(value) or value > high or value < low or (open_low and value == low):
        raise ValueError(f"{name}: expected a number in {bounds}, got {value!r}")
    return float(value)


def choice(name: str, value: Any, options: Collection[str]) -> str:
    """Returns `value` if it is one of `options`."""
    if value not in options:
        raise ValueError(f"{name}: expected one of {', '.join(sorted(options))}, got {value!r}")
    return str(value)
