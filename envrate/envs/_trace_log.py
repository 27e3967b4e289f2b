"""What a stepped environment keeps for its trace: a few numbers per step, in arrays that double when full."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from envrate.channels import Link
from envrate.envs import _record
from envrate.envs._core import Core, Record

Array = NDArray[Any]
#: Steps that the arrays hold at first.
FIRST = 256


class TraceLog:
    """Records of the running episode, and the tables of those before it."""

    def __init__(self) -> None:
        """Empty."""
        self.duration_ms = 0
        self._parts: list[tuple[dict[str, Array], ...]] = []
        self._rows: list[Array] = []  # one (capacity, ...) array per leaf of a record
        self._structure: Any = None
        self._count = 0
        self._first_z: Any = None

    def begin(self, z: Any) -> None:
        """A new episode whose latent starts at `z`."""
        self._first_z, self._count = z, 0

    def add(self, record: Record) -> None:
        """One step."""
        leaves, self._structure = jax.tree.flatten(record)
        if not self._rows:
            self._rows = [np.empty((FIRST, *leaf.shape), leaf.dtype) for leaf in leaves]
        if self._count == len(self._rows[0]):
            self._rows = [np.concatenate([rows, np.empty_like(rows)]) for rows in self._rows]
        for rows, leaf in zip(self._rows, leaves, strict=True):
            rows[self._count] = leaf
        self._count += 1

    def part(self, core: Core, link: Link, arrivals: tuple[Any, Any], steps: int) -> tuple[dict[str, Array], ...]:
        """The tables of the running episode."""
        record = jax.tree.unflatten(self._structure, [rows[:steps] for rows in self._rows])
        batched = jax.tree.map(lambda leaf: leaf[..., None], (tuple(record), self._first_z, arrivals))
        columns = _record.Steps(*batched[0], batched[1], *batched[2])  # type: ignore[call-arg]  # a record's fields, in order
        return _record.tables(core, columns, uplink_ms=link.uplink_ms, first_episode=len(self._parts))

    def end(self, core: Core, link: Link, arrivals: tuple[Any, Any], steps: int) -> None:
        """The running episode is over, whole or not."""
        self._parts.append(self.part(core, link, arrivals, steps))
        self.duration_ms += steps * core.clock.turn_ms
        self._count = 0

    def finished(self) -> list[tuple[dict[str, Array], ...]]:
        """Tables of the episodes before the running one."""
        return list(self._parts)
