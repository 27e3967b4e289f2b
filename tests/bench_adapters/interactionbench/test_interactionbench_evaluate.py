"""The benchmark's evaluation: runs, groups, rounding, files, and its scripted policies."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys

import ib_synthetic as synthetic
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envrate.bench_adapters import interactionbench as ib
from envrate.bench_adapters.interactionbench._evaluate import rounded_mean


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return synthetic.make(tmp_path_factory.mktemp("bench"), alerts=10, tracks=5, questions=9, narrations=4)


# -- rounding -----------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1000).map(lambda n: n / 10), min_size=1, max_size=60), st.integers(0, 3))
def test_means_of_one_decimal_are_rounded_as_exact_means_are(values, digits):
    assert rounded_mean(values, digits) == round(statistics.mean(values), digits)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_means_of_any_numbers_are_rounded_as_exact_means_are(values):
    assert rounded_mean(values) == round(statistics.mean(values), 3)


def test_a_tie_is_decided_by_the_exact_mean():
    # 66.7 and 100 are no exact binary numbers: their mean lies below 83.35.
    assert rounded_mean([66.7, 100.0], 1) == 83.3
    assert rounded_mean([0.5, 0.25], 2) == round(statistics.mean([0.5, 0.25]), 2)


# -- matching and timing ------------------------------------------------------------------------------------------


def test_an_infinite_tolerance_gives_early_emissions_to_the_next_free_event():
    found = ib.match([10.0, 20.0], [4.0, 12.0, 15.0, 30.0], pre_tol=math.inf)
    assert (found.taken, found.delays) == ((0, 1), (0.0, 0.0))
    assert (found.premature, found.redundant, found.spurious) == (0, 2, 0)


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=12, unique=True),
    st.lists(st.integers(-20, 500), max_size=40),
)
def test_every_emission_is_matched_or_a_violation(events, emissions):
    found = ib.match(sorted(e / 4 for e in events), sorted(e / 4 for e in emissions))
    assert found.matched + found.violations == len(emissions)
    taken = [i for i in found.taken if i is not None]
    assert taken == sorted(taken)


def test_only_matched_emissions_have_no_violations_and_the_same_timing():
    # The benchmark's own restraint oracle.
    rng = np.random.default_rng(0)
    events = np.sort(rng.uniform(0, 100, 6))
    emissions = np.sort(rng.uniform(0, 110, 30))
    found = ib.match(events.tolist(), emissions.tolist())
    kept = [emissions[i] for i in found.taken if i is not None]
    again = ib.match(events.tolist(), kept)
    assert again.violations == 0
    assert ib.timing(again, len(kept)).ta == ib.timing(found, 30).ta
    assert ib.timing(again, len(kept)).sc == 100.0


@given(st.none() | st.text(max_size=60), st.none() | st.text(max_size=60))
def test_content_scores_of_any_text_are_scores(reference, response):
    assert 0.0 <= ib.lexical(reference, response) <= 1.0
    assert ib.lexical(response, response) in (0.0, 1.0)
    options = (reference or "x", "red cup", "blue")
    chosen = ib.option_chosen(options, response)
    assert chosen is None or 0 <= chosen < 3
    assert sum(ib.OptionMatcher(options, c)(response) for c in range(3)) == (chosen is not None)
    assert ib.parse_verdict(response or "") in (0.0, 1.0)


# -- runs ---------------------------------------------------------------------------------------------------------


def test_the_last_of_several_lines_counts(root):
    lines = synthetic.run(root, synthetic.answering(root))
    silent = [line | {"emissions": []} for line in lines]
    assert ib.evaluate(silent + lines, root, mcq_key=True).records == ib.evaluate(lines, root, mcq_key=True).records
    result = ib.evaluate(lines + silent, root, mcq_key=True)
    assert result.overall["timing_accuracy"] == 0.0
    assert "34 lines repeat an item: the last one counts" in result.notes


def test_missing_and_unknown_items_are_named(root):
    lines = synthetic.run(root, synthetic.answering(root))
    result = ib.evaluate([*lines[:-4], {"video_id": "nobody", "emissions": []}], root, mcq_key=True)
    assert "4 items have no line in the run and count as silent" in result.notes
    assert "1 lines of the run name items that the data does not have: ignored" in result.notes
    assert len(result.records) == len(lines)
    some = ib.evaluate(lines[:-4], root, mcq_key=True, skip_missing=True)
    assert len(some.records) == len(lines) - 4
    listed = ib.evaluate(lines, root, mcq_key=True, items=["vid00000000#0", "gone#0"])
    assert len(listed.records) == 1 and "1 of the 2 listed items are not in the data" in listed.notes


def test_an_unused_key_is_named(root):
    lines = synthetic.run(root, synthetic.answering(root))
    plain = ib.evaluate(lines, root)
    assert any("was not used" in note for note in plain.notes)
    assert not any(record.get("mcq") for record in plain.records)
    keyed = ib.evaluate(lines, root, mcq_key=root / "mcq" / "mcq_key_v4.jsonl")
    assert sum(bool(record.get("mcq")) for record in keyed.records) == 9
    assert keyed.overall["accuracy"] == 100.0 > plain.overall["accuracy"]


def test_blank_emissions_say_nothing_and_equal_times_keep_their_order(root):
    said = [{"t": 5.0, "content": "late"}, {"t": 1.0, "content": " \n"}, {"t": 1.0, "content": None}]
    said += [{"t": 5.0, "content": "later"}, {"t": -1.0, "content": "early"}]
    run = ib.load_run([{"video_id": "v", "emissions": said}])
    assert [e.content for e in run.predictions["v#0"].spoken] == ["early", "late", "later"]


# -- records and summary ------------------------------------------------------------------------------------------

COMMON = (
    "item_id video_id capability capability_group core_realtime time_type interaction_type sub_tag range_length domain "
    "duration_s family total_score emissions_per_min"
).split()
POSITIVE = (
    "timing_accuracy silence_compliance n_gt n_resp n_matched n_violations v_premature v_redundant v_spurious "
    "response_precision delay_mean_s miss_rate timing_score accuracy"
).split()
BY_FAMILY = {
    "negative": "false_alarm n_violations v_spurious v_premature v_redundant silence_compliance timing_score".split(),
    "A_retro_qa": [*POSITIVE, "answered", "memory_span_s"],
    "B_trigger": [*POSITIVE, "content_score"],
    "C_segments": [*POSITIVE, "covered_accuracy", "segment_coverage"],
}


def test_keys_of_records_by_family(root):
    lines = synthetic.run(root, synthetic.answering(root), model="m", run="r", n_polls=60, poll_latencies=[0.5] * 60)
    result = ib.evaluate(lines, root, mcq_key=True)
    pace = ["poll_latency_mean", "poll_latency_max", "realtime_factor", "chatter_rate", "model", "run"]
    for record in result.records:
        expected = {*COMMON, *pace, *BY_FAMILY[record["family"]]} | ({"mcq"} if record["time_type"] == "A" else set())
        assert set(record) == expected, record["family"]
    record = result.records[0]
    assert (record["poll_latency_mean"], record["poll_latency_max"], record["realtime_factor"]) == (0.5, 0.5, 2.5)
    assert (record["emissions_per_min"], record["chatter_rate"]) == (1.0, round(1 / 60, 3))


def test_groups_of_the_summary(root, tmp_path):
    result = ib.evaluate(synthetic.run(root, synthetic.answering(root, 1.0)), root, mcq_key=True)
    summary = result.summary
    assert list(summary) == [
        "overall", "by_capability", "by_capability_group", "by_time_type", "by_interaction_type", "by_family",
        "by_range_length", "by_core_realtime", "config",
    ]  # fmt: skip
    assert {k: v["n_items"] for k, v in summary["by_capability_group"].items()} == {
        "CST+BRC": 5, "IVQA+CIR": 9, "LCG": 4, "PTR": 16,
    }  # fmt: skip
    assert set(summary["by_core_realtime"]) == {"True", "False"}
    assert summary["by_time_type"]["A"]["answered_rate"] == 1.0
    assert summary["by_family"]["negative"] == {
        "n_items": 6, "total_score": 100.0, "silence_compliance": 100.0, "timing_score": 100.0, "v_premature": 0.0,
        "v_redundant": 0.0, "v_spurious": 0.0, "emissions_per_min": 0.0, "false_alarm_rate": 0.0,
    }  # fmt: skip
    assert list(summary["config"]) == [
        "delta_s", "gate_thresh", "use_gate", "pre_tol_s", "mcq_key", "items", "judge", "judge_prompt",
        "judge_cache_misses",
    ]  # fmt: skip
    # The run is right and 1 s late: TA 80, SC 100, T 88.9; its totals by hand from those.
    overall = summary["overall"]
    assert overall["accuracy"] == 100.0
    assert overall["timing_accuracy"] == 80.0
    assert overall["total_score"] == round(statistics.mean([94.5] * 19 + [100.0] * 15), 3)
    folder = result.save(tmp_path / "out")
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8")) == summary
    written = [json.loads(line) for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    assert written == list(result.records)


def test_groups_without_a_name_are_called_none(tmp_path):
    folder = tmp_path / "annotations" / "d"
    folder.mkdir(parents=True)
    items = [{"time_type": "B", "answers": [{"time_s": 1.0, "content": "x"}]}]
    (folder / "v.json").write_text(json.dumps({"items": items}), encoding="utf-8")
    result = ib.evaluate([{"video_id": "v", "emissions": [{"t": 1.0, "content": "x"}]}], tmp_path)
    assert set(result.summary["by_range_length"]) == set(result.summary["by_interaction_type"]) == {"None"}
    assert result.records[0]["emissions_per_min"] is None  # no duration
    assert "emissions_per_min" not in result.overall


# -- judges -------------------------------------------------------------------------------------------------------


def test_a_stored_verdict_replaces_the_lexical_score_and_missing_ones_are_counted(root, tmp_path):
    lines = synthetic.run(root, synthetic.answering(root, 1.0))
    items = ib.load_benchmark(root).items
    asked = [item for item in items if item.capability == "PTR" and not item.should_stay_silent]
    cache = tmp_path / "cache.jsonl"
    keys = [ib.cache_key(item.question, item.events[0].content, item.events[0].content) for item in asked[:-1]]
    # A later line overwrites an earlier one.
    rows = [{"k": key, "s": 0.0} for key in keys] + [{"k": key, "s": 1.0} for key in keys[:4]]
    cache.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ids = [item.item_id for item in asked]
    for spec in (f"cache:{cache}", f"ensemble:{cache},{cache}"):
        result = ib.evaluate(lines, root, judge=spec, items=ids, mcq_key=False)
        assert [record["accuracy"] for record in result.records] == [100.0] * 4 + [0.0] * (len(asked) - 4)
        assert result.summary["config"]["judge_cache_misses"] == 1
        assert "1 judge verdicts are missing and count as 0" in result.notes
        with pytest.raises(KeyError):
            ib.evaluate(lines, root, judge=spec, items=ids, strict=True)
    for wrong in ("gpt", "cache:", "ensemble:"):
        with pytest.raises(ValueError, match="judge: expected 'lexical', 'cache:FILE'"):
            ib.evaluate(lines, root, judge=wrong)


def test_descriptions_are_scored_by_a_judges_own_method(root):
    class Both:
        def __call__(self, question, reference, response):
            return 0.0

        def vdc(self, question, reference, response):
            return 1.0

    result = ib.evaluate(synthetic.run(root, synthetic.answering(root)), root, judge=Both(), mcq_key=False)
    blocks = result.summary["by_family"]
    assert "accuracy" not in blocks.pop("negative")
    accuracy = {family: block["accuracy"] for family, block in blocks.items()}
    assert accuracy == {"A_retro_qa": 100.0, "B_trigger": 0.0, "C_segments": 100.0}


def test_the_gate_turns_wrong_content_away(root):
    def say(item, item_id):
        said = synthetic.answering(root)(item, item_id)
        return [(said[0][0], "nonsense"), (said[0][0] + 1.0, said[0][1])] if said else []

    alerts = [item.item_id for item in ib.load_benchmark(root).items if item.family == "B_trigger"]
    lines = synthetic.run(root, say)
    open_, gated = (ib.evaluate(lines, root, items=alerts, mcq_key=False, use_gate=g).overall for g in (False, True))
    assert (open_["timing_accuracy"], open_["v_redundant"], open_["accuracy"]) == (100.0, 1.0, 0.0)
    assert (gated["timing_accuracy"], gated["v_spurious"], gated["accuracy"]) == (80.0, 1.0, 100.0)


def test_bad_parameters(root):
    lines = synthetic.run(root, synthetic.blind("never"))
    with pytest.raises(ValueError, match="delta: expected a number"):
        ib.evaluate(lines, root, delta=0.0)
    with pytest.raises(ValueError, match="pre_tol: expected a number"):
        ib.evaluate(lines, root, pre_tol=-1.0)
    assert ib.evaluate(lines, root, pre_tol=math.inf).summary["config"]["pre_tol_s"] == "inf"


# -- weight -------------------------------------------------------------------------------------------------------


def test_scoring_never_imports_jax(root, tmp_path):
    path = synthetic.write(tmp_path / "preds.jsonl", synthetic.run(root, synthetic.answering(root)))
    script = (
        "import sys\n"
        "from envrate.bench_adapters import interactionbench as ib\n"
        f"ib.evaluate({str(path)!r}, {str(root)!r}, mcq_key=True)\n"
        f"ib.load({str(path)!r}, {str(root)!r})\n"
        "heavy = {'jax', 'numba', 'matplotlib', 'mujoco', 'scipy.stats', 'scipy.signal'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
