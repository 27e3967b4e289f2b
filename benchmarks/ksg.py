"""KSG mutual information against scikit-learn: the same sample, the same k, time and value side by side.

Run: python benchmarks/ksg.py
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from envrate.rd import estimators


def best_of(function: Callable[[], float], repeats: int) -> tuple[float, float]:
    """Least CPU time in seconds of a few runs, and the value."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        value = function()
        times.append(time.process_time() - start)
    return min(times), value


def main() -> None:
    import sklearn
    from sklearn.feature_selection import mutual_info_regression

    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"numpy {np.__version__}, scikit-learn {sklearn.__version__}; one thread, CPU time, least of 9 runs, k = 3")
    print(f"{'N':>7} {'rho':>5} {'true':>8} {'ours':>8} {'sklearn':>8} {'ours ms':>9} {'sklearn ms':>11} {'ratio':>6}")
    for n in (1_000, 10_000, 100_000):
        for rho in (0.0, 0.9):
            rng = np.random.default_rng(0)
            x, e = rng.normal(size=(2, n))
            y = rho * x + math.sqrt(1 - rho * rho) * e
            ours = lambda x=x, y=y: estimators.ksg(x, y, k=3).value * math.log(2)  # noqa: E731
            theirs = lambda x=x, y=y: float(  # noqa: E731
                mutual_info_regression(x[:, None], y, n_neighbors=3, discrete_features=False, n_jobs=1)[0]
            )
            ours()  # compiles
            repeats = 9 if n < 100_000 else 3
            t1, v1 = best_of(ours, repeats)
            t2, v2 = best_of(theirs, repeats)
            true = -0.5 * math.log(1 - rho * rho)
            print(f"{n:7d} {rho:5.1f} {true:8.4f} {v1:8.4f} {v2:8.4f} {t1 * 1e3:9.2f} {t2 * 1e3:11.2f} {t2 / t1:6.1f}")


if __name__ == "__main__":
    main()
