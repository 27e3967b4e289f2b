"""The benchmark's own annotation files: options, answers and clip lengths that result files lack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envrate.bench_adapters._files import mapping, read_json, real, sequence, text
from envrate.bench_adapters.tvbench._items import MAX_SECONDS, TASK_OPTIONS, Item
from envrate.bench_adapters.tvbench._letters import candidates_of, position


@dataclass(frozen=True)
class Question:
    """One annotated question."""

    options: int
    target: int  # 1-based; 0 where the answer is none of the candidates
    clip_s: float | None
    candidates: tuple[str, ...]


def clip_seconds(record: dict[str, Any]) -> float | None:
    """Length of the segment asked about, else of the video; None where a record has neither."""
    start, end = (real(record.get(name), 0.0, MAX_SECONDS) for name in ("start", "end"))
    if start is not None and end is not None and end > start:
        return end - start
    length = real(record.get("video_length"), 0.0, MAX_SECONDS)
    return length if length else None


def read(folder: Path) -> dict[str, list[Question]]:
    """Questions of each task in their order.

    Args:
        folder: the data set's folder (with `json/<task>.json`), its `json` folder, or one task's file.

    Raises:
        ValueError: no such file, or one that is no list of records with candidates.
    """
    if not folder.exists():
        raise ValueError(f"data: nothing at {str(folder)!r}, expected the TVBench folder that holds json/<task>.json")
    files = [folder] if folder.is_file() else [
        path for task in TASK_OPTIONS for path in (folder / "json" / f"{task}.json", folder / f"{task}.json")
        if path.is_file()
    ]
    if not files:
        raise ValueError(f"data: {str(folder)!r} holds no json/<task>.json of TVBench's tasks")
    return {path.name.split(".")[0]: _read_task(path) for path in files}


def _read_task(path: Path) -> list[Question]:
    try:
        records = read_json(path)
    except ValueError as error:
        raise ValueError(f"data: {error}") from error
    if not isinstance(records, list):
        raise ValueError(f"data: {path}: expected a list of records, got {type(records).__name__}")
    questions = []
    for number, record in enumerate(records):
        candidates = candidates_of(sequence(mapping(record).get("candidates")))
        if not candidates:
            raise ValueError(f"data: {path}: record {number} has no list of at least two candidates")
        target = position(text(record.get("answer")), candidates)
        questions.append(Question(len(candidates), target, clip_seconds(record), tuple(candidates)))
    return questions


def completed(item: Item, questions: dict[str, list[Question]]) -> Item:
    """`item` with its options, answer and clip length from the data set where its row lacks them."""
    task = questions.get(item.subset, [])
    question = task[item.index] if item.index < len(task) else None
    if question is not None:
        if not item.options:
            item = replace(item, options=question.options, options_from="data")
        return replace(
            item,
            target=item.target or (question.target if question.options == item.options else 0),
            clip_s=item.clip_s if item.clip_s is not None else question.clip_s,
        )
    if not item.options and item.subset in TASK_OPTIONS:
        return replace(item, options=TASK_OPTIONS[item.subset], options_from="task")
    return item
