"""The whole rate-distortion curve: certified points, bounds between them, and its inverse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate.rd._blahut_arimoto import distortion_matrix, refuse
from envrate.rd._types import Bracket

FloatArray = NDArray[np.float64]

#: Halvings that invert the curve: enough for the last bit of a double.
HALVINGS = 60


@dataclass(frozen=True)
class RDCurve:
    """R(D) from points with `lower <= R(distortion) <= upper`, in order of distortion.

    Between points the chord bounds R from above, as R is convex; from below it is bounded by the neighbouring chords
    drawn on, by the tangents at the points where their slopes are known, and by the next point's value. Beyond the
    last point R is taken to stay there.
    """

    distortion: FloatArray  # (N,) increasing, from D_min
    lower: FloatArray  # (N,)
    upper: FloatArray  # (N,)
    slope: FloatArray  # (N,) -dR/dD >= 0; inf at D_min where the curve starts upright, NaN where not known
    rate_unit: str = "bits/letter"
    distortion_unit: str = "per letter"

    def _interval(self, D: ArrayLike) -> tuple[FloatArray, NDArray[np.intp], FloatArray]:  # noqa: N803
        """D as an array, the interval each lies in, and the share of the way through it."""
        at = _checks.finite_array("D", D)
        if (at < self.distortion[0] * (1 - 1e-12)).any():
            raise ValueError(f"D: {at.min():.12g} is below D_min = {self.distortion[0]:.12g}")
        if len(self.distortion) == 1:
            return at, np.zeros(at.shape, np.intp), np.zeros(at.shape)
        left = np.clip(np.searchsorted(self.distortion, at, side="right") - 1, 0, len(self.distortion) - 2)
        width = self.distortion[left + 1] - self.distortion[left]
        return at, left, np.clip((at - self.distortion[left]) / width, 0.0, 1.0)

    def bounds(self, D: ArrayLike) -> tuple[FloatArray, FloatArray]:  # noqa: N803
        """Certified lower and upper bound on R at each D, shapes as D."""
        at, left, share = self._interval(D)
        right = np.minimum(left + 1, len(self.distortion) - 1)
        upper = (1 - share) * self.upper[left] + share * self.upper[right]
        lower = np.where(share == 0.0, self.lower[left], self.lower[right])
        for end in (left, right):
            slope = np.where(np.isfinite(self.slope[end]), self.slope[end], 0.0)
            known = np.isfinite(self.slope[end]) & (at <= self.distortion[-1])
            line = self.lower[end] - slope * (at - self.distortion[end])
            lower = np.where(known, np.maximum(lower, line), lower)
        for end, beyond in ((left, left - 1), (right, right + 1)):
            known = (beyond >= 0) & (beyond < len(self.distortion)) & (at <= self.distortion[-1])
            other = np.clip(beyond, 0, len(self.distortion) - 1)
            run = np.where(known, self.distortion[end] - self.distortion[other], 1.0)
            line = self.lower[end] + (self.lower[end] - self.upper[other]) / run * (at - self.distortion[end])
            lower = np.where(known, np.maximum(lower, line), lower)
        return np.minimum(lower, upper), upper

    def bracket(self, D: float) -> Bracket:  # noqa: N803
        """Certified bracket of R at one D."""
        lower, upper = self.bounds(D)
        return Bracket(float(lower), float(upper), method="chords and tangents")

    def rate(self, D: ArrayLike) -> FloatArray:  # noqa: N803
        """R at each D: cubic between points (Hermite, from the slopes), kept within the bounds."""
        at, left, t = self._interval(D)
        lower, upper = self.bounds(at)
        right = np.minimum(left + 1, len(self.distortion) - 1)
        width = self.distortion[right] - self.distortion[left]
        middle = 0.5 * (self.lower + self.upper)
        start, end = self.slope[left], self.slope[right]
        smooth = np.isfinite(start) & np.isfinite(end)
        start, end = np.where(smooth, start, 0.0), np.where(smooth, end, 0.0)
        cubic = (
            middle[left] * (1 + 2 * t) * (1 - t) ** 2
            + middle[right] * t**2 * (3 - 2 * t)
            - width * t * (1 - t) * ((1 - t) * start - t * end)
        )
        return np.asarray(np.clip(np.where(smooth, cubic, 0.5 * (lower + upper)), lower, upper))

    def distortion_at(self, rate: ArrayLike) -> FloatArray:
        """D(R), the least distortion at each rate: D_min from the largest rate on."""
        target = _checks.finite_array("rate", rate)
        if (target < 0).any():
            raise ValueError(f"rate: {target.min():g} is negative, expected a rate >= 0")
        low = np.full(target.shape, self.distortion[0])
        high = np.full(target.shape, self.distortion[-1])
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = self.rate(middle) > target
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        first = np.where(self.rate(self.distortion[0]) <= target, self.distortion[0], high)
        return np.asarray(first)

    def slope_at(self, D: ArrayLike) -> FloatArray:  # noqa: N803
        """-dR/dD at each D: between points linear in their slopes where known, else the chord's."""
        at, left, share = self._interval(D)
        right = np.minimum(left + 1, len(self.distortion) - 1)
        start, end = self.slope[left], self.slope[right]
        with np.errstate(invalid="ignore", divide="ignore"):
            chord = (self.upper[left] - self.upper[right]) / (self.distortion[right] - self.distortion[left])
            linear = np.where(share == 0.0, start, (1 - share) * start + share * end)
        smooth = np.isfinite(start) & np.isfinite(end) | (share == 0.0) & ~np.isnan(start)
        inside = at < self.distortion[-1]
        return np.asarray(np.where(inside, np.where(smooth, linear, chord), 0.0))

    def scaled(self, factor: float, *, rate_unit: str, distortion_unit: str | None = None) -> RDCurve:
        """The curve with rates times `factor`, such as ticks per second."""
        return replace(
            self,
            lower=self.lower * factor,
            upper=self.upper * factor,
            slope=self.slope * factor,
            rate_unit=rate_unit,
            distortion_unit=distortion_unit or self.distortion_unit,
        )

    def plot(self, path: str | Path | None = None, *, axes: Any = None) -> Any:
        """Draws R(D) with its bounds; writes a picture if given a path. Returns the matplotlib axes."""
        import matplotlib.figure

        if axes is None:
            figure = matplotlib.figure.Figure(figsize=(5.2, 3.6), layout="constrained")
            axes = figure.add_subplot()
        at = np.linspace(self.distortion[0], self.distortion[-1], 401)
        lower, upper = self.bounds(at)
        axes.fill_between(at, lower, upper, alpha=0.3, linewidth=0)
        axes.plot(at, self.rate(at))
        axes.set(xlabel=f"distortion ({self.distortion_unit})", ylabel=f"rate ({self.rate_unit})", ylim=(0, None))
        if path is not None:
            axes.figure.savefig(path, dpi=150)
        return axes


def curve(pmf: ArrayLike, distortion: ArrayLike, *, num: int = 65, tol: float = 1e-9) -> RDCurve:
    """R(D) of a discrete memoryless source from D_min to D_max, each point certified.

    Args:
        pmf: (K,) law of a source letter.
        distortion: (K, M) nonnegative; inf forbids a reproduction.
        num: points, denser towards both ends.
        tol: largest `upper - lower` at a point, in bits.

    Returns:
        The curve, bits per letter. Where no reproduction suits every letter, so that R never reaches 0, it ends at
        the distortion from which on R stays at its least.

    Raises:
        ValueError: bad input; a point whose bracket stays wider than `tol`.

    Method: from D_max down, each point starting Newton's method from its neighbour's output law and slope.
    """
    from envrate.rd import _solve

    p = _checks.pmf("pmf", pmf)
    p = p / p.sum()
    d = distortion_matrix(distortion, p.size)
    count = _checks.integer("num", num, 2)
    _checks.number("tol", tol, 1e-13, 1.0)
    bottom = _solve.solve(p, d, np.inf, np.inf, tol)
    if bottom.status:
        refuse(p, d, np.inf, bottom.lower, bottom.upper, tol, bottom.status)
    top = _solve.solve(p, d, np.inf, 0.0, tol)
    points = [top]
    if top.distortion > bottom.distortion and bottom.upper > 0.0:
        share = 0.5 * (1.0 + np.cos(np.pi * np.arange(1, count - 1) / (count - 1)))
        start = None
        for at in (bottom.distortion + (top.distortion - bottom.distortion) * share).tolist():
            point = _solve.solve(p, d, at, -1.0, tol, start)
            if point.status:
                refuse(p, d, at, point.lower, point.upper, tol, point.status)
            points.insert(0, point)
            start = (point.output, point.slope)
        points.insert(0, bottom)
    return RDCurve(
        np.array([point.distortion for point in points]),
        np.array([point.lower for point in points]),
        np.array([point.upper for point in points]),
        np.array([point.slope for point in points]),
    )
