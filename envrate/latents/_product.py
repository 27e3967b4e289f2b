"""Products of independent latents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate._spec import from_dict, tagged
from envrate.latents._gaussian_process import GaussianProcess
from envrate.latents._laws import MarkovChain

FloatArray = NDArray[np.float64]


def _kron(factors: list[FloatArray], unit: FloatArray) -> FloatArray:
    for factor in factors:
        unit = np.asarray(np.kron(unit, factor), dtype=np.float64)
    return unit


@tagged("law", "product")
@dataclass(frozen=True, init=False)
class Product:
    """Independent latents side by side, `Product(salience=chain, pitch=process)`.

    A product of chains is a chain over all combinations of states, the last part moving fastest. A product of
    Gaussian processes has the outputs of all, in order. Parts of both sorts may stand together: the value is then a
    vector that holds chain states as numbers, and only the chains can require a response.

    Args:
        parts: (name, law) pairs, or a dict; for laws that come from JSON.
        named: the parts by name.

    Raises:
        ValueError: fewer than two parts, or a part that is itself a product.
    """

    parts: tuple[tuple[str, Any], ...]

    def __init__(self, parts: Any = (), **named: Any) -> None:
        """Collects the parts; dicts of laws become their objects."""
        pairs = [*(parts.items() if isinstance(parts, dict) else parts), *named.items()]
        built = tuple((str(name), from_dict("law", law, f"parts.{name}")) for name, law in pairs)
        if len(built) < 2:
            raise ValueError(f"parts: expected at least two latents, got {len(built)}")
        if len({name for name, _ in built}) < len(built):
            raise ValueError(f"parts: expected different names, got {[name for name, _ in built]}")
        for name, law in built:
            if isinstance(law, Product):
                raise ValueError(f"parts.{name}: expected a chain or a Gaussian process, got a product; list its parts")
        object.__setattr__(self, "parts", built)

    def __getitem__(self, name: str) -> Any:
        """The part of that name."""
        return dict(self.parts)[name]

    @property
    def chains(self) -> tuple[MarkovChain, ...]:
        """Parts with finitely many states, in order."""
        return tuple(law for _, law in self.parts if not isinstance(law, GaussianProcess))

    @property
    def processes(self) -> tuple[GaussianProcess, ...]:
        """Gaussian parts, in order."""
        return tuple(law for _, law in self.parts if isinstance(law, GaussianProcess))

    @property
    def num_states(self) -> int:
        """K, the number of combinations of chain states; 1 where there is no chain."""
        return int(np.prod([law.num_states for law in self.chains], dtype=int))

    @property
    def num_outputs(self) -> int:
        """d, the number of Gaussian outputs."""
        return sum(law.num_outputs for law in self.processes)

    @cached_property
    def matrix(self) -> FloatArray:
        """(K, K) transition matrix of the combined chain."""
        return _kron([law.matrix for law in self.chains], np.ones((1, 1)))

    @cached_property
    def stationary(self) -> FloatArray:
        """(K,) stationary law of the combined chain."""
        return _kron([law.stationary for law in self.chains], np.ones(1))

    @property
    def initial(self) -> tuple[float, ...] | None:
        """(K,) law of the combined chain's first state, or None where every part starts stationary."""
        if all(law.initial is None for law in self.chains):
            return None
        starts = [law.stationary if law.initial is None else np.asarray(law.initial) for law in self.chains]
        return tuple(_kron(starts, np.ones(1)).tolist())

    @property
    def transition(self) -> tuple[tuple[float, ...], ...]:
        """(K, K) transition matrix of the combined chain, as nested tuples."""
        return tuple(tuple(row) for row in self.matrix.tolist())

    @property
    def is_memoryless(self) -> bool:
        """Whether every part is drawn afresh at each tick."""
        return all(law.is_memoryless for _, law in self.parts)

    @cached_property
    def output_covariance(self) -> FloatArray:
        """(d, d) covariance of the Gaussian outputs."""
        out, at = np.zeros((self.num_outputs, self.num_outputs)), 0
        for law in self.processes:
            out[at : at + law.num_outputs, at : at + law.num_outputs] = law.output_covariance
            at += law.num_outputs
        return out

    def at_tick(self, tick_ms: int) -> Product:
        """The law from tick to tick, part by part."""
        return Product(tuple((name, law.at_tick(tick_ms)) for name, law in self.parts))
