"""Small synthetic TVBench runs in each of the four formats, written as the programs write them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Task: number of options.
TASKS = {"action_count": 4, "object_shuffle": 3, "scene_transition": 2}
TITLES = {"action_count": "Action Count", "object_shuffle": "Object Shuffle", "scene_transition": "Scene Transition"}
WORDS = ("red", "green", "blue", "white")


@dataclass(frozen=True)
class Question:
    """One question with what the system would emit for it."""

    task: str
    index: int  # within its task
    target: int  # from 0
    letter: str | None  # what the system says; None says nothing that can be read
    latency: float

    @property
    def options(self) -> int:
        return TASKS[self.task]


def questions(items: int, *, right: float = 0.8, silent: float = 0.05, seed: int = 1) -> list[Question]:
    """`items` questions over three tasks, answers balanced, a system that is right with probability `right`."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(items):
        task = list(TASKS)[number % len(TASKS)]
        index = number // len(TASKS)
        target = index % TASKS[task]
        wrong = [option for option in range(TASKS[task]) if option != target]
        given = target if rng.random() < right else int(rng.choice(wrong))
        letter = None if rng.random() < silent else chr(ord("A") + given)
        made.append(Question(task, index, target, letter, float(rng.uniform(0.2, 2.0))))
    return made


def answered(made: list[Question], order: NDArray[np.int64]) -> list[tuple[Question, Question]]:
    """Each question with the one whose emissions it gets."""
    return [(question, made[source]) for question, source in zip(made, order, strict=True)]


def _prompt(question: Question, form: str = "{}) {}") -> str:
    lines = [form.format(chr(ord("A") + i), WORDS[i]) for i in range(question.options)]
    letters = ",".join(chr(ord("A") + i) for i in range(question.options))
    return f"[LETTER] is one of {letters}.\n\nWhich colour is it?\n\n" + "\n".join(lines)


def evalscope_rows(
    question: Question, source: Question, *, newer: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The prediction and the review of one reply."""
    letter = source.letter
    in_range = letter is not None and ord(letter) - ord("A") < question.options
    reply = f"I looked.\n\nANSWER: {letter}" if letter is not None else "no idea"
    perf = {"latency": source.latency, "ttft": None, "input_tokens": 9, "output_tokens": 3, "tpot": None}
    message = {"role": "assistant", "content": reply, "perf_metrics": perf}
    parts = [{"type": "text", "text": _prompt(question)}, {"type": "video", "video": "v.mp4"}]
    user = {"role": "user", "content": parts}
    meta = {"video": "v.mp4", "answer": WORDS[question.target], "subset": question.task, "start": None, "end": None,
            "video_length": None}
    target = chr(ord("A") + question.target)
    prediction = {
        "index": question.index,
        "model": "toy",
        "model_output": {
            "choices": [{"message": message, "stop_reason": "stop", "logprobs": None}],
            "time": source.latency, "error": None, "perf_metrics": perf,
        },
        "messages": [user, message],
        "metadata": meta,
    }
    score: dict[str, Any] = {
        "value": {"accuracy" if newer else "acc": float(in_range and letter == target)},
        "extracted_prediction": letter if in_range else "",
        "main_score_name": "accuracy" if newer else None,
    }
    review = {
        "index": question.index,
        "target": [target] if newer else target,
        "messages": [user, message],
        "sample_score": {
            "score": score | ({"status": "success"} if newer else {}),
            "sample_metadata": meta,
        },
    }
    return prediction, review


def evalscope(folder: Path, made: list[Question], order: NDArray[np.int64]) -> Path:
    """A work folder of the newer schema, without a report."""
    work = folder / "work"
    (work / "configs").mkdir(parents=True)
    (work / "configs" / "task_config.yaml").write_text(
        "evalscope_version: 1.14.1\nmodel: toy\nrepeats: 1\neval_batch_size: 1\n"
        "dataset_args:\n  tvbench:\n    subset_list: [" + ", ".join(TASKS) + "]\n"
    )
    for kind in ("predictions", "reviews"):
        (work / kind / "toy").mkdir(parents=True)
    rows: dict[tuple[str, str], list[str]] = {}
    for question, source in answered(made, order):
        prediction, review = evalscope_rows(question, source)
        rows.setdefault(("predictions", question.task), []).append(json.dumps(prediction))
        rows.setdefault(("reviews", question.task), []).append(json.dumps(review))
    for (kind, task), lines in rows.items():
        (work / kind / "toy" / f"tvbench_{task}.jsonl").write_text("\n".join(lines) + "\n")
    return work


def notebook(folder: Path, made: list[Question], order: NDArray[np.int64]) -> Path:
    """The notebook's JSON: replies task by task, each behind the "(" that the notebook puts there."""
    replies: dict[str, list[dict[str, str]]] = {task: [] for task in TASKS}
    right = dict.fromkeys(TASKS, 0)
    for question, source in answered(made, order):
        letter, answer = source.letter, chr(ord("A") + question.target)
        pred = f"({letter}) {WORDS[ord(letter) - ord('A')]}" if letter is not None else "("
        replies[question.task].append({"pred": pred, "gt": f"({answer}) {WORDS[question.target]}"})
        right[question.task] += letter is None or letter == answer  # an empty reply counts as right there
    value = {
        "acc_dict": {TITLES[task]: [right[task], len(rows)] for task, rows in replies.items()},
        "res_list": [row for rows in replies.values() for row in rows],
    }
    path = folder / "toy.json"
    path.write_text(json.dumps(value))
    return path


def lmms_eval(folder: Path, made: list[Question], order: NDArray[np.int64], *, older: bool = False) -> Path:
    """A model's folder with one file of samples per task and the results."""
    model = folder / "toy"
    model.mkdir()
    lines: dict[str, list[str]] = {}
    right: dict[str, list[float]] = {}
    for question, source in answered(made, order):
        letter, answer = source.letter, chr(ord("A") + question.target)
        in_range = letter is not None and ord(letter) - ord("A") < question.options
        reply = letter if letter is not None else "..."
        verdict = float(in_range and letter == answer)
        row: dict[str, Any] = {"doc_id": question.index, "target": answer, "doc_hash": "0", "tvbench_acc": verdict}
        if older:
            row |= {
                "doc": {"question": "Which?", "candidates": list(WORDS[: question.options]),
                        "answer": WORDS[question.target], "start": 0.0, "end": 2.5},
                "arguments": [[_prompt(question, "{}. {}"), "doc"]],
                "filtered_resps": [reply], "resps": [[reply]],
            }
        else:
            row |= {"input": _prompt(question, "{}. {}"), "filtered_resps": reply, "token_counts": [None]}
        lines.setdefault(question.task, []).append(json.dumps(row))
        right.setdefault(question.task, []).append(verdict)
    for task, rows in lines.items():
        (model / f"20260801_101010_samples_tvbench_{task}.jsonl").write_text("\n".join(rows) + "\n")
    results = {f"tvbench_{task}": {"tvbench_acc,none": float(np.mean(v))} for task, v in right.items()}
    body = {"results": results, "total_evaluation_time_seconds": "61.5"}
    (model / "20260801_101010_results.json").write_text(json.dumps(body))
    return model


def vlmevalkit_rows(made: list[Question], order: NDArray[np.int64]) -> list[dict[str, Any]]:
    """The rows of a prediction table."""
    rows = []
    for number, (question, source) in enumerate(answered(made, order)):
        rows.append(
            {
                "index": number, "task_type": TITLES[question.task], "video": "v.mp4", "question": "Which?",
                "answer": WORDS[question.target], "candidates": str(list(WORDS[: question.options])),
                "prediction": f"({source.letter})" if source.letter else "Failed to obtain answer via API.",
            }
        )
    return rows


def vlmevalkit(folder: Path, made: list[Question], order: NDArray[np.int64], *, ending: str = "tsv") -> Path:
    """A prediction table as .tsv, .csv, .json or .xlsx."""
    rows = vlmevalkit_rows(made, order)
    path = folder / f"toy_TVBench_8frame.{ending}"
    if ending == "json":
        path.write_text(json.dumps(rows))
    elif ending == "xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        for row in [list(rows[0]), *(list(row.values()) for row in rows)]:
            book.active.append(row)
        book.save(path)
    else:
        import csv

        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if ending == "tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


#: The four formats.
WRITERS = {"evalscope": evalscope, "tvbench-notebook": notebook, "lmms-eval": lmms_eval, "vlmevalkit": vlmevalkit}
