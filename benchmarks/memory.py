"""Sources with memory: time and certified width of entropy rates, block rates and brackets of R(D).

Run: python benchmarks/memory.py
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from envrate import rd

HAMMING = 1.0 - np.eye(2)

HIDDEN = {
    "BSMS(.3) through BSC(.1)": ([[0.7, 0.3], [0.3, 0.7]], [[0.9, 0.1], [0.1, 0.9]]),
    "BSMS(.1) through BSC(.1)": ([[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.1, 0.9]]),
    "BSMS(.25) through BSC(.2)": ([[0.75, 0.25], [0.25, 0.75]], [[0.8, 0.2], [0.2, 0.8]]),
    "Gilbert-Elliott": ([[0.95, 0.05], [0.2, 0.8]], [[0.99, 0.01], [0.7, 0.3]]),
}


def timed(function: Callable[[], rd.Bracket], repeats: int = 5) -> tuple[float, rd.Bracket]:
    """Least CPU time in seconds after one run that compiles, and the bracket."""
    found = function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        found = function()
        times.append(time.process_time() - start)
    return min(times), found


def row(name: str, seconds: float, bracket: rd.Bracket) -> None:
    print(f"{name:36} {seconds * 1e3:9.2f} {bracket.lower:16.12f} {bracket.width:9.1e}")


def sticky(p: float) -> list[list[float]]:
    return [[1 - p, p], [p, 1 - p]]


def main() -> None:
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    print(f"{machine}, Python {platform.python_version()}, numpy {np.__version__}; CPU time")
    print(f"{'':36} {'ms':>9} {'lower, bits':>16} {'width':>9}")
    for name, (p, e) in HIDDEN.items():
        row(f"entropy rate, {name}"[:36], *timed(lambda p=p, e=e: rd.hidden_markov_entropy_rate(p, e)))
    for p, d in ((0.25, 0.05), (0.25, 0.1), (0.25, 0.25), (0.1, 0.05), (0.1, 0.2)):
        for n in (4, 10):
            rate = lambda p=p, d=d, n=n: rd.block_rate(sticky(p), [0, 1], HAMMING, d, n)  # noqa: E731
            row(f"R_{n}, chain p = {p}, D = {d}", *timed(rate, 3))
    for p, d in ((0.25, 0.05), (0.1, 0.1)):
        row(f"R(D), chain p = {p}, D = {d}", *timed(lambda p=p, d=d: rd.markov(sticky(p), [0, 1], HAMMING, d), 1))
    classes = np.array([[-1, 0, 0], [1, -1, 2], [3, 4, -1]])
    f = np.random.default_rng(0).uniform(0.0, 0.05, size=(2000, 21, 5))

    def bootstrap() -> rd.Bracket:
        lower = rd.MarkovProfile(sticky(0.1), [1, 2], classes).lower(f)
        return rd.Bracket(float(lower.min()), float(lower.max()))

    row("42000 profiles, chain p = 0.1", *timed(bootstrap, 1))


if __name__ == "__main__":
    main()
