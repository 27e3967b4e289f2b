"""The benchmark's arithmetic against facts about it: inputs and values of its own tests, and derived ones.

The file of cases is read from the folder of oracle values; the fixture's expected figures come from an independent
scorer of the same protocol.
"""

from __future__ import annotations

import json

import pytest

from envrate.bench_adapters import interactionbench as ib
from envrate.bench_adapters.interactionbench._data import Answer

#: Tolerances and bounds in the names of expected values.
BOUNDS = {
    "_gt": lambda value, bound: value > bound,
    "_lt": lambda value, bound: value < bound,
    "_tol0.1": lambda value, bound: abs(value - bound) <= 0.1,
    "_tol0.01": lambda value, bound: abs(value - bound) <= 0.01,
}
#: Short names in the cases.
NAMES = {
    "total": "total_score",
    "timing": "timing_accuracy",
    "TA": "timing_accuracy",
    "SC": "silence_compliance",
    "violations": "n_violations",
    "premature": "v_premature",
    "redundant": "v_redundant",
    "spurious": "v_spurious",
    "matched": "n_matched",
}


def _item(body):
    return ib.Item(
        item_id="video#0",
        video_id="video",
        domain="demo",
        question="What?",
        answers=tuple(Answer(*answer) for answer in body.get("answers", ())),
        **{"capability": "UNKNOWN", "question_time_s": 0.0, **{k: v for k, v in body.items() if k != "answers"}},
    )


def _prediction(emissions):
    return ib.Prediction(tuple(ib.Emission(*emission) for emission in emissions))


def _protocol(config):
    settings = dict(config)
    if settings.pop("judge", None):
        settings["judge"] = lambda question, reference, response: 1.0
    return ib.Protocol(**settings)


def _check(record, expected):
    for name, value in expected.items():
        name = name.removeprefix("derived_")
        for ending, holds in BOUNDS.items():
            if name.endswith(ending):
                name = name.removesuffix(ending)
                assert holds(record[NAMES.get(name, name)], value), (name, record[NAMES.get(name, name)], value)
                break
        else:
            assert record[NAMES.get(name, name)] == value, (name, record[NAMES.get(name, name)], value)


def _decision_timing(case):
    config = dict(case["config"])
    gate = config.pop("gate", None)
    emissions = case["emissions"]
    assert gate in (None, "content == 'right'")
    found = ib.match(
        case["ref_times"],
        [t for t, _ in emissions],
        pre_tol=config.pop("pre_tol_s", 1.0),
        gate=None if gate is None else lambda i, n: emissions[i][1] == "right",
    )
    assert not config
    numbers = ib.timing(found, len(emissions))
    record = {
        "timing_accuracy": numbers.ta,
        "silence_compliance": numbers.sc,
        "n_violations": found.violations,
        "v_premature": found.premature,
        "v_redundant": found.redundant,
        "v_spurious": found.spurious,
        "n_matched": found.matched,
        "miss_rate": round(1 - found.matched / len(case["ref_times"]), 3),
    }
    _check(record, case["expect"])


def _value(function):
    def check(case):
        value = function(case)
        if "expect_lt" in case:
            assert value < case["expect_lt"]
        if "derived" in case:
            assert value == case["derived"]
        if "expect" in case:
            assert value == case["expect"]

    return check


CHECKS = {
    "token_f1": _value(lambda case: ib.token_f1(case["ref"], case["pred"])),
    "lexical": _value(lambda case: ib.lexical(case["ref"], case["pred"])),
    "last_number": _value(lambda case: ib.last_number(case["text"])),
    "decision_timing": _decision_timing,
    "score_item": lambda case: _check(
        ib.score_item(_item(case["item"]), _prediction(case["emissions"]), _protocol(case["config"])), case["expect"]
    ),
    "parse_verdict": _value(lambda case: ib.parse_verdict(case["text"])),
    "mcq": _value(lambda case: ib.OptionMatcher(tuple(case["options"]), case["correct_index"])(case["pred"])),
    "ticks": _value(
        lambda case: ib.decision_times(
            _item(case["item"]), interval_s=case["interval"], a_window_s=case["a_window"]
        )
    ),
    "offline_parse": _value(
        lambda case: [
            list(line)
            for line in ib.parse_timed_lines(
                case["text"],
                _item({"duration_s": 20.0, "time_type": case["time_type"],
                       "question_time_s": case.get("question_time_s", 0.0)}),
            )
        ]
    ),
    "cache_key": _value(lambda case: ib.cache_key(case["question"], case["gt"], case["pred"])),
}
#: Cases about the fixture and the caches have tests of their own below.
SEPARATE = {"eval_counting_fixture", "fixture_always_fire", "fixture_never_fire", "judge_cache"}


@pytest.fixture(scope="module")
def bench(shared_data):
    return shared_data / "interactionbench"


@pytest.fixture(scope="module")
def cases(bench):
    return json.loads((bench / "derived" / "oracle_cases.json").read_text(encoding="utf-8"))["cases"]


def test_every_oracle_case(cases):
    assert len(cases) == 92
    failed = []
    for number, case in enumerate(cases):
        if case["kind"] in SEPARATE:
            continue
        try:
            CHECKS[case["kind"]](case)
        except AssertionError as error:
            failed.append((number, case["kind"], case["source"], str(error)))
    assert not failed
    assert sum(case["kind"] in SEPARATE for case in cases) == 4


@pytest.fixture(scope="module")
def fixture(bench):
    return bench / "fixture_synthetic"


#: Names in the checker's file.
CHECKED = {
    "fam": "family",
    "acc": "accuracy",
    "content": "content_score",
    "T": "timing_score",
    "total": "total_score",
    "TA": "timing_accuracy",
    "SC": "silence_compliance",
    "pre": "v_premature",
    "red": "v_redundant",
    "spu": "v_spurious",
    "N": "n_gt",
    "miss": "miss_rate",
}


@pytest.mark.parametrize("name", ["always_fire_polled", "never_fire", "counting_case", "good_run"])
def test_the_fixtures_four_prediction_files(fixture, name):
    expected = json.loads((fixture / "expected_by_checker.json").read_text(encoding="utf-8"))["runs"][name]
    result = ib.evaluate(fixture / f"preds_{name}.jsonl", fixture, mcq_key=True)
    for key, value in expected["overall_missing_scored_silent"].items():
        assert result.overall[key] == value, key
    for record in result.records:
        checked = expected["records"][record["item_id"]]
        for short, value in checked.items():
            if short != "d":
                assert record[CHECKED[short]] == value, (record["item_id"], short)
    delays = ib.delays(fixture / f"preds_{name}.jsonl", fixture)
    for item_id, checked in expected["records"].items():
        if "d" in checked:
            assert [d.delay_s for d in delays if d.item_id == item_id] == checked["d"]


def test_the_counting_case_of_the_fixture(fixture, cases):
    case = next(case for case in cases if case["kind"] == "eval_counting_fixture")
    preds = fixture / "preds_counting_case.jsonl"
    expect = case["expect"]
    one = ib.evaluate(preds, fixture, items=[case["item"]])
    assert len(one.records) == expect["n_records_with_items_filter"]
    for key in ("accuracy", "v_redundant", "timing_accuracy"):
        assert one.records[0][key] == expect[key]
    assert len(ib.evaluate(preds, fixture).records) == expect["n_records_no_filter"]
    assert len(ib.evaluate(preds, fixture, skip_missing=True).records) == expect["n_records_skip_missing"]


def test_the_polled_fixture(fixture, cases):
    case = next(case for case in cases if case["kind"] == "fixture_always_fire")["expect"]
    run = ib.load_run(fixture / "preds_always_fire_polled.jsonl")
    assert len(run.predictions) == case["n_preds"]
    items = ib.load_benchmark(fixture).by_id
    assert len(run.predictions["vidAAAAAAAA#1"].emissions) == case["vidAAAAAAAA#1.n_emissions"]
    for item in ("vidAAAAAAAA#1", "vidAAAAAAAA#0"):
        assert len(ib.decision_times(items[item])) == case[f"{item}.n_polls"]
    result = ib.evaluate(run, fixture)
    negative = next(record for record in result.records if record["family"] == "negative")
    assert negative["false_alarm"] is case["negative.false_alarm"]
    assert negative["total_score"] == case["negative.total"]
    assert result.summary["config"]["pre_tol_s"] == case["config.pre_tol_s"]
    assert result.summary["config"]["use_gate"] is case["config.use_gate"]


def test_the_silent_fixture(fixture, cases):
    case = next(case for case in cases if case["kind"] == "fixture_never_fire")["expect"]
    records = {r["item_id"]: r for r in ib.evaluate(fixture / "preds_never_fire.jsonl", fixture).records}
    assert records["vidBBBBBBBB#1"]["total_score"] == case["vidBBBBBBBB#1.total"]
    assert records["vidAAAAAAAA#1"]["total_score"] == case["vidAAAAAAAA#1.total"]
    assert records["vidAAAAAAAA#1"]["silence_compliance"] is case["vidAAAAAAAA#1.silence_compliance"]


def test_stored_verdicts(tmp_path):
    def cache(name, verdict):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps({"k": ib.cache_key("q", "g", "p"), "s": verdict}) + "\n", encoding="utf-8")
        return ib.VerdictCache(path)

    a, b, c = cache("a", 1.0), cache("b", 1.0), cache("c", 0.0)
    assert ib.Ensemble([a, b, c])("q", "g", "p") == 1.0
    assert ib.Ensemble([c, a])("q", "g", "p") == 0.0  # a tie: the first listed
    assert ib.Ensemble([a, c])("q", "g", "p") == 1.0
    assert (a("q", "g", "other"), a.misses) == (0.0, 1)
    assert (a("q", "", ""), a("q", "x", ""), a("q", "", "x"), a.misses) == (1.0, 0.0, 0.0, 1)
    with pytest.raises(KeyError):
        ib.VerdictCache(a.path, strict=True)("q", "g", "other")
