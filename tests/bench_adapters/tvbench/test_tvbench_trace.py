"""From replies to rates: the Wolpaw rate, latency, and the information in option probabilities."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tvbench_writers import TASKS, evalscope, evalscope_rows, questions

from envrate import bench_adapters
from envrate.bench_adapters import bits_per_item, disagreements
from envrate.bench_adapters._rates import ItemRate
from envrate.bench_adapters.tvbench import ADAPTER, Item, Run, information_bound
from envrate.bench_adapters.tvbench._trace import UNMEASURED_MS, to_trace
from envrate.scorers import frontier


def wolpaw(options: int, right: float) -> float:
    """Bits per selection among equally likely options (Wolpaw et al. 1998), 0 at and below chance."""
    if right <= 1 / options:
        return 0.0
    wrong = 1 - right
    rest = wrong * math.log2(wrong / (options - 1)) if wrong else 0.0
    return math.log2(options) + right * math.log2(right) + rest


def _run(options: int, right: int, wrong: int, silent: int = 0, latency: float | None = 1.0) -> Run:
    """A run in which each option is the answer equally often, with the same counts for each."""
    items: list[Item] = []
    for target in range(1, options + 1):
        other = target % options + 1
        for choice, times in ((target, right), (other, wrong), (0, silent)):
            items += [
                Item("t", len(items) + k, options=options, target=target, choice=choice, latency_s=latency,
                     status="ok" if choice else "unparsed")
                for k in range(times)
            ]  # fmt: skip
    return Run("evalscope", "toy", tuple(items))


@pytest.mark.parametrize("options", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", range(4))
def test_bits_per_item_are_the_wolpaw_rate(options: int, seed: int) -> None:
    right = int(np.random.default_rng(10 * options + seed).integers(100 // options + 2, 100))
    rate = bits_per_item(to_trace(_run(options, right, 100 - right)), resamples=100)
    assert rate.bits == pytest.approx(wolpaw(options, right / 100), abs=1e-6)
    assert rate.low <= rate.bits <= rate.high


@pytest.mark.parametrize("options", [2, 3, 4, 6])
def test_below_chance_is_zero_bits(options: int) -> None:
    for right in (0, 60 // options - 5, 60 // options):
        assert bits_per_item(to_trace(_run(options, right, 60 - right)), resamples=100).bits <= 1e-9


@pytest.mark.parametrize("options", [2, 4])
def test_unanswered_items_erase(options: int) -> None:
    # 30 % unanswered, independent of the answer: (1 - e) times the Wolpaw rate of the answered ones.
    rate = bits_per_item(to_trace(_run(options, 60, 10, 30)), resamples=100)
    assert rate.bits == pytest.approx(0.7 * wolpaw(options, 60 / 70), abs=1e-6)


def test_strata_add_by_their_share_of_the_items() -> None:
    items = [*_run(2, 40, 10).items, *_run(4, 35, 15).items]
    moved = [Item(f"s{i.options}", n, **{k: getattr(i, k) for k in ("options", "target", "choice", "latency_s")})
             for n, i in enumerate(items)]
    rate = bits_per_item(to_trace(Run("evalscope", "toy", tuple(moved))), resamples=100)
    assert rate.items == 300
    assert rate.bits == pytest.approx((100 * wolpaw(2, 0.8) + 200 * wolpaw(4, 0.7)) / 300, abs=1e-6)
    assert rate.demand == pytest.approx((100 * 1 + 200 * 2) / 300, abs=1e-12)


def test_a_rate_per_second_divides_by_the_items_own_clock_not_the_services() -> None:
    run = _run(4, 80, 20, latency=9.0)
    slow, fast = to_trace(run, seconds=5.0), to_trace(_run(4, 80, 20, latency=0.1), seconds=5.0)
    rates = [frontier(t, resamples=100).at(t.header.horizon_ms).credited for t in (slow, fast)]
    assert rates[0] == pytest.approx(wolpaw(4, 0.8) / 5.0, abs=1e-6)
    assert rates[1] == pytest.approx(rates[0], abs=1e-12)


def test_an_answer_counts_from_its_latency_on_and_one_without_a_latency_never() -> None:
    timed, untimed = _run(2, 80, 20, latency=1.234), _run(2, 80, 20, latency=None)
    trace = to_trace(timed)
    assert set(trace.responses["time_ms"]) == {1234}
    points = frontier(trace, resamples=100)
    assert points.at(1230).credited == pytest.approx(0.0, abs=1e-9)
    assert points.at(trace.header.horizon_ms).credited == pytest.approx(wolpaw(2, 0.8), abs=1e-6)
    never = to_trace(untimed)
    assert set(never.responses["time_ms"]) == {UNMEASURED_MS}
    later = never.with_header(horizon_ms=10**7, micro_turn_ms=10**6)
    assert frontier(later, resamples=100).at(10**7).credited == pytest.approx(0.0, abs=1e-9)
    assert bits_per_item(never, resamples=100).bits == pytest.approx(wolpaw(2, 0.8), abs=1e-6)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "long", True, 1e300])
def test_seconds_out_of_range(seconds: object) -> None:
    with pytest.raises(ValueError, match="seconds: expected a number"):
        to_trace(_run(2, 8, 2), seconds=seconds)  # type: ignore[arg-type]


def test_clip_lengths_are_the_clock_where_all_items_have_one(tmp_path: Path) -> None:
    work = evalscope(tmp_path, questions(30), np.arange(30))
    data = tmp_path / "data" / "json"
    data.mkdir(parents=True)
    for task, options in TASKS.items():
        made = [q for q in questions(30) if q.task == task]
        words = ["red", "green", "blue", "white"][:options]
        records = [{"candidates": words, "answer": words[q.target], "start": 1.0, "end": 4.5} for q in made]
        (data / f"{task}.json").write_text(json.dumps(records))
    assert bench_adapters.load(work, data=tmp_path / "data").header.duration_ms == 30 * 3500
    assert bench_adapters.load(work, data=tmp_path / "data", seconds="clip").header.extra["counts"]["missing"] == 0


# -- the order of runs ------------------------------------------------------------------------------------------------


def test_pairs_whose_order_by_accuracy_and_by_bits_differ_are_flagged() -> None:
    withheld = ItemRate(math.nan, math.nan, math.nan, 1.0, 9)
    rates = [ItemRate(0.2, 0.15, 0.25, 1.0, 9), ItemRate(0.4, 0.3, 0.5, 1.0, 9), withheld]
    found = disagreements(["a", "b", "c"], [0.7, 0.6, 0.9], rates)
    assert [(f.better_by_accuracy, f.better_by_bits, f.shown) for f in found] == [("a", "b", True)]
    assert "a is more accurate than b" in str(found[0])
    assert not disagreements(["a", "b"], [0.6, 0.6], rates[:2])
    assert not disagreements(["a", "b"], [None, 0.6], rates[:2])


def test_equal_accuracy_on_fewer_options_carries_fewer_bits() -> None:
    """Why the order can differ at all: 80 % of two options is 0.28 bits, 60 % of four is 0.42."""
    many, few = to_trace(_run(4, 60, 40)), to_trace(_run(2, 80, 20))
    rates = [bits_per_item(t, resamples=100) for t in (many, few)]
    assert rates[0].bits == pytest.approx(wolpaw(4, 0.6), abs=1e-6)
    found = disagreements(["many", "few"], [0.6, 0.8], rates)
    assert [(f.better_by_accuracy, f.better_by_bits) for f in found] == [("few", "many")]


# -- option probabilities ---------------------------------------------------------------------------------------------


def _with_probabilities(count: int, right: float, sharpen: float, seed: int = 0) -> list[Item]:
    """Items of four options whose model gives its option probability `right`, the others an equal share.

    `sharpen` multiplies the log-probabilities, as an over-confident model would.
    """
    rng = np.random.default_rng(seed)
    items = []
    for index in range(count):
        target = int(rng.integers(1, 5))
        favoured = target if rng.random() < right else int(rng.choice([o for o in range(1, 5) if o != target]))
        p = np.full(4, (1 - right) / 3)
        p[favoured - 1] = right
        logs = sharpen * np.log(p)
        logs -= np.log(np.exp(logs).sum())
        items.append(Item("t", index, options=4, target=target, choice=favoured, logprobs=tuple(logs.tolist())))
    return items


@pytest.mark.parametrize("sharpen", [1.0, 4.0, 0.3])
def test_calibrated_probabilities_carry_the_wolpaw_rate_whatever_their_temperature(sharpen: float) -> None:
    bound = information_bound(_with_probabilities(4000, 0.7, sharpen))
    # 4000 items: standard error about 0.025 bits; the grid of temperatures costs less than 0.005.
    assert bound.bits == pytest.approx(wolpaw(4, 0.7), abs=0.08)
    assert bound.low < wolpaw(4, 0.7) < bound.high + 0.01


def test_probabilities_that_know_nothing_carry_nothing() -> None:
    items = _with_probabilities(2000, 0.7, 1.0)
    rng = np.random.default_rng(1)
    shuffled = [
        Item("t", i, options=4, target=int(rng.integers(1, 5)), logprobs=item.logprobs) for i, item in enumerate(items)
    ]
    assert information_bound(shuffled).bits <= 0.005


def test_few_items_give_no_bound() -> None:
    bound = information_bound(_with_probabilities(10, 0.7, 1.0))
    assert math.isnan(bound.bits) and bound.reason is not None and "expected 20" in bound.reason


def test_option_probabilities_are_read_from_the_rows(shared_data: Path) -> None:
    items = ADAPTER.read(shared_data / "evalscope_runs" / "v1.14.1_http_logprobs").items
    known = [item for item in items if item.logprobs is not None]
    assert len(known) == 8
    for item in known:
        assert item.logprobs is not None and len(item.logprobs) == item.options
        assert sum(map(math.exp, item.logprobs)) == pytest.approx(1.0, abs=1e-9)  # the toy server lists all options
    first = next(item for item in known if (item.subset, item.index) == ("object_shuffle", 0))
    assert first.logprobs == (-1.8971199848858813, -0.35667494393873245, -1.8971199848858813)  # A, B, C of its row


def test_a_stored_verdict_that_contradicts_the_letter_is_told(tmp_path: Path) -> None:
    made = questions(6, right=1.0, silent=0.0)
    work = evalscope(tmp_path, made, np.arange(6))
    path = work / "reviews" / "toy" / "tvbench_action_count.jsonl"
    row = evalscope_rows(made[0], made[0])[1]
    row["sample_score"]["score"]["value"]["accuracy"] = 0.0
    path.write_text("\n".join([json.dumps(row), *path.read_text().splitlines()[1:]]))
    table = bench_adapters.scores(work)
    assert table is not None and any("contradict the stored letter" in note for note in table.notes)
