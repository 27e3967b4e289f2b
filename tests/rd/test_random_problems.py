"""Random problems: every one certified to 1e-9 or refused with a reason, and both bounds hold when evaluated anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rd_certificates import bounds, random_problem

from envrate import rd


def random_grid_problem(seed):
    """A difference distortion on a grid, square or not; sources with light, heavy or empty tails."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 200) if seed % 4 else rng.integers(200, 460))  # from 200 letters on by a coarser grid
    x = np.linspace(-1, 1, n) * rng.uniform(1, 14)
    densities = (
        np.exp(-x * x / 2),
        np.exp(-abs(x)),
        rng.random(n),
        np.exp(-((x + 1.2) ** 2) / 0.6) + 0.5 * np.exp(-((x - 1.5) ** 2) / 0.2),
        np.ones(n),
        rng.random(n) ** 8,
        np.where(rng.random(n) < 0.1, 1.0, 1e-9),
    )
    pmf = densities[rng.integers(7)]
    pmf = pmf / pmf.sum()
    y = x if rng.random() < 0.6 else x[int(rng.integers(0, n // 4)) : n - int(rng.integers(1, n // 4))]
    distortion = abs(x[:, None] - y) ** rng.choice([2.0, 1.0, 3.0, 0.5])
    d_min, d_max = float(pmf @ distortion.min(axis=1)), float((pmf @ distortion).min())
    return pmf / pmf.sum(), distortion, d_min + (d_max - d_min) * rng.choice([0.001, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9])


def check(seed: int, draw=random_problem) -> bool:
    """Whether the problem of this seed was certified; False if it was refused with a bracket that is in order."""
    pmf, distortion, D = draw(seed)
    try:
        point = rd.blahut_arimoto(pmf, distortion, D=D)
    except ValueError as error:
        assert "certified only to" in str(error), (seed, error)
        return False
    scale = max(1.0, point.slope * D) if np.isfinite(point.slope) else 1.0
    lower, information, mean = bounds(pmf, distortion, point)
    assert 0 <= point.lower <= point.rate <= point.upper <= point.lower + 1e-9, seed
    assert information <= point.upper + 1e-11, seed
    assert mean <= D * (1 + 1e-11) + 1e-300, seed
    assert point.lower <= max(lower, 0.0) + 2e-11 * scale, seed
    assert point.lower <= information + 1e-11, seed
    return True


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_random_problem(seed):
    assert check(seed)


def test_two_thousand_problems_are_all_certified():
    refused = [seed for seed in range(2000) if not check(seed)]
    assert not refused


def test_difference_distortions_on_grids_are_all_certified():
    refused = [seed for seed in range(400) if not check(seed, random_grid_problem)]
    assert not refused


@pytest.mark.nightly
def test_twenty_thousand_problems_are_certified_or_refused():
    refused = [seed for seed in range(2000, 22_000) if not check(seed)]
    assert len(refused) <= 2, refused


@pytest.mark.nightly
def test_four_thousand_difference_distortions_are_certified_or_refused():
    refused = [seed for seed in range(400, 4400) if not check(seed, random_grid_problem)]
    assert len(refused) <= 2, refused
