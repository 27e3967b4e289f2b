"""EvalScope's rows of TVBench (1.9 to 1.14, both schema generations) as items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from envrate.bench_adapters._files import mapping, read_jsonl, real, sequence, text, whole
from envrate.bench_adapters.tvbench import _evalscope_files as files
from envrate.bench_adapters.tvbench._dataset import Question, clip_seconds, completed
from envrate.bench_adapters.tvbench._items import MAX_INDEX, MAX_SECONDS, Item, Run
from envrate.bench_adapters.tvbench._letters import number, options_of, position, read_letter
from envrate.bench_adapters.tvbench._logprobs import option_logprobs

#: `score.status` of the newer schema under which a score can be used.
USABLE = ("success", "fallback", "degraded")
#: Keys of the score in a review where `main_score_name` is null: the older and the newer schema's.
SCORE_KEYS = ("accuracy", "acc")
#: More replies to one question than this is a damaged configuration.
MAX_REPEATS = 1000

Row = dict[str, Any]


def read(path: Path, questions: dict[str, list[Question]]) -> Run:
    """The run at `path` (exactly one), with items that failed or are missing put back.

    Raises:
        ValueError: no run there, or no row that can be read.
    """
    found = files.folders(path)
    if len(found) != 1:
        raise ValueError(f"path: expected one EvalScope run of TVBench at {str(path)!r}, found {len(found)}")
    folder = found[0]
    config, notes = files.config(folder)
    report, more = files.report(folder)
    notes += more
    repeats = whole(config.get("repeats"), 1, MAX_REPEATS) or 1
    if config.get("repeats") not in (None, repeats):
        notes.append(f"repeats: expected 1 ... {MAX_REPEATS}, got {config['repeats']!r:.50}; taken as 1")
    predictions, bad_p, replaced_p, said_p = _rows(folder.predictions)
    reviews, bad_r, replaced_r, said_r = _rows(folder.reviews)
    notes += said_p + said_r
    if predictions and not reviews:
        notes.append("no reviews: the letters were read from the replies by our own rule")
    items = [
        completed(_item(*key, repeats, predictions.get(key), reviews.get(key)), questions)
        for key in sorted({*predictions, *reviews})
    ]
    unknown = [item for item in items if not item.options]
    if unknown:
        first = f"{unknown[0].subset}:{unknown[0].index}"
        notes.append(f"{len(unknown)} item(s) left out, no options in prompt or data set: {first} ...")
    items = [item for item in items if item.options]
    added, said = _missing(items, config, report, questions, repeats, folder.only)
    version = text(config.get("evalscope_version"))
    return Run(
        format="evalscope",
        model=folder.model or next((text(row.get("model")) for row in predictions.values()), ""),
        items=tuple(sorted(items + added, key=lambda item: item.key)),
        version=version or ("1.12 or newer" if _is_newer(reviews.values()) else "1.11 or older"),
        settings=_settings(config, repeats),
        report=_report_figures(report) if folder.only is None else {},
        notes=tuple(notes + said),
        damaged=bad_p + bad_r,
        duplicates=max(replaced_p, replaced_r),  # one reply has a row of each
    )


def _rows(paths: tuple[Path, ...]) -> tuple[dict[tuple[str, int], Row], int, int, list[str]]:
    """The last valid row of each (subset, index), the number of bad lines and of replaced rows, and notes."""
    rows: dict[tuple[str, int], Row] = {}
    bad = replaced = 0
    notes: list[str] = []
    for path in paths:
        where = f"{path.parent.parent.name}/{path.name}"
        read_rows = read_jsonl(path)
        bad += len(read_rows.damaged)
        notes += [f"{where}: line {line} left out: {reason}" for line, reason in read_rows.damaged]
        for line, row in read_rows.rows:
            index = whole(row.get("index"), 0, MAX_INDEX)
            if index is None:
                bad += 1
                notes.append(f"{where}: line {line} left out: index is {row.get('index')!r:.50}, expected 0, 1, ...")
                continue
            key = (files.subset_of(path), index)
            replaced += key in rows
            rows[key] = row
    if replaced:
        notes.append(f"{replaced} row(s) replaced by a later one of the same index")
    return rows, bad, replaced, notes


def _is_newer(reviews: Iterable[Row]) -> bool:
    return any(isinstance(row.get("target"), list) for row in reviews)


def _content(message: Row) -> str:
    """The text of a message, whose content is a string or a list of typed parts; reasoning is left out."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [mapping(part) for part in sequence(content)]
    return "\n".join(text(part.get("text")) for part in parts if part.get("type") == "text")


def _message(row: Row, role: str) -> Row:
    """The last message of `role`."""
    messages = [mapping(message) for message in sequence(row.get("messages"))]
    return next((message for message in reversed(messages) if message.get("role") == role), {})


def _score(review: Row) -> tuple[float | None, str, bool]:
    """The verdict (None where it cannot be used), the extracted letter, and whether the scoring itself failed."""
    score = mapping(mapping(review.get("sample_score")).get("score"))
    values = mapping(score.get("value"))
    names = [name for name in (text(score.get("main_score_name")), *SCORE_KEYS, *values) if name in values]
    usable = score.get("status") is None or score.get("status") in USABLE
    credited = real(values.get(names[0]), 0.0, 1.0) if names and usable else None
    return credited, text(score.get("extracted_prediction")), not usable


def _item(subset: str, index: int, repeats: int, prediction: Row | None, review: Row | None) -> Item:
    """One item from its prediction, its review, or both."""
    row = prediction if prediction is not None else review if review is not None else {}
    output = mapping((prediction or {}).get("model_output"))
    choice = mapping(next(iter(sequence(output.get("choices"))), {}))
    reply = _message(row, "assistant") or mapping(choice.get("message"))
    meta = mapping(row.get("metadata")) or mapping(mapping(row.get("sample_score")).get("sample_metadata"))
    options = options_of(_content(_message(row, "user")))
    perf = mapping(reply.get("perf_metrics")) or mapping(output.get("perf_metrics"))
    latency = real(perf.get("latency"), 0.0, MAX_SECONDS)
    latency = latency if latency is not None else real(output.get("time"), 0.0, MAX_SECONDS)
    target = position(text(meta.get("answer")), options)
    credited, letter, failed = None, 0, False
    if review is not None:
        credited, extracted, failed = _score(review)
        letter = number(extracted.strip(), len(options))
        named = review.get("target")
        named = named[0] if isinstance(named, list) and named else named
        target = number(text(named).strip(), len(options)) or target
    else:
        letter = read_letter(_content(reply), options)
    status = _status(text(choice.get("stop_reason")), latency, letter, failed or output.get("error") is not None)
    return Item(
        subset=text(meta.get("subset")) or subset,
        index=index // repeats,
        repeat=index % repeats,
        options=len(options),
        target=target,
        choice=letter if status == "ok" else 0,
        credited=credited,
        status=status,
        latency_s=latency,
        ttft_s=real(perf.get("ttft"), 0.0, MAX_SECONDS),
        clip_s=clip_seconds(meta),
        logprobs=option_logprobs(sequence(mapping(choice.get("logprobs")).get("content")), len(options)),
    )


def _status(stop_reason: str, latency: float | None, letter: int, failed: bool) -> str:
    """What became of an item.

    A refused request leaves the error's text where the answer should be and no latency; a letter that a parser finds
    in that text is not the model's.
    """
    if failed:
        return "error"
    if stop_reason == "content_filter" or (stop_reason == "model_length" and latency is None):
        return "filtered"
    if letter:
        return "ok"
    return "truncated" if stop_reason in ("max_tokens", "model_length") else "unparsed"


# -- what is not in the rows --------------------------------------------------------------------------------------


def _requested(
    subset: str, config: Row, report: Row, questions: dict[str, list[Question]], repeats: int
) -> int | None:
    """Replies that were asked for in a subset, where a file tells."""
    executed = mapping(mapping(mapping(report.get("execution_summary")).get("subsets")).get(subset))
    count = whole(executed.get("requested"), 0, MAX_INDEX)
    if count is not None:
        return count
    if subset not in questions:
        return None
    number_of, limit = len(questions[subset]), real(config.get("limit"), 0.0)
    if limit is not None:
        number_of = min(number_of, int(limit) if isinstance(config.get("limit"), int) else int(limit * number_of))
    return number_of * repeats


def _missing(
    items: list[Item], config: Row, report: Row, questions: dict[str, list[Question]], repeats: int, only: str | None
) -> tuple[list[Item], list[str]]:
    """Items that were asked for and have no row, and what cannot be known about them."""
    by_subset: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_subset[item.subset].append(item)
    wanted = mapping(mapping(config.get("dataset_args")).get("tvbench")).get("subset_list")
    resolved = mapping(mapping(config.get("resolved_benchmarks")).get("tvbench")).get("subset_list")
    listed = {s for s in sequence(resolved or wanted) if isinstance(s, str)}
    executed = set(mapping(mapping(report.get("execution_summary")).get("subsets")))
    subsets = {only} if only is not None else {*by_subset, *listed, *executed}
    added: list[Item] = []
    silent: list[str] = []
    for subset in sorted(subsets):
        present = {item.index * repeats + item.repeat for item in by_subset[subset]}
        requested = _requested(subset, config, report, questions, repeats)
        if requested is None:
            silent += [] if present else [subset]
            # Without a count, gaps before the last row are all that shows; repeats of a question come together.
            requested = -(-(max(present, default=-1) + 1) // repeats) * repeats
        options = Counter(item.options for item in by_subset[subset]).most_common(1)
        for index in sorted(set(range(requested)) - present):
            gap = Item(subset, index // repeats, index % repeats, status="missing")
            if subset not in questions and options:
                gap = replace(gap, options=options[0][0])
            added.append(completed(gap, questions))
    notes = []
    lost = sum(1 for item in added if not item.options)
    if lost:
        notes.append(f"{lost} missing item(s) of unknown tasks were not counted: their number of options is unknown")
    if silent:
        notes.append(
            f"no row of {', '.join(silent)}: how many items they hold is in no file; give the data set to count them"
        )
    return [item for item in added if item.options], notes


def _settings(config: Row, repeats: int) -> Row:
    """What a latency or an answer depends on: concurrency, streaming, retries and sampling."""
    generation = mapping(config.get("generation_config"))
    return {
        "eval_type": config.get("eval_type"),
        "concurrency": config.get("eval_batch_size"),
        "stream": bool(generation.get("stream") or config.get("stream")),
        "retries": generation.get("retries"),
        "retry_interval": generation.get("retry_interval"),
        "timeout": config.get("timeout"),
        "ignore_errors": config.get("ignore_errors"),
        "repeats": repeats,
        "limit": config.get("limit"),
        "resumed": config.get("use_cache") is not None,
        "generation": {k: v for k, v in generation.items() if isinstance(v, (str, int, float, bool))},
    }


def _report_figures(report: Row) -> Row:
    """Micro, macro and per-subset accuracy of a report of either generation, and its execution summary."""
    metrics = mapping(next(iter(sequence(report.get("metrics"))), {}))
    categories = mapping(next(iter(sequence(metrics.get("categories"))), {}))
    if not metrics:
        return {}
    subsets = [mapping(s) for s in sequence(categories.get("subsets"))]
    return {
        "micro": real(metrics.get("score")),
        "macro": real(categories.get("macro_score")),
        "num": whole(metrics.get("num")),
        "subsets": {text(s.get("name")): real(s.get("score")) for s in subsets},
        "execution": mapping(report.get("execution_summary")),
        "schema": whole(report.get("schema_version")) or 1,
    }
