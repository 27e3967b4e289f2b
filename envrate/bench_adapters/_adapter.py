"""The interface that makes another benchmark's run a Trace. docs/adapters.md explains it with a template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from envrate.trace import Trace

#: What a cell of a score table holds; None is a number that could not be had.
Cell = str | int | float | None


@dataclass(frozen=True)
class Recognition:
    """What an adapter takes a path for.

    Args:
        kind: the format's short name, such as "evalscope"; `load(path, kind=...)` and `--kind` take it, and the
            adapter's own name.
        description: what was found, in words: "EvalScope 1.14.1 work folder, TVBench, model m, 10 subsets".
        confidence: 0 to 1; the surest adapter gets the path. 1 is a mark that only this format has, 0.5 a file
            that merely has the right keys.
        runs: the paths that hold one run each, where `path` is a folder of several; empty means `path` itself.
        refusal: why this path is not read although it looks like one of ours (a foreign project of the same name, a
            run that cannot be scored); None to go on.
    """

    kind: str
    description: str
    confidence: float = 1.0
    runs: tuple[Path, ...] = ()
    refusal: str | None = None

    def __post_init__(self) -> None:
        """Checks the confidence."""
        if not 0.0 < self.confidence <= 1.0:
            raise ValueError(f"Recognition.confidence: expected a number in (0, 1], got {self.confidence!r}")


@dataclass(frozen=True)
class ScoreTable:
    """A benchmark's own numbers, kept beside the bits as a cross-check.

    Args:
        title: for the head of the table.
        columns: names of the columns; the first names the group of items.
        rows: one per group, as long as `columns`.
        values: the overall figures by name, such as {"accuracy": 0.6957, "macro accuracy": 0.7}.
        main: the key in `values` by which this benchmark ranks systems.
        notes: what a reader has to know about these numbers.
        split: the set of items that was scored, where the benchmark names its sets.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    values: Mapping[str, float | None] = field(default_factory=dict)
    main: str = "accuracy"
    notes: tuple[str, ...] = ()
    split: str | None = None

    def __post_init__(self) -> None:
        """Checks that the rows are as long as the heading."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"ScoreTable.rows: expected {len(self.columns)} cells, got {row!r:.200}")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: rows become objects keyed by column."""
        return {
            "title": self.title,
            "main": self.main,
            "values": dict(self.values),
            "groups": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "split": self.split,
            "notes": list(self.notes),
        }


# `*args` in the two methods below is for type checkers only: with it, a method of other keywords still conforms.
@runtime_checkable
class Adapter(Protocol):
    """Reads the runs of one benchmark. Registered through the entry-point group `envrate.adapters`.

    Contract: a tick's required symbol comes from the benchmark's key, its responses from what the system emitted and
    from public data, and from nothing else. Never match an emission to an event by the truth, never drop an item
    because its answer is wrong or absent. `check_adapter` tests this with emissions moved between items.
    """

    @property
    def name(self) -> str:
        """The benchmark's short name, as `kind` and in tables."""
        ...

    def recognise(self, path: Path) -> Recognition | None:
        """What `path` (an existing file or folder) holds, or None. Reads a few lines, never the whole run.

        Raises nothing: a path that cannot be read is not recognised.
        """
        ...

    def load(self, path: Path, *args: Any, **options: Any) -> Trace:
        """The run as a trace with `demand.kind == "nominal"` and balanced strata.

        Name every option as a keyword-only argument with a default: a caller's option that the signature lacks is
        refused with the names that it has. `kind` among them gets the format the path was taken for.

        Raises:
            ValueError: an unreadable or empty run; the message says what was expected and what to do. A damaged line
                does not raise: it is left out, counted, and named in `trace.report` or `header.notes`.
        """
        ...


@runtime_checkable
class ScoresItself(Protocol):
    """An adapter that also gives the benchmark's own numbers."""

    def scores(self, path: Path, *args: Any, **options: Any) -> ScoreTable:
        """The benchmark's own arithmetic on the run at `path`, rounding included; options as in `load`."""
        ...


@runtime_checkable
class Publishes(Protocol):
    """An adapter that carries published results for `envrate score --against published`."""

    def published(self, split: str | None = None) -> ScoreTable:
        """Published runs, one row each; with `split`, only those on that set of items."""
        ...
