"""Demand of tasks on Gaussian processes: spectral water-filling for tracking, entropy rates for thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envrate import rd
from envrate.latents import GaussianProcess, Product

if TYPE_CHECKING:
    from envrate._responses import Threshold
    from envrate.task import Task

FloatArray = NDArray[np.float64]

#: Gauss-Legendre nodes per panel, and the lower order whose difference bounds the error.
NODES, FEWER = 12, 8
#: Panels of the frequency axis, graded towards 0 where the spectra of slow processes are steep.
GRADED = 60
#: Cells of the two chains that approximate a thresholded Markov process.
CELLS = (48, 96)


def components(law: Any, tick_ms: int) -> list[tuple[Callable[[FloatArray], FloatArray], float]]:
    """(spectrum of unit variance, variance) of each independent scalar process that the latent turns into.

    Outputs that share a kernel are rotated into the eigenvectors of their covariance, which leaves the squared error
    as it is.
    """
    parts = law.processes if isinstance(law, Product) else (law,)
    found = []
    for part in parts:
        for variance in np.linalg.eigvalsh(part.output_covariance):
            if variance > 1e-12 * float(np.trace(part.output_covariance)):
                found.append((_spectrum(part, tick_ms), float(variance)))
    return found


def _spectrum(law: GaussianProcess, tick_ms: int) -> Callable[[FloatArray], FloatArray]:
    return lambda w: np.maximum(law.spectrum(w, tick_ms), 1e-300)


@lru_cache(maxsize=512)
def tracking(task: Task, D: float) -> rd.Bracket:  # noqa: N803 - the field's symbol
    """R(D) of a stationary Gaussian process in bits per tick, by reverse water-filling over its spectrum.

    D = sum_i mean_w min(theta, S_i(w)), R = sum_i mean_w max(0, log2(S_i(w) / theta)) / 2 (Kolmogorov 1956; Berger
    1971, section 4.5). Integrals by Gauss-Legendre on panels split where S_i crosses theta; the bracket has the
    difference to a rule of lower order.
    """
    parts = components(task.latent, task.tick_ms)
    total = sum(variance for _, variance in parts)
    if D <= 0.0:
        return rd.Bracket(math.inf, math.inf, method="a real number asks for infinitely many bits")
    if D >= total:
        return rd.Bracket(0.0, 0.0, method="water-filling")
    from scipy.optimize import brentq

    # First on panels that ignore the crossings, whose spectra are had once; then exactly, close by.
    powers, mass = _fixed(parts)
    rough = math.log(float(_Levels(powers, mass).level(np.array([D]))[0]))
    low, high = rough - 1e-6, rough + 1e-6
    while _filled(parts, math.exp(low))[0] > D:
        low -= 10 * (high - low)
    while _filled(parts, math.exp(high))[0] < D:
        high += 10 * (high - low)
    theta = math.exp(brentq(lambda log: _filled(parts, math.exp(log))[0] - D, low, high, xtol=1e-13))
    reached, rate, slack = _filled(parts, theta)
    # dR/dD = -1 / (2 theta ln 2) turns what is left of D into rate.
    rate += (reached - D) / (2 * theta * math.log(2))
    slack += 1e-12 * (1.0 + rate)
    return rd.Bracket(max(0.0, rate - slack), rate + slack, method="water-filling")


class _Levels:
    """Water-filling over finitely many powers with weights: exact, from sorted sums."""

    def __init__(self, powers: FloatArray, mass: FloatArray) -> None:
        """Sorts the powers, (components, n), with their weights (n,)."""
        flat, weight = powers.ravel(), np.broadcast_to(mass, powers.shape).ravel()
        order = np.argsort(flat)
        self.power, weight = flat[order], weight[order]
        self.below = np.concatenate([[0.0], np.cumsum(weight * self.power)])
        self.above = np.concatenate([np.cumsum(weight[::-1])[::-1], [0.0]])
        self.logs = np.concatenate([np.cumsum((weight * np.log2(self.power))[::-1])[::-1], [0.0]])
        self.reached = self.below[:-1] + self.power * self.above[:-1]  # distortion at a level of each power

    def level(self, distortion: FloatArray) -> FloatArray:
        """Water levels of distortions in (0, total variance)."""
        k = np.searchsorted(self.reached, distortion)
        return np.asarray((distortion - self.below[k]) / self.above[k])

    def rate(self, distortion: FloatArray) -> FloatArray:
        """Rates in bits per tick at those distortions."""
        k = np.searchsorted(self.reached, distortion)
        return np.asarray(0.5 * (self.logs[k] - self.above[k] * np.log2(self.level(distortion))))


@lru_cache(maxsize=32)
def _levels(law: Any, tick_ms: int) -> _Levels:
    return _Levels(*_fixed(components(law, tick_ms)))


def rates(task: Task, distortions: FloatArray) -> FloatArray:
    """R(D) in bits/s at many distortions, (n,), by quadrature on fixed panels: within 1e-6 of `tracking`.

    0 gives infinity; NaN stays NaN.
    """
    levels = _levels(task.latent, task.tick_ms)
    total = float(np.trace(task.latent.output_covariance))
    out = np.full(len(distortions), np.nan)
    out[distortions <= 0.0] = math.inf
    out[distortions >= total * (1 - 1e-9)] = 0.0
    inside = np.isnan(out) & np.isfinite(distortions)
    out[inside] = levels.rate(distortions[inside]) * 1000.0 / task.tick_ms
    return out


def _fixed(parts: list[tuple[Callable[[FloatArray], FloatArray], float]]) -> tuple[FloatArray, FloatArray]:
    """(components, n) spectra and (n,) weights on the graded panels."""
    edges = _graded()
    x, weight = np.polynomial.legendre.leggauss(NODES)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    at, mass = (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * weight / math.pi).ravel()
    return np.stack([variance * spectrum(at) for spectrum, variance in parts]), mass


def _graded() -> FloatArray:
    return np.concatenate([[0.0], np.geomspace(1e-5, 0.2, GRADED), np.linspace(0.2, math.pi, GRADED)[1:]])


def _filled(parts: list[tuple[Callable[[FloatArray], FloatArray], float]], theta: float) -> tuple[float, float, float]:
    """(distortion, rate, error) at water level theta."""
    distortion = rate = error = 0.0
    for spectrum, variance in parts:
        edges = _edges(lambda w, s=spectrum, v=variance: np.log(v * s(w) / theta))  # type: ignore[misc]
        values = []
        for nodes in (NODES, FEWER):
            x, weight = np.polynomial.legendre.leggauss(nodes)
            half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
            power = variance * spectrum((middle[:, None] + half[:, None] * x).ravel()).reshape(len(half), nodes)
            mass = half[:, None] * weight / math.pi
            spread = float((mass * np.minimum(power, theta)).sum())
            values.append((spread, float((mass * np.maximum(np.log2(power / theta), 0.0)).sum() / 2)))
        distortion += values[0][0]
        rate += values[0][1]
        error += abs(values[0][1] - values[1][1]) + abs(values[0][0] - values[1][0]) / (2 * theta * math.log(2))
    return distortion, rate, error


def _edges(crossing: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Panel ends on [0, pi], with the zeros of `crossing` among them."""
    from scipy.optimize import brentq

    graded = _graded()
    sign = np.sign(crossing(graded))
    roots = [
        brentq(lambda w: float(crossing(np.array([w]))[0]), graded[i], graded[i + 1], xtol=1e-15)
        for i in np.flatnonzero(sign[1:] * sign[:-1] < 0)
    ]
    return np.unique(np.concatenate([graded, roots]))


@lru_cache(maxsize=64)
def threshold(task: Task) -> rd.Bracket:
    """Entropy rate of a thresholded process in bits per tick.

    A Markov process (ou) is put on a fine and a coarser grid of cells: an estimate. Others get the enclosure
    H(A_1 | Z_0, Z_-1, ...) <= h <= H(A_1 | A_0), where the lower end is an integral over the best predictor.
    """
    law, response = task.latent, task.response
    if law.is_memoryless:
        p = task.pmf[task.pmf > 0]
        entropy = float(-(p * np.log2(p)).sum())
        return rd.Bracket(entropy, entropy, method="entropy")
    sd = float(np.sqrt(law.output_covariance[response.output, response.output]))
    edges = np.asarray(response.edges) / sd
    rho = float(law.correlation(2, task.tick_ms)[1])
    if law.kernel == "ou":
        found = []
        for cells in CELLS:
            transition, symbols = discretised(edges, response.symbols, rho, cells)
            found.append(rd.entropy_rate(transition, symbols).mid)
        spread = abs(found[1] - found[0])
        return rd.Bracket(found[1] - spread, found[1] + spread, kind="estimate", method=f"{CELLS[1]} cells")
    upper = _next_given_now(edges, response, rho)
    # The error of the best prediction from the whole past: exp of the mean log spectrum (Kolmogorov, Szego).
    x, weight = np.polynomial.legendre.leggauss(400)
    log_mean = float((weight * np.log(np.maximum(law.spectrum((x + 1) * math.pi / 2, task.tick_ms), 1e-300))).sum() / 2)
    left = min(math.exp(log_mean), 1.0)
    lower = _next_given_prediction(edges, response, math.sqrt(1.0 - left), math.sqrt(left))
    return rd.Bracket(min(lower, upper), upper, method="given the past values; given the last symbol")


def discretised(edges: FloatArray, symbols: tuple[int, ...], rho: float, cells: int) -> tuple[FloatArray, NDArray[Any]]:
    """A chain on cells of equal probability, cut at the thresholds too, of an AR(1) process of unit variance.

    Returns:
        (K, K) transition matrix and (K,) symbols.
    """
    from scipy.special import ndtr, ndtri

    cuts = np.unique(np.concatenate([ndtri(np.arange(1, cells) / cells), edges]))
    ends = np.concatenate([[-9.0], cuts, [9.0]])
    x, weight = np.polynomial.legendre.leggauss(16)
    half, middle = np.diff(ends) / 2, (ends[1:] + ends[:-1]) / 2
    z = middle[:, None] + half[:, None] * x
    mass = half[:, None] * weight * np.exp(-0.5 * z * z)
    mass /= mass.sum(1, keepdims=True)
    cdf = ndtr((cuts - rho * z[..., None]) / math.sqrt(1 - rho * rho))
    steps = np.diff(np.concatenate([np.zeros((*z.shape, 1)), cdf, np.ones((*z.shape, 1))], axis=-1))
    transition = np.einsum("ki,kij->kj", mass, steps)
    label = np.asarray(symbols)[np.searchsorted(edges, middle, side="right")]
    return transition / transition.sum(1, keepdims=True), label


def _symbol_law(edges: FloatArray, response: Threshold, mean: FloatArray, sd: float) -> FloatArray:
    """(..., A) law of the symbol of a normal value."""
    from scipy.special import ndtr

    cdf = ndtr((edges - mean[..., None]) / sd)
    cells = np.diff(np.concatenate([np.zeros((*mean.shape, 1)), cdf, np.ones((*mean.shape, 1))], axis=-1))
    return cells @ np.eye(max(response.symbols) + 1)[list(response.symbols)]


def _entropy(p: FloatArray) -> FloatArray:
    return -(p * np.log2(np.maximum(p, 1e-300))).sum(-1)


def _normal_nodes(count: int = 4000) -> tuple[FloatArray, FloatArray]:
    z = np.linspace(-9.0, 9.0, count)
    weight = np.exp(-0.5 * z * z)
    return z, weight / weight.sum()


def _next_given_prediction(edges: FloatArray, response: Threshold, spread: float, sd: float) -> float:
    """H(A_1 | prediction) where the prediction is normal with that spread and the value lies around it."""
    z, weight = _normal_nodes()
    return float(weight @ _entropy(_symbol_law(edges, response, spread * z, sd)))


def _next_given_now(edges: FloatArray, response: Threshold, rho: float) -> float:
    """H(A_1 | A_0) for values with correlation rho."""
    z, weight = _normal_nodes()
    following = _symbol_law(edges, response, rho * z, math.sqrt(1 - rho * rho))
    now = _symbol_law(edges, response, z, 1e-9)
    joint = np.einsum("n,na,nb->ab", weight, now, following)
    return float(_entropy(joint.ravel()) - _entropy(joint.sum(1)))
