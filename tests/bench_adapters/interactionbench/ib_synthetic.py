"""A made-up benchmark in InteractionBench's layout, and systems to run on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

WORDS = "red blue green black white brown yellow purple orange silver golden grey".split()
#: A text that answers nothing, as the benchmark's scripted policies say it.
NOTHING = "Something is happening now."

Line = dict[str, Any]


def make(
    root: Path,
    *,
    seed: int = 0,
    alerts: int = 40,
    tracks: int = 20,
    silent: int = 6,
    questions: int = 60,
    narrations: int = 12,
    duration: float = 60.0,
    options: tuple[int, ...] = (3, 4),
    per_item: int = 4,
    apart: float = 8.0,
) -> Path:
    """Writes annotations and the multiple-choice files; event times are multiples of half a second.

    Steps of one item are at least `apart` seconds apart; with 0 each is uniform over the video, so that no system can
    know from its place in the video that one is due.

    Alerts (B PTR), tracks (C BRC) with several steps, narrations (C LCG), alerts that never come, and questions (A
    IVQA) with options.
    """
    rng = np.random.default_rng(seed)
    annotations, mcq = root / "annotations" / "demo", root / "mcq"
    annotations.mkdir(parents=True)
    kinds = ["alert"] * alerts + ["track"] * tracks + ["silent"] * silent + ["question"] * questions
    kinds += ["narration"] * narrations
    key = []
    for number, kind in enumerate(kinds):
        video = f"vid{number:08d}"
        item, options_line = _item(rng, kind, number, duration, options, per_item, apart)
        body = {"video_id": video, "domain": "demo", "duration_s": duration, "items": [item]}
        (annotations / f"{video}.json").write_text(json.dumps(body), encoding="utf-8")
        if options_line:
            key.append({"item_id": f"{video}#0"} | options_line)
    if key:
        mcq.mkdir()
        text = "".join(json.dumps(line) + "\n" for line in key)
        (mcq / "mcq_key_v4.jsonl").write_text(text, encoding="utf-8")
    return root


def _times(rng: np.random.Generator, duration: float, count: int, apart: float) -> list[float]:
    free = np.sort(rng.uniform(0, duration - 1 - apart * (count - 1), count))
    return (np.round(2 * (free + apart * np.arange(count))) / 2).tolist()


def _item(
    rng: np.random.Generator,
    kind: str,
    number: int,
    duration: float,
    options: tuple[int, ...],
    per_item: int,
    apart: float,
) -> tuple[Line, Line | None]:
    base: Line = {"interaction_type": "INS", "question": "Tell me.", "question_time_s": 0.0, "range_length": "0-1min"}
    texts = [" ".join(rng.choice(WORDS, 3, replace=False)) for _ in range(per_item)]
    if kind == "question":
        asked = float(rng.integers(2, int(duration) - 12))
        size = options[number % len(options)]
        shown = [str(word) for word in rng.choice(WORDS, size, replace=False)]
        correct = int(rng.integers(size))
        line = {
            "correct_index": correct,
            "correct_letter": "ABCDEF"[correct],
            "answer_text": shown[correct],
            "distractors": shown[:correct] + shown[correct + 1 :],
        }
        answers = [{"time_s": asked, "content": shown[correct], "evidence_time_s": asked - 1.5}]
        item = {"capability": "IVQA", "time_type": "A", "interaction_type": "QA", "question_time_s": asked}
        return base | item | {"answers": answers}, line
    if kind == "silent":
        answers = [{"time_s": None, "content": "SHOULD_REMAIN_SILENT"}]
        return base | {"capability": "PTR", "time_type": "B", "is_negative": True, "answers": answers}, None
    count = 1 if kind == "alert" else per_item
    times = _times(rng, duration, count, apart)
    answers = [{"time_s": t, "content": text} for t, text in zip(times, texts, strict=False)]
    capability, time_type = {"alert": ("PTR", "B"), "track": ("BRC", "C"), "narration": ("LCG", "C")}[kind]
    return base | {"capability": capability, "time_type": time_type, "answers": answers}, None


def items_of(root: Path) -> list[tuple[str, Line]]:
    """Every (video id, annotation with its duration), in order."""
    found = []
    for file in sorted((root / "annotations").rglob("*.json")):
        body = json.loads(file.read_text(encoding="utf-8"))
        found += [(body["video_id"], item | {"duration_s": body["duration_s"]}) for item in body["items"]]
    return found


def letters(root: Path) -> dict[str, str]:
    """The right letter by item id."""
    file = root / "mcq" / "mcq_key_v4.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {row["item_id"]: row["correct_letter"] for row in map(json.loads, lines)}


#: What a system says about an item: (time, text) pairs.
Speaker = Callable[[Line, str], list[tuple[float, str]]]


def answering(root: Path, delay: float = 0.0) -> Speaker:
    """A system that gives every answer right, `delay` seconds after it is due."""
    key = letters(root)

    def say(item: Line, item_id: str) -> list[tuple[float, str]]:
        if item["time_type"] == "A":
            return [(item["question_time_s"] + delay, key[item_id])]
        return [(a["time_s"] + delay, a["content"]) for a in item["answers"] if a["time_s"] is not None]

    return say


def window(item: Line) -> tuple[float, float]:
    """When the system may speak."""
    if item["time_type"] == "A":
        return item["question_time_s"], min(item["duration_s"], item["question_time_s"] + 10)
    return 0.0, item["duration_s"]


def blind(kind: str, rng: np.random.Generator | None = None, rate: float = 0.1) -> Speaker:
    """A system that sees nothing: "never", "always", "periodic" (every 10 s), or "random" at `rate` per second."""

    def say(item: Line, item_id: str) -> list[tuple[float, str]]:
        start, end = window(item)
        ticks = np.arange(np.ceil(start), end + 1e-6)
        if kind == "never":
            ticks = ticks[:0]
        elif kind == "periodic":
            ticks = ticks[ticks % 10 == 0]
        elif kind == "random":
            assert rng is not None
            ticks = ticks[rng.random(len(ticks)) < rate]
        return [(float(t), NOTHING) for t in ticks]

    return say


def run(root: Path, say: Speaker, **keys: Any) -> list[Line]:
    """The lines of a run."""
    return [
        {
            "video_id": video,
            "item_index": 0,
            "emissions": [{"t": t, "content": text} for t, text in say(item, f"{video}#0")],
        }
        | keys
        for video, item in items_of(root)
    ]


def moved(lines: list[Line], order: Mapping[int, int] | np.ndarray) -> list[Line]:
    """The run with the emissions of item order[i] given to item i."""
    return [line | {"emissions": lines[int(order[i])]["emissions"]} for i, line in enumerate(lines)]


def write(path: Path, lines: list[Line]) -> Path:
    """Writes a preds.jsonl."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
