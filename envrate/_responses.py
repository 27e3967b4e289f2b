"""What a latent requires: a symbol per state, a symbol per interval of a value, or the value itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envrate import _checks
from envrate._spec import from_dict, tagged
from envrate.latents import ContinuousMarkovChain, GaussianProcess, MarkovChain, Product

FloatArray = NDArray[np.float64]
Law = MarkovChain | ContinuousMarkovChain | GaussianProcess | Product

#: The response that asks for the value itself.
TRACK = "track"


@tagged("response", "threshold")
@dataclass(frozen=True)
class Threshold:
    """A symbol per interval of one output of a Gaussian process, as in "alert when |z| > 2".

    Args:
        edges: (E,) ascending; interval i holds the values with edges[i-1] <= z < edges[i].
        symbols: (E + 1,) the response required in each interval; 0 is null.
        output: which output of the process is read.
    """

    edges: tuple[float, ...]
    symbols: tuple[int, ...]
    output: int = 0

    def __post_init__(self) -> None:
        """Checks the edges and the symbols."""
        edges = _checks.finite_array("response.edges", self.edges, 1)
        if not edges.size or (np.diff(edges) <= 0).any():
            raise ValueError(f"response.edges: expected ascending numbers, got {edges.tolist()}")
        object.__setattr__(self, "edges", tuple(edges.tolist()))
        symbols = tuple(_checks.integer("response.symbols", symbol, 0) for symbol in self.symbols)
        if len(symbols) != len(edges) + 1:
            raise ValueError(f"response.symbols: expected {len(edges) + 1}, one per interval, got {len(symbols)}")
        object.__setattr__(self, "symbols", symbols)
        object.__setattr__(self, "output", _checks.integer("response.output", self.output, 0))

    def intervals(self, values: ArrayLike) -> NDArray[np.int64]:
        """Index of the interval of each value, same shape."""
        return np.searchsorted(np.asarray(self.edges), np.asarray(values), side="right").astype(np.int64)


def checked(law: Law, response: Any) -> tuple[int, ...] | Threshold | str:
    """The response in its stored form; raises ValueError where it does not fit the law."""
    gaussian = getattr(law, "num_outputs", 0)
    if isinstance(response, str):
        _checks.choice("response", response, (TRACK,))
        if isinstance(law, Product) and law.chains or not gaussian:
            raise ValueError("response: 'track' expected a latent of Gaussian processes only; give a symbol per state")
        return TRACK
    if isinstance(response, (Threshold, dict)):
        threshold: Threshold = from_dict("response", response)
        if not isinstance(law, GaussianProcess):
            raise ValueError("response: a Threshold expected a GaussianProcess latent")
        if threshold.output >= gaussian:
            raise ValueError(f"response.output: expected 0 ... {gaussian - 1}, got {threshold.output}")
        if threshold.symbols and max(threshold.symbols) < 1:
            raise ValueError("response: every interval requires 0 (do nothing); expected at least one response above 0")
        return threshold
    if isinstance(law, GaussianProcess) or (isinstance(law, Product) and not law.chains):
        raise ValueError(f"response: a Gaussian process expected 'track' or a Threshold, got {response!r:.100}")
    symbols = tuple(_checks.integer("response", symbol, 0) for symbol in response)
    if len(symbols) != law.num_states:
        raise ValueError(f"response: expected {law.num_states} symbols, one per latent state, got {len(symbols)}")
    if max(symbols) < 1:
        raise ValueError("response: every state requires 0 (do nothing); expected at least one response above 0")
    return symbols


def table(response: tuple[int, ...] | Threshold | str) -> tuple[int, ...]:
    """One symbol per letter: per state, per interval, or a single null where the value itself is asked for."""
    if isinstance(response, str):
        return (0,)
    return response.symbols if isinstance(response, Threshold) else response


def letter_pmf(law: Law, response: tuple[int, ...] | Threshold | str) -> FloatArray:
    """(L,) stationary law of the letters of `table`."""
    if isinstance(response, str):
        return np.ones(1)
    if isinstance(response, Threshold):
        from scipy.special import ndtr

        sd = float(np.sqrt(law.output_covariance[response.output, response.output]))  # type: ignore[union-attr]
        cdf = np.concatenate([[0.0], ndtr(np.asarray(response.edges) / sd), [1.0]])
        return np.asarray(np.diff(cdf))
    return np.asarray(law.stationary)  # type: ignore[union-attr]
