"""Gaussian sources under squared error: scalar and vector, and the check of Blahut-Arimoto against them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._types import Bracket

FloatArray = NDArray[np.float64]

#: Relative size of a negative eigenvalue that rounding explains.
EIGENVALUE_TOLERANCE = 1e-10


def gaussian(variance: float, D: float) -> Bracket:  # noqa: N803 - the field's symbol
    """R(D) = max(0, 1/2 log2(variance / D)) of a Gaussian letter under squared error, bits (Shannon 1959).

    Args:
        variance: of the source, > 0.
        D: mean squared error, > 0.

    Raises:
        ValueError: a variance or D that is not above 0.
    """
    variance = _checks.number("variance", variance, 0.0, open_low=True)
    D = _checks.number("D", D, 0.0, open_low=True)  # noqa: N806
    rate = max(0.0, 0.5 * math.log2(variance / D))
    return Bracket(rate, rate, method="Gaussian, closed form")


def water_level(variances: FloatArray, total: float) -> float:
    """The theta with sum min(variance, theta) = total, exact by sorting; total at most the sum of the variances."""
    rising = np.sort(variances)
    below = np.concatenate([[0.0], np.cumsum(rising)[:-1]])
    levels = (total - below) / np.arange(len(rising), 0, -1)  # if the k smallest lie under water
    k = int(np.flatnonzero(levels <= rising)[0]) if (levels <= rising).any() else len(rising) - 1
    return float(levels[k])


def gaussian_vector(covariance: ArrayLike, D: float) -> Bracket:  # noqa: N803
    """R(D) of a Gaussian vector under squared error, bits per vector, by reverse water-filling.

    Args:
        covariance: (d, d) symmetric positive semidefinite.
        D: squared error summed over the components, > 0.

    Returns:
        sum over eigenvalues of max(0, 1/2 log2(eigenvalue / theta)) with sum min(eigenvalue, theta) = D; the water
        level theta comes from sorting, not from iteration (Kolmogorov 1956; Cover and Thomas, theorem 10.3.3).

    Raises:
        ValueError: a matrix that is not symmetric and positive semidefinite, with its smallest eigenvalue.
    """
    values = eigenvalues("covariance", covariance)
    D = _checks.number("D", D, 0.0, open_low=True)  # noqa: N806
    if D >= values.sum():
        return Bracket(0.0, 0.0, method="reverse water-filling")
    theta = water_level(values, D)
    rate = float(0.5 * np.log2(values[values > theta] / theta).sum())
    return Bracket(rate, rate, method="reverse water-filling")


def eigenvalues(name: str, matrix: ArrayLike) -> FloatArray:
    """Eigenvalues of a symmetric positive semidefinite matrix, tiny negative ones as 0; raises ValueError else."""
    array = _checks.finite_array(name, matrix, 2)
    if array.shape[0] != array.shape[1] or array.size == 0:
        raise ValueError(f"{name}: expected a square matrix, got shape {array.shape}")
    scale = float(np.abs(array).max())
    if np.abs(array - array.T).max() > EIGENVALUE_TOLERANCE * scale:
        row, column = np.unravel_index(np.abs(array - array.T).argmax(), array.shape)
        raise ValueError(
            f"{name}: entries ({row}, {column}) and ({column}, {row}) are {array[row, column]:g} and "
            f"{array[column, row]:g}, expected a symmetric matrix"
        )
    values = np.linalg.eigvalsh(array)
    if values[0] < -EIGENVALUE_TOLERANCE * scale:
        raise ValueError(f"{name}: smallest eigenvalue {values[0]:.6g}, expected a positive semidefinite matrix")
    return np.asarray(np.maximum(values, 0.0))


@dataclass(frozen=True)
class GaussianAgreement:
    """Blahut-Arimoto on a discretised Gaussian beside the closed form, in bits per letter."""

    distortion: FloatArray  # (m,)
    lower: FloatArray  # (m,) certified for the discretised source
    upper: FloatArray  # (m,)
    closed_form: FloatArray  # (m,) 1/2 log2(variance / D)
    points: int  # letters of the discretised source

    @property
    def largest_difference(self) -> float:
        """Largest distance of the closed form from the middle of the bracket."""
        return float(np.abs(0.5 * (self.lower + self.upper) - self.closed_form).max())


def gaussian_agreement(
    distortions: ArrayLike = (0.1, 0.25, 0.5), *, variance: float = 1.0, points: int | None = None, tol: float = 1e-10
) -> GaussianAgreement:
    """Checks Blahut-Arimoto and the closed form against each other on a Gaussian.

    The density is sampled (not integrated over bins) on an even grid to 8 standard deviations. By the Poisson
    summation formula the error is then about exp(-2 pi^2 D / h^2) for a grid step h, plus what the tail leaves out;
    integrating over bins would add 1/2 log2(1 + h^2 / 12).

    Args:
        distortions: (m,) squared errors below the variance.
        variance: of the source.
        points: letters of the grid; None takes h = 0.8 sqrt(smallest D).
        tol: width of the certified bracket, bits.

    Raises:
        ValueError: a distortion that is not between 0 and the variance.
    """
    from envrate.rd._blahut_arimoto import blahut_arimoto

    variance = _checks.number("variance", variance, 0.0, open_low=True)
    levels = np.atleast_1d(_checks.finite_array("distortions", distortions))
    if levels.ndim != 1 or not levels.size or (levels <= 0).any() or (levels >= variance).any():
        raise ValueError(f"distortions: expected squared errors between 0 and {variance:g}, got {levels.tolist()}")
    reach = 8.0 * math.sqrt(variance)
    if points is None:
        points = int(math.ceil(2.0 * reach / (0.8 * math.sqrt(float(levels.min()))))) + 1
    points = _checks.integer("points", points, 3, 5000)
    x = np.linspace(-reach, reach, points)
    p = np.exp(-0.5 * x**2 / variance)
    cost = (x[:, None] - x[None, :]) ** 2
    found = [blahut_arimoto(p / p.sum(), cost, D=float(d), tol=tol) for d in levels]
    closed = np.array([gaussian(variance, float(d)).mid for d in levels])
    lower, upper = np.array([point.lower for point in found]), np.array([point.upper for point in found])
    return GaussianAgreement(levels, lower, upper, closed, points)
