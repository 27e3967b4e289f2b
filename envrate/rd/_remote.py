"""Remote sources (seen through noise) and side information: reductions to the plain problem."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._blahut_arimoto import blahut_arimoto
from envrate.rd._blocks import Blocks, Condition
from envrate.rd._markov import solve_at
from envrate.rd._types import Bracket, RDPoint

FloatArray = NDArray[np.float64]

LN2 = math.log(2.0)


def _joint(name: str, value: ArrayLike) -> FloatArray:
    """A joint pmf (rows, columns)."""
    array = _checks.finite_array(name, value, 2)
    _checks.pmf(name, array.ravel())
    return array / array.sum()


def _distortion(value: ArrayLike, letters: int) -> FloatArray:
    d = _checks.finite_array("distortion", value, 2)
    if len(d) != letters or d.shape[1] == 0:
        raise ValueError(f"distortion: expected {letters} rows, one per letter of the source, got shape {d.shape}")
    if (d < 0).any():
        where = np.argwhere(d < 0)[0].tolist()
        raise ValueError(f"distortion: entry {where} is {d[tuple(where)]:g}, expected a number >= 0")
    return d


def remote(joint: ArrayLike, distortion: ArrayLike, D: float, *, tol: float = 1e-9) -> RDPoint:  # noqa: N803
    """R(D) of a source X that the encoder sees only through an observation Z, bits per letter.

    It is the plain R(D) of Z under d'(z, y) = E[d(X, y) | Z = z] (Dobrushin and Tsybakov 1962; Witsenhausen 1980).
    The least distortion, E min_y d'(Z, y), is above 0 where Z leaves X in doubt.

    Args:
        joint: (K, M) law of (X, Z).
        distortion: (K, Y) d(x, y) >= 0.
        D: largest mean distortion of X.
        tol: width of the bracket, bits.

    Returns:
        RDPoint whose channel (M, Y) goes from the observation to the outcome; letters of Z that never occur keep a
        row.

    Raises:
        ValueError: bad input, or D below the least distortion.
    """
    law = _joint("joint", joint)
    d = _distortion(distortion, len(law))
    p = law.sum(axis=0)
    seen = np.divide(law.T @ d, p[:, None], out=np.zeros((len(p), d.shape[1])), where=p[:, None] > 0)
    return blahut_arimoto(p, seen, D=D, tol=tol)


def conditional(joint: ArrayLike, distortion: ArrayLike, D: float, *, tol: float = 1e-9) -> Bracket:  # noqa: N803
    """R(D) of X when both ends know S, bits per letter: min over splits of sum_s p(s) R_{X|s}(D_s).

    At the optimum all parts have the same slope, so that V(m) = sum_s p(s) V_{X|s}(m) (Gray 1973).

    Args:
        joint: (K, M) law of (X, S).
        distortion: (K, Y) d(x, y) >= 0.
        D: largest mean distortion.
        tol: width aimed at, bits.

    Raises:
        ValueError: bad input, or D below the least distortion.
    """
    law = _joint("joint", joint)
    d = _distortion(distortion, len(law))
    D = _checks.number("D", D, 0.0)  # noqa: N806
    keep = law.sum(axis=1) > 0
    law, d = law[keep], d[keep]
    weights = law.sum(axis=0)
    law, weights = law[:, weights > 0], weights[weights > 0]
    least = float(law.sum(axis=1) @ d.min(axis=1))
    if D < least - 1e-12 * max(1.0, least):
        raise ValueError(f"D: {D:g} is below D_min = {least:.12g}, the least distortion any outcome gives")
    cost = d - d.min(axis=1, keepdims=True)
    target = max(0.0, D - least)
    if target >= float((law.T @ cost).min(axis=1).sum()):
        return Bracket(0.0, 0.0, method="the side information alone meets D")
    condition = Condition("side information", weights, (law / weights).T[:, :, None], 0.0)
    lower, upper, _ = solve_at(cost, target, Blocks(cost[None], 1), condition, tol * LN2)
    return Bracket(lower / LN2, max(lower, upper) / LN2, method="common slope over the side information")


def remote_gaussian(variance: float, noise_variance: float, D: float) -> Bracket:  # noqa: N803
    """R(D) of a Gaussian seen through Gaussian noise under squared error: 1/2 log2((variance - m) / (D - m)) bits.

    m = variance noise / (variance + noise) is the error that the noise leaves in any case (Wolf and Ziv 1970).

    Raises:
        ValueError: D at or below m.
    """
    variance = _checks.number("variance", variance, 0.0, open_low=True)
    noise = _checks.number("noise_variance", noise_variance, 0.0)
    least = variance * noise / (variance + noise)
    D = _checks.number("D", D, 0.0, open_low=True)  # noqa: N806
    if least >= D:
        raise ValueError(f"D: {D:g} is not above D_min = {least:.12g}, the error that the noise leaves")
    rate = max(0.0, 0.5 * math.log2((variance - least) / (D - least))) if variance > D else 0.0
    return Bracket(rate, rate, method="remote Gaussian, closed form")


def binary_wyner_ziv(p: float, D: float) -> Bracket:  # noqa: N803
    """R(D) of a fair bit whose decoder alone knows it through a binary symmetric channel p, Hamming distortion.

    The lower convex envelope of h(p * D) - h(D) and the point (p, 0) (Wyner and Ziv 1976).

    Args:
        p: crossover of the side information, in (0, 1/2].
        D: largest error rate.
    """
    p = _checks.number("p", p, 0.0, 0.5, open_low=True)
    D = _checks.number("D", D, 0.0)  # noqa: N806
    from scipy.optimize import brentq

    def h(x: float) -> float:
        return -sum(y * math.log2(y) for y in (x, 1.0 - x) if y > 0)

    def curve(d: float) -> float:
        return h(p * (1.0 - d) + d * (1.0 - p)) - h(d)

    def slope(d: float) -> float:
        mixed = p * (1.0 - d) + d * (1.0 - p)
        return (1.0 - 2.0 * p) * math.log2((1.0 - mixed) / mixed) - math.log2((1.0 - d) / d)

    if p <= D:
        return Bracket(0.0, 0.0, method="the side information alone meets D")
    # Where the tangent of the curve goes through (p, 0).
    def miss(d: float) -> float:
        return curve(d) + slope(d) * (p - d)

    touch = float(brentq(miss, 1e-300, p * (1.0 - 1e-9), xtol=1e-16)) if p < 0.5 else 0.0
    if p == 0.5:
        rate = 1.0 - h(D)
    else:
        rate = curve(D) if touch >= D else curve(touch) * (p - D) / (p - touch)
    return Bracket(rate, rate, method="Wyner-Ziv, closed form")
