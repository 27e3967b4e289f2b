"""lmms-eval's sample files of TVBench: `<stamp>_samples_tvbench_<task>.jsonl` beside `<stamp>_results.json`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envrate.bench_adapters._adapter import Recognition
from envrate.bench_adapters._files import mapping, read_json, read_jsonl, real, text, whole
from envrate.bench_adapters.tvbench._dataset import Question, clip_seconds, completed
from envrate.bench_adapters.tvbench._items import MAX_INDEX, WRONG, Item, Run, last_of_each
from envrate.bench_adapters.tvbench._letters import candidates_of, number, options_of, position

SAMPLES = re.compile(r"^(?:(?P<stamp>.+)_)?samples_tvbench_(?P<subset>[a-z_]+)\.jsonl(?:\.gz)?$")
RESULTS = re.compile(r"^(?P<stamp>.+)_results\.json$")

Row = dict[str, Any]


def _samples(folder: Path) -> dict[str, list[Path]]:
    """Sample files of a folder by the stamp of their run."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*samples_tvbench_*.jsonl*")):
        match = SAMPLES.match(path.name)
        if match and path.is_file():
            found.setdefault(match["stamp"] or "", []).append(path)
    return found


def _runs(path: Path) -> list[list[Path]]:
    """Sample files of each run at `path`: a folder, a results file, or one sample file."""
    if path.is_file():
        results = RESULTS.match(path.name)
        if results:
            files = _samples(path.parent).get(results["stamp"], [])
            return [files] if files else []
        return [[path]] if SAMPLES.match(path.name) else []
    here = list(_samples(path).values())
    return here or [files for child in sorted(path.iterdir()) if child.is_dir() for files in _samples(child).values()]


def recognise(path: Path) -> Recognition | None:
    """What lmms-eval left at `path`, or None."""
    found = _runs(path)
    if not found:
        return None
    if len(found) > 1:
        runs = tuple(_results_file(files) or files[0] for files in found)
        return Recognition("lmms-eval", f"lmms-eval folder with {len(found)} runs of TVBench", 1.0, runs=runs)
    tasks = len(found[0])
    return Recognition("lmms-eval", f"lmms-eval samples of TVBench, {tasks} task(s), model {_model(found[0])}", 1.0)


def _results_file(files: Sequence[Path]) -> Path | None:
    """The results file of a run, if it is there."""
    match = SAMPLES.match(files[0].name)
    path = files[0].with_name(f"{match['stamp']}_results.json") if match and match["stamp"] else None
    return path if path is not None and path.is_file() else None


def _model(files: Sequence[Path]) -> str:
    return files[0].absolute().parent.name


def read(path: Path, questions: dict[str, list[Question]]) -> Run:
    """The run at `path` (exactly one).

    Raises:
        ValueError: no run there, or no row that can be read.
    """
    found = _runs(path)
    if len(found) != 1:
        raise ValueError(f"path: expected one lmms-eval run of TVBench at {str(path)!r}, found {len(found)}")
    notes: list[str] = []
    items: list[Item] = []
    damaged = unclear = 0
    for file in found[0]:
        match = SAMPLES.match(file.name)
        assert match is not None
        rows = read_jsonl(file)
        damaged += len(rows.damaged)
        notes += rows.notes()
        for line, row in rows.rows:
            index = whole(row.get("doc_id"), 0, MAX_INDEX)
            if index is None:
                damaged += 1
                notes.append(f"{file.name}: line {line} left out: doc_id is {row.get('doc_id')!r:.50}")
                continue
            item = completed(_item(match["subset"], index, row), questions)
            if not item.options:
                damaged += 1
                notes.append(f"{file.name}: line {line} left out: no options in its prompt")
                continue
            unclear += item.credited is not None and bool(item.credited) != (0 < item.choice == item.target)
            items.append(item)
    kept, replaced = last_of_each(items)
    kept += _gaps(kept, questions)
    if replaced:
        notes.append(f"{replaced} row(s) replaced by a later one of the same doc_id")
    if unclear:
        notes.append(f"{unclear} reply(ies) where the stored verdict is not what their letter rule gives; it was kept")
    report, more, results = _report(_results_file(found[0]))
    return Run(
        format="lmms-eval",
        model=_model(found[0]),
        items=tuple(sorted(kept, key=lambda item: item.key)),
        version=text(results.get("lmms_eval_version")),
        settings={"total_evaluation_time_seconds": results.get("total_evaluation_time_seconds")},
        report=report,
        notes=(*notes, *more, "lmms-eval stores no time per reply"),
        damaged=damaged,
        duplicates=replaced,
    )


def _report(path: Path | None) -> tuple[Row, list[str], Row]:
    """Accuracy per task of the results file, what is wrong with it, and the file."""
    if path is None:
        return {}, [], {}
    try:
        results = mapping(read_json(path))
    except ValueError as error:
        return {}, [f"results left out: {error}"], {}
    subsets = {
        name.removeprefix("tvbench_"): real(mapping(figures).get("tvbench_acc,none"), 0.0, 1.0)
        for name, figures in mapping(results.get("results")).items()
        if name.startswith("tvbench_")
    }
    return {"subsets": subsets}, [], results


def _gaps(items: Sequence[Item], questions: dict[str, list[Question]]) -> list[Item]:
    """Items before a task's last row, or in its data set, that have no row."""
    gaps = []
    for subset in sorted({item.subset for item in items}):
        mine = {item.index: item for item in items if item.subset == subset}
        last = max(len(questions.get(subset, ())), max(mine) + 1)
        options = next(iter(mine.values())).options
        for index in sorted(set(range(last)) - set(mine)):
            gap = completed(Item(subset, index, status="missing"), questions)
            gaps.append(gap if gap.options else Item(subset, index, options=options, status="missing"))
    return gaps


def _item(subset: str, index: int, row: Row) -> Item:
    """One sample; older rows carry the record itself, newer ones the prompt only."""
    doc = mapping(row.get("doc"))
    candidates = candidates_of(doc.get("candidates")) or options_of(_prompt(row))
    target = number(text(row.get("target")).strip(), len(candidates)) or position(text(doc.get("answer")), candidates)
    reply = _first_text(row.get("filtered_resps", row.get("resps")))
    credited = real(row.get("tvbench_acc"), 0.0, 1.0)
    choice = their_letter(reply, candidates)
    if credited is not None and bool(credited) != (0 < choice == target):
        choice = target if credited else WRONG if choice else 0
    return Item(
        subset,
        index,
        options=len(candidates),
        target=target,
        choice=choice,
        credited=credited,
        status="ok" if choice else "unparsed",
        clip_s=clip_seconds(doc),
    )


def _prompt(row: Row) -> str:
    """The prompt: `input`, or the first text among the older `arguments`."""
    return text(row.get("input")) or _first_text(row.get("arguments"))


def _first_text(value: Any) -> str:
    """The first string in a string, list or mapping, however deeply lists nest it."""
    for _ in range(8):
        if isinstance(value, dict):
            value = next(iter(value.values()), None)
        elif isinstance(value, list):
            value = next((v for v in value if isinstance(v, (str, list, dict))), None)
    return text(value)


def their_letter(reply: str, candidates: Sequence[str]) -> int:
    """The option that lmms-eval's rule reads, 0 for none.

    The first letter that stands alone, in upper case, if it is in range; else a letter that the reply begins with; else
    the one candidate whose text the reply contains.
    """
    upper = reply.strip().upper()
    alone = re.search(r"\b([A-Z])\b", upper)
    if alone and number(alone[1], len(candidates)):
        return number(alone[1], len(candidates))
    if not alone and upper and number(upper[0], len(candidates)) and not upper[1:2].isalpha():
        return number(upper[0], len(candidates))
    held = [i for i, candidate in enumerate(candidates, 1) if candidate.strip() and candidate.strip().upper() in upper]
    return held[0] if len(held) == 1 else 0


