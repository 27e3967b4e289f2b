"""The adapter: what a path holds, and the calls into the package."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from envrate.bench_adapters._adapter import Recognition, ScoreTable
from envrate.bench_adapters._files import head, mapping, parse, text
from envrate.bench_adapters.interactionbench import _published
from envrate.bench_adapters.interactionbench._data import Benchmark, config_of, load_benchmark
from envrate.bench_adapters.interactionbench._evaluate import Evaluation, evaluate
from envrate.bench_adapters.interactionbench._judges import Judge
from envrate.bench_adapters.interactionbench._options import key_path
from envrate.bench_adapters.interactionbench._runs import PREDS
from envrate.bench_adapters.interactionbench._trace import load
from envrate.trace import Trace

#: The file that marks runs of a speech benchmark of the same name (avera-labs/InteractionBench).
FOREIGN = "grade.json"
FOREIGN_REFUSAL = (
    "a grade.json: this is a run of avera-labs' InteractionBench for spoken dialogue, another project of the same "
    "name, whose format is not read; the video benchmark has a preds.jsonl"
)
#: Lines looked at to recognise a preds.jsonl; some may be torn.
LOOK = 5


class InteractionBench:
    """Runs of InteractionBench, the benchmark of video systems that must speak at the right moment.

    A run is a preds.jsonl or the folder that holds it. The benchmark's annotations are needed too (`data`).
    """

    name = "interactionbench"

    def recognise(self, path: Path) -> Recognition | None:
        """A preds.jsonl, a run folder, a folder of run folders; the data folder and a foreign namesake are refused."""
        try:
            return self._recognise(path)
        except OSError:
            return None

    def _recognise(self, path: Path) -> Recognition | None:
        if path.is_file():
            if path.name == FOREIGN:
                return Recognition(self.name, "grade.json of a foreign InteractionBench", 0.8, refusal=FOREIGN_REFUSAL)
            return self._predictions(path)
        if not path.is_dir():
            return None
        for name in (PREDS, f"{PREDS}.gz"):
            if (path / name).is_file():
                return self._predictions(path / name, config_of(path))
        if (path / FOREIGN).is_file():
            return Recognition(self.name, "run of a foreign InteractionBench", 0.9, refusal=FOREIGN_REFUSAL)
        inside = sorted(child for child in path.iterdir() if child.is_dir())
        runs = tuple(child for child in inside if (child / PREDS).is_file() or (child / f"{PREDS}.gz").is_file())
        if runs:
            description = f"InteractionBench, {len(runs)} run folders"
            return Recognition(self.name, description, 0.9, runs=runs)
        if any((child / FOREIGN).is_file() for child in inside):
            return Recognition(self.name, "runs of a foreign InteractionBench", 0.8, refusal=FOREIGN_REFUSAL)
        if (path / "annotations").is_dir() and ((path / "mcq").is_dir() or (path / "items.jsonl").is_file()):
            refusal = "this is the benchmark's data; give a run's preds.jsonl and this folder as data (--data)"
            return Recognition(self.name, "InteractionBench data folder", 0.9, refusal=refusal)
        return None

    def _predictions(self, path: Path, config: dict[str, object] | None = None) -> Recognition | None:
        """A file whose first lines are predictions."""
        start = head(path, 1 << 18)
        for line in start.splitlines()[:LOOK]:
            try:
                row = mapping(parse(line))
            except ValueError:
                continue
            if isinstance(row.get("video_id"), str) and isinstance(row.get("emissions"), list):
                parts = ["InteractionBench predictions"]
                parts += [f"model {model}"] if (model := text(row.get("model"))) else []
                parts += [f"run {run}"] if (run := text(row.get("run"))) else []
                parts += [f"protocol {p}"] if (p := text((config or {}).get("protocol"))) else []
                return Recognition(self.name, ", ".join(parts))
        if b'"video_id"' in start and b'"emissions"' in start:  # torn or very long lines
            return Recognition(self.name, "InteractionBench predictions, whose first lines are not whole", 0.7)
        return None

    def load(
        self,
        path: Path,
        *,
        data: str | os.PathLike[str] | None = None,
        mcq_key: str | os.PathLike[str] | bool | None = None,
        judge: str | Judge | None = None,
        items: str | os.PathLike[str] | Iterable[str] | None = None,
        skip_missing: bool = False,
        latency: str = "stream",
        horizon_s: float = 5.0,
    ) -> Trace:
        """The run as a trace; `interactionbench.load` explains the options.

        Args:
            path: a preds.jsonl or a run folder.
            data: the benchmark's data folder; None takes one that lies beside the run.
            mcq_key: the key of the multiple-choice items; None takes the data folder's own where it is.
            judge: for open answers.
            items: ids to take, or a file with one per line.
            skip_missing: leave out items without a line in the run.
            latency: "stream" or "delivered".
            horizon_s: the largest allowed latency.

        Raises:
            ValueError: no data folder, or as `interactionbench.load`.
        """
        return load(
            path, _data(path, data), mcq_key=mcq_key, judge=judge, items=items, skip_missing=skip_missing,
            latency=latency, horizon_s=horizon_s,
        )  # fmt: skip

    def evaluate(
        self,
        path: Path,
        *,
        data: str | os.PathLike[str] | None = None,
        mcq_key: str | os.PathLike[str] | bool | None = None,
        judge: str | Judge | None = None,
        items: str | os.PathLike[str] | Iterable[str] | None = None,
        skip_missing: bool = False,
    ) -> Evaluation:
        """The run by the benchmark's paper protocol: with the data folder's key where `mcq_key` is None."""
        benchmark = _data(path, data)
        if mcq_key is None:
            own = key_path(benchmark.root, True)
            mcq_key = own is not None and own.is_file()
        return evaluate(path, benchmark, mcq_key=mcq_key, judge=judge, items=items, skip_missing=skip_missing)

    def scores(
        self,
        path: Path,
        *,
        data: str | os.PathLike[str] | None = None,
        mcq_key: str | os.PathLike[str] | bool | None = None,
        judge: str | Judge | None = None,
        items: str | os.PathLike[str] | Iterable[str] | None = None,
        skip_missing: bool = False,
    ) -> ScoreTable:
        """The benchmark's own numbers overall and by group; options as `load`."""
        own = self.evaluate(
            path, data=data, mcq_key=mcq_key, judge=judge, items=items, skip_missing=skip_missing
        )
        split, exact = _published.split_of(record["item_id"] for record in own.records)
        table = own.table(split)
        if split is None or exact:
            return table
        return replace(table, notes=(*table.notes, f"taken for the split {split} by its number of items alone"))

    def published(self, split: str | None = None) -> ScoreTable:
        """Published runs by falling total; with `split`, only those on that set of items."""
        return _published.published(split)


def _data(path: Path, data: str | os.PathLike[str] | None) -> Benchmark:
    """The benchmark's data: as given, else beside the run."""
    if data is not None:
        return load_benchmark(data)
    start = path if path.is_dir() else path.parent
    for folder in (start, *start.resolve().parents[:3]):
        if (folder / "annotations").is_dir():
            return load_benchmark(folder)
    raise ValueError("data: not given, and no annotations/ beside the run; name the benchmark's data folder (--data)")
