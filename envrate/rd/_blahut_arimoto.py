"""R(D) of a discrete memoryless source, certified: the public function and its checks."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._types import RDPoint

FloatArray = NDArray[np.float64]

LN2 = math.log(2.0)


def distortion_matrix(distortion: ArrayLike, letters: int) -> FloatArray:
    """Checks and returns a (K, M) distortion matrix; inf marks a forbidden reproduction."""
    try:
        d = np.require(distortion, np.float64, ["C", "W"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"distortion: expected numbers in a regular array, got {distortion!r:.200}") from error
    if d.ndim != 2 or d.shape[0] != letters or d.shape[1] == 0:
        raise ValueError(f"distortion: expected shape ({letters}, M), a row per letter of pmf, got {d.shape}")
    bad = np.isnan(d) | (d < 0)
    if bad.any():
        x, y = np.argwhere(bad)[0]
        raise ValueError(f"distortion: entry ({x}, {y}) is {d[x, y]:g}, expected a number >= 0 or inf (forbidden)")
    return d


def blahut_arimoto(
    pmf: ArrayLike,
    distortion: ArrayLike,
    *,
    D: float | None = None,  # noqa: N803 - the field's symbol
    slope: float | None = None,
    tol: float = 1e-9,
) -> RDPoint:
    """The rate-distortion function of a discrete memoryless source at one distortion or slope.

    Args:
        pmf: (K,) law of a source letter; entries may be 0.
        distortion: (K, M) nonnegative; inf forbids a reproduction. Its rows need not contain a 0.
        D: mean distortion allowed, at least D_min = sum_x p(x) min_y d(x, y).
        slope: -dR/dD in bits per unit of distortion, at least 0; inf asks for R(D_min). Give D or slope.
        tol: largest `upper - lower`, in bits per letter.

    Returns:
        The point with `lower <= R(distortion) <= upper`; at a slope, `distortion` is where it was reached.

    Raises:
        ValueError: bad input; D below D_min; a bracket that stays wider than `tol`.

    Method: the dual of R(D) (Gallager 1968, theorem 9.4.1; Berger 1971, theorem 2.5.3) is solved by Blahut-Arimoto
    steps and Newton's method on the support of the output law, or by an interior-point method. The lower bound is
    the dual's value, the upper bound is the information of the returned channel.
    """
    _prepare, _solve = _solvers()
    if (D is None) == (slope is None):
        raise ValueError("D, slope: expected exactly one of them")
    if not (isinstance(tol, float) and 1e-13 <= tol <= 1.0):
        _checks.number("tol", tol, 1e-13, 1.0)
    if D is not None:
        target, steepness = _checks.number("D", D, 0.0), -1.0
    else:
        target, steepness = math.inf, _slope(slope)
    p: Any = pmf
    d: Any = distortion
    status = _prepare.UNCLEAN
    if _prepare.is_plain(p, d):
        lower, upper, reached, s, output, make_channel, status = _solve.solve(
            p, d, target, steepness, float(tol), checked=False
        )
    if status == _prepare.UNCLEAN:  # look at each entry by itself
        p = _checks.pmf("pmf", pmf)
        d = distortion_matrix(distortion, p.size)
        p = p / p.sum()
        lower, upper, reached, s, output, make_channel, status = _solve.solve(p, d, target, steepness, float(tol))
    if status:
        refuse(p, d, target, lower, upper, tol, status)
    return RDPoint(0.5 * (lower + upper), lower, upper, reached, s, output, make_channel)


@cache
def _solvers() -> tuple[Any, Any]:
    """The modules that Numba compiles, imported at the first call only: the statement itself takes a microsecond."""
    from envrate.rd import _prepare, _solve

    return _prepare, _solve


def _slope(value: Any) -> float:
    if isinstance(value, float) and value == math.inf:
        return value
    return _checks.number("slope", value, 0.0)


def refuse(p: FloatArray, d: FloatArray, target: float, lower: float, upper: float, tol: float, status: int) -> None:
    """Raises the error that `status` stands for."""
    _prepare, _ = _solvers()
    if status == _prepare.NO_REPRODUCTION:
        x = int(np.flatnonzero((p > 0) & np.isinf(d.min(axis=1)))[0])
        raise ValueError(f"distortion: row {x} is inf throughout, expected a finite entry in each row")
    if status == _prepare.BELOW_D_MIN:
        d_min = float(p @ np.where(p > 0, d.min(axis=1), 0.0))
        raise ValueError(f"D: {target:.12g} is below D_min = {d_min:.12g}, the least mean distortion of any channel")
    raise ValueError(
        f"tol: certified only to [{lower:.12g}, {upper:.12g}] bits, wider than tol={tol:g}; "
        "use a larger tol, or merge letters whose probabilities or distortions differ by rounding only"
    )
