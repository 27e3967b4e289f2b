"""Lag-window and share strata: known rates, random speakers, late runs, bootstrap weights."""

from __future__ import annotations

import numpy as np
import pytest

from envrate.rd import Bracket
from envrate.scorers import frontier
from envrate.scorers._timing import binary_rate, items, share_rate, stratum_rate, timing_rate
from envrate.trace import Header, Stratum, Trace

SLOT_MS = 1000
HORIZON = 5
LATENCIES = [0, 1000, 2000, 3000, 4000, 5000]


def _trace(required, spoken, method="lag-window", pmf=(0.5, 0.5)):
    """One episode per entry: `required` and `spoken` are lists of arrays over slots."""
    episode = np.concatenate([np.full(len(r), e) for e, r in enumerate(required)])
    slot = np.concatenate([np.arange(len(r)) for r in required])
    length = np.concatenate([np.full(len(r), len(r)) for r in required])
    emitted = [(e, s) for e, row in enumerate(spoken) for s in np.flatnonzero(row)]
    who, when = (np.array(column, dtype=np.int64) for column in zip(*emitted, strict=True)) if emitted else ([], [])
    header = Header(
        tick_ms=SLOT_MS,
        micro_turn_ms=SLOT_MS,
        horizon_ms=HORIZON * SLOT_MS,
        demand=Bracket(1.0, 1.0, kind="nominal"),
        strata=(Stratum("timing", pmf, method=method),),
        clock="video",
        duration_ms=SLOT_MS * len(slot),
    )
    ticks = {
        "episode": episode,
        "tick": slot,
        "onset_ms": slot * SLOT_MS,
        "required": np.concatenate(required),
        "scored": slot + HORIZON < length,
    }
    responses = {
        "episode": np.asarray(who, dtype=np.int64),
        "time_ms": np.asarray(when, dtype=np.int64) * SLOT_MS,
        "tick": np.asarray(when, dtype=np.int64),
        "value": np.ones(len(who), dtype=np.int64),
    }
    return Trace(header, ticks, responses)


def _events(rng, count, slots, per_item):
    """Events at random slots, at least 6 apart so that no lag up to the horizon hits the next one."""
    required = []
    for _ in range(count):
        row = np.zeros(slots, dtype=np.int64)
        row[rng.choice(slots // 7, per_item, replace=False) * 7 + rng.integers(0, 1)] = 1
        required.append(row)
    return required


def _shifted(required, lag):
    return [np.concatenate([np.zeros(lag, dtype=np.int64), row[: len(row) - lag]]) for row in required]


def test_binary_rate_of_named_channels():
    # Z-channel with 40 % misses, p = 1/2: H(.3) - .5 H(.4); symmetric 20 %: 1 - H(.2); both from the task's theory.
    assert binary_rate((0.5, 0.5), 0.4, 0.0) == pytest.approx(0.395816, abs=1e-6)
    assert binary_rate((0.5, 0.5), 0.2, 0.2) == pytest.approx(1 - 0.721928, abs=1e-6)
    assert binary_rate((0.5, 0.5), 0.0, 0.0) == 1.0
    assert binary_rate((0.5, 0.5), [1.0, 0.0, 0.3, 0.9], [0.0, 1.0, 0.7, 0.8]).tolist() == [0.0, 0.0, 0.0, 0.0]


def test_binary_rate_is_the_credited_rate_of_the_library():
    rd = pytest.importorskip("envrate.rd")
    if not hasattr(rd, "profile_rate"):
        pytest.skip("rd.profile_rate is not there")
    rng = np.random.default_rng(3)
    classes = np.array([[-1, 0], [1, -1]])  # over at (0, 1), miss at (1, 0)
    for p1 in (0.5, 0.2):
        miss, false_alarm = rng.random((2, 40))
        frequencies = np.stack([(1 - p1) * false_alarm, p1 * miss], axis=-1)
        expected = np.asarray(rd.profile_rate([1 - p1, p1], classes, frequencies).rate)
        np.testing.assert_allclose(binary_rate((1 - p1, p1), miss, false_alarm), expected, atol=1e-7)


def test_a_perfect_run_two_seconds_late_gets_nothing_below_two_seconds_and_everything_from_then_on():
    required = _events(np.random.default_rng(1), 40, 120, 5)
    late = timing_rate(_trace(required, _shifted(required, 2)), 0, LATENCIES)
    assert late.bits.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    assert late.demand == 1.0
    assert late.per_second[2] == late.demand_per_second
    assert late.windows[:, 2].tolist() == [[2, 2], [2, 2]]
    prompt = timing_rate(_trace(required, required), 0, LATENCIES)
    assert prompt.bits.tolist() == [1.0] * 6


def test_early_runs_get_nothing():
    required = _events(np.random.default_rng(1), 40, 120, 5)
    early = [np.concatenate([row[1:], [0]]) for row in required]
    assert timing_rate(_trace(required, early), 0, LATENCIES).bits.max() == 0.0


def test_a_jittering_run_pays_for_the_width_of_its_window():
    # Delays 1 or 2 s, evenly. The window (1, 2) has no miss and one false alarm beside each event, (1, 1) half of the
    # misses and half as many false alarms; the rate is that of the better of the two.
    rng = np.random.default_rng(2)
    required = _events(rng, 400, 70, 3)
    spoken = [np.zeros_like(row) for row in required]
    for row, said in zip(required, spoken, strict=True):
        said[np.flatnonzero(row) + rng.integers(1, 3, row.sum())] = 1
    rate = timing_rate(_trace(required, spoken), 0, LATENCIES)
    wide = binary_rate((0.5, 0.5), 0.0, 3 / (70 - 3 - HORIZON))
    assert rate.bits[0] == 0.0
    assert rate.bits[2] == pytest.approx(float(wide), abs=0.02)
    assert 0.2 < rate.bits[1] < rate.bits[2]


@pytest.mark.parametrize("speaker", ["never", "always", "periodic", "random 0.02", "random 0.1", "random 0.5"])
def test_blind_speakers_have_at_most_a_thousandth_of_a_bit_per_slot(speaker):
    rng = np.random.default_rng(20)
    count, slots = 1500, 200
    required = [(rng.random(slots) < 0.03).astype(np.int64) for _ in range(count)]
    kind, _, rate = speaker.partition(" ")
    spoken = {
        "never": lambda: np.zeros(slots, dtype=bool),
        "always": lambda: np.ones(slots, dtype=bool),
        "periodic": lambda: np.arange(slots) % 10 == 9,
        "random": lambda: rng.random(slots) < float(rate),
    }[kind]
    bits = timing_rate(_trace(required, [spoken() for _ in range(count)]), 0, LATENCIES).bits
    assert (bits <= 0.001).all(), bits
    if kind in ("never", "always"):
        assert bits.max() == 0.0


def test_the_choice_of_the_window_earns_nothing():
    # With few events and windows chosen on the same data a random speaker would get about twice its noise.
    rng = np.random.default_rng(5)
    rates = []
    for _ in range(60):
        required = _events(rng, 20, 70, 2)
        spoken = [rng.random(70) < 0.1 for _ in required]
        rates.append(timing_rate(_trace(required, spoken), 0, [5000]).bits[0])
    # The plug-in rate at a fixed window has mean 1 / (16 ln 2 n), n events: half of the chi-square term of p = 1/2.
    assert np.mean(rates) < 2.5 / (16 * np.log(2) * 40)


def test_emissions_moved_between_items_score_nothing():
    rng = np.random.default_rng(6)
    required = [np.roll(row, rng.integers(0, 200)) for row in _events(rng, 600, 200, 6)]
    own = timing_rate(_trace(required, _shifted(required, 1)), 0, LATENCIES)
    moved = timing_rate(_trace(required, _shifted(required[1:] + required[:1], 1)), 0, LATENCIES)
    assert own.bits[-1] > 0.9
    assert moved.bits.max() <= 0.001


def test_slots_near_the_end_are_not_scored_and_windows_stay_within_their_item():
    # An always-speaker would have silent windows at the end of each item, where events may be rare.
    required = [np.r_[np.ones(20, dtype=np.int64), np.zeros(10, dtype=np.int64)] for _ in range(4)]
    rate = timing_rate(_trace(required, [np.ones(30, dtype=bool)] * 4), 0, LATENCIES)
    assert rate.count == 4 * 25
    assert rate.bits.max() == 0.0


def test_few_events_withhold_the_rate():
    required = _events(np.random.default_rng(0), 3, 70, 3)
    rate = timing_rate(_trace(required, required), 0, LATENCIES)
    assert np.isnan(rate.bits).all() and "9 events" in rate.reason
    single = [np.tile([1, 0, 0, 0, 0, 0, 0], 20)]
    assert "one item only" in timing_rate(_trace(single, single), 0, LATENCIES).reason
    every = [np.ones(70, dtype=np.int64)] * 4
    assert "without an event" in timing_rate(_trace(every, every), 0, LATENCIES).reason


def test_weights_are_repeated_items():
    rng = np.random.default_rng(8)
    required = _events(rng, 30, 70, 3)
    spoken = [row & (rng.random(70) < 0.7) | (rng.random(70) < 0.05) for row in required]
    trace = _trace(required, spoken)
    assert items(trace).tolist() == list(range(30))
    plain = timing_rate(trace, 0, LATENCIES)
    ones = timing_rate(trace, 0, LATENCIES, weights=np.ones(30))
    np.testing.assert_array_equal(plain.bits, ones.bits)
    # Doubling every item changes no frequency; dropping all but items 0 ... 19 is a run of those alone.
    some = np.r_[np.ones(20), np.zeros(10)]
    both = timing_rate(trace, 0, LATENCIES, weights=np.stack([2 * np.ones(30), some]))
    assert both.bits.shape == (2, 6)
    np.testing.assert_allclose(both.bits[0], plain.bits)
    alone = timing_rate(_trace(required[:20], spoken[:20]), 0, LATENCIES)
    np.testing.assert_allclose(both.bits[1], alone.bits)
    with pytest.raises(ValueError, match=r"weights: expected numbers >= 0 of shape \(B, 30\)"):
        timing_rate(trace, 0, LATENCIES, weights=np.ones(29))


def _answers(right_at_ms, controls_right=(), late_ms=1000):
    """A share stratum: answer i is right at right_at_ms[i] (None: wrong); controls likewise as booleans."""
    rows = [(1, at) for at in right_at_ms] + [(0, late_ms if hit else None) for hit in controls_right]
    n = len(rows)
    header = Header(
        tick_ms=1000,
        micro_turn_ms=1000,
        horizon_ms=5000,
        demand=Bracket(1.0, 1.0, kind="nominal"),
        strata=(Stratum("answers", (0.0, 1.0), method="share"),),
        duration_ms=10_000,
    )
    ticks = {"episode": np.arange(n), "tick": np.zeros(n, dtype=int), "required": [required for required, _ in rows]}
    responses = {
        "episode": np.arange(n),
        "tick": np.zeros(n, dtype=int),
        "time_ms": [late_ms if at is None else at for _, at in rows],
        "value": [-2 if at is None else 1 for _, at in rows],
    }
    return Trace(header, ticks | {"onset_ms": np.zeros(n, dtype=int)}, responses)


def test_share_is_one_bit_times_the_share_right_in_time():
    trace = _answers([0, 1000, 1500, 4000] * 4 + [None] * 4)
    rate = stratum_rate(trace, 0, [0, 1000, 2000, 5000])
    assert rate.bits.tolist() == [4 / 20, 8 / 20, 12 / 20, 16 / 20]
    assert rate.per_second.tolist() == [0.4, 0.8, 1.2, 1.6]
    assert (rate.demand, rate.demand_per_second, rate.count) == (1.0, 2.0, 20)


def test_share_is_corrected_by_its_controls():
    # 12 of 20 right, 5 of 20 controls right: (0.6 - 0.25) / (1 - 0.25).
    trace = _answers([1000] * 12 + [None] * 8, [True] * 5 + [False] * 15)
    assert share_rate(trace, 0, [5000]).bits[0] == pytest.approx((0.6 - 0.25) / 0.75)
    assert share_rate(trace, 0, [5000]).count == 20
    constant = _answers([1000] * 5 + [None] * 15, [True] * 5 + [False] * 15)
    assert share_rate(constant, 0, [5000]).bits[0] == 0.0
    below = _answers([1000] * 2 + [None] * 18, [True] * 5 + [False] * 15)
    assert share_rate(below, 0, [5000]).bits[0] == 0.0


def test_share_of_few_answers_is_withheld_and_weights_count():
    assert "9 answers" in share_rate(_answers([0] * 9), 0, [0]).reason
    trace = _answers([0] * 10 + [None] * 10)
    draws = share_rate(trace, 0, [0], weights=np.stack([np.r_[np.ones(10), np.zeros(10)], np.ones(20)]))
    assert draws.bits[:, 0].tolist() == [1.0, 0.5]


def test_other_methods_and_alphabets_are_refused():
    required = _events(np.random.default_rng(0), 3, 70, 3)
    with pytest.raises(ValueError, match="scored by its profile"):
        stratum_rate(_trace(required, required, method="profile"), 0, LATENCIES)
    with pytest.raises(ValueError, match="symbols 0 and 1"):
        timing_rate(_trace(required, required, pmf=(0.5, 0.25, 0.25)), 0, LATENCIES)


def test_the_frontier_follows_windows_that_widen_while_no_outcome_changes():
    # A response names its own slot, so that a tally of outcomes is the same at every latency; the windows are not.
    required = _events(np.random.default_rng(1), 40, 120, 5)
    scored = frontier(_trace(required, _shifted(required, 2)), resamples=100)
    credited = [point.credited for point in scored.points if point.reading == "output-only"]
    share = (120 - HORIZON) / 120
    assert credited == pytest.approx([0.0, 0.0, share, share, share, share])
