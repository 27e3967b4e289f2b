"""The slope at which a solution has a given distortion, and rates between points by convexity."""

from __future__ import annotations

import math

#: Distortion over slope, both as ratios on the log scale, beyond which the distortion is taken to jump.
JUMP = 60.0


class SlopeSearch:
    """Secant steps in (log slope, log distortion), kept inside a bracket. Final.

    Args:
        slope: the first slope to try, > 0.
        target: distortion to reach, > 0.
    """

    def __init__(self, slope: float, target: float) -> None:
        """Starts with nothing known but that distortion falls as the slope grows."""
        self.slope = slope
        self._target = target
        self._low, self._high = 0.0, math.inf
        self._last: tuple[float, float] | None = None
        self._above, self._below = math.inf, 0.0  # distortions at the ends of the bracket

    def move(self, distortion: float, chord: float = math.nan) -> bool:
        """Takes the distortion at the current slope and moves on; False when there is nowhere to go.

        Where the distortion jumps between two near slopes, R has a straight piece there: the next slope is that of
        the chord between the points on both sides, where their tangents meet.
        """
        if abs(distortion - self._target) <= 1e-12 * self._target:
            return False
        if distortion > self._target:
            self._low, self._above = self.slope, distortion
        else:
            self._high, self._below = self.slope, max(distortion, 1e-300)
        if self._high - self._low <= 1e-12 * self._low:
            return False
        now = (math.log(self.slope), math.log(max(distortion, 1e-300) / self._target))
        guess = math.nan
        if self._last is not None and now[1] != self._last[1]:
            change = -now[1] * (now[0] - self._last[0]) / (now[1] - self._last[1])
            guess = self.slope * math.exp(change) if abs(change) < 2.0 else math.nan
        self._last = now
        if self._low < chord < self._high and self._above / self._below > (self._high / self._low) ** JUMP:
            guess = chord
        if not self._low < guess < self._high or not 0.2 < guess / self.slope < 5.0:
            if math.isinf(self._high):
                guess = self.slope * min(2.0, max(1.05, 1.0 + 0.7 * now[1]))
            elif self._low == 0.0:
                guess = self.slope / min(2.0, max(1.05, 1.0 - 0.7 * now[1]))
            else:
                guess = 0.5 * (self._low + self._high)
        self.slope = guess
        return True


class Chords:
    """The least rate at a distortion that chords between reached points (distortion, rate) show. Final."""

    def __init__(self, target: float) -> None:
        """Starts with no point, so that `best` is infinite."""
        self.best = math.inf
        self._target = target
        self._points: list[tuple[float, float]] = []

    @property
    def slope(self) -> float:
        """Of the chord over the target between the nearest points on both sides, NaN without them."""
        left = [point for point in self._points if point[0] < self._target]
        right = [point for point in self._points if point[0] > self._target]
        if not left or not right:
            return math.nan
        (d1, r1), (d2, r2) = max(left), min(right)
        return (r1 - r2) / (d2 - d1)

    def add(self, distortion: float, rate: float) -> None:
        """Adds a point: time sharing with every point on the other side of the target is possible too."""
        if not math.isfinite(rate):
            return
        if distortion <= self._target:
            self.best = min(self.best, rate)
        for other, its_rate in self._points:
            (d1, r1), (d2, r2) = sorted([(distortion, rate), (other, its_rate)])
            if d1 <= self._target < d2:
                self.best = min(self.best, r1 + (r2 - r1) * (self._target - d1) / (d2 - d1))
        self._points.append((distortion, rate))
