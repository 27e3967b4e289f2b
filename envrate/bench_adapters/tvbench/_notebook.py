"""The JSON that the benchmark's own notebook writes: `{"acc_dict": {task: [right, all]}, "res_list": [...]}`.

The replies are in the order of the tasks and carry no task, question, options or time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from envrate.bench_adapters._adapter import Recognition
from envrate.bench_adapters._files import head, mapping, read_json, sequence, text, whole
from envrate.bench_adapters.tvbench._dataset import Question, completed
from envrate.bench_adapters.tvbench._items import MAX_INDEX, Item, Run

#: "(B) text": the letter in a reply or in the right answer.
_LETTER = re.compile(r"^\s*\(\s*([A-Za-z])\b")


def recognise(path: Path) -> Recognition | None:
    """A JSON file with `acc_dict` and `res_list`, or None."""
    if not path.is_file() or ".json" not in path.suffixes:
        return None
    start = head(path)
    if b'"acc_dict"' not in start or not start.lstrip().startswith(b"{"):
        return None
    return Recognition("tvbench-notebook", "results of TVBench's own notebook", 0.9)


def read(path: Path, questions: dict[str, list[Question]]) -> Run:
    """The run; replies are read by a rule under which an empty reply is no answer.

    `report` keeps the notebook's own counts and what its rule gives on the same replies, so that the difference shows.

    Raises:
        ValueError: not such a file.
    """
    value = mapping(read_json(path))
    tasks, replies = value.get("acc_dict"), value.get("res_list")
    if not isinstance(tasks, dict) or not isinstance(replies, list):
        raise ValueError(f"{path}: expected an object with acc_dict (task: [right, all]) and res_list")
    notes: list[str] = []
    items: list[Item] = []
    stored: dict[str, list[int]] = {}
    damaged = place = 0
    for name, counts in tasks.items():
        right, total = (whole(n, 0, MAX_INDEX) for n in (*sequence(counts), None, None)[:2])
        if right is None or total is None:
            notes.append(f"acc_dict: task {name!r} left out: expected [right, all], got {counts!r:.80}")
            continue
        subset = "_".join(str(name).lower().split())
        stored[subset] = [right, total]
        for index in range(total):
            row = mapping(replies[place]) if place < len(replies) else None
            if row is not None and not ("pred" in row and isinstance(row.get("gt"), str)):
                damaged += 1
                notes.append(f"res_list: row {place} holds no pred and gt; counted as not answered")
                row = None
            items.append(completed(_item(subset, index, row), questions))
            place += 1
    items = _in_range(items)
    empty = sum(item.status == "unparsed" and bool(item.credited) for item in items)
    if place < len(replies):
        notes.append(f"{len(replies) - place} reply(ies) beyond the totals of acc_dict left out")
        damaged += len(replies) - place
    elif place > len(replies):
        notes.append(f"acc_dict counts {place} replies, res_list holds {len(replies)}; the rest is missing")
    lost = sorted({item.subset for item in items if not item.options})
    if lost:
        notes.append(f"left out, number of options unknown: {', '.join(lost)}; give the data set")
    items = [item for item in items if item.options]
    if empty:
        notes.append(
            f"the notebook's rule counts {empty} reply(ies) without a readable letter as right (it puts '(' before "
            "each reply, and '(' is part of every answer); here they are not answered"
        )
    if any(item.options_from == "task" for item in items):
        notes.append("options per item taken from the task (the file lists none); give the data set to read them")
    theirs = {s: sum(bool(item.credited) for item in items if item.subset == s) for s in stored}
    differing = [s for s in stored if theirs[s] != stored[s][0] and any(item.subset == s for item in items)]
    if differing:
        notes.append(f"acc_dict and the notebook's rule on res_list disagree in {', '.join(differing)}")
    return Run(
        format="tvbench-notebook",
        model=path.name.split(".")[0],
        items=tuple(items),
        version="TVBench notebook",
        report={"subsets": {s: right / total if total else None for s, (right, total) in stored.items()},
                "right without a letter": empty},
        notes=tuple(notes),
        damaged=damaged,
    )


def _in_range(items: list[Item]) -> list[Item]:
    """Items with as many options as their task's answers need, and with letters beyond the options as no answer."""
    most: dict[str, int] = {}
    for item in items:
        most[item.subset] = max(most.get(item.subset, 0), item.target)
    kept = []
    for item in items:
        if item.options_from == "task" and item.options:
            item = replace(item, options=max(item.options, most[item.subset]))
        if item.options and item.choice > item.options:
            item = replace(item, choice=0, status="unparsed")
        kept.append(item if item.target <= item.options else replace(item, target=0))
    return kept


def _item(subset: str, index: int, row: dict[str, Any] | None) -> Item:
    """One reply; `credited` is the notebook's verdict on it."""
    if row is None:
        return Item(subset, index, status="missing")
    reply, answer = text(row.get("pred")), text(row.get("gt"))
    target, letter = _option(answer), _option(reply)
    return Item(
        subset,
        index,
        target=target,
        choice=letter,
        credited=float(_their_rule(reply, answer)),
        status="ok" if letter else "unparsed",
    )


def _option(reply: str) -> int:
    """1-based option of a text that begins with "(X"; 0 for none, which the placeholder letter "@" is too."""
    match = _LETTER.match(reply)
    return ord(match[1].upper()) - ord("A") + 1 if match else 0


def _their_rule(reply: str, answer: str) -> bool:
    """The notebook's verdict: the first word of either, in lower case, is part of the other's."""
    first, right = reply.lower().split(" ")[0].replace(".", ""), answer.lower().split(" ")[0]
    return first in right or right in first
