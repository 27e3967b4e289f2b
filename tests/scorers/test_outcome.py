"""Outcomes and counts against a loop over ticks and responses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from envrate import tasks
from envrate.rd import Bracket
from envrate.scorers import Tally, tally
from envrate.task import Probes
from envrate.trace import Header, Stratum, Trace


def random_trace(seed: int, episodes: int = 3, per_episode: int = 12) -> Trace:
    """A run on watch with probes, in shuffled rows, with repeats, void and stray responses."""
    rng = np.random.default_rng(seed)
    task = tasks.get("watch").replace(probes=Probes(rate=0.5, after_ms=2000, deadline_ms=1500))
    n = episodes * per_episode
    tick = np.tile(np.arange(per_episode), episodes)
    onset = tick * task.tick_ms
    ticks = {
        "episode": np.repeat(np.arange(episodes), per_episode) + 4,
        "tick": tick,
        "onset_ms": onset,
        "required": rng.integers(0, 3, n),
        "scored": rng.random(n) < 0.9,
        "delivered_ms": np.where(rng.random(n) < 0.8, onset + rng.integers(0, 2500, n), -1),
        "probe_ms": np.where(rng.random(n) < 0.5, onset + 2000 + rng.integers(0, 300, n), -1),
        "probe_required": rng.integers(0, 5, n),
    }
    m = 6 * n
    named = rng.integers(-1, per_episode + 1, m)
    kind = (rng.random(m) < 0.5).astype(int)
    responses = {
        "episode": rng.integers(4, 4 + episodes, m),
        "time_ms": np.maximum(0, named) * task.tick_ms + rng.integers(-300, 5000, m),
        "tick": named,
        "value": np.where(kind == 1, rng.integers(-1, 5, m), rng.choice([-2, 0, 1, 2], m)),
        "kind": kind,
        "compute_ms": rng.integers(0, 200, m),
    }
    order, shuffle = rng.permutation(m), rng.permutation(n)
    return Trace(
        Header.for_task(task, link={"kind": "link"}),
        {k: v[shuffle] for k, v in ticks.items()},
        {k: v[order] for k, v in responses.items()},
    )


def slow_counts(trace: Trace, levels: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Counts over (level, required, outcome) and the counted leftovers, straight from the definitions."""
    t, r = trace.ticks, trace.responses
    size, probes = 3, trace.task.probes
    assert probes is not None
    counts = np.zeros((len(levels), size, size + 8), dtype=int)
    left = {"redundant": 0, "premature": 0, "no_tick": 0, "censored": int((~t["scored"]).sum())}
    rows = {(e, k): i for i, (e, k) in enumerate(zip(t["episode"], t["tick"], strict=True))}
    named: dict[int, list[tuple[int, int, int]]] = {i: [] for i in range(len(trace))}
    answers: dict[int, list[tuple[int, int, int]]] = {i: [] for i in range(len(trace))}
    for j in range(len(r["tick"])):
        row = rows.get((r["episode"][j], r["tick"][j]))
        entry = (int(r["time_ms"][j]), j, int(r["value"][j]))
        if r["kind"][j] == 1:
            if row is not None:
                answers[row].append(entry)
        elif entry[2] != 0:
            if row is None:
                left["no_tick"] += 1
            elif r["time_ms"][j] - r["compute_ms"][j] < t["onset_ms"][row]:
                left["premature"] += 1
            else:
                named[row].append(entry)
    for i in range(len(trace)):
        onset = t["onset_ms"][i]
        left["redundant"] += max(0, len(named[i]) - 1)
        probe = 0
        if t["probe_ms"][i] >= 0:
            limit = onset + probes.after_ms + probes.deadline_ms
            said = sorted(a for a in answers[i] if t["probe_ms"][i] <= a[0] <= limit)
            probe = 3 if not said or said[0][2] < 0 else 1 if said[0][2] == t["probe_required"][i] else 2
        if not t["scored"][i]:
            continue
        for k, level in enumerate(levels):
            in_time = sorted(a for a in named[i] if a[0] - onset <= level)
            if in_time:
                value = in_time[0][2]
                column = size + 7 if value == -2 else 7 + value
            else:
                heard = 0 <= t["delivered_ms"][i] <= onset + level
                column = 4 * (not heard) + probe
            counts[k, t["required"][i], column] += 1
    return counts, left


@pytest.mark.parametrize("seed", range(8))
def test_counts_equal_a_loop_over_the_definitions(seed):
    trace = random_trace(seed)
    found = tally(trace)
    counts, left = slow_counts(trace, found.latencies_ms)
    assert found.latencies_ms.tolist() == list(range(0, 2001, 200))
    np.testing.assert_array_equal(found.counts[0].sum(axis=0), counts)
    assert {name: getattr(found, name) for name in left} == left
    assert found.link_log and found.probed and found.num_ticks == trace.ticks["scored"].sum()


def test_chosen_latencies_pick_the_same_counts():
    trace = random_trace(3)
    whole, some = tally(trace), tally(trace, [1000, 400])
    assert some.latencies_ms.tolist() == [400, 1000]
    np.testing.assert_array_equal(some.counts[0].sum(0), whole.counts[0].sum(0)[[2, 5]])


def test_blocks_are_episodes_from_twenty_on_else_stretches_of_ticks():
    many = tally(random_trace(0, episodes=20, per_episode=5))
    assert many.by_episode and many.num_blocks == 20 and many.episode.tolist() == list(range(4, 24))
    few = tally(random_trace(0, episodes=19, per_episode=5))
    assert not few.by_episode
    assert (few.counts[0][:, 0].sum(axis=(1, 2)) == 1).all()  # a small run: one tick in each block


def test_blocks_of_ticks_follow_time_within_the_episode():
    task = tasks.get("alert")
    n = 5000
    required = (np.arange(n) >= n // 2).astype(int)
    order = np.random.default_rng(0).permutation(n)
    ticks = {"episode": np.zeros(n), "tick": np.arange(n), "onset_ms": 500 * np.arange(n), "required": required}
    found = tally(Trace(Header.for_task(task), {k: v[order] for k, v in ticks.items()}, {}))
    per_block = found.counts[0][:, 0].sum(axis=2)  # (B, A)
    assert found.num_blocks <= 2048 and not found.link_log
    half = found.num_blocks // 2
    assert per_block[:half, 1].sum() == 0 and per_block[half + 1 :, 0].sum() == 0


def test_strata_keep_their_own_alphabets():
    strata = (Stratum("two", (0.0, 0.5, 0.5), ((1, 2),)), Stratum("four", (0.0,) + (0.25,) * 4, ((1, 2, 3, 4),)))
    header = Header(1000, 1000, 2000, Bracket(1.0, 1.0, "nominal"), strata, items=4)
    ticks = {"episode": [0, 1, 2, 3], "tick": [0] * 4, "onset_ms": [0] * 4, "required": [1, 2, 4, 3]}
    ticks["stratum"] = [0, 0, 1, 1]
    responses = {"episode": [0, 2, 3], "time_ms": [500, 1500, 900], "tick": [0] * 3, "value": [1, 4, -2]}
    found = tally(Trace(header, ticks, responses))
    assert [c.shape[2:] for c in found.counts] == [(3, 11), (5, 13)]
    assert found.counts[0].sum(0)[:, 1, 8].tolist() == [0, 1, 1]
    assert found.counts[1].sum(0)[:, 4, 11].tolist() == [0, 0, 1]
    assert found.counts[1].sum(0)[:, 3, 12].tolist() == [0, 1, 1]
    assert not found.link_log


def test_a_response_outside_its_own_stratum_is_refused():
    strata = (Stratum("two", (0.5, 0.5)), Stratum("four", (0.25,) * 4))
    header = Header(1000, 1000, 2000, Bracket(1.0, 1.0, "nominal"), strata, items=4)
    ticks = {"episode": [0], "tick": [7], "onset_ms": [0], "required": [1], "stratum": [0]}
    trace = Trace(header, ticks, {"episode": [0], "time_ms": [1], "tick": [7], "value": [3]})
    with pytest.raises(ValueError, match=r"responses.value: 3 answers tick 7 of episode 0.*symbols 0 \.\.\. 1"):
        tally(trace)


def test_two_rows_for_one_tick_are_refused():
    header = Header.for_task(tasks.get("alert"))
    for ticks in ([3, 3, 4], [3, 10**9, 3]):
        trace = Trace(header, {"episode": [0, 0, 0], "tick": ticks, "onset_ms": [0] * 3, "required": [0] * 3}, {})
        with pytest.raises(ValueError, match="ticks: episode 0, tick 3 has two rows"):
            tally(trace)


def test_a_sparse_table_of_ticks_finds_its_rows():
    header = Header.for_task(tasks.get("alert"))
    ticks = {"episode": [0, 10**7], "tick": [5, 10**6], "onset_ms": [0, 0], "required": [1, 1]}
    responses = {"episode": [10**7, 0, 0], "time_ms": [100, 200, 0], "tick": [10**6, 5, 6], "value": [1, 1, 1]}
    found = tally(Trace(header, ticks, responses))
    assert found.counts[0].sum(0)[:, 1, 8].tolist()[:4] == [0, 1, 2, 2] and found.no_tick == 1


def test_bad_latencies_and_shapes_are_named():
    trace = random_trace(0)
    with pytest.raises(ValueError, match=r"latencies_ms: expected an integer in \[0, 2000\] ms, got 2200"):
        tally(trace, [2200])
    with pytest.raises(ValueError, match="latencies_ms: expected at least one"):
        tally(trace, [])
    found = tally(trace)
    with pytest.raises(ValueError, match=r"counts: expected shape \(\d+, 11, 3, 11\) for stratum 'watch'"):
        replace(found, counts=(found.counts[0][:, :5],))
    with pytest.raises(ValueError, match="counts: expected whole numbers"):
        replace(found, counts=(found.counts[0] + 0.5,))


def test_the_last_column_may_be_left_out():
    found = tally(random_trace(1))
    short = Tally(found.header, found.latencies_ms, (found.counts[0][..., :-1],), found.episode)
    assert short.counts[0].shape == found.counts[0].shape and short.counts[0][..., -1].sum() == 0


def test_a_run_without_scored_ticks_has_no_blocks():
    trace = random_trace(0)
    empty = tally(Trace(trace.header, trace.ticks | {"scored": np.zeros(len(trace))}, trace.responses))
    assert empty.num_blocks == 0 and empty.num_ticks == 0 and empty.censored == len(trace)
