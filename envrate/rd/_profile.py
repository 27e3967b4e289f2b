"""Credited rate: the smallest information that a profile of consequences proves, a vector of distortions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: A bracket that rounding keeps above `tol` is returned as it is up to this many times `tol`.
ROUNDING_ALLOWANCE = 100.0

LN2 = float(np.log(2.0))


@dataclass(frozen=True)
class ProfileRate:
    """Credited rates of a batch of profiles, bits per source letter: `lower <= R <= upper` is certified.

    `multipliers` span a lower plane: for every profile g, R(g) >= lower + multipliers . (frequencies - g).
    """

    rate: FloatArray  # (...)
    lower: FloatArray  # (...)
    upper: FloatArray  # (...)
    multipliers: FloatArray  # (..., C) bits per unit of frequency, >= 0


def class_matrix(classes: ArrayLike, num_symbols: int, num_classes: int) -> IntArray:
    """Checks and returns the (A, Y) matrix of class numbers, -1 for cells without a bound."""
    array = np.asarray(classes)
    if array.ndim != 2 or array.shape[0] != num_symbols or array.shape[1] == 0 or array.dtype.kind not in "iu":
        raise ValueError(
            f"classes: expected integers of shape ({num_symbols}, outcomes), a row per entry of pmf, "
            f"got {array.dtype} of shape {array.shape}"
        )
    if array.min() < -1 or array.max() >= num_classes:
        raise ValueError(
            f"classes: entries run from {array.min()} to {array.max()}, expected -1 (no bound) or a class below "
            f"{num_classes}, the length of the last axis of frequencies"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def profile_rate(pmf: ArrayLike, classes: ArrayLike, frequencies: ArrayLike, *, tol: float = 1e-9) -> ProfileRate:
    """The least mutual information between required symbols and outcomes that agrees with a profile.

    Minimises I(A; Y) over the channels from the required symbol to the outcome that keep every class of cells
    within its frequency:

        sum over cells (a, y) of class c of p(a) P(y | a)  <=  frequencies[c]

    A frequency of 0 forbids the cells of its class. The rate is exactly 0 where outcomes that do not look at the
    required symbol stay within the frequencies.

    Args:
        pmf: (A,) law of the required symbol; entries may be 0.
        classes: (A, Y) integers: the class of each cell (required, outcome), or -1 for a cell without a bound.
            A class may span rows and columns.
        frequencies: (..., C) joint frequency of each class, at least 0; leading axes are a batch.
        tol: largest `upper - lower`, in bits. In rare degenerate profiles rounding stops the iteration earlier:
            then the wider bracket is returned, up to 100 `tol`.

    Returns:
        Rates, bounds and multipliers with the batch's shape.

    Raises:
        ValueError: bad input; a profile that no channel meets; a profile whose bracket stays wider than that.

    Method: a primal-dual interior-point method on the dual with one multiplier per class. The lower bound is the
    dual's value at a feasible point (Gallager 1968, theorem 9.4.1; Berger 1971, theorem 2.5.3, with a vector of
    distortions), the upper bound is the information of a channel that meets the profile.
    """
    from envrate.rd import _profile_kernel

    p = _checks.pmf("pmf", pmf)
    f = _checks.finite_array("frequencies", frequencies)
    if f.ndim == 0:
        raise ValueError("frequencies: expected at least one axis, one number per class, got a number")
    cells = class_matrix(classes, p.size, f.shape[-1])
    _checks.number("tol", tol, 1e-12, 1.0)
    if (f < 0).any():
        where = np.argwhere(f < 0)[0].tolist()
        raise ValueError(f"frequencies: entry {where} is {f[tuple(where)]:g}, expected a frequency >= 0")
    shape = f.shape[:-1]
    batch = np.ascontiguousarray(f.reshape(-1, f.shape[-1]))
    lower, upper = np.empty(len(batch)), np.empty(len(batch))
    multipliers, status = np.empty(batch.shape), np.empty(len(batch), np.int64)
    _profile_kernel.solve_batch(p / p.sum(), cells, batch, tol * LN2, lower, upper, multipliers, status)
    for array in (lower, upper, multipliers):
        array /= LN2
    bad = np.flatnonzero((status != 0) & ~(upper <= lower + ROUNDING_ALLOWANCE * tol))
    bad = np.union1d(bad, np.flatnonzero(status == _profile_kernel.INFEASIBLE))
    if bad.size:
        where = f"frequencies: profile {list(map(int, np.unravel_index(bad[0], shape)))}" if shape else "frequencies"
        if status[bad[0]] == _profile_kernel.INFEASIBLE:
            raise ValueError(
                f"{where}: no channel meets the bounds {batch[bad[0]].tolist()}; a required symbol needs an outcome "
                "without a bound, or classes that leave room for its probability"
            )
        raise ValueError(
            f"{where}: certified only to [{lower[bad[0]]:.12g}, {upper[bad[0]]:.12g}] bits, wider than tol={tol:g}"
        )
    rate = np.where(lower == 0.0, 0.0, 0.5 * (lower + upper))
    return ProfileRate(
        rate.reshape(shape)[()], lower.reshape(shape)[()], upper.reshape(shape)[()], multipliers.reshape(f.shape)
    )
