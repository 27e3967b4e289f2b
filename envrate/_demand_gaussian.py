"""Demand of tasks on Gaussian processes: spectral water-filling for tracking, entropy rates for thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envrate import rd
from envrate.latents import Product
from envrate.rd._gaussian_process import WaterTable, spectra_rate
from envrate.rd._spectra import from_correlations, sampled

if TYPE_CHECKING:
    from envrate._responses import Threshold
    from envrate.task import Task

FloatArray = NDArray[np.float64]

#: Nodes per panel of the two chains that stand for a thresholded Markov process; their difference is the error.
ORDERS = (6, 8)
#: Length of a panel in standard deviations of a tick's innovation, values that matter, and most nodes of a chain.
PANEL, REACH, MOST_NODES = 2.0, 7.0, 400
#: What sums of that many terms may be off by, and the mass beyond `REACH`.
ROUNDING = 1e-11


def components(law: Any, tick_ms: int) -> list[tuple[Callable[[FloatArray], FloatArray], float]]:
    """(spectrum of unit variance, variance) of each independent scalar process that the latent turns into.

    Outputs that share a kernel are rotated into the eigenvectors of their covariance, which leaves the squared error
    as it is.
    """
    parts = law.processes if isinstance(law, Product) else (law,)
    found = []
    for part in parts:
        if isinstance(part.kernel, str):
            spectrum = sampled(part.kernel, tick_ms / part.timescale_ms)
        else:
            spectrum = from_correlations(np.asarray(part.kernel))
        for variance in np.linalg.eigvalsh(part.output_covariance):
            if variance > 1e-12 * float(np.trace(part.output_covariance)):
                found.append((spectrum, float(variance)))
    return found


@lru_cache(maxsize=512)
def tracking(task: Task, D: float) -> rd.Bracket:  # noqa: N803 - the field's symbol
    """R(D) of a stationary Gaussian process in bits per tick, by reverse water-filling over its spectrum."""
    if D <= 0.0:
        return rd.Bracket(math.inf, math.inf, method="a real number asks for infinitely many bits")
    return spectra_rate(components(task.latent, task.tick_ms), D)


@lru_cache(maxsize=32)
def _table(law: Any, tick_ms: int) -> WaterTable:
    return WaterTable(components(law, tick_ms))


def rates(task: Task, distortions: FloatArray) -> FloatArray:
    """R(D) in bits/s at many distortions, (n,), by quadrature on fixed panels: within 1e-6 of `tracking`.

    0 gives infinity; NaN stays NaN.
    """
    total = float(np.trace(task.latent.output_covariance))
    out = np.full(len(distortions), np.nan)
    out[distortions <= 0.0] = math.inf
    out[distortions >= total * (1 - 1e-9)] = 0.0
    inside = np.isnan(out) & np.isfinite(distortions)
    table = _table(task.latent, task.tick_ms)
    out[inside] = table.rate(distortions[inside]) * 1000.0 / task.tick_ms
    return out


@lru_cache(maxsize=64)
def threshold(task: Task) -> rd.Bracket:
    """Entropy rate of a thresholded process with memory in bits per tick.

    A Markov process (ou) becomes a chain on quadrature nodes: an estimate, with the difference to fewer nodes as its
    error. Others get the enclosure H(A_1 | Z_0, Z_-1, ...) <= h <= H(A_1 | A_0), where the lower end is an integral
    over the best predictor.
    """
    law, response = task.latent, task.response
    edges, rho = _standard(task)
    if law.kernel == "ou":
        chains = [discretised(edges, response.symbols, rho, order) for order in ORDERS]
        rough, fine = (rd.entropy_rate(*chain).mid for chain in chains)
        spread = abs(fine - rough) + ROUNDING
        method = f"Markov chain on {len(chains[1][1])} nodes"
        return rd.Bracket(fine - spread, fine + spread, kind="estimate", method=method)
    upper = _next_given_now(edges, response, rho)
    # The error of the best prediction from the whole past: exp of the mean log spectrum (Kolmogorov, Szego).
    x, weight = np.polynomial.legendre.leggauss(400)
    log_mean = float((weight * np.log(np.maximum(law.spectrum((x + 1) * math.pi / 2, task.tick_ms), 1e-300))).sum() / 2)
    left = min(math.exp(log_mean), 1.0)
    lower = _next_given_prediction(edges, response, math.sqrt(1.0 - left), math.sqrt(left))
    return rd.Bracket(min(lower, upper), upper, method="given the past values; given the last symbol")


def threshold_at(task: Task, D: float, n_max: int, max_work: float) -> rd.Bracket:  # noqa: N803
    """R(D) of a thresholded process with memory at D > 0, in bits per tick; blocks as in `rd.markov`.

    Of a Markov process, that of its chain on fewer nodes, widened by the error at D = 0: an estimate. Of others

        R_1(D) - (H(A) - h) <= R(D) <= R_1(D)     with R_1 the rate of one letter (after Shannon's lower bound).
    """
    rate = threshold(task)
    if task.latent.kernel == "ou":
        edges, rho = _standard(task)
        chain = discretised(edges, task.response.symbols, rho, ORDERS[0])
        found = rd.markov(*chain, task.distortion, D=D, n_max=n_max, max_work=max_work)
        lower, upper = max(0.0, found.lower - rate.width), found.upper + rate.width
        method = f"Markov chain on {len(chain[1])} nodes, {found.method}"
        return rd.Bracket(lower, upper, kind="estimate", method=method)
    point = rd.blahut_arimoto(task.pmf, task.distortion, D=D)
    lower = max(0.0, float(point.lower - (_entropy(task.pmf) - rate.lower)))
    return rd.Bracket(lower, point.upper, method="one letter less the memory; one letter")


def _standard(task: Task) -> tuple[FloatArray, float]:
    """The thresholds in standard deviations, and the correlation of two ticks."""
    law, response = task.latent, task.response
    sd = float(np.sqrt(law.output_covariance[response.output, response.output]))
    return np.asarray(response.edges) / sd, float(law.correlation(2, task.tick_ms)[1])


def discretised(edges: FloatArray, symbols: tuple[int, ...], rho: float, order: int) -> tuple[FloatArray, NDArray[Any]]:
    """A chain on Gauss-Legendre nodes, on panels between the thresholds, of an AR(1) process of unit variance.

    The recursion of the filter is then a quadrature that converges geometrically with the order (Tauchen and Hussey,
    Econometrica 59, 1991).

    Returns:
        (K, K) transition matrix and (K,) symbols.
    """
    sd = math.sqrt(1.0 - rho * rho)
    step = max(PANEL * sd, 2.0 * REACH * order / MOST_NODES)
    ends = np.concatenate([[-REACH], edges[np.abs(edges) < REACH], [REACH]])
    panels = [np.linspace(a, b, max(1, math.ceil((b - a) / step)) + 1) for a, b in zip(ends, ends[1:], strict=False)]
    cuts = np.unique(np.concatenate(panels))
    x, weight = np.polynomial.legendre.leggauss(order)
    half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
    z, mass = (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * weight).ravel()
    transition = mass * np.exp(-0.5 * ((z - rho * z[:, None]) / sd) ** 2)
    label = np.asarray(symbols)[np.searchsorted(edges, z, side="right")]
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
