"""Stationary Gaussian processes, as plain numbers. Their JAX kernels sit in `_gp_kernels.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate import _checks
from envrate._spec import tagged

FloatArray = NDArray[np.float64]
KernelFunction = Callable[[FloatArray], Any]

#: Relative size of the most negative eigenvalue that rounding explains.
EIGENVALUE_TOLERANCE = 1e-9
#: A correlation below this is taken as zero when a kernel function is put into a table.
NEGLIGIBLE = 1e-12
#: Ticks after which a kernel function that has not died out is refused.
MAX_TABLE = 1 << 14


def _ou(r: FloatArray) -> FloatArray:
    return np.exp(-r)


def _matern32(r: FloatArray) -> FloatArray:
    x = math.sqrt(3.0) * r
    return (1.0 + x) * np.exp(-x)


def _matern52(r: FloatArray) -> FloatArray:
    x = math.sqrt(5.0) * r
    return (1.0 + x + x * x / 3.0) * np.exp(-x)


def _rbf(r: FloatArray) -> FloatArray:
    return np.exp(-0.5 * r * r)


#: Correlation as a function of lag / timescale. Source: Rasmussen and Williams (2006), section 4.2.
KERNELS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "ou": _ou,
    "matern32": _matern32,
    "matern52": _matern52,
    "rbf": _rbf,
}
#: Order of the state space of each Markovian kernel; Hartikainen and Sarkka (2010).
STATE_ORDER = {"ou": 1, "matern32": 2, "matern52": 3}


@dataclass(frozen=True)
class StateSpace:
    """x_{t+1} = F x_t + w, z_t = H x_t for one output of unit variance, exact at the tick."""

    transition: FloatArray  # (p, p) F
    noise: FloatArray  # (p, p) covariance of w
    stationary: FloatArray  # (p, p) covariance of x
    output: FloatArray  # (p,) H


@tagged("law", "gaussian-process")
@dataclass(frozen=True)
class GaussianProcess:
    """A zero-mean stationary Gaussian process with d outputs, sampled once per tick.

    cov(z_i(s), z_j(t)) = variance * coregionalisation[i, j] * k(|s - t| / timescale).

    Args:
        kernel: "ou" exp(-r), "matern32", "matern52" or "rbf" exp(-r^2/2), with r = lag / timescale; or a function of
            the lag in milliseconds that returns the correlation, read at whole ticks; or the correlations themselves
            at lags of 0, 1, 2 ... ticks, zero beyond the last (the timescale then plays no part).
        timescale_ms: the kernel's timescale.
        variance: of each output where the coregionalisation has ones on its diagonal.
        coregionalisation: (d, d) positive semidefinite matrix; None is one output.

    Raises:
        ValueError: an unknown kernel, a correlation that is not 1 at lag 0, a matrix that is not symmetric and
            positive semidefinite.
    """

    kernel: str | tuple[float, ...] | KernelFunction = "ou"
    timescale_ms: float = 1000.0
    variance: float = 1.0
    coregionalisation: tuple[tuple[float, ...], ...] | None = None  # (d, d)

    def __post_init__(self) -> None:
        """Checks every field; arrays become tuples."""
        put = object.__setattr__
        if isinstance(self.kernel, str):
            _checks.choice("kernel", self.kernel, KERNELS)
        elif not callable(self.kernel):
            table = _checks.finite_array("kernel", self.kernel, 1)
            if not table.size or abs(table[0] - 1.0) > NEGLIGIBLE or (np.abs(table) > 1.0 + NEGLIGIBLE).any():
                raise ValueError(f"kernel: expected correlations that start with 1, got {table[:4].tolist()}")
            put(self, "kernel", tuple(table.tolist()))
        put(self, "timescale_ms", _checks.number("timescale_ms", self.timescale_ms, 0.0, open_low=True))
        put(self, "variance", _checks.number("variance", self.variance, 0.0, open_low=True))
        if self.coregionalisation is not None:
            matrix = _checks.finite_array("coregionalisation", self.coregionalisation, 2)
            if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, atol=NEGLIGIBLE):
                raise ValueError(f"coregionalisation: expected a symmetric matrix, got shape {matrix.shape}")
            lowest = float(np.linalg.eigvalsh(matrix)[0])
            scale = max(1.0, float(np.abs(matrix).max()))
            if lowest < -EIGENVALUE_TOLERANCE * scale or not (np.diag(matrix) > 0).all():
                raise ValueError(
                    f"coregionalisation: smallest eigenvalue {lowest:.3g}, expected a positive semidefinite matrix "
                    "with a positive diagonal"
                )
            put(self, "coregionalisation", tuple(tuple(row) for row in matrix.tolist()))

    @property
    def num_outputs(self) -> int:
        """d, the number of outputs."""
        return 1 if self.coregionalisation is None else len(self.coregionalisation)

    @cached_property
    def output_covariance(self) -> FloatArray:
        """(d, d) covariance of z_t."""
        one = self.coregionalisation is None
        return self.variance * (np.ones((1, 1)) if one else np.asarray(self.coregionalisation))

    @cached_property
    def mixing(self) -> FloatArray:
        """(d, d) symmetric square root A of the output covariance: z = A u with u independent, of unit variance."""
        values, vectors = np.linalg.eigh(self.output_covariance)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)

    @property
    def is_memoryless(self) -> bool:
        """Whether the values are independent from tick to tick."""
        return isinstance(self.kernel, tuple) and not any(self.kernel[1:])

    @property
    def state_order(self) -> int | None:
        """Order p of the exact state space, or None where there is none of finite order."""
        return STATE_ORDER.get(self.kernel) if isinstance(self.kernel, str) else None

    def correlation(self, ticks: int, tick_ms: int) -> FloatArray:
        """(ticks,) correlation of one output at lags 0, 1 ... ticks - 1; raises ValueError on a function gone wrong."""
        lags = np.arange(ticks, dtype=np.float64)
        if isinstance(self.kernel, str):
            return KERNELS[self.kernel](lags * tick_ms / self.timescale_ms)
        if isinstance(self.kernel, tuple):
            table = np.zeros(ticks)
            table[: min(ticks, len(self.kernel))] = self.kernel[:ticks]
            return table
        values = _checks.finite_array("kernel", self.kernel(lags * tick_ms), 1)
        if values.shape != lags.shape or abs(values[0] - 1.0) > EIGENVALUE_TOLERANCE:
            raise ValueError(
                f"kernel: expected one correlation per lag, 1 at lag 0; got shape {values.shape} that starts with "
                f"{values[:1].tolist()}"
            )
        return values

    def at_tick(self, tick_ms: int) -> GaussianProcess:
        """The law from tick to tick: a kernel function becomes a table, so that the law is plain numbers."""
        if not callable(self.kernel):
            return self
        length = 64
        while True:
            values = self.correlation(length, tick_ms)
            alive = np.flatnonzero(np.abs(values) > NEGLIGIBLE)
            if alive[-1] < length // 2:
                break
            length *= 2
            if length > MAX_TABLE:
                raise ValueError(
                    f"kernel: the correlation has not died out after {MAX_TABLE} ticks of {tick_ms} ms; expected a "
                    "function that goes to 0"
                )
        table = (1.0, *values[1 : alive[-1] + 1].tolist())
        embedding_spectrum(values, length)
        return GaussianProcess(table, self.timescale_ms, self.variance, self.coregionalisation)

    def state_space(self, tick_ms: int) -> StateSpace:
        """The exact state space at the tick; raises ValueError where the kernel has none of finite order."""
        order = self.state_order
        if order is None:
            raise ValueError(
                f"kernel: expected one of {', '.join(STATE_ORDER)} for a state space, got {self.kernel!r:.60}"
            )
        from scipy.linalg import expm

        rate = math.sqrt(2 * order - 1.0) / self.timescale_ms
        # Companion form of (s + rate)^p, time in units of 1 / rate so that entries stay near 1.
        companion = np.diag(np.ones(order - 1), 1)
        companion[-1] = [-math.comb(order, k) for k in range(order)]
        transition = np.asarray(expm(companion * rate * tick_ms))
        stationary = {
            1: np.ones((1, 1)),
            2: np.eye(2),
            3: np.array([[1.0, 0.0, -1.0 / 3.0], [0.0, 1.0 / 3.0, 0.0], [-1.0 / 3.0, 0.0, 1.0]]),
        }[order]
        noise = stationary - transition @ stationary @ transition.T
        return StateSpace(transition, 0.5 * (noise + noise.T), stationary, np.eye(order)[0])

    def spectrum(self, frequencies: FloatArray, tick_ms: int) -> FloatArray:
        """Power spectrum of one output's tick sequence at angular frequencies per tick, unit variance.

        Args:
            frequencies: any shape, radians per tick.
            tick_ms: the tick.

        Returns:
            sum_k c(k) exp(-i w k), same shape; closed form where there is a state space, else the sum itself.
        """
        w = np.asarray(frequencies, dtype=np.float64)
        if self.state_order is not None:
            ss = self.state_space(tick_ms)
            unit = np.eye(self.state_order)
            system = unit - np.exp(-1j * w)[..., None, None] * ss.transition
            gain = np.linalg.solve(system, np.broadcast_to(unit, system.shape))[..., 0, :]
            return np.asarray(np.einsum("...i,ij,...j->...", gain, ss.noise, gain.conj()).real)
        length = 64
        while length < MAX_TABLE and abs(self.correlation(length, tick_ms)[length // 2 :]).max() > NEGLIGIBLE:
            length *= 2
        values = self.correlation(length, tick_ms)
        lags = np.flatnonzero(np.abs(values) > 0)[1:]
        return 1.0 + 2.0 * np.cos(w[..., None] * lags) @ values[lags]


def embedding_spectrum(correlation: FloatArray, ticks: int) -> FloatArray:
    """Square roots of the eigenvalues of a circulant matrix that has the correlation as its first `ticks` entries.

    Source: Dietrich and Newsam, "Fast and exact simulation of stationary Gaussian processes through circulant
    embedding of the covariance matrix", SIAM J. Sci. Comput. 18 (1997).

    Args:
        correlation: (n,) with n >= ticks.
        ticks: number of values that will be read from a sample.

    Returns:
        (2 (n - 1),) non-negative roots.

    Raises:
        ValueError: the embedding has a negative eigenvalue beyond rounding: not a covariance.
    """
    row = np.concatenate([correlation, correlation[-2:0:-1]])
    eigenvalues = np.fft.fft(row).real
    if eigenvalues.min() < -EIGENVALUE_TOLERANCE * eigenvalues.max():
        raise ValueError(
            f"kernel: the embedding over {ticks} ticks has the eigenvalue {eigenvalues.min():.3g}; expected a positive "
            "semidefinite kernel that dies out within the episode"
        )
    return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0)))
