"""The published runs: their overall scores, and a run set beside those on the same split."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from envrate import _checks
from envrate.bench_adapters._adapter import Cell, ScoreTable
from envrate.bench_adapters.interactionbench._evaluate import Evaluation

#: Number of items and SHA-256 (its first 16 hex digits) of the sorted item ids, joined by newlines, of each split. One
#: id of frozen218 is annotated no more, so that a run on it has 217 items.
_FINGERPRINTS = {
    "0b0d5715100a41c5": "all1060",
    "fce7fb86c9fa4361": "subset103",
    "043de9fb7e85cd20": "mcq688",
    "0d11e67caff57eb2": "frozen218",
    "e1980008edaca41a": "frozen218",
}
_SIZES = {1060: "all1060", 103: "subset103", 688: "mcq688", 218: "frozen218", 217: "frozen218", 299: "human299"}
SPLITS = ("all1060", "subset103", "mcq688", "frozen218", "partial", "human299")
COLUMNS = ("run", "system", "setting", "split", "n", "total", "accuracy", "TA", "SC", "protocol")


@dataclass(frozen=True)
class PublishedRun:
    """Overall scores of one published run, one decimal; None where none was published.

    `protocol` is "paper", "earlier" (scored by an older protocol, not comparable) or "human". `split` is "partial"
    where only the items that the run covers were scored.
    """

    name: str
    system: str
    setting: str
    split: str
    protocol: str
    n: int
    total: float
    accuracy: float | None = None
    timing_accuracy: float | None = None
    silence_compliance: float | None = None

    @property
    def hindsight(self) -> bool:
        """Whether its times were claimed or shifted after the fact, so that it belongs on no real-time frontier."""
        return self.setting.startswith("offline") or self.protocol == "human"

    def row(self) -> tuple[Cell, ...]:
        """Its cells under `COLUMNS`."""
        scores = (self.total, self.accuracy, self.timing_accuracy, self.silence_compliance)
        return (self.name, self.system, self.setting, self.split, self.n, *scores, self.protocol)


@cache
def published_runs() -> tuple[PublishedRun, ...]:
    """Every published run, in the order of the benchmark's own table."""
    body = (files(__package__) / "published_runs.tsv").read_text(encoding="utf-8")
    lines = [line for line in body.splitlines() if not line.startswith("#")]

    def number(cell: str) -> float | None:
        return float(cell) if cell else None

    return tuple(
        PublishedRun(
            row["name"], row["system"], row["setting"], row["split"], row["protocol"], int(row["n"]),
            float(row["total"]), number(row["accuracy"]), number(row["TA"]), number(row["SC"]),
        )
        for row in csv.DictReader(lines, delimiter="\t")
    )  # fmt: skip


def published(split: str | None = None) -> ScoreTable:
    """Published runs by falling total; with `split`, only those on that set of items.

    Raises:
        ValueError: an unknown split.
    """
    if split is not None:
        _checks.choice("split", split, SPLITS)
    runs = [run for run in published_runs() if split is None or run.split == split]
    return ScoreTable(
        title="InteractionBench, published runs" + (f" on {split}" if split else ""),
        columns=COLUMNS,
        rows=tuple(run.row() for run in sorted(runs, key=lambda run: -run.total)),
        main="total",
        values={"total": max((run.total for run in runs), default=None)},
        notes=_notes(runs),
        split=split,
    )


def _notes(runs: Iterable[PublishedRun]) -> tuple[str, ...]:
    runs = list(runs)
    notes = ["numbers: configs/paper_runs.json of github.com/Espere-1119-Song/InteractionBench"]
    if any(run.protocol == "earlier" for run in runs):
        notes.append("protocol 'earlier': scored by an older protocol, not comparable with the others")
    if any(run.split == "partial" for run in runs):
        notes.append("split 'partial': only the items that the run covers were scored")
    if any(run.hindsight for run in runs):
        notes.append("offline runs and the human reference are placed in time after the fact: not real-time")
    return tuple(notes)


def split_of(item_ids: Iterable[str]) -> tuple[str | None, bool]:
    """The published split that has these items, and whether by its very ids (True) or only by their number.

    Returns:
        (None, False) where no split has that many.
    """
    ids = sorted(set(item_ids))
    digest = hashlib.sha256("\n".join(ids).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    if digest in _FINGERPRINTS:
        return _FINGERPRINTS[digest], True
    return _SIZES.get(len(ids)), False


def beside(evaluation: Evaluation, *, name: str = "this run", split: str | None = None) -> ScoreTable:
    """A run among the published ones on its split, by falling total.

    Args:
        evaluation: of the run.
        name: what to call it.
        split: the split to compare on; None takes the one that has the run's items.

    Raises:
        ValueError: no split has these items and none was named, or an unknown split.
    """
    found, exact = split_of(record["item_id"] for record in evaluation.records)
    if split is None and found is None:
        raise ValueError(
            f"split: no published split has the run's {len(evaluation.records)} items; score it with items=FILE of "
            f"one, or name one of {', '.join(SPLITS)}"
        )
    table = published(split or found)
    overall = evaluation.overall
    mine: tuple[Cell, ...] = (
        name, "", "", table.split, overall["n_items"], overall.get("total_score"), overall.get("accuracy"),
        overall.get("timing_accuracy"), overall.get("silence_compliance"), "this evaluation",
    )  # fmt: skip
    notes = [*table.notes]
    if not exact or split not in (None, found):
        how = "name" if split else "number"
        notes.append(f"the run's items are not known to be those of {table.split}: matched by {how} only")
    total = COLUMNS.index("total")
    rows = sorted((*table.rows, mine), key=lambda row: -(float(row[total] or 0.0)))
    return ScoreTable(
        table.title, COLUMNS, tuple(rows), evaluation.table().values, notes=tuple(notes), main="total",
        split=table.split,
    )  # fmt: skip
