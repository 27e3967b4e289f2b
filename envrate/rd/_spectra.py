"""Power spectra of stationary Gaussian processes, in continuous time and sampled at a tick with aliasing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks

FloatArray = NDArray[np.float64]
Function = Callable[[FloatArray], Any]

#: Size of a negative spectrum, relative to its largest value, that rounding explains.
SPECTRUM_TOLERANCE = 1e-9

#: Terms of an aliasing sum on either side, the rest by its integral.
ALIASES = 200

#: A correlation below this is taken as zero, and the number of ticks after which it has to be.
NEGLIGIBLE = 1e-15
MAX_TABLE = 1 << 16

#: Tick over timescale from which the sum over correlations loses nothing to cancellation.
COARSE = 0.5

#: Correlation as a function of lag / timescale (Rasmussen and Williams 2006, section 4.2).
CORRELATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "ou": lambda r: np.exp(-r),
    "matern32": lambda r: (1.0 + math.sqrt(3.0) * r) * np.exp(-math.sqrt(3.0) * r),
    "matern52": lambda r: (1.0 + math.sqrt(5.0) * r + 5.0 * r * r / 3.0) * np.exp(-math.sqrt(5.0) * r),
    "rbf": lambda r: np.exp(-0.5 * r * r),
}


def continuous(kernel: str, timescale: float) -> Callable[[FloatArray], FloatArray]:
    """Spectrum S(w) of unit variance, (1 / 2 pi) int S = 1; w in radians per unit of the timescale's time."""
    if kernel == "rbf":
        return lambda w: np.asarray(timescale * math.sqrt(2.0 * math.pi) * np.exp(-0.5 * (timescale * w) ** 2))
    order = {"ou": 1, "matern32": 2, "matern52": 3}[kernel]
    rate = math.sqrt(2.0 * order - 1.0) / timescale
    scale = {1: 2.0, 2: 4.0, 3: 16.0 / 3.0}[order] * rate ** (2 * order - 1)
    return lambda w: scale / (rate * rate + w * w) ** order


def _alias_tail(kernel: str, ratio: float, w: FloatArray) -> FloatArray:
    """The aliases beyond `ALIASES` on either side, by the midpoint rule: the integral of the spectrum beyond."""
    if kernel == "rbf":
        return np.zeros_like(w)
    order = {"ou": 1, "matern32": 2, "matern52": 3}[kernel]
    rate = math.sqrt(2.0 * order - 1.0) * ratio  # per tick
    scale = {1: 2.0, 2: 4.0, 3: 16.0 / 3.0}[order] * rate ** (2 * order - 1)
    edge = 2.0 * math.pi * (ALIASES + 0.5)
    power = 2 * order - 1
    total = np.zeros_like(w)
    for side in (-1.0, 1.0):
        start = edge + side * w
        # 1 / (r^2 + x^2)^m to second order in r / x: the tail starts at 1257 radians.
        total += start**-power / power - order * rate**2 * start ** -(power + 2) / (power + 2)
    return scale * total / (2.0 * math.pi)


def sampled(kernel: str, ratio: float) -> Callable[[FloatArray], FloatArray]:
    """Spectrum of the tick sequence of a named kernel, sum_k c(k) exp(-i w k); ratio = tick / timescale.

    "ou" has a closed form, that of a first-order autoregression. The others are summed over lags where the tick is
    long and over aliases, whose terms are all positive, where it is short.
    """
    if kernel == "ou":
        a = math.exp(-ratio)
        top = -math.expm1(-2.0 * ratio)
        # (1 - a)^2 + 4 a sin^2(w / 2) has no cancellation near w = 0.
        return lambda w: top / (math.expm1(-ratio) ** 2 + 4.0 * a * np.sin(0.5 * w) ** 2)
    if ratio >= COARSE:
        reach = int(math.ceil(60.0 / ratio)) + 1
        table = CORRELATIONS[kernel](np.asarray(ratio * np.arange(reach)))
        return lambda w: _cosine_sum(table, w)
    base = continuous(kernel, 1.0 / ratio)

    def aliases(w: FloatArray) -> FloatArray:
        shifts = 2.0 * math.pi * np.arange(-ALIASES, ALIASES + 1)
        return np.asarray(base(w[..., None] + shifts).sum(axis=-1) + _alias_tail(kernel, ratio, w))

    return aliases


def _cosine_sum(table: FloatArray, w: FloatArray) -> FloatArray:
    """c(0) + 2 sum_k c(k) cos(k w) in pieces, so that memory stays small."""
    out = np.full_like(w, table[0])
    for start in range(1, len(table), 512):
        k = np.arange(start, min(start + 512, len(table)))
        out += 2.0 * (np.cos(w[..., None] * k) @ table[k])
    return out


def from_correlations(table: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Spectrum of correlations at lags 0, 1 ... ticks; raises ValueError where it is negative."""
    size = 1 << int(math.ceil(math.log2(8 * len(table) + 64)))
    padded = np.zeros(size)
    padded[: len(table)] = table
    padded[size - len(table) + 1 :] += table[1:][::-1]
    values = np.fft.rfft(padded).real
    worst = int(np.argmin(values))
    if values[worst] < -SPECTRUM_TOLERANCE * values.max():
        raise ValueError(
            f"kernel: its spectrum is {values[worst]:.6g} at {2.0 * math.pi * worst / size:.4g} radians per tick; "
            "expected a positive semidefinite kernel"
        )
    return lambda w: np.maximum(_cosine_sum(table, w), 0.0)


def tabulate(kernel: Function, tick_ms: float) -> FloatArray:
    """Correlations of a function of the lag in milliseconds at 0, 1 ... ticks, up to where they die out."""
    length = 64
    while True:
        values = _checks.finite_array("kernel", kernel(np.asarray(np.arange(length) * tick_ms)), 1)
        if values.shape != (length,) or abs(values[0] - 1.0) > 1e-9:
            raise ValueError(
                "kernel: expected a function that maps lags in ms to correlations, 1 at lag 0; got shape "
                f"{values.shape} that starts with {values[:1].tolist()}"
            )
        alive = np.flatnonzero(np.abs(values) > NEGLIGIBLE)
        if alive[-1] < length // 2:
            return np.asarray(values[: alive[-1] + 1])
        if length >= MAX_TABLE:
            raise ValueError(
                f"kernel: the correlation has not died out after {MAX_TABLE} ticks, expected one that goes to 0"
            )
        length *= 2


def checked(spectrum: Function) -> Callable[[FloatArray], FloatArray]:
    """A caller's spectrum with its values checked at every evaluation."""

    def safe(w: FloatArray) -> FloatArray:
        values = np.asarray(spectrum(w), dtype=np.float64)
        if values.shape != w.shape or not np.isfinite(values).all():
            raise ValueError(f"spectrum: expected a finite value per frequency, got shape {values.shape}")
        if values.min() < -SPECTRUM_TOLERANCE * max(float(values.max()), 1e-300):
            where = int(np.argmin(values))
            raise ValueError(
                f"spectrum: {values.ravel()[where]:.6g} at frequency {w.ravel()[where]:.6g}, expected values >= 0"
            )
        return np.asarray(np.maximum(values, 0.0))

    return safe
