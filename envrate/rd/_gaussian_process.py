"""R(D) of stationary Gaussian processes: reverse water-filling over the spectrum, with the quadrature's error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._spectra import CORRELATIONS, checked, continuous, from_correlations, sampled, tabulate
from envrate.rd._types import Bracket

FloatArray = NDArray[np.float64]
Spectrum = Callable[[FloatArray], FloatArray]

#: Nodes of the scan that finds where a spectrum crosses the water level.
SCAN = 4096

#: Order of the two Gauss-Legendre rules whose difference is the error of a panel. One odd, one even: a jump in the
#: middle of a panel would look the same to two even ones.
ORDERS = (12, 25)

#: Panels of `WaterTable` near 0, where the spectra of slow processes are steep, and above.
GRADED = 60

#: Halvings of a panel.
MAX_DEPTH = 40

MS_PER_S = 1000.0


def gaussian_process(
    kernel: str | Callable[[FloatArray], Any] | ArrayLike | None,
    D: float,  # noqa: N803 - the field's symbol
    *,
    tick_ms: float | None = None,
    timescale_ms: float = 1000.0,
    variance: float | ArrayLike = 1.0,
    spectrum: Callable[[FloatArray], Any] | None = None,
) -> Bracket:
    """R(D) of a stationary Gaussian process under squared error.

    Args:
        kernel: "ou" (exp(-r), r = lag / timescale), "matern32", "matern52" or "rbf"; or a function of an array of
            lags in ms that returns correlations; or the correlations at lags of 0, 1, 2 ... ticks. None with
            `spectrum`.
        D: mean squared error, summed over the outputs, > 0; in units of the variance's.
        tick_ms: the process is seen once per tick, and the rate is in bits per tick. None is continuous time, in bits
            per second; it takes a named kernel or a spectrum.
        timescale_ms: of a named kernel.
        variance: of the process; several numbers are independent outputs with the same kernel (for correlated
            outputs, the eigenvalues of their covariance).
        spectrum: instead of a kernel, the power spectrum as a function of an array of frequencies >= 0; its shape
            alone counts, the size comes from `variance`. Radians per tick on [0, pi] with a tick, radians per second,
            integrable and falling to 0, without.

    Returns:
        Bracket whose width is the quadrature's error (the difference of two orders), 0 in closed forms. With
        S the spectrum and theta the water level,

            D = variance - 1/pi int (S - theta)+ dw,     R = 1/(2 pi) int log2+(S / theta) dw     over w > 0

        (Kolmogorov 1956; Pinsker; Berger 1971, section 4.5). Closed forms: "ou" in continuous time, and where D
        is so small that all of the spectrum of a tick sequence of "ou", an AR(1) process, is above the water.

    Raises:
        ValueError: a kernel that is not positive semidefinite (with the frequency where its spectrum is negative),
            one that does not die out, or a number out of range.
    """
    D = _checks.number("D", D, 0.0, open_low=True)  # noqa: N806
    timescale = _checks.number("timescale_ms", timescale_ms, 0.0, open_low=True)
    variances = np.atleast_1d(_checks.finite_array("variance", variance))
    if variances.ndim != 1 or not variances.size or (variances <= 0).any():
        raise ValueError(f"variance: expected numbers > 0, got {variances.tolist()}")
    if tick_ms is not None:
        tick_ms = _checks.number("tick_ms", tick_ms, 0.0, open_low=True)
    if (kernel is None) == (spectrum is None):
        raise ValueError("kernel: expected a kernel or a spectrum, one of the two")
    if D >= variances.sum():
        return Bracket(0.0, 0.0, method="D is at least the variance")
    if kernel is not None and isinstance(kernel, str):
        _checks.choice("kernel", kernel, CORRELATIONS)
        if kernel == "ou" and len(variances) == 1:
            closed = _ornstein_uhlenbeck(D / float(variances[0]), timescale, tick_ms)
            if closed is not None:
                return closed
    shape, edge, scale, doubt, name = _shape(kernel, spectrum, tick_ms, timescale)
    unit = _Unit(shape, edge, scale)
    return _fill([(unit, float(v)) for v in variances], D, doubt, name)


def spectra_rate(parts: Sequence[tuple[Spectrum, float]], D: float) -> Bracket:  # noqa: N803
    """R(D) in bits per tick of independent tick sequences, each a (spectrum of unit variance on [0, pi], variance).

    Args:
        parts: the sequences; one water level serves all.
        D: squared error summed over them, > 0.
    """
    if D >= sum(variance for _, variance in parts):
        return Bracket(0.0, 0.0, method="D is at least the variance")
    units = {shape: _Unit(shape, math.pi, 1.0) for shape, _ in parts}
    return _fill([(units[shape], variance) for shape, variance in parts], D, 0.0, "spectra at the tick")


class WaterTable:
    """Water-filling at many distortions at once: exact for the powers at fixed nodes, within 1e-6 of `spectra_rate`."""

    def __init__(self, parts: Sequence[tuple[Spectrum, float]]) -> None:
        """Reads the spectra at the nodes and sorts their powers; `parts` as in `spectra_rate`."""
        edges = np.concatenate([[0.0], np.geomspace(1e-5, 0.2, GRADED), np.linspace(0.2, math.pi, GRADED)[1:]])
        x, w = np.polynomial.legendre.leggauss(ORDERS[0])
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        nodes, mass = (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w / math.pi).ravel()
        power = np.concatenate([variance * shape(nodes) for shape, variance in parts])
        order = np.argsort(power)
        weight, self._power = np.tile(mass, len(parts))[order], power[order]
        self._below = np.concatenate([[0.0], np.cumsum(weight * self._power)])
        self._above = np.concatenate([np.cumsum(weight[::-1])[::-1], [0.0]])
        self._logs = np.concatenate([np.cumsum((weight * np.log2(self._power))[::-1])[::-1], [0.0]])
        self._reached = self._below[:-1] + self._power * self._above[:-1]  # distortion at a level of each power

    def rate(self, distortion: FloatArray) -> FloatArray:
        """Bits per tick at distortions in (0, total variance)."""
        k = np.searchsorted(self._reached, distortion)
        level = (distortion - self._below[k]) / self._above[k]
        return np.asarray(0.5 * (self._logs[k] - self._above[k] * np.log2(level)))


def _shape(
    kernel: str | Callable[[FloatArray], Any] | ArrayLike | None,
    spectrum: Callable[[FloatArray], Any] | None,
    tick_ms: float | None,
    timescale: float,
) -> tuple[Spectrum, float, float, float, str]:
    """The spectrum, the frequency up to which it counts, its variance (1/pi) int S, the relative error, and a name."""
    if spectrum is not None:
        safe = checked(spectrum)
        if tick_ms is not None:
            total, off = _integrate(lambda w: safe(w)[None], 0.0, math.pi)
            return safe, math.pi, float(total[0]) / math.pi, float(off[0] / total[0]), "spectrum at the tick"

        def folded(v: FloatArray) -> FloatArray:
            w = v / (1.0 - v)  # [0, 1) to [0, infinity)
            return np.asarray(safe(w) / (1.0 - v) ** 2)[None]

        last = 1.0 - 1e-10
        total, off = _integrate(folded, 0.0, last)
        rest = float(folded(np.array([last]))[0, 0]) * (1.0 - last)  # what is beyond, exact for a fall like 1 / w^2
        whole = float(total[0]) + rest
        return safe, math.inf, whole / math.pi, float(off[0]) / whole + rest / whole, "spectrum in continuous time"
    if isinstance(kernel, str):
        if tick_ms is None:
            return continuous(kernel, timescale / MS_PER_S), math.inf, 1.0, 0.0, f"{kernel} in continuous time"
        return sampled(kernel, tick_ms / timescale), math.pi, 1.0, 0.0, f"{kernel} at the tick"
    if tick_ms is None:
        raise ValueError("tick_ms: expected a tick with a kernel function or table; continuous time takes a spectrum")
    if callable(kernel):
        table = tabulate(kernel, tick_ms)
    else:
        assert kernel is not None
        table = _checks.finite_array("kernel", kernel, 1)
        if not table.size or abs(table[0] - 1.0) > 1e-9:
            raise ValueError(f"kernel: expected correlations that start with 1, got {table[:4].tolist()}")
    return from_correlations(table), math.pi, 1.0, 0.0, "kernel at the tick"


def _ornstein_uhlenbeck(share: float, timescale_ms: float, tick_ms: float | None) -> Bracket | None:
    """Closed forms of "ou" at D = share of the variance, or None where there is none."""
    if tick_ms is not None:
        a = math.exp(-tick_ms / timescale_ms)
        if share > math.tanh(0.5 * tick_ms / timescale_ms):  # D_c = (1 - a) / (1 + a)
            return None
        rate = 0.5 * math.log2(-math.expm1(-2.0 * tick_ms / timescale_ms) / share)
        return Bracket(rate, rate, method=f"AR(1) with a = {a:.6g}, closed form")
    from scipy.optimize import brentq

    # With u the cut-off times the timescale: D = (2 / pi)(atan(1 / u) + u / (1 + u^2)).
    def excess(log_u: float) -> float:
        u = math.exp(log_u)
        return (2.0 / math.pi) * (math.atan(1.0 / u) + u / (1.0 + u * u)) - share

    u = math.exp(brentq(excess, -30.0, 60.0, xtol=1e-15, rtol=1e-15))
    rate = MS_PER_S / timescale_ms * (u - math.atan(u)) / (math.pi * math.log(2.0))
    return Bracket(rate, rate, method="Ornstein-Uhlenbeck in continuous time, closed form")


class _Unit:
    """Integrals over where a spectrum of unit variance is above a level. Final."""

    def __init__(self, shape: Spectrum, edge: float, scale: float) -> None:
        """Scans the spectrum once."""
        self._shape, self._scale = shape, scale
        if math.isinf(edge):
            self._nodes = np.concatenate([[0.0], np.geomspace(1e-8, 1e10, 4 * SCAN)])
        else:
            self._nodes = np.unique(np.concatenate([np.geomspace(1e-9, edge, SCAN), np.linspace(0.0, edge, SCAN)]))
        self._values = self(self._nodes)
        self._open = math.isinf(edge)
        self.top = float(self._values.max())

    def __call__(self, w: FloatArray) -> FloatArray:
        """The spectrum with (1 / pi) int = 1."""
        return self._shape(w) / self._scale

    def _intervals(self, level: float) -> list[tuple[float, float]]:
        """Where the spectrum is above `level`; ends found by bisection between nodes of the scan."""
        above = self._values > level
        if self._open and above[-1]:
            raise ValueError("D: too small for this spectrum, which is above the water at every frequency looked at")
        change = np.flatnonzero(above[1:] != above[:-1])
        low, high = self._nodes[change].copy(), self._nodes[change + 1].copy()
        for _ in range(80):
            middle = 0.5 * (low + high)
            same = (self(middle) > level) == above[change]
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        ends = 0.5 * (low + high)
        if above[0]:
            ends = np.concatenate([[0.0], ends])
        if above[-1]:
            ends = np.concatenate([ends, [self._nodes[-1]]])
        return list(zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True))

    def above(self, level: float) -> tuple[float, float, float, float, float]:
        """(1/pi) int (S - level)+ and (1/2 pi) int ln+(S / level), their errors, and (1/pi) times the width above."""

        def both(w: FloatArray) -> FloatArray:
            values = np.maximum(self(w), 1e-300)
            return np.stack([(values - level) / math.pi, np.log(values / level) / (2.0 * math.pi)])

        total, error, width = np.zeros(2), np.zeros(2), 0.0
        for start, end in self._intervals(level):
            value, off = _integrate(both, start, end)
            total, error, width = total + value, error + off, width + end - start
        return float(total[0]), float(total[1]), float(error[0]), float(error[1]), width / math.pi


def _fill(parts: list[tuple[_Unit, float]], D: float, doubt: float, name: str) -> Bracket:  # noqa: N803
    """Pours water until the distortion is D; Newton's method from below, for D(theta) is concave."""

    def at(theta: float) -> tuple[float, float, float, float]:
        """D, R in nats, the error of R at equal D, and dD / dtheta."""
        d = r = error = slope = 0.0
        for unit, v in parts:
            excess, rate, e_excess, e_rate, width = unit.above(theta / v)
            d, r, slope = d + v * (1.0 - excess), r + rate, slope + width
            error += e_rate + v * e_excess / (2.0 * theta)
        return d, r, error, slope

    theta = 0.5 * max(unit.top * v for unit, v in parts)
    reached = at(theta)
    while reached[0] > D:
        theta *= 0.25
        reached = at(theta)
    for _ in range(60):
        step = (D - reached[0]) / reached[3]
        if step <= 1e-14 * theta:
            break
        theta += step
        reached = at(theta)
    d, r, error, _ = reached
    # R is convex with slope -1 / (2 theta): what is left of D - d counts to second order only.
    rate = max(0.0, float(r + (d - D) / (2.0 * theta)) / math.log(2.0))
    # An error in the variance acts like one in D, and a few units of rounding are left.
    width = float(error + doubt * D / (2.0 * theta)) / math.log(2.0) + 1e-14 * max(1.0, rate)
    return Bracket(max(0.0, rate - width), rate + width, method=f"reverse water-filling, {name}")


def _integrate(f: Callable[[FloatArray], FloatArray], start: float, end: float) -> tuple[FloatArray, FloatArray]:
    """Integrals of a function (n,) -> (k, n) and their errors: panels are halved where the two orders differ."""
    (x1, w1), (x2, w2) = (np.polynomial.legendre.leggauss(order) for order in ORDERS)
    # Panels shrink towards the start, where spectra have their peak.
    cuts = start + (end - start) * np.concatenate([[0.0], 0.5 ** np.arange(24, -1, -1)])
    low, high = cuts[:-1], cuts[1:]
    total: FloatArray | None = None
    error = np.zeros(0)
    for depth in range(MAX_DEPTH):
        half, middle = 0.5 * (high - low), 0.5 * (high + low)
        rough, fine = (
            (f((middle[:, None] + half[:, None] * x).ravel()).reshape(-1, len(low), len(x)) * w).sum(-1) * half
            for x, w in ((x1, w1), (x2, w2))
        )
        off = np.abs(fine - rough)
        size = np.abs(fine).sum(axis=1, keepdims=True) + (0.0 if total is None else np.abs(total)[:, None])
        done = (off <= 1e-15 * size + 1e-300).all(axis=0)
        if depth == MAX_DEPTH - 1 or len(low) > 4096:
            done[:] = True
        if total is None:
            total, error = np.zeros(len(fine)), np.zeros(len(fine))
        total = total + fine[:, done].sum(axis=1)
        error = error + off[:, done].sum(axis=1)
        if done.all():
            break
        low, high, middle = low[~done], high[~done], middle[~done]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    assert total is not None
    return total, error
