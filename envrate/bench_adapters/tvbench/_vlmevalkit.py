"""VLMEvalKit's prediction tables in the form of MVBench, as private TVBench data sets of it write them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from envrate.bench_adapters._adapter import Recognition
from envrate.bench_adapters._files import head, read_table, real, text
from envrate.bench_adapters.tvbench._dataset import Question, clip_seconds, completed
from envrate.bench_adapters.tvbench._items import MAX_INDEX, TASK_OPTIONS, WRONG, Item, Run, last_of_each
from envrate.bench_adapters.tvbench._letters import candidates_of, position, read_letter

#: Columns without which a table is not one of theirs.
NEEDED = ("question", "answer", "candidates", "prediction")
ENDINGS = (".tsv", ".csv", ".json", ".xlsx")
#: What stands in `prediction` where the request failed.
FAILED = "failed to obtain answer"


def recognise(path: Path) -> Recognition | None:
    """A table with the needed columns, or None; `.xlsx` goes by its name."""
    name = path.name.lower().removesuffix(".gz")
    if not path.is_file() or not name.endswith(ENDINGS):
        return None
    named = "tvbench" in name
    words = f"VLMEvalKit table ({name.rsplit('.', 1)[-1]}) in MVBench's form"
    if name.endswith(".xlsx"):
        return Recognition("vlmevalkit", words, 0.8) if named or "mvbench" in name else None
    start = head(path, 1 << 18)
    first = start if name.endswith(".json") else start.split(b"\n", 1)[0]
    if not all(column.encode() in first for column in NEEDED):
        return None
    return Recognition("vlmevalkit", words, 0.8 if named else 0.6)


def read(path: Path, questions: dict[str, list[Question]]) -> Run:
    """The run; the judge's `score` is kept where there is one, else the letter is read by our own rule.

    Raises:
        ValueError: not a table with the columns question, answer, candidates and prediction.
        ImportError: `.xlsx` without openpyxl.
    """
    rows, notes = read_table(path)
    damaged = len(notes)
    columns = set().union(*rows) if rows else set()
    lacking = [column for column in NEEDED if column not in columns]
    if lacking:
        raise ValueError(f"{path}: expected the columns {', '.join(NEEDED)}; {', '.join(lacking)} missing")
    place: dict[str, int] = defaultdict(int)
    items: list[Item] = []
    unjudged = 0
    for number, row in enumerate(rows, 1):
        subset = "_".join((text(row.get("task_type")) or _task_of(path)).lower().split())
        candidates = candidates_of(row.get("candidates"))
        if not candidates:
            damaged += 1
            notes.append(f"row {number} left out: candidates are no list of two or more: {row.get('candidates')!r:.60}")
            continue
        score = _number(row.get("score"))
        unjudged += score == -1
        index = place[subset]
        place[subset] += 1
        if index > MAX_INDEX:
            raise ValueError(f"{path}: more than {MAX_INDEX} rows of {subset!r}")
        items.append(completed(_item(subset, index, row, candidates, score), questions))
    if unjudged:
        notes.append(
            f"{unjudged} row(s) where the judge failed (score -1, which the kit's own totals count as right); "
            "their letters were read by our own rule"
        )
    kept, _ = last_of_each(items)
    return Run(
        format="vlmevalkit",
        model=path.name.split(".")[0],
        items=tuple(kept),
        version="VLMEvalKit",
        settings={"judge": "score" if "score" in columns else "letters read by our own rule"},
        notes=(*notes, "VLMEvalKit stores no time per reply"),
        damaged=damaged,
    )


def _task_of(path: Path) -> str:
    """A task named in the file's name, for tables without the column."""
    return next((task for task in TASK_OPTIONS if task in path.name.lower()), "all")


def _number(cell: Any) -> float | None:
    """A cell that holds a number, as a number or as text."""
    if isinstance(cell, str):
        try:
            cell = float(cell)
        except ValueError:
            return None
    return real(cell)


def _item(subset: str, index: int, row: dict[str, Any], candidates: list[str], score: float | None) -> Item:
    """One row; a letter that contradicts the judge gives way to the judge."""
    prediction, answer = _cell(row.get("prediction")), _cell(row.get("answer"))
    target = position(answer, candidates) or read_letter(answer, candidates)
    failed = prediction.lower().startswith(FAILED)
    choice = 0 if failed else read_letter(prediction, candidates)
    credited = score if score in (0.0, 1.0) else None
    if credited == 1.0:
        choice = target
    elif credited == 0.0 and choice == target:
        choice = WRONG if choice else 0
    if credited is None:
        credited = float(0 < choice == target)
    times = {name: _number(row.get(name)) for name in ("start", "end", "video_length")}
    status = "error" if failed else "ok" if choice else "unparsed"
    return Item(
        subset,
        index,
        options=len(candidates),
        target=target,
        choice=choice if status == "ok" else 0,
        credited=credited,
        status=status,
        clip_s=clip_seconds(times),
    )


def _cell(cell: Any) -> str:
    """A cell as text; an empty one is the empty string."""
    return "" if cell is None else str(cell).strip()
