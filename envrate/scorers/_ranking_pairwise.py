"""Bradley-Terry strengths from pairwise results, only where they exist."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks

FloatArray = NDArray[np.float64]

#: Elo points per unit of log-strength.
ELO = 400.0 / math.log(10.0)
Z95 = 1.959963984540054
MAX_ITERATIONS = 200


@dataclass(frozen=True)
class BradleyTerry:
    """Strengths with geometric mean 1, P(i beats j) = s_i / (s_i + s_j), and Elo points around a mean of 0."""

    names: tuple[str, ...]
    strength: FloatArray  # (n,)
    elo: FloatArray  # (n,) 400 log10 of the strength
    elo_low: FloatArray  # (n,) 95 %, from the observed information
    elo_high: FloatArray  # (n,)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        columns = (self.strength, self.elo, self.elo_low, self.elo_high)
        return {
            name: dict(zip(("strength", "elo", "elo_low", "elo_high"), row, strict=True))
            for name, row in zip(self.names, np.stack(columns, axis=1).tolist(), strict=True)
        }


def wins_matrix(results: Mapping[tuple[str, str], float]) -> tuple[tuple[str, ...], FloatArray]:
    """Names and (n, n) wins from a mapping (winner, loser) -> count."""
    names = tuple(sorted({name for pair in results for name in pair}))
    place = {name: k for k, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    for (winner, loser), count in results.items():
        wins[place[winner], place[loser]] += count
    return names, wins


def components(wins: ArrayLike) -> list[list[int]]:
    """Strongly connected components of the graph with an edge from i to j where i has beaten j."""
    from scipy.sparse.csgraph import connected_components

    matrix = _checks.finite_array("wins", wins, 2)
    count, member = connected_components(matrix > 0, directed=True, connection="strong")
    return [np.flatnonzero(member == k).tolist() for k in range(count)]


def bradley_terry(wins: ArrayLike, names: Sequence[str] | None = None) -> BradleyTerry:
    """Maximum-likelihood strengths of systems that met in pairs.

    Args:
        wins: (n, n) how often the row beat the column; a tie is half a win each.
        names: of the systems.

    Raises:
        ValueError: the graph of wins is not strongly connected: then some strengths are infinite or not comparable,
            whatever a program prints. The components are named.

    Source: Bradley and Terry 1952; condition of Ford 1957; Newton's method on the log-strengths.
    """
    w = _checks.finite_array("wins", wins, 2)
    n = len(w)
    if w.shape != (n, n) or n < 2 or (w < 0).any():
        raise ValueError(f"wins: expected a square matrix of at least 2 systems with counts >= 0, got shape {w.shape}")
    labels = tuple(str(k) for k in range(n)) if names is None else tuple(names)
    if len(labels) != n:
        raise ValueError(f"names: expected {n}, one per row of wins, got {len(labels)}")
    w = np.where(np.eye(n, dtype=bool), 0.0, w)
    parts = components(w)
    if len(parts) > 1:
        told = "; ".join("{" + ", ".join(labels[k] for k in part) + "}" for part in parts)
        raise ValueError(
            "wins: the graph of who beat whom is not strongly connected, so strengths across its components do not "
            f"exist; the components are {told}. Let systems of different components play until each has won and lost"
        )
    games, won = w + w.T, w.sum(axis=1)
    theta = np.zeros(n)
    for _ in range(MAX_ITERATIONS):
        p = 1.0 / (1.0 + np.exp(theta[None, :] - theta[:, None]))
        gradient = won - (games * p).sum(axis=1)
        information = _information(games, p)
        step = np.linalg.solve(information + np.full((n, n), 1.0 / n), gradient)
        size = float(np.abs(step).max())
        theta = theta + step * min(1.0, 2.0 / max(size, 1e-300))
        if size < 1e-12:
            break
    theta -= theta.mean()
    # On the space of sum 0 the information is invertible; its pseudo-inverse is the covariance.
    p = 1.0 / (1.0 + np.exp(theta[None, :] - theta[:, None]))
    spread = np.sqrt(np.diag(np.linalg.pinv(_information(games, p))))
    elo, half = ELO * theta, ELO * Z95 * spread
    return BradleyTerry(labels, np.exp(theta), elo, elo - half, elo + half)


def _information(games: FloatArray, p: FloatArray) -> FloatArray:
    """(n, n) observed information of the log-strengths, singular along (1, ..., 1)."""
    weight = games * p * (1.0 - p)
    return np.asarray(np.diag(weight.sum(axis=1)) - weight)
