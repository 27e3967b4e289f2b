"""Where EvalScope keeps a run: from any path inside it to its files, and what it says about itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envrate.bench_adapters._adapter import Recognition
from envrate.bench_adapters._files import head, mapping, read_bytes, read_json

PREFIX = "tvbench_"
ROWS = ("predictions", "reviews")


@dataclass(frozen=True)
class Folder:
    """The files of one model in one work folder; `only` is set where a single file was named."""

    work: Path | None  # holds configs, predictions, reviews and reports
    model: str
    predictions: tuple[Path, ...]
    reviews: tuple[Path, ...]
    only: str | None = None

    @property
    def report(self) -> Path | None:
        """The model's report, if it was written."""
        path = self.work / "reports" / self.model / "tvbench.json" if self.work is not None else None
        return path if path is not None and path.is_file() else None


def is_rows(path: Path) -> bool:
    """Whether a file is called like EvalScope's rows of a TVBench subset."""
    return path.name.startswith(PREFIX) and path.name.removesuffix(".gz").endswith(".jsonl")


def subset_of(path: Path) -> str:
    """The subset that a file of rows holds, from its name."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl").removeprefix(PREFIX)


def _rows_in(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.glob(f"{PREFIX}*.jsonl*") if is_rows(path) and path.is_file()))


def _models(work: Path) -> list[str]:
    """Models with rows of TVBench in a work folder."""
    found = {folder.name for kind in ROWS for folder in (work / kind).glob("*") if folder.is_dir() and _rows_in(folder)}
    return sorted(found)


def _works(path: Path, depth: int = 2) -> list[Path]:
    """Work folders at `path` or up to two levels below it: EvalScope adds a time-stamped level of its own."""
    if _models(path):
        return [path]
    if depth == 0:
        return []
    try:
        inside = sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
    except OSError:
        return []
    return [work for child in inside for work in _works(child, depth - 1)]


def folders(path: Path) -> list[Folder]:
    """Every run at `path`: a work folder, a folder of them, a model's folder, its report, or one file of rows."""
    if path.is_file() and path.name == "tvbench.json" and path.parent.parent.name == "reports":
        path = path.parent  # a report has no rows, but its neighbours do
    if path.is_file():
        return [_of_file(path)] if is_rows(path) else []
    path = path.absolute()
    if path.parent.name in (*ROWS, "reports") and path.parent.parent.is_dir():
        work, model = path.parent.parent, path.name
        return [_of_model(work, model)] if model in _models(work) else []
    if path.name in ROWS and not _models(path):
        path = path.parent
    return [_of_model(work, model) for work in _works(path) for model in _models(work)]


def _of_model(work: Path, model: str) -> Folder:
    return Folder(work, model, _rows_in(work / "predictions" / model), _rows_in(work / "reviews" / model))


def _of_file(path: Path) -> Folder:
    """One file of rows, with its twin among the predictions or reviews where the folder around it is a work folder."""
    path = path.absolute()
    if path.parent.parent.name in ROWS:
        whole = _of_model(path.parent.parent.parent, path.parent.name)
        return replace(
            whole,
            predictions=tuple(p for p in whole.predictions if subset_of(p) == subset_of(path)),
            reviews=tuple(p for p in whole.reviews if subset_of(p) == subset_of(path)),
            only=subset_of(path),
        )
    review = b'"sample_score"' in head(path, 1 << 20)
    return Folder(None, "", () if review else (path,), (path,) if review else (), only=subset_of(path))


def config(folder: Folder) -> tuple[dict[str, Any], list[str]]:
    """The run's `task_config.yaml`, empty where there is none, and what is wrong with it."""
    path = folder.work / "configs" / "task_config.yaml" if folder.work is not None else None
    if path is None or not path.is_file():
        return {}, []
    import yaml

    try:
        value = yaml.safe_load(read_bytes(path)[0])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return {}, [f"task_config.yaml left out: {' '.join(str(error).split()):.200}"]
    return mapping(value), []


def report(folder: Folder) -> tuple[dict[str, Any], list[str]]:
    """The model's report, empty where there is none, and what is wrong with it."""
    if folder.report is None:
        return {}, []
    try:
        value = read_json(folder.report)
    except ValueError as error:
        return {}, [f"report left out: {error}"]
    return mapping(value), []


def _path_of(folder: Folder, among: list[Folder]) -> Path:
    """The shortest path that names this run: its work folder, or the model's folder where that holds several."""
    assert folder.work is not None  # a single file of rows is never one of several
    alone = sum(other.work == folder.work for other in among) == 1
    return folder.work if alone else folder.work / ROWS[bool(folder.reviews)] / folder.model


def recognise(path: Path) -> Recognition | None:
    """What EvalScope left at `path`, or None."""
    found = folders(path)
    if not found:
        return None
    if len(found) > 1:
        paths = tuple(_path_of(folder, found) for folder in found)
        return Recognition("evalscope", f"EvalScope folder with {len(found)} runs of TVBench", 1.0, runs=paths)
    folder = found[0]
    version = str(config(folder)[0].get("evalscope_version", "")).strip()
    subsets = {subset_of(p) for p in (*folder.predictions, *folder.reviews)}
    what = f"rows of {folder.only}" if folder.only is not None else f"work folder, {len(subsets)} subset(s)"
    missing = [kind for kind, files in zip(ROWS, (folder.predictions, folder.reviews), strict=True) if not files]
    words = [f"EvalScope{' ' + version if version else ''} {what}", "TVBench"]
    words += [f"model {folder.model}"] if folder.model else []
    words += [f"no {kind}" for kind in missing]
    words += [] if folder.report is not None else ["no report"]
    return Recognition("evalscope", ", ".join(words), 1.0)
