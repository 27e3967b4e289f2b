"""A run: what a system said, item by item, with its latencies and how its times came about."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from envrate.bench_adapters._files import mapping, read_json, read_jsonl, real, sequence, text, whole
from envrate.bench_adapters.interactionbench._data import MAX_TIME_S, config_of

PREDS = "preds.jsonl"
#: Words in the names of a run, its model or its folder, and keys in its lines, of runs placed in time after the fact.
HINDSIGHT_WORDS = {
    "offline": "offline protocol: times are claimed after the whole video was seen",
    "grounding": "grounding: times are claimed after the whole video was seen",
    "oracle": "oracle run: made from the annotations",
    "human": "human reference: times shifted by the reaction time",
}
HINDSIGHT_KEYS = {
    "claimed_t": HINDSIGHT_WORDS["grounding"],
    "oracle": HINDSIGHT_WORDS["oracle"],
    "shift_s": HINDSIGHT_WORDS["human"],
    "t_orig": HINDSIGHT_WORDS["human"],
}
#: Systems whose `t` is the wall clock since the feed began, compute included.
WALL_CLOCK_WORDS = frozenset({"moss"})


class Emission(NamedTuple):
    """Something said at stream time `t` seconds; `latency_s` is the compute behind it, None where not recorded."""

    t: float
    content: str | None
    latency_s: float | None = None

    @property
    def is_blank(self) -> bool:
        """Whether it says nothing."""
        return self.content is None or not self.content.strip()


class Poll(NamedTuple):
    """One decision at stream time `t`, silent ones included, and the seconds that it took."""

    t: float
    latency_s: float


@dataclass(frozen=True)
class Prediction:
    """One item's line of a run."""

    emissions: tuple[Emission, ...] = ()  # as in the file, blank ones included
    n_polls: int | None = None
    poll_latencies: tuple[float, ...] = ()
    model: str | None = None
    run: str | None = None
    failed: str | None = None

    @property
    def spoken(self) -> tuple[Emission, ...]:
        """Emissions that say something, in order of time; equal times keep the order of the file."""
        return tuple(sorted((e for e in self.emissions if not e.is_blank), key=lambda e: e.t))

    @property
    def latencies(self) -> tuple[float, ...]:
        """Compute times known: of every decision, else of the emissions."""
        return self.poll_latencies or tuple(e.latency_s for e in self.emissions if e.latency_s is not None)


#: A benchmark item without a line: silent.
SILENT = Prediction()


@dataclass(frozen=True)
class Run:
    """The predictions of one system by item id; the last of several lines for one item."""

    predictions: Mapping[str, Prediction]
    path: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    damaged: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()
    hindsight: tuple[str, ...] = ()  # why its times are not those of a real-time run
    wall_clock: bool = False  # whether `t` contains the compute time

    @property
    def interval_s(self) -> float:
        """Seconds between decisions; the benchmark's default where the run does not say."""
        return real(mapping(self.config.get("protocol_config")).get("interval"), 1e-3, 1e6) or 1.0

    @property
    def a_window_s(self) -> float:
        """Seconds for which an A item may be answered; the benchmark's default where the run does not say."""
        return real(mapping(self.config.get("protocol_config")).get("a_window"), 0.0, MAX_TIME_S) or 10.0

    @property
    def name(self) -> str:
        """The run's name, or its model's, or its folder's."""
        for prediction in self.predictions.values():
            named = prediction.run or prediction.model
            if named:
                return named
        named = text(self.config.get("model"))
        return named or (self.path.parent.name if self.path is not None else "")

    @cached_property
    def _raw_files(self) -> Mapping[str, Path]:
        """Files of the run's raw log by name: an item id from a file never makes a path."""
        folder = None if self.path is None else self.path.parent / "raw"
        return {file.name: file for file in folder.iterdir()} if folder is not None and folder.is_dir() else {}

    def polls(self, item_id: str) -> tuple[Poll, ...] | None:
        """Every decision of one item from the run's raw log, or None where there is none."""
        file = self._raw_files.get(f"{item_id}.json")
        if file is None:
            return None
        try:
            rows = sequence(mapping(read_json(file)).get("polls"))
        except ValueError:
            return None
        polls = [
            Poll(t, latency)
            for row in map(mapping, rows)
            if (t := real(row.get("t"), -MAX_TIME_S, MAX_TIME_S)) is not None
            and (latency := real(row.get("latency_s"), 0.0, MAX_TIME_S)) is not None
        ]
        return tuple(polls) if polls and len(polls) == len(rows) else None


def load_run(preds: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Run) -> Run:
    """Reads a run.

    Args:
        preds: a preds.jsonl (`.gz` too), the folder that holds one, or its lines as objects.

    Raises:
        ValueError: no such file, or no line in it that is a prediction. Damaged lines are left out and named in
            `damaged`.
    """
    if isinstance(preds, Run):
        return preds
    if isinstance(preds, (str, os.PathLike)):
        path = preds_file(Path(preds))
        read = read_jsonl(path)
        rows, damaged, config = list(read.rows), list(read.damaged), config_of(path.parent)
    else:
        path, damaged, config = None, [], {}
        rows = [(number, dict(row)) for number, row in enumerate(preds, 1)]
    predictions: dict[str, Prediction] = {}
    repeated = 0
    reasons: dict[str, None] = {}
    for number, row in rows:
        try:
            item_id, prediction = _prediction(row)
        except ValueError as error:
            damaged.append((number, str(error)))
            continue
        repeated += item_id in predictions
        predictions[item_id] = prediction
        reasons |= dict.fromkeys(_hindsight_keys(row))
    where = str(path) if path is not None else "preds"
    if not predictions:
        first = f"; line {damaged[0][0]}: {damaged[0][1]}" if damaged else ""
        raise ValueError(f"{where}: no predictions, expected lines with video_id, item_index and emissions{first}")
    words = _words(predictions.values(), path, config)
    reasons |= dict.fromkeys(reason for word, reason in HINDSIGHT_WORDS.items() if word in words)
    notes = [f"{where}: line {number} left out: {reason}" for number, reason in sorted(damaged)]
    if repeated:
        notes.append(f"{repeated} lines repeat an item: the last one counts")
    failed = sum(prediction.failed is not None for prediction in predictions.values())
    if failed:
        notes.append(f"{failed} items failed in the run itself and are scored as silent or as far as they got")
    return Run(
        predictions=predictions,
        path=path,
        config=config,
        damaged=tuple(sorted(damaged)),
        notes=tuple(notes),
        hindsight=tuple(reasons),
        wall_clock=bool(WALL_CLOCK_WORDS & words),
    )


def preds_file(path: Path) -> Path:
    """The preds.jsonl that `path` is or holds.

    Raises:
        ValueError: there is none.
    """
    if path.is_dir():
        for name in (PREDS, f"{PREDS}.gz"):
            if (path / name).is_file():
                return path / name
        raise ValueError(f"preds: no {PREDS} in {str(path)!r}, expected a run folder or the file itself")
    if not path.is_file():
        raise ValueError(f"preds: nothing at {str(path)!r}, expected a {PREDS} or the folder of a run")
    return path


def _prediction(row: Mapping[str, Any]) -> tuple[str, Prediction]:
    """Item id and prediction of one line; raises ValueError naming the field that is wrong."""
    video = row.get("video_id")
    if not isinstance(video, str) or not video:
        raise ValueError(f"video_id: expected text, got {video!r:.80}")
    index = whole(row.get("item_index", 0))
    if index is None:
        raise ValueError(f"item_index: expected a number from 0, got {row['item_index']!r:.80}")
    emissions = row.get("emissions")
    if not isinstance(emissions, list):
        raise ValueError(f"emissions: expected a list, got {emissions!r:.80}")
    return f"{video}#{index}", Prediction(
        emissions=tuple([_emission(i, emission) for i, emission in enumerate(emissions)]),
        n_polls=whole(row.get("n_polls")),
        poll_latencies=tuple(
            latency
            for value in sequence(row.get("poll_latencies"))
            if (latency := real(value, 0.0, MAX_TIME_S)) is not None
        ),
        model=text(row.get("model")) or None,
        run=text(row.get("run")) or None,
        failed=str(row["failed"]) if row.get("failed") else None,
    )


def _emission(index: int, value: Any) -> Emission:
    if not isinstance(value, dict):
        raise ValueError(f"emissions[{index}]: expected an object, got {value!r:.80}")
    t, content, latency = value.get("t"), value.get("content"), value.get("latency_s")
    # The usual types are let through without a call: a run has a hundred thousand emissions.
    if type(t) is not float or not -MAX_TIME_S <= t <= MAX_TIME_S:
        t = real(t, -MAX_TIME_S, MAX_TIME_S)
        if t is None:
            raise ValueError(f"emissions[{index}].t: expected stream seconds, got {value.get('t')!r:.80}")
    if content is not None and not isinstance(content, str):
        raise ValueError(f"emissions[{index}].content: expected text or null, got {content!r:.80}")
    if latency is not None and (type(latency) is not float or not 0.0 <= latency <= MAX_TIME_S):
        latency = real(latency, 0.0, MAX_TIME_S)
    return Emission(t, content, latency)


def _hindsight_keys(row: Mapping[str, Any]) -> list[str]:
    """Reasons that one line's keys give for its times not being real-time ones."""
    keys = set(row)
    for emission in row["emissions"][:1]:
        keys |= set(emission)
    return [reason for key, reason in HINDSIGHT_KEYS.items() if key in keys]


def _words(predictions: Iterable[Prediction], path: Path | None, config: Mapping[str, Any]) -> set[str]:
    """Words in the names that a run goes by."""
    names = {text(config.get("protocol")), text(config.get("model")), text(config.get("name"))}
    names |= {name for prediction in predictions for name in (prediction.run, prediction.model) if name}
    if path is not None:
        names |= {path.parent.name, path.name.removesuffix(".gz").removesuffix(".jsonl")}
    return {word for name in names for word in re.split(r"[^a-z]+", name.lower()) if word}


def finite_ms(seconds: float | None) -> int | None:
    """Whole milliseconds, or None where the time is not known."""
    return None if seconds is None or not math.isfinite(seconds) else round(1000.0 * seconds)
