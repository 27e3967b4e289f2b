"""Consequences and their classes: what the credited throughput bounds.

A cell is a pair (required symbol, outcome). A cell is handled (right response, or silence where null was required) or
belongs to one class: miss(a), wrong(a), over, and in the resolved reading e(a), not known in time. Cells of one
class are split where their severities differ; exchangeable symbols share their classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Class number of a cell that nothing bounds.
HANDLED = -1


@dataclass(frozen=True)
class Profile:
    """The classes of a source in one reading, and the frequencies that a run puts on them.

    Outcomes have Y = A columns (0 silence, then responses), and a last one, e, in the resolved reading. What a run
    gives is a table of A + 2 columns: silence, responses 1 ... A-1, "wrong, unknown which", e.
    """

    pmf: FloatArray  # (A,) law of the required symbol
    matrix: IntArray  # (A, Y) class of each cell, -1 handled
    names: tuple[str, ...]  # (C,)
    severities: FloatArray  # (C,) severity of one tick of each class; 0 for e, which is a silence elsewhere
    unknown: IntArray  # (A,) class of "wrong, unknown which"
    resolved: bool

    @property
    def num_classes(self) -> int:
        """C, the number of classes."""
        return len(self.names)

    @cached_property
    def cells(self) -> FloatArray:
        """(A, A + 2, C) 1 where a cell of a run's table belongs to a class; the column e is empty."""
        size = len(self.pmf)
        table = np.zeros((size, size + 2, self.num_classes))
        for a in range(size):
            for column in range(size):
                if self.matrix[a, column] != HANDLED:
                    table[a, column, self.matrix[a, column]] = 1.0
            table[a, size, self.unknown[a]] = 1.0
        return table

    @cached_property
    def mass(self) -> FloatArray:
        """(C,) probability of the required symbols that a class has cells of."""
        touched = np.asarray(self.cells.any(axis=1))  # (A, C)
        if self.resolved:
            touched[np.arange(len(self.pmf)), self.matrix[:, -1]] = True
        return np.asarray(self.pmf @ touched)

    @cached_property
    def common(self) -> NDArray[np.bool_]:
        """(C,) the classes e(a), bounded in common."""
        found = np.zeros(self.num_classes, dtype=bool)
        if self.resolved:
            found[self.matrix[:, -1]] = True
        return found

    def frequencies(self, conditional: FloatArray) -> FloatArray:
        """(..., C) joint frequency of each class: the law's pmf outside, conditional frequencies inside.

        Args:
            conditional: (..., A, A + 2) frequency of each column given the required symbol. A symbol of probability 0
                may hold NaN.
        """
        possible = self.pmf > 0
        given = np.where(possible[:, None], conditional, 0.0)
        weights = (self.pmf[:, None, None] * self.cells).reshape(-1, self.num_classes)
        bounds = given.reshape(*given.shape[:-2], -1) @ weights
        if self.resolved:
            worst = given[..., -1].max(axis=-1)  # an agent may not signal by choosing what it does not know
            bounds = bounds + worst[..., None] * np.where(self.common, self.mass, 0.0)
        return np.asarray(bounds)

    def merged(self) -> Profile:
        """The source with all responses merged into one, "alert": detection."""
        silent = float(self.pmf[0])
        matrix = np.array([[HANDLED, 1, 2], [0, HANDLED, 3]] if self.resolved else [[HANDLED, 1], [0, HANDLED]])
        names = ("miss", "over", "e(0)", "e(alert)")[: 4 if self.resolved else 2]
        pmf = np.array([silent, 1.0 - silent])
        severities = np.array([1.0, 1.0, 0.0, 0.0][: len(names)])
        return Profile(pmf, matrix, names, severities, np.array([1, 0]), self.resolved)

    def merge(self, conditional: FloatArray) -> FloatArray:
        """(..., 2, 4) the table of the merged source.

        The column e is the largest one of the whole table for both rows, so that merging only ever takes
        information away: detection never exceeds the whole.
        """
        size = len(self.pmf)
        given = np.where((self.pmf > 0)[:, None], conditional, 0.0)
        out = np.zeros((*given.shape[:-2], 2, 4))
        alert = max(1.0 - float(self.pmf[0]), np.finfo(float).tiny)
        out[..., 1, 0] = given[..., 1:, 0] @ self.pmf[1:] / alert
        out[..., 0, 1] = given[..., 0, 1 : size + 1].sum(axis=-1)
        out[..., 3] = given[..., -1].max(axis=-1)[..., None]
        return out


def profile(
    pmf: Sequence[float] | FloatArray,
    distortion: FloatArray | None = None,
    exchangeable: Sequence[Sequence[int]] = (),
    *,
    resolved: bool = False,
) -> Profile:
    """The classes of a source.

    Args:
        pmf: (A,) law of the required symbol, null first.
        distortion: (A, A) severity of each (required, outcome); None weighs every failure alike.
        exchangeable: groups of responses that are pooled, such as the options of a multiple-choice question.
        resolved: whether outcomes include e, not known in time.
    """
    law = np.asarray(pmf, dtype=np.float64)
    size = len(law)
    weight = np.ones((size, size)) if distortion is None else distortion
    group = {a: (min(members), members) for members in exchangeable for a in members}
    label = [
        "|".join(str(b) for b in sorted(group[a][1])) if a in group and len(group[a][1]) > 1 else str(a)
        for a in range(size)
    ]
    numbers: dict[tuple[str, str, float], int] = {}

    def number(kind: str, of: str, severity: float) -> int:
        return numbers.setdefault((kind, of, float(severity)), len(numbers))

    matrix = np.full((size, size + resolved), HANDLED, dtype=np.int64)
    unknown = np.empty(size, dtype=np.int64)
    for a in range(size):
        for y in range(size):
            if y != a:
                kind = "miss" if y == 0 else "over" if a == 0 else "wrong"
                matrix[a, y] = number(kind, "" if a == 0 else label[a], weight[a, y])
        if resolved:
            matrix[a, size] = number("e", label[a], 0.0)
        # "Wrong, unknown which" counts as the worst wrong response; with two symbols only, as no response.
        others = [y for y in range(1, size) if y != a] or [0]
        unknown[a] = matrix[a, max(others, key=lambda y: weight[a, y])]
    severities = np.array([0.0 if kind == "e" else weight for kind, _, weight in numbers])
    return Profile(law, matrix, _class_names(list(numbers)), severities, unknown, resolved)


def _class_names(keys: list[tuple[str, str, float]]) -> tuple[str, ...]:
    """miss(2), wrong(1|2) or over; with the severity where one consequence is split."""
    pairs = [(kind, of) for kind, of, _ in keys]
    return tuple(
        (f"{kind}({of})" if of else kind) + (f" at {severity:g}" if pairs.count((kind, of)) > 1 else "")
        for kind, of, severity in keys
    )
