"""The benchmark's annotations: videos, items, answers, and the events at which an answer is due.

Layout and field names are those of the InteractionBench data set (huggingface.co/datasets/InteractionBench/
InteractionBench; github.com/Espere-1119-Song/InteractionBench).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from envrate.bench_adapters._files import mapping, read_json, real, text

#: The label that capabilities are merged under in the benchmark's tables.
GROUPS = {"IVQA": "IVQA+CIR", "CIR": "IVQA+CIR", "CST": "CST+BRC", "BRC": "CST+BRC"}
#: Capabilities in which the moment of speaking is the task.
CORE_REALTIME = frozenset({"TOA", "PTR", "CST", "BRC", "LCG"})
COUNTING_TAGS = frozenset({"counting", "计数型"})
SILENT_MARK = "SHOULD_REMAIN_SILENT"
#: Times beyond this, in seconds, are no stream times.
MAX_TIME_S = 1e8


@dataclass(frozen=True)
class Answer:
    """One annotated answer; `time_s` is None where it has no moment."""

    time_s: float | None
    content: str | None
    evidence_time_s: float | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it says that the system should stay silent."""
        return self.content is not None and SILENT_MARK in self.content.upper()


@dataclass(frozen=True)
class Event:
    """A moment at which an answer is due: the answers of equal time, their contents joined."""

    time_s: float
    content: str | None


@dataclass(frozen=True)
class Item:
    """One annotated question or standing request about a video."""

    item_id: str
    video_id: str
    domain: str
    duration_s: float
    capability: str
    time_type: str  # A: asked now; B: standing, answered once; C: standing, answered again and again
    question: str
    question_time_s: float
    answers: tuple[Answer, ...]
    interaction_type: str | None = None
    range_length: str | None = None
    sub_tag: str | None = None
    is_negative: bool = False
    auto_number: bool = False

    @cached_property
    def timed(self) -> tuple[Answer, ...]:
        """Answers with a time that are not silent, in the order of the file."""
        return tuple(a for a in self.answers if a.time_s is not None and not a.is_silent)

    @cached_property
    def should_stay_silent(self) -> bool:
        """Whether the event never happens, so that every emission is a false alarm."""
        return self.is_negative or (bool(self.answers) and all(a.is_silent for a in self.answers))

    @property
    def is_valid(self) -> bool:
        """Whether the benchmark scores it at all."""
        return self.time_type in ("A", "B", "C") and (self.should_stay_silent or bool(self.timed))

    @property
    def is_counting(self) -> bool:
        """Whether its answers are a running count."""
        return self.auto_number or self.sub_tag in COUNTING_TAGS

    @cached_property
    def family(self) -> str:
        """How it is scored: the first of these that holds."""
        if self.should_stay_silent:
            return "negative"
        if self.time_type == "A":
            return "A_retro_qa"
        if self.capability in ("LCG", "BRC"):
            return "C_segments"
        return "C_counting" if self.is_counting else "B_trigger"

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Moments at which an answer is due, in order of time: the question's own time for A items."""
        if self.should_stay_silent:
            return ()
        if self.time_type == "A":
            return (Event(self.question_time_s, self.timed[0].content),)
        contents: dict[float, list[str]] = {}
        for answer in self.timed:
            assert answer.time_s is not None
            contents.setdefault(answer.time_s, []).extend([answer.content] if answer.content else [])
        return tuple(Event(time, "; ".join(contents[time])) for time in sorted(contents))

    @property
    def group(self) -> str:
        """Capability as the benchmark's tables merge it."""
        return GROUPS.get(self.capability, self.capability)

    @property
    def core_realtime(self) -> bool:
        """Whether the moment of speaking is the task."""
        return self.capability in CORE_REALTIME


@dataclass(frozen=True)
class Benchmark:
    """The valid items of a data folder, in the benchmark's order."""

    root: Path
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[str, Item]:
        """Items by their id, VIDEO#INDEX."""
        return {item.item_id: item for item in self.items}


def load_benchmark(data: str | os.PathLike[str]) -> Benchmark:
    """Reads the annotations under `data`: the data set's root, its `annotations`, or one folder of them.

    Raises:
        ValueError: no such folder, no annotations, a damaged file, a field of the wrong type.
    """
    root = Path(data)
    if not root.is_dir():
        raise ValueError(f"data: no folder {str(root)!r}, expected the one that holds the benchmark's annotations/")
    base = root / "annotations" if (root / "annotations").is_dir() else root
    files = sorted(base.rglob("annotation.json")) or sorted(base.rglob("*.json"))
    files.sort(key=lambda file: (file.parent.parts, file.stem))
    found: list[Item] = []
    notes: list[str] = []
    for file in files:
        body = read_json(file)
        if not isinstance(body, dict) or "items" not in body:
            notes.append(f"{file.name}: no annotation, left out: it has no 'items'")
            continue
        found += _video(file, body)
    items = tuple(item for item in found if item.is_valid)
    if not items:
        raise ValueError(f"data: {str(base)!r} has no annotated items, expected DOMAIN/VIDEO.json files with 'items'")
    repeated = len(items) - len({item.item_id for item in items})
    if repeated:
        raise ValueError(f"data: {repeated} item ids come up twice under {str(base)!r}; expected one file per video")
    if len(found) > len(items):
        notes.append(f"{len(found) - len(items)} annotated items cannot be scored (no time, no type): left out")
    return Benchmark(root, items, tuple(notes))


def _video(file: Path, body: dict[str, Any]) -> list[Item]:
    """Every item of one annotation file, valid or not."""
    old = file.name == "annotation.json"
    folder = file.parent.parent.name if old else file.parent.name
    video_id = text(body.get("video_id")) or (file.parent.name if old else file.stem)
    domain = text(body.get("domain")) or text(body.get("category")) or folder
    duration = _time(file, "duration_s", body.get("duration_s"))
    items = body["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{file}: items: expected a list of objects, got {items!r:.100}")
    found = []
    for index, item in enumerate(items):
        where = f"items[{index}]"
        answers = item.get("answers") or []
        if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
            raise ValueError(f"{file}: {where}.answers: expected a list of objects, got {answers!r:.100}")
        found.append(
            Item(
                item_id=f"{video_id}#{index}",
                video_id=video_id,
                domain=domain,
                duration_s=duration or 0.0,
                capability=_text(file, f"{where}.capability", item.get("capability")) or "UNKNOWN",
                time_type=_text(file, f"{where}.time_type", item.get("time_type")) or "",
                question=_text(file, f"{where}.question", item.get("question")) or "",
                question_time_s=_time(file, f"{where}.question_time_s", item.get("question_time_s")) or 0.0,
                answers=tuple(
                    Answer(
                        _time(file, f"{where}.answers[{i}].time_s", answer.get("time_s")),
                        _text(file, f"{where}.answers[{i}].content", answer.get("content")),
                        _time(file, f"{where}.answers[{i}].evidence_time_s", answer.get("evidence_time_s")),
                    )
                    for i, answer in enumerate(answers)
                ),
                interaction_type=_text(file, f"{where}.interaction_type", item.get("interaction_type")),
                range_length=_text(file, f"{where}.range_length", item.get("range_length")),
                sub_tag=_text(file, f"{where}.sub_tag", item.get("sub_tag")),
                is_negative=bool(item.get("is_negative", False)),
                auto_number=bool(item.get("auto_number", False)),
            )
        )
    return found


def _time(file: Path, name: str, value: Any) -> float | None:
    if value is None:
        return None
    seconds = real(value, -MAX_TIME_S, MAX_TIME_S)
    if seconds is None:
        raise ValueError(f"{file}: {name}: expected seconds or null, got {value!r:.100}")
    return seconds


def _text(file: Path, name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{file}: {name}: expected text or null, got {value!r:.100}")


def answer_window_s(item: Item, a_window_s: float = 10.0) -> float:
    """Exposure of an item, seconds: the video for B and C items, the answer window for A items."""
    if item.time_type != "A":
        return max(item.duration_s, 0.0)
    end = min(item.duration_s, item.question_time_s + a_window_s)
    return max(0.0, end - item.question_time_s) if math.isfinite(end) else 0.0


def config_of(folder: Path) -> dict[str, Any]:
    """The run's settings, where `folder` holds a readable config.json; else empty."""
    file = folder / "config.json"
    try:
        return mapping(read_json(file)) if file.is_file() else {}
    except ValueError:
        return {}
