"""Multiple-choice files and lists of item ids."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envrate.bench_adapters._files import read_bytes, read_jsonl, sequence, whole

#: The key of the multiple-choice items, in the data folder.
KEY_FILE = "mcq/mcq_key_v4.jsonl"


@dataclass(frozen=True)
class Options:
    """The options of a multiple-choice item and which of them is right (None where the key is not known)."""

    options: tuple[str, ...]
    correct: int | None = None


def load_options(key: str | os.PathLike[str]) -> tuple[dict[str, Options], list[str]]:
    """Options by item id from a key (with the right one) or an options file (without), and what was left out.

    Raises:
        ValueError: the file cannot be read or holds no options at all.
    """
    path = Path(key)
    rows = read_jsonl(path)
    notes = rows.notes()
    found: dict[str, Options] = {}
    for number, row in rows.rows:
        options = _options(row)
        if options is None:
            notes.append(f"{path.name}: line {number} left out: expected item_id with options, or with a key")
        else:
            found[row["item_id"]] = options
    if not found:
        raise ValueError(f"{path}: no options, expected lines with item_id, correct_index, answer_text, distractors")
    return found, notes


def _options(row: dict[str, Any]) -> Options | None:
    """The options that one line describes, or None."""
    if not isinstance(row.get("item_id"), str):
        return None
    if "distractors" not in row:
        shown = sequence(row.get("options"))
        return Options(tuple(shown)) if len(shown) > 1 and all(isinstance(o, str) for o in shown) else None
    distractors, answer = sequence(row["distractors"]), row.get("answer_text")
    correct = whole(row.get("correct_index"), 0, len(distractors))
    texts = all(isinstance(option, str) for option in distractors)
    if correct is None or not distractors or not texts or not isinstance(answer, str):
        return None
    return Options((*distractors[:correct], answer, *distractors[correct:]), correct)


def key_path(data: Path, mcq_key: str | os.PathLike[str] | bool | None) -> Path | None:
    """The key file meant: a path, True for the data folder's own, None or False for none."""
    if mcq_key is None or mcq_key is False:
        return None
    if mcq_key is not True:
        return Path(mcq_key)
    root = data.parent if data.name == "annotations" else data
    return root / KEY_FILE


def read_ids(items: str | os.PathLike[str] | Iterable[str]) -> frozenset[str]:
    """Item ids from a file with one per line, or as they are.

    Raises:
        ValueError: no ids at all.
    """
    if isinstance(items, (str, os.PathLike)):
        data, trouble = read_bytes(Path(items))
        if trouble is not None:
            raise ValueError(f"{items}: {trouble}")
        ids = frozenset(line.strip() for line in data.decode("utf-8", errors="replace").splitlines() if line.strip())
    else:
        ids = frozenset(items)
    if not ids:
        raise ValueError("items: no item ids, expected VIDEO#INDEX, one per line")
    return ids
