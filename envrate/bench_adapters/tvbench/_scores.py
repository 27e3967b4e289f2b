"""TVBench's own numbers: accuracy per task, micro and macro, as the program that made the run counts them."""

from __future__ import annotations

from collections.abc import Sequence

from envrate.bench_adapters._adapter import Cell, ScoreTable
from envrate.bench_adapters.tvbench._items import Item, Run

#: Digits to which EvalScope rounds; its macro accuracy is the mean of accuracies so rounded.
DIGITS = 4
COLUMNS = ("task", "options", "items", "answered", "scored", "accuracy", "reported", "missing counted")


def score_table(run: Run) -> ScoreTable:
    """Accuracy recomputed from the rows, beside the one the run's report holds.

    `accuracy` is over the rows with a verdict, as the producer counts; `missing counted` has every item asked for in
    the denominator. `values` hold micro ("accuracy") and macro accuracy of both kinds and the report's.
    """
    subsets = list(dict.fromkeys(item.subset for item in run.items))
    reported = run.report.get("subsets", {})
    rows: list[tuple[Cell, ...]] = []
    means: list[float] = []
    whole_means: list[float] = []
    for subset in subsets:
        mine = [item for item in run.items if item.subset == subset]
        theirs, all_in = _theirs(mine), _all_in(mine)
        means += [] if theirs is None else [theirs]
        whole_means.append(all_in)
        sizes = sorted({item.options for item in mine})
        rows.append(
            (
                subset,
                "/".join(str(size) for size in sizes),
                len(mine),
                sum(item.choice != 0 for item in mine),
                sum(item.credited is not None for item in mine),
                theirs,
                reported.get(subset),
                all_in,
            )
        )
    values: dict[str, float | None] = {
        "accuracy": _theirs(run.items),
        "macro accuracy": round(sum(means) / len(means), DIGITS) if means else None,
        "accuracy, missing counted": _all_in(run.items),
        "macro accuracy, missing counted": round(sum(whole_means) / len(whole_means), DIGITS),
        "reported accuracy": run.report.get("micro"),
        "reported macro accuracy": run.report.get("macro"),
    }
    return ScoreTable(
        title=f"TVBench accuracy of {run.model or 'the run'} ({run.format})",
        columns=COLUMNS,
        rows=tuple(rows),
        values=values,
        main="accuracy",
        notes=tuple(_notes(run, values)),
    )


def _theirs(items: Sequence[Item]) -> float | None:
    """Mean of the verdicts that were given; with none given, of right letters."""
    verdicts = [item.credited for item in items if item.credited is not None]
    if not verdicts:
        letters = [float(0 < item.choice == item.target) for item in items if item.status != "missing"]
        return round(sum(letters) / len(letters), DIGITS) if letters else None
    return round(sum(verdicts) / len(verdicts), DIGITS)


def _all_in(items: Sequence[Item]) -> float:
    """Right answers of all items that were asked for; one that is no answer is not right."""
    return round(sum(0 < item.choice == item.target for item in items) / len(items), DIGITS)


def _notes(run: Run, values: dict[str, float | None]) -> list[str]:
    """Where the numbers of the files and of their rows differ."""
    notes = []
    for name, reported in (("accuracy", "reported accuracy"), ("macro accuracy", "reported macro accuracy")):
        ours, theirs = values[name], values[reported]
        if ours is not None and theirs is not None and abs(ours - theirs) > 0.5 * 10**-DIGITS:
            notes.append(f"{name} from the rows is {ours:.4f}, the report says {theirs:.4f}")
    lucky = sum(bool(item.credited) and item.choice == 0 for item in run.items)
    if lucky:
        notes.append(f"{lucky} item(s) that hold no answer were counted as right by the program that made the run")
    unlike = sum(
        item.credited is not None and item.choice > 0 and bool(item.credited) != (item.choice == item.target)
        for item in run.items
    )
    if unlike:
        notes.append(f"{unlike} stored verdict(s) contradict the stored letter; bits go by the letter")
    return notes
