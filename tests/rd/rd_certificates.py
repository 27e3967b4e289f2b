"""Independent evaluation in NumPy of both bounds on R(D), and random problems; shared by the tests of rd."""

from __future__ import annotations

from typing import Any

import numpy as np


def bounds(pmf: Any, distortion: Any, point: Any) -> tuple[float, float, float]:
    """Lower bound from (output, slope), upper bound and mean distortion from the channel; bits.

    Lower: -sum p log r - log max c - s D with r = A q, c = A'(p / r) (Gallager 1968, theorem 9.4.1), the best over q
    mixed with a little of the uniform law. Upper: the mutual information of the channel.
    """
    p = np.asarray(pmf, float)
    live = p > 0
    p, d = p[live] / p[live].sum(), np.asarray(distortion, float)[live]
    nearest = d.min(axis=1, keepdims=True)
    if np.isinf(point.slope):
        kernel = (d == nearest).astype(float)
        line = 0.0
    else:
        kernel = np.where(np.isinf(d), 0.0, np.exp2(-point.slope * (np.where(np.isinf(d), 0.0, d - nearest))))
        line = point.slope * (point.distortion - float(p @ nearest[:, 0]))
    lower = -np.inf
    for share in (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9):
        q = (1 - share) * point.output / point.output.sum() + share / len(point.output)
        r = kernel @ q
        if (r > 0).all():
            lower = max(lower, float(-(p @ np.log2(r)) - np.log2(((p / r) @ kernel).max()) - line))
    joint = p[:, None] * point.channel[live]
    used = joint > 0
    law = joint.sum(axis=0)
    x, y = np.nonzero(used)
    information = float((joint[used] * (np.log2(joint[used]) - np.log2(p[x]) - np.log2(law[y]))).sum())
    return lower, information, float((joint[used] * d[used]).sum())


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """pmf, distortion and a D: 2 to 64 letters, rectangular, ties, duplicated columns, forbidden cells, scales from
    1e-6 to 1e6, probabilities of 0 and 1e-15, and D at and near both ends."""
    rng = np.random.default_rng(seed)
    n, m = (int(k) for k in rng.integers(2, 65 if rng.random() < 0.6 else 10, 2))
    grid = np.abs(np.arange(n)[:, None] / n - np.arange(m) / m)
    d = [
        lambda: rng.random((n, m)),
        lambda: (rng.random((n, 1)) - rng.random((1, m))) ** 2,
        lambda: rng.integers(0, 4, (n, m)).astype(float),
        lambda: rng.exponential(1, (n, m)) ** 3,
        lambda: np.where(rng.random((n, m)) < 0.5, 0.0, rng.random((n, m))),
        lambda: grid,
    ][rng.integers(6)]()
    if rng.random() < 0.25:
        forbidden = rng.random((n, m)) < 0.3
        forbidden[np.arange(n), rng.integers(0, m, n)] = False
        d[forbidden] = np.inf
    if rng.random() < 0.3:
        d = np.hstack([d, d[:, rng.integers(0, m, 2)]])
    d = d * 10.0 ** rng.uniform(-6, 6)
    p = rng.dirichlet(np.full(n, rng.choice([0.1, 1.0, 10.0])))
    tail = rng.integers(4)
    if tail == 0:
        p[rng.integers(n)] = 1e-15
    elif tail == 1:
        p[rng.random(n) < 0.3] = 0.0
    elif tail == 2:
        p = np.exp(-np.linspace(0, rng.uniform(1, 35), n))
    if not p.sum() > 0:
        p[0] = 1.0
    p /= p.sum()
    live = p > 0
    d_min = float(p[live] @ d[live].min(axis=1))
    d_max = float((p[live] @ d[live]).min())
    if np.isinf(d_max):
        d_max = d_min + float(d[np.isfinite(d)].mean())
    u = rng.choice([rng.random(), 0.01 * rng.random(), 0.0, 1 - 1e-6 * rng.random(), 1 - 0.1 * rng.random()])
    return p, d, d_min + (d_max - d_min) * float(u)
