"""What every reader of TVBench results returns: one `Item` per reply, one `Run` per model and file set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: The ten tasks with their number of options (chance levels of the paper's table: 25, 33.3 or 50 %). Used only where
#: neither the prompt nor the data set tells the options of an item.
TASK_OPTIONS: dict[str, int] = {
    "action_count": 4,
    "object_count": 4,
    "action_sequence": 2,
    "object_shuffle": 3,
    "scene_transition": 2,
    "action_localization": 4,
    "action_antonym": 2,
    "unexpected_action": 4,
    "egocentric_sequence": 4,
    "moving_direction": 4,
}
#: What became of an item. Only "ok" is an answer; the others stay in the denominator as silence.
STATUSES = ("ok", "unparsed", "truncated", "filtered", "error", "missing")
#: More options than this is a misread prompt, not a question.
MAX_OPTIONS = 26
#: A larger index is a damaged row: the largest task has 536 questions.
MAX_INDEX = 100_000
#: A longer latency or clip is a wrong number, not a time: taken as not measured.
MAX_SECONDS = 1e7
#: `Item.choice` of an answer that is wrong, where it is not known which it was.
WRONG = -1


@dataclass(frozen=True)
class Item:
    """One reply to one question.

    `choice` and `target` count options from 1 (A); 0 is none and WRONG a wrong one of unknown letter. `credited` is the
    producer's own verdict, kept for its accuracy; None where it gave none.
    """

    subset: str
    index: int  # the question, within its subset
    repeat: int = 0  # which of several replies to the same question
    options: int = 0  # K; 0 not known yet
    options_from: str = "prompt"  # "prompt", "data" (the data set's file) or "task" (TASK_OPTIONS)
    target: int = 0
    choice: int = 0
    credited: float | None = None
    status: str = "ok"
    latency_s: float | None = None  # request to last byte, None where it was not measured
    ttft_s: float | None = None  # request to first token, streamed requests only
    clip_s: float | None = None  # length of the clip or segment asked about
    logprobs: tuple[float, ...] | None = None  # (K,) the model's log-probabilities of the options, natural logarithm

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells this reply from all others of the run."""
        return self.subset, self.index, self.repeat


@dataclass(frozen=True)
class Run:
    """One model's replies with what else its files tell."""

    format: str  # "evalscope", "tvbench-notebook", "lmms-eval" or "vlmevalkit"
    model: str
    items: tuple[Item, ...]
    version: str = ""  # of the program that wrote the files
    settings: dict[str, Any] = field(default_factory=dict)  # concurrency, streaming, retries, repeats, ...
    report: dict[str, Any] = field(default_factory=dict)  # the program's own summary: see each reader
    notes: tuple[str, ...] = ()
    damaged: int = 0  # lines that could not be read
    duplicates: int = 0  # replies that a later one of the same question replaced

    def __post_init__(self) -> None:
        """Checks that there is something to score."""
        if not self.items:
            raise ValueError(f"{self.format}: the run holds no item that can be scored; expected rows of tvbench")

    def counts(self) -> dict[str, int]:
        """Items by status, with the damaged lines and the replaced replies."""
        by_status = Counter(item.status for item in self.items)
        return {
            "items": len(self.items),
            **{status: by_status.get(status, 0) for status in STATUSES},
            "without latency": sum(item.status == "ok" and item.latency_s is None for item in self.items),
            "damaged lines": self.damaged,
            "replaced replies": self.duplicates,
        }


def last_of_each(items: Sequence[Item]) -> tuple[list[Item], int]:
    """The last reply to each question in the order of subset, question and repeat, and how many were replaced."""
    kept = {item.key: item for item in items}
    return [kept[key] for key in sorted(kept)], len(items) - len(kept)
