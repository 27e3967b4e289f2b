"""Runs as traces: what is required when, blind and late systems, latencies, hindsight."""

from __future__ import annotations

import json
import math

import ib_synthetic as synthetic
import numpy as np
import pytest

from envrate.bench_adapters import check_adapter
from envrate.bench_adapters import interactionbench as ib
from envrate.scorers import frontier
from envrate.scorers._timing import stratum_rate

LATENCIES = [0, 1000, 2000, 3000, 4000, 5000]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return synthetic.make(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Long videos with many events, for what a speaker gets by luck."""
    return synthetic.make(
        tmp_path_factory.mktemp("long"), alerts=0, tracks=400, silent=0, questions=0, narrations=0, duration=300.0,
        per_item=10, apart=0.0,
    )  # fmt: skip


def _strata(trace):
    return [stratum.name for stratum in trace.header.strata]


def _rates(trace, method=None):
    """Bits per tick by stratum at each latency."""
    return {
        stratum.name: stratum_rate(trace, i, LATENCIES)
        for i, stratum in enumerate(trace.header.strata)
        if stratum.method != "profile" and method in (None, stratum.method)
    }


def test_what_is_required(root):
    trace = ib.load(synthetic.run(root, synthetic.answering(root)), root)
    header, t = trace.header, trace.ticks
    expected = ["timing B PTR", "timing C BRC", "timing C LCG", "content K=3", "content K=4", "content open"]
    assert _strata(trace) == expected
    assert (header.tick_ms, header.micro_turn_ms, header.horizon_ms, header.clock) == (1000, 1000, 5000, "video")
    assert (header.items, header.task, header.demand.kind, header.hindsight) == (138, None, "nominal", False)
    items = synthetic.items_of(root)
    # 78 videos of 60 s, and 60 answer windows of 10 s.
    assert header.duration_ms == 1000 * (78 * 60 + 60 * 10)
    # Slots 0 ... 60 of each video, those whose window of 5 s ends within it scored.
    timing = t["stratum"] < 3
    assert np.bincount(t["stratum"][timing]).tolist() == [46 * 61, 20 * 61, 12 * 61]
    assert np.bincount(t["stratum"][timing & t["scored"]]).tolist() == [46 * 56, 20 * 56, 12 * 56]
    for episode, (_, item) in enumerate(items):
        due = sorted(math.floor(a["time_s"]) for a in item["answers"] if a["time_s"] is not None)
        mine = timing & (t["episode"] == episode)
        assert t["tick"][mine & (t["required"] == 1)].tolist() == (due if item["time_type"] != "A" else [])
    # Options: one tick at the question, the letter required; open answers: one per event and one control each.
    assert (t["stratum"] == 3).sum() == (t["stratum"] == 4).sum() == 30
    opened = t["required"][t["stratum"] == 5]
    assert np.bincount(opened).tolist() == [40 + 80 + 48] * 2
    bits = (46 + 20 + 12) * 56 + 30 * math.log2(3) + 30 * 2 + 168
    assert header.demand.upper == pytest.approx(1000 * bits / header.duration_ms)


@pytest.mark.parametrize("delay", [0.0, 2.0])
def test_a_perfect_run_gets_the_whole_demand_from_its_delay_on_and_nothing_below(root, delay):
    trace = ib.load(synthetic.run(root, synthetic.answering(root, delay)), root)
    points = [p for p in frontier(trace, resamples=200).points if p.reading == "output-only"]
    for point in points:
        whole = trace.header.demand.upper if point.latency_ms >= 1000 * delay else 0.0
        assert point.credited == pytest.approx(whole, abs=1e-9), point.latency_ms
    for rate in _rates(trace, "lag-window").values():
        assert rate.bits.tolist() == [float(latency >= 1000 * delay) for latency in LATENCIES]


@pytest.mark.parametrize("kind, rate", [("never", 0), ("always", 0), ("periodic", 0), ("random", 0.02),
                                        ("random", 0.1), ("random", 0.5)])  # fmt: skip
def test_blind_systems_have_at_most_a_thousandth_of_a_bit_per_slot(long, kind, rate):
    lines = synthetic.run(long, synthetic.blind(kind, np.random.default_rng(1), rate))
    for name, found in _rates(ib.load(lines, long)).items():
        assert found.reason == "" and found.bits.max() <= 0.001, (name, found.bits)
        if kind in ("never", "always"):
            assert found.bits.max() == 0.0


def test_blind_systems_by_the_benchmarks_own_arithmetic(root, tmp_path):
    never = ib.evaluate(synthetic.run(root, synthetic.blind("never")), root, mcq_key=True).overall
    # 6 of 138 items require silence: 100 each, all others 0.
    assert never["total_score"] == round(600 / 138, 3)
    assert (never["accuracy"], never["timing_accuracy"], never["silence_compliance"]) == (0.0, 0.0, 100.0)
    always = ib.evaluate(synthetic.run(root, synthetic.blind("always")), root, mcq_key=True).overall
    # Every event has a tick within the second before it, so timing accuracy is whole; nothing else is.
    assert always["timing_accuracy"] == 100.0
    assert (always["total_score"], always["accuracy"], always["silence_compliance"]) == (0.0, 0.0, 0.0)


def test_the_published_total_of_a_silent_system(tmp_path):
    # 69 of the benchmark's 1,060 items require silence, and a silent system's total is published as 6.509.
    root = synthetic.make(tmp_path, alerts=991, tracks=0, silent=69, questions=0, narrations=0)
    overall = ib.evaluate(synthetic.run(root, synthetic.blind("never")), root).overall
    assert (overall["n_items"], overall["total_score"]) == (1060, 6.509)


def test_emissions_moved_between_items_carry_nothing(long):
    lines = synthetic.run(long, synthetic.answering(long, 1.0))
    own = _rates(ib.load(lines, long))
    assert all(rate.bits[-1] > 0.9 for rate in own.values())
    order = np.random.default_rng(2).permutation(len(lines))
    shuffled = _rates(ib.load(synthetic.moved(lines, order), long))
    assert shuffled["timing C BRC"].bits.max() <= 0.001
    # A share of 4,000 answers less that of as many controls: four standard errors, for a chance of about 1 in 10.
    assert shuffled["content open"].bits.max() <= 4 * math.sqrt(2 * 0.1 * 0.9 / 4000)


def test_the_adapter_keeps_the_contract(tmp_path):
    data = synthetic.make(
        tmp_path, alerts=60, tracks=100, silent=10, questions=60, narrations=0, duration=60.0, per_item=8, apart=0.0
    )
    lines = synthetic.run(data, synthetic.answering(data, 1.0))

    def write(folder, order):
        synthetic.write(folder / "preds.jsonl", synthetic.moved(lines, order))
        return folder

    found = check_adapter(ib.ADAPTER, write, items=len(lines), data=str(data))
    assert found.run > 10 * found.noise


def _simple(tmp_path, answers, duration=30.0, **item):
    """A benchmark of one item."""
    folder = tmp_path / "annotations" / "demo"
    folder.mkdir(parents=True)
    base = {"capability": "PTR", "time_type": "B", "question": "q", "question_time_s": 0.0}
    body = {"video_id": "v", "duration_s": duration, "items": [base | item | {"answers": answers}]}
    (folder / "v.json").write_text(json.dumps(body), encoding="utf-8")
    return tmp_path


def _rows(trace, stratum):
    """Responses to the ticks of one stratum: (tick, value, time_ms, compute_ms)."""
    ticks = set(trace.ticks["tick"][trace.ticks["stratum"] == stratum].tolist())
    r = trace.responses
    return [
        row for row in zip(r["tick"].tolist(), r["value"].tolist(), r["time_ms"].tolist(), r["compute_ms"].tolist(),
                           strict=True)
        if row[0] in ticks
    ]  # fmt: skip


def test_content_is_the_first_emission_from_the_event_on(tmp_path):
    root = _simple(tmp_path, [{"time_s": 10.5, "content": "red cup"}])
    said = [(10.4, "red cup"), (11.0, "blue cup and more of it"), (12.0, "red cup")]
    lines = [{"video_id": "v", "emissions": [{"t": t, "content": c} for t, c in said]}]
    trace = ib.load(lines, root)
    assert _strata(trace) == ["timing B PTR", "content open"]
    assert _rows(trace, 1) == [(31, -2, 11000, 0)]
    assert [tick for tick, *_ in _rows(trace, 0)] == [10, 11, 12]
    timely = ib.load([{"video_id": "v", "emissions": [{"t": 10.5, "content": "red cup"}]}], root)
    assert _rows(timely, 1) == [(31, 1, 10500, 0)]


def test_options_are_scored_by_the_wolpaw_rate_of_what_was_answered(tmp_path):
    root = synthetic.make(tmp_path, alerts=0, tracks=0, silent=0, narrations=0, questions=240, options=(2, 3, 6))
    rng = np.random.default_rng(4)
    key = synthetic.letters(root)
    sizes = {f"vid{n:08d}#0": (2, 3, 6)[n % 3] for n in range(240)}

    def say(item, item_id):
        if rng.random() < 0.2:
            return []
        wrong = [letter for letter in "ABCDEF"[: sizes[item_id]] if letter != key[item_id]]
        return [(item["question_time_s"] + 1, key[item_id] if rng.random() < 0.7 else str(rng.choice(wrong)))]

    lines = synthetic.run(root, say)
    trace = ib.load(lines, root)
    expected = 0.0
    for size in (2, 3, 6):
        right, silent = [], []  # given each letter: a nominal law has letters equally often, a sample has not
        for letter in "ABCDEF"[:size]:
            said = [
                [emission["content"] for emission in line["emissions"]]
                for line in lines
                if (item_id := f"{line['video_id']}#0") and sizes[item_id] == size and key[item_id] == letter
            ]
            right.append(np.mean([s == [letter] for s in said]))
            silent.append(np.mean([not s for s in said]))
        answered = 1 - np.mean(silent)
        p = np.mean(right) / answered
        # Wolpaw et al. 2002, times the share that was answered: silence tells nothing of the option.
        expected += 80 * answered * (math.log2(size) + p * math.log2(p) + (1 - p) * math.log2((1 - p) / (size - 1)))
    found = frontier(trace, resamples=100)
    assert found.at(0).credited == 0.0
    assert found.at(1000).credited == pytest.approx(expected * 1000 / trace.header.duration_ms, abs=1e-6)
    assert trace.header.demand.upper == pytest.approx(80 * math.log2(2 * 3 * 6) * 1000 / trace.header.duration_ms)


def test_running_counts_bring_timing_only_and_negatives_no_content(tmp_path):
    answers = [{"time_s": t, "content": str(n)} for n, t in enumerate((5, 9, 15), 1)]
    root = _simple(tmp_path, answers, capability="CST", time_type="C", auto_number=True)
    assert _strata(ib.load([{"video_id": "v", "emissions": []}], root)) == ["timing C CST"]


def test_events_past_the_videos_end_are_due_and_not_scored(tmp_path):
    root = _simple(tmp_path, [{"time_s": 79.0, "content": "late"}, {"time_s": 79.5, "content": "later"}])
    trace = ib.load([{"video_id": "v", "emissions": [{"t": 79.0, "content": "late"}]}], root)
    row = (trace.ticks["stratum"] == 0) & (trace.ticks["required"] == 1)
    assert trace.ticks["tick"][row].tolist() == [79]
    assert not trace.ticks["scored"][row].any()
    assert any("1 events fall into the slot of another" in note for note in trace.header.notes)


def test_emissions_after_the_end_answer_no_slot_and_no_content(tmp_path):
    root = _simple(tmp_path, [{"time_s": 2.0, "content": "x"}, {"time_s": 3.0, "content": "y"}], duration=5.0)
    said = [{"t": t, "content": "z"} for t in (6.0, 7.0, 8.5, 9.0)]
    trace = ib.load([{"video_id": "v", "emissions": said}], root)
    # Slots are 0 ... 5, content ticks 6 and 8 (controls 7 and 9 are missing: there is no other video).
    assert trace.ticks["tick"][trace.ticks["stratum"] == 1].tolist() == [6, 8]
    assert _rows(trace, 0) == []
    assert _rows(trace, 1) == [(6, -2, 6000, 0), (8, -2, 6000, 0)]


def test_delivered_times_queue_behind_every_decision(tmp_path):
    root = _simple(tmp_path, [{"time_s": 2.0, "content": "x"}], duration=5.0)
    line = {
        "video_id": "v",
        "emissions": [{"t": 2.0, "content": "x", "latency_s": 0.5}, {"t": 4.0, "content": "x", "latency_s": 0.1}],
        # Decisions at 1 ... 5 s. The first ends at 4.0, the second at 4.5, the third at 4.75, the fourth at 4.85.
        "poll_latencies": [3.0, 0.5, 0.25, 0.1, 0.1],
    }
    stream, delivered = (ib.load([line], root, latency=latency) for latency in ("stream", "delivered"))
    assert _rows(stream, 1) == [(6, 1, 2000, 0)]
    assert _rows(delivered, 1) == [(6, 1, 4500, 2500)]
    assert delivered.header.clock == "wall"
    (delay,) = ib.delays([line], root)
    assert (delay.lead_s, delay.delay_s, delay.delivered_delay_s) == (0.0, 0.0, 2.5)


def test_delivered_times_without_a_latency_for_each_decision(tmp_path):
    root = _simple(tmp_path, [{"time_s": 2.0, "content": "x"}], duration=5.0)
    said = [{"t": 1.5, "content": "x", "latency_s": 1.0}, {"t": 2.0, "content": "y", "latency_s": 1.0}]
    said += [{"t": 4.0, "content": "z"}]
    trace = ib.load([{"video_id": "v", "emissions": said, "poll_latencies": []}], root, latency="delivered")
    assert _rows(trace, 1) == [(6, -2, 3500, 1500)]
    assert [tick for tick, *_ in _rows(trace, 0)] == [2, 3]
    assert any("1 of 3 emissions have no recorded latency" in note for note in trace.header.notes)
    with pytest.raises(ValueError, match="latency: the run records no latencies"):
        ib.load([{"video_id": "v", "emissions": said[2:]}], root, latency="delivered")
    moss = ib.load([{"video_id": "v", "emissions": said[2:], "model": "moss-video"}], root, latency="delivered")
    assert _rows(moss, 1)[0][2] == 4000


def test_delivered_times_of_a_raw_log_and_another_interval(tmp_path):
    root = _simple(tmp_path / "data", [{"time_s": 2.0, "content": "x"}], duration=5.0)
    folder = tmp_path / "run"
    (folder / "raw").mkdir(parents=True)
    line = {"video_id": "v", "item_index": 0, "emissions": [{"t": 4.0, "content": "x", "latency_s": 1.0}]}
    synthetic.write(folder / "preds.jsonl", [line | {"poll_latencies": [3.0, 1.0]}])
    # Every 2 s: decisions at 2 and 4 s; the first ends at 5, so the second at 6.
    config = {"protocol": "sliding", "protocol_config": {"interval": 2.0}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert _rows(ib.load(folder, root, latency="delivered"), 1)[0][2] == 6000
    # The raw log knows of a decision at 3 s more.
    polls = [{"t": t, "latency_s": s} for t, s in ((2.0, 3.0), (3.0, 0.25), (4.0, 1.0))]
    (folder / "raw" / "v#0.json").write_text(json.dumps({"polls": polls}), encoding="utf-8")
    assert _rows(ib.load(folder, root, latency="delivered"), 1)[0][2] == 6250
    # One that was cut is not used.
    (folder / "raw" / "v#0.json").write_text(json.dumps({"polls": polls})[:-9], encoding="utf-8")
    assert _rows(ib.load(folder, root, latency="delivered"), 1)[0][2] == 6000


@pytest.mark.parametrize("line, folder, config", [
    ({"run": "qwen3vl-8b_sliding_offline_iv1"}, "a", {}),
    ({"model": "agent"}, "claude_grounding", {}),
    ({}, "a", {"protocol": "offline"}),
    ({"oracle": True}, "a", {}),
    ({"shift_s": 2.48}, "a", {}),
    ({"emissions": [{"t": 1.0, "content": "x", "claimed_t": 1.0}]}, "a", {}),
])  # fmt: skip
def test_hindsight_is_marked(tmp_path, line, folder, config):
    root = _simple(tmp_path / "data", [{"time_s": 2.0, "content": "x"}])
    run = tmp_path / folder
    run.mkdir()
    synthetic.write(run / "preds.jsonl", [{"video_id": "v", "emissions": []} | line])
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    header = ib.load(run, root).header
    assert header.hindsight and any(note.startswith("hindsight: ") for note in header.notes)


def test_other_runs_are_not_marked(root):
    lines = synthetic.run(root, synthetic.answering(root), run="qwen3vl-8b_sliding_iv1", model="humane-offliner")
    assert not ib.load(lines, root).header.hindsight


def test_small_strata_are_left_out_with_their_demand_and_named(tmp_path):
    root = synthetic.make(tmp_path, narrations=2, questions=61, options=(3,) * 20 + (4,))
    trace = ib.load(synthetic.run(root, synthetic.answering(root)), root)
    assert _strata(trace) == ["timing B PTR", "timing C BRC", "content K=3", "content open"]
    left_out = [note for note in trace.header.notes if "left out" in note]
    assert left_out == [
        "stratum 'timing C LCG' left out: 8 events and 104 slots without one, expected at least 10",
        "stratum 'content K=4' left out: 3 answers, expected at least 10",
    ]
    assert frontier(trace, resamples=200).at(0).credited == pytest.approx(trace.header.demand.upper)


def test_a_tiny_run_has_no_rate_and_says_why(shared_data):
    fixture = shared_data / "interactionbench" / "fixture_synthetic"
    trace = ib.load(fixture / "preds_good_run.jsonl", fixture)
    assert len(trace.header.strata) == 4
    point = frontier(trace, resamples=200).at(5000)
    assert math.isnan(point.credited) and "expected at least 10" in point.reason


def test_restraint_counts_by_the_benchmarks_matching(root):
    say = synthetic.answering(root, 1.0)
    lines = synthetic.run(root, lambda item, i: [*say(item, i), (59.0, "and again")])
    table = ib.load(lines, root).header.extra["restraint"]
    assert table["PTR"] == {
        "events": 40, "on time": 40, "late": 0, "missed": 0, "emissions": 86, "premature": 0, "redundant": 40,
        "false alarm": 6, "silent items": 6, "kept silent": 0,
    }  # fmt: skip


def test_bad_arguments(root):
    lines = synthetic.run(root, synthetic.blind("never"))
    with pytest.raises(ValueError, match="latency: expected one of delivered, stream"):
        ib.load(lines, root, latency="wall")
    with pytest.raises(ValueError, match="horizon_s: expected an integer"):
        ib.load(lines, root, horizon_s=2.5)
    with pytest.raises(ValueError, match="data: no folder"):
        ib.load(lines, root / "nowhere")
    with pytest.raises(ValueError, match="none of the benchmark's items is left"):
        ib.load(lines, root, items=["nobody#0"])


def test_impossible_durations_are_refused(tmp_path):
    root = _simple(tmp_path, [{"time_s": 2.0, "content": "x"}], duration=2e6)
    lines = [{"video_id": "v", "emissions": []}]
    with pytest.raises(ValueError, match="v#0 lasts 2e\\+06 s"):
        ib.load(lines, root)
    item = {"capability": "PTR", "time_type": "B", "answers": [{"time_s": 2.0, "content": "x"}]}
    body = {"duration_s": 999_999, "items": [item] * 11}
    (tmp_path / "annotations" / "demo" / "v.json").write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(ValueError, match="the videos last 11000000 s in all"):
        ib.load(lines, root)


def test_a_longer_horizon_reaches_further(root):
    lines = synthetic.run(root, synthetic.answering(root, 7.0))
    assert ib.load(lines, root).header.horizon_ms == 5000
    trace = ib.load(lines, root, horizon_s=8)
    (rate, *_) = (stratum_rate(trace, 1, [6000, 7000]),)
    assert rate.bits.tolist()[1] == 1.0
