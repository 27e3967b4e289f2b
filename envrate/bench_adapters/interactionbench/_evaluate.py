"""InteractionBench's evaluation of a run: a record per item, means per group, and the two files it writes.

Means are item means over the items where a number is defined, rounded to 3 decimals; there is no weighting by event,
video or capability. A benchmark item without a line in the run counts as silent.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from envrate.bench_adapters._adapter import ScoreTable
from envrate.bench_adapters.interactionbench._data import Benchmark, Item, load_benchmark
from envrate.bench_adapters.interactionbench._judges import Judge, resolve
from envrate.bench_adapters.interactionbench._options import KEY_FILE, Options, key_path, load_options, read_ids
from envrate.bench_adapters.interactionbench._runs import SILENT, Run, load_run
from envrate.bench_adapters.interactionbench._scores import Protocol, Record, score_item

#: Means in every summary block, in its order.
METRICS = (
    "total_score", "accuracy", "timing_accuracy", "silence_compliance", "covered_accuracy", "timing_score",
    "content_score", "response_precision", "delay_mean_s", "miss_rate", "memory_span_s", "v_premature", "v_redundant",
    "v_spurious", "final_count_abs_err", "segment_coverage", "poll_latency_mean", "realtime_factor",
    "emissions_per_min", "chatter_rate",
)  # fmt: skip
#: Shares of yes among the records that have the flag, as (name in the summary, flag).
RATES = (("answered_rate", "answered"), ("false_alarm_rate", "false_alarm"))
#: Groups of the summary, as (name in the summary, key of the record).
GROUPINGS = (
    ("by_capability", "capability"),
    ("by_capability_group", "capability_group"),
    ("by_time_type", "time_type"),
    ("by_interaction_type", "interaction_type"),
    ("by_family", "family"),
    ("by_range_length", "range_length"),
    ("by_core_realtime", "core_realtime"),
)
#: Columns of the table, as (heading, key of a summary block).
COLUMNS = (
    ("n", "n_items"), ("total", "total_score"), ("accuracy", "accuracy"), ("TA", "timing_accuracy"),
    ("SC", "silence_compliance"), ("T", "timing_score"), ("delay s", "delay_mean_s"), ("miss", "miss_rate"),
    ("premature", "v_premature"), ("redundant", "v_redundant"), ("spurious", "v_spurious"),
)  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    """A run by the benchmark's own arithmetic.

    Args:
        records: one per scored item, in the benchmark's order, with the keys of its records.jsonl.
        summary: the overall block, one mapping of blocks per grouping, and the settings, as in its summary.json.
        notes: what was left out or missing.
    """

    records: tuple[Record, ...]
    summary: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def overall(self) -> dict[str, Any]:
        """The summary block over all items."""
        return dict(self.summary["overall"])

    def save(self, out: str | os.PathLike[str]) -> Path:
        """Writes records.jsonl and summary.json into the folder `out`, made if need be; returns it."""
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in self.records)
        (folder / "records.jsonl").write_text("".join(lines), encoding="utf-8")
        body = json.dumps(self.summary, ensure_ascii=False, indent=2)
        (folder / "summary.json").write_text(body + "\n", encoding="utf-8")
        return folder

    def table(self, split: str | None = None) -> ScoreTable:
        """Overall, core and reactive, then each group, as one table."""
        overall = self.summary["overall"]
        blocks: list[tuple[str, dict[str, Any]]] = [("overall", overall)]
        core = self.summary["by_core_realtime"]
        named = (("core real-time", "True"), ("reactive", "False"))
        blocks += [(name, core[key]) for name, key in named if key in core]
        for grouping in ("by_capability_group", "by_time_type", "by_range_length", "by_family"):
            blocks += self.summary[grouping].items()
        return ScoreTable(
            title="InteractionBench",
            columns=("group", *(heading for heading, _ in COLUMNS)),
            rows=tuple((name, *(block.get(key) for _, key in COLUMNS)) for name, block in blocks),
            values={heading: overall.get(key) for heading, key in COLUMNS[:6]},
            main="total",
            notes=self.notes,
            split=split,
        )


def rounded_mean(values: Sequence[float], digits: int = 3) -> float:
    """round(statistics.mean(values), digits), fast.

    The mean is exact in `statistics` and the rounding of it matters at ties only; so the slow sum of fractions is
    needed only where a mean of floats comes within its error of one.
    """
    quick = math.fsum(values) / len(values)
    scaled = abs(quick) * 10**digits
    if not math.isfinite(scaled) or abs(scaled % 1.0 - 0.5) < 1e-6 or scaled > 2**40:
        return round(mean(values), digits)
    return round(quick, digits)


def summary_block(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Number of items, means and rates of some records; what is defined for none of them is left out."""
    block: dict[str, Any] = {"n_items": len(records)}
    for name in METRICS:
        values = [v for record in records if (v := record.get(name)) is not None]
        if values:
            block[name] = rounded_mean(values)
    for name, flag in RATES:
        flags = [float(record[flag]) for record in records if flag in record]
        if flags:
            block[name] = rounded_mean(flags)
    return block


def summarise(records: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of some records: overall, by group (names as text), and the settings."""
    summary: dict[str, Any] = {"overall": summary_block(records)}
    for name, key in GROUPINGS:
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for record in records:
            groups.setdefault(str(record.get(key)), []).append(record)
        summary[name] = {group: summary_block(groups[group]) for group in sorted(groups)}
    summary["config"] = dict(config)
    return summary


@dataclass(frozen=True)
class Inputs:
    """A run and the items that it is scored on."""

    run: Run
    benchmark: Benchmark
    items: tuple[Item, ...]  # in the benchmark's order
    key: Mapping[str, Options] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def gather(
    preds: Any,
    data: str | os.PathLike[str] | Benchmark,
    *,
    mcq_key: str | os.PathLike[str] | bool | None,
    items: str | os.PathLike[str] | Iterable[str] | None,
    skip_missing: bool,
) -> Inputs:
    """Reads a run, the data and the key, and picks the items; see `evaluate`."""
    run = load_run(preds)
    benchmark = data if isinstance(data, Benchmark) else load_benchmark(data)
    notes = [*run.notes, *benchmark.notes]
    key: Mapping[str, Options] = {}
    path = key_path(benchmark.root, mcq_key)
    if path is not None:
        key, damaged = load_options(path)
        notes += damaged
    elif mcq_key is None and (key_path(benchmark.root, True) or Path()).is_file():
        notes.append(f"{KEY_FILE} is there and was not used: no item is scored by its options")
    chosen = benchmark.items
    if items is not None:
        wanted = read_ids(items)
        chosen = tuple(item for item in chosen if item.item_id in wanted)
        unknown = len(wanted) - len(chosen)
        if unknown:
            notes.append(f"{unknown} of the {len(wanted)} listed items are not in the data")
    missing = sum(item.item_id not in run.predictions for item in chosen)
    if missing and not skip_missing:
        notes.append(f"{missing} items have no line in the run and count as silent")
    if missing and skip_missing:
        chosen = tuple(item for item in chosen if item.item_id in run.predictions)
        notes.append(f"{missing} items have no line in the run and are left out")
    stray = sum(item_id not in benchmark.by_id for item_id in run.predictions)
    if stray:
        notes.append(f"{stray} lines of the run name items that the data does not have: ignored")
    if not chosen:
        raise ValueError("items: none of the benchmark's items is left; do preds, data and items belong together?")
    return Inputs(run, benchmark, chosen, key, tuple(notes))


def evaluate(
    preds: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Run,
    data: str | os.PathLike[str] | Benchmark,
    *,
    mcq_key: str | os.PathLike[str] | bool | None = None,
    judge: str | Judge | None = None,
    items: str | os.PathLike[str] | Iterable[str] | None = None,
    skip_missing: bool = False,
    delta: float = 5.0,
    pre_tol: float = 1.0,
    use_gate: bool = False,
    gate_thresh: float = 0.3,
    strict: bool = False,
) -> Evaluation:
    """Scores a run by InteractionBench's own arithmetic, rounding included.

    Args:
        preds: a preds.jsonl, the run folder that holds one, or its lines as objects; of several lines for one item
            the last counts.
        data: the benchmark's data folder.
        mcq_key: the key of the multiple-choice items; True takes the data folder's own. Without a key free-text
            scoring is used throughout, as in the benchmark's own command.
        judge: None for the lexical scorer, "cache:FILE" or "ensemble:FILE,FILE" for stored verdicts, or a function
            (question, reference, response) -> 0 ... 1.
        items: ids to score, or a file with one per line; ids that the data lacks are noted.
        skip_missing: leave out items without a line in the run instead of scoring them as silent.
        delta: timing credit falls linearly to 0 at this delay, seconds.
        pre_tol: an emission up to so many seconds before an event belongs to it; may be infinite.
        use_gate: let an emission take an event only if its content is right.
        gate_thresh: the content score needed for that.
        strict: raise KeyError for a missing verdict instead of scoring it 0.

    Raises:
        ValueError: files that cannot be read, or nothing to score. Damaged lines are left out and noted.
    """
    inputs = gather(preds, data, mcq_key=mcq_key, items=items, skip_missing=skip_missing)
    asked = resolve(judge, strict=strict)
    protocol = Protocol(delta, pre_tol, use_gate, gate_thresh, inputs.key, asked)
    predictions, before = inputs.run.predictions, int(getattr(asked, "misses", 0))
    records = tuple(score_item(item, predictions.get(item.item_id, SILENT), protocol) for item in inputs.items)
    misses = int(getattr(asked, "misses", 0)) - before
    notes = [*inputs.notes, *getattr(asked, "notes", ())]
    if misses:
        notes.append(f"{misses} judge verdicts are missing and count as 0")
    config = {
        "delta_s": delta,
        "gate_thresh": gate_thresh,
        "use_gate": use_gate,
        "pre_tol_s": pre_tol if math.isfinite(pre_tol) else "inf",
        "mcq_key": None if not inputs.key else str(key_path(inputs.benchmark.root, mcq_key)),
        "items": str(items) if isinstance(items, (str, os.PathLike)) else None if items is None else "given",
        "judge": judge if isinstance(judge, str) else None if judge is None else type(judge).__name__,
        "judge_prompt": None,
        "judge_cache_misses": misses,
    }
    return Evaluation(records, summarise(records, config), tuple(notes))
