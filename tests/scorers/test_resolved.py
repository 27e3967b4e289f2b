"""The two readings of the same counts."""

from __future__ import annotations

import numpy as np
import pytest

from envrate import scorers, tasks
from envrate.rd import Bracket
from envrate.scorers._resolved import conditional, reduce
from envrate.task import Probes
from envrate.trace import Header, Stratum, Trace

#: Outcome kinds: heard or not by then, and the answer to the probe.
HEARD, UNHEARD = 0, 4
NOT_PROBED, RIGHT, WRONG, DONT_KNOW = range(4)


def counts(rows: list[dict[int, int]]) -> np.ndarray:
    """(A, A + 8) counts from one {kind: count} per required symbol."""
    size = len(rows)
    out = np.zeros((size, size + 8), dtype=np.int64)
    for a, row in enumerate(rows):
        for kind, count in row.items():
            out[a, kind] = count
    return out


def test_without_probes_the_link_log_alone_decides():
    table = counts([{HEARD: 60, UNHEARD: 40}, {UNHEARD: 30, HEARD: 10, 8: 60}])
    resolved = conditional(reduce(table), resolved=True)
    np.testing.assert_allclose(resolved, [[0.6, 0, 0, 0.4], [0.1, 0.6, 0, 0.3]])
    plain = conditional(reduce(table), resolved=False)
    np.testing.assert_allclose(plain, [[1, 0, 0, 0], [0.4, 0.6, 0, 0]])


def test_silences_not_probed_are_apportioned_by_the_probed_ones():
    heard = {HEARD + NOT_PROBED: 60, HEARD + RIGHT: 20, HEARD + WRONG: 5, HEARD + DONT_KNOW: 15}
    resolved = conditional(reduce(counts([heard, {8: 100}])), resolved=True)
    # 15 of the 40 probed were not known, so 37.5 of the 100 silences count as e.
    np.testing.assert_allclose(resolved[0], [0.625, 0, 0, 0.375])


def test_a_silence_about_an_undelivered_tick_is_e_whatever_the_probe_says():
    unheard = {UNHEARD + q: 25 for q in range(4)}
    resolved = conditional(reduce(counts([unheard, {8: 1}])), resolved=True)
    np.testing.assert_allclose(resolved[0], [0, 0, 0, 1])


def test_a_wrong_answer_is_a_silence_and_wrong_unknown_keeps_its_column():
    table = counts([{HEARD + WRONG: 10}, {HEARD + RIGHT: 4, 8: 4, 9: 2}])
    resolved = conditional(reduce(table), resolved=True)
    np.testing.assert_allclose(resolved, [[1, 0, 0, 0], [0.4, 0.4, 0.2, 0]])


def test_a_symbol_that_never_came_up_is_nan_or_falls_back():
    table, whole = counts([{HEARD: 5}, {}]), counts([{HEARD: 50}, {8: 30, HEARD: 10}])
    assert np.isnan(conditional(reduce(table), resolved=False)[1, :2]).all()
    filled = conditional(reduce(table), resolved=False, fallback=reduce(whole))
    np.testing.assert_allclose(filled, [[1, 0, 0, 0], [0.25, 0.75, 0, 0]])


def test_a_resample_without_a_probe_borrows_the_share_of_the_run():
    table = counts([{HEARD: 10}, {8: 5}])
    whole = counts([{HEARD: 80, HEARD + RIGHT: 5, HEARD + DONT_KNOW: 15}, {8: 5}])
    found = conditional(reduce(table), resolved=True, fallback=reduce(whole))
    np.testing.assert_allclose(found[0], [0.25, 0, 0, 0.75])


# -- whole runs -----------------------------------------------------------------------------------------------------


def run(policy: str, *, probe_rate: float = 0.3, ticks: int = 20_000, seed: int = 0) -> Trace:
    """The worked example: 60 % of the packets after 300 ms, the rest after 600 ms."""
    rng = np.random.default_rng(seed)
    task = tasks.get("alert").replace(probes=Probes(rate=probe_rate, after_ms=2000, deadline_ms=2000))
    tick = np.arange(ticks)
    onset = 500 * tick
    latent = rng.choice(3, ticks, p=[0.25, 0.25, 0.5])
    required = (latent == 2).astype(int)
    delivered = onset + np.where(rng.random(ticks) < 0.6, 300, 600)
    asked = rng.random(ticks) < probe_rate
    acts, answers, when = np.zeros(ticks, dtype=int), latent.copy(), delivered
    if policy == "reactive":
        acts = required
    elif policy == "does not know alerts":  # never acts and says "don't know" on alerts only
        answers = np.where(required == 1, -1, latent)
    elif policy == "acts when probed":
        acts, when = np.where(asked, required, 0), onset + 2400
    elif policy == "says idle":
        answers = np.zeros(ticks, dtype=int)
    elif policy == "forgets":  # holds its tongue and has forgotten: every probe is "don't know"
        answers = np.full(ticks, -1)
    did, said = np.flatnonzero(acts), np.flatnonzero(asked)
    responses = {
        "episode": np.zeros(len(did) + len(said)),
        "time_ms": np.concatenate([when[did], onset[said] + 2600]),
        "tick": np.concatenate([did, said]),
        "value": np.concatenate([acts[did], answers[said]]),
        "kind": np.concatenate([np.zeros(len(did)), np.ones(len(said))]),
    }
    columns = {
        "episode": np.zeros(ticks),
        "tick": tick,
        "onset_ms": onset,
        "required": required,
        "delivered_ms": delivered,
        "probe_ms": np.where(asked, onset + 2300, -1),
        "probe_required": np.where(asked, latent, -1),
        "latent": latent,
    }
    return Trace(Header.for_task(task, link={"kind": "link"}), columns, responses)


def score(policy: str, **options) -> scorers.Frontier:
    return scorers.frontier(run(policy, **options), resamples=200)


def test_the_worked_example_in_both_readings():
    found = score("reactive")
    # Z-channel: 2 (H(.3) - .5 H(.4)) = 0.7916; erasure: 2 (1 - .4) = 1.2.
    assert found.at(300).credited == pytest.approx(0.7916, abs=0.03)
    assert found.at(300, "resolved").credited == pytest.approx(1.2, abs=0.03)
    assert found.at(600).gap == pytest.approx(0.0, abs=1e-9)
    assert found.at(600, "resolved").keeps_up == "yes"


@pytest.mark.parametrize("policy", ["does not know alerts", "acts when probed", "says idle", "forgets"])
def test_agents_that_never_act_in_time_get_nothing_in_either_reading(policy):
    found = score(policy)
    for reading in ("output-only", "resolved"):
        assert max(p.raw for p in found.reading(reading)) < 1e-3
        assert found.reading(reading)[-1].credited_low == 0.0


@pytest.mark.parametrize("policy", ["reactive", "does not know alerts", "forgets"])
def test_the_resolved_reading_is_never_below_the_output_only_one(policy):
    found = score(policy, ticks=3000)
    for plain, resolved in zip(found.reading(), found.reading("resolved"), strict=True):
        assert resolved.credited >= plain.credited
        assert resolved.severity == plain.severity


def test_probes_never_enter_the_output_only_reading():
    with_probes = run("reactive", ticks=4000)
    kept = with_probes.responses["kind"] == 0
    acts = {k: v[kept] for k, v in with_probes.responses.items()}
    without = Trace(with_probes.header, with_probes.ticks, acts)
    a, b = (scorers.frontier(t, resamples=100) for t in (with_probes, without))
    assert [p.credited for p in a.reading()] == [p.credited for p in b.reading()]
    assert a.at(600, "resolved").credited > b.at(600, "resolved").credited - 1e-12


def test_without_a_link_log_there_is_no_resolved_reading_and_the_result_says_so():
    trace = run("reactive", ticks=2000).with_header(link=None)
    trace = Trace(trace.header, trace.ticks | {"delivered_ms": np.full(len(trace), -1)}, trace.responses)
    found = scorers.frontier(trace, resamples=100)
    assert not found.has_resolved and any("no resolved reading" in note for note in found.notes)
    rows = [row for row in found.to_json()["points"] if row["reading"] == "resolved"]
    assert len(rows) == 21
    assert all(row["credited"] is None and "no link log" in row["reason"] for row in rows)


def test_an_exchangeable_symbol_that_never_came_up_is_answered_for_by_its_group():
    # Four exchangeable options of which three came up, 90 % right: Wolpaw's rate at P = 0.9 (Wolpaw et al. 1998).
    pmf, group = (0.0, *[0.25] * 4), (1, 2, 3, 4)
    ticks = 3000
    required = np.arange(ticks) % 3 + 1
    value = np.where(np.arange(ticks) % 10 == 0, required % 4 + 1, required)
    header = Header(
        tick_ms=1000, micro_turn_ms=1000, horizon_ms=1000, demand=Bracket(2.0, 2.0, "nominal"),
        strata=(Stratum("options", pmf, (group,)),), duration_ms=ticks * 1000,
    )  # fmt: skip
    onset = np.arange(ticks) * 1000
    trace = Trace(
        header,
        {"tick": np.arange(ticks), "episode": np.arange(ticks), "onset_ms": onset, "required": required},
        {"tick": np.arange(ticks), "episode": np.arange(ticks), "time_ms": onset + 500, "value": value},
    )
    rate = 2.0 + 0.9 * np.log2(0.9) + 0.1 * np.log2(0.1 / 3)
    assert scorers.frontier(trace, resamples=100).at(1000).credited == pytest.approx(rate, abs=1e-6)
