"""Latency metrics against published values and closed forms; neighbouring rates against their tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthetic import honest, nobody, respond, trace, world

from envrate import tasks
from envrate.latents import MarkovChain
from envrate.scorers import (
    achieved_bitrate,
    average_lagging,
    average_proportion,
    average_token_delay,
    differentiable_average_lagging,
    fitts_throughput,
    latency_metrics,
    length_adaptive_average_lagging,
    reference_rates,
    selection_rates,
    wolpaw_rate,
    yet_another_average_lagging,
)
from envrate.task import Task

# SimulEval 1.1.4's example of a speech-to-text agent that counts seconds: two words per second of audio read, and the
# last two at the source's end. AL, AP, DAL and ATD as its documentation prints them; YAAL by its definition.
COUNTER_S = 6849.886621315192
COUNTER = [1000.0 * k for k in range(1, 7) for _ in range(2)] + [COUNTER_S] * 2
# SimulEval's Whisper wait-k record (its visualisation test): one word each 500 ms from 1.5 s on, eight at the end.
WHISPER_S = 7000.0
WHISPER = [500.0 * k for k in range(3, 14)] + [WHISPER_S] * 8


def test_counter_example_of_simuleval():
    assert average_lagging(COUNTER, COUNTER_S, 14) == pytest.approx(822.018, abs=5e-4)
    assert length_adaptive_average_lagging(COUNTER, COUNTER_S, 14) == pytest.approx(822.018, abs=5e-4)
    assert average_proportion(COUNTER, COUNTER_S, 14) == pytest.approx(0.581, abs=5e-4)
    assert differentiable_average_lagging(COUNTER, COUNTER_S) == pytest.approx(1061.271, abs=5e-4)
    assert average_token_delay(COUNTER) == pytest.approx(2028.555, abs=5e-4)
    assert yet_another_average_lagging(COUNTER, COUNTER_S, 14) == pytest.approx(808.973, abs=5e-4)


def test_whisper_example_of_simuleval():
    # The record's source length is not printed; AL fixes it: sum over i <= 12 of d_i - (i - 1) S / 20 = 12 * 2353.772,
    # with d_12 = S, so S = (12 * 2353.772 - 44000) / (1 - 66 / 20).
    s = (12 * 2353.772 - 44000.0) / (1.0 - 66.0 / 20.0)
    d = [x for x in WHISPER if x < WHISPER_S] + [s] * 8
    assert average_lagging(d, s, 20) == pytest.approx(2353.772, abs=5e-4)
    assert length_adaptive_average_lagging(d, s, 20) == pytest.approx(2353.772, abs=5e-4)
    assert average_proportion(d, s, 20) == pytest.approx(0.721, abs=6e-4)
    assert differentiable_average_lagging(d, s) == pytest.approx(2491.040, abs=2e-3)
    assert average_token_delay(d) == pytest.approx(2457.847, abs=2e-3)
    assert yet_another_average_lagging(d, s, 20) == pytest.approx(2287.528, abs=2e-3)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_wait_k_on_equal_lengths_lags_k(k):
    # Cherry and Foster 2019: wait-k emits unit i after min(i + k - 1, n) source units; AL = LAAL = DAL = k.
    n = 12
    d = np.minimum(np.arange(n) + k, n)
    assert average_lagging(d, n, n) == pytest.approx(k, abs=1e-12)
    assert length_adaptive_average_lagging(d, n, n) == pytest.approx(k, abs=1e-12)
    assert differentiable_average_lagging(d, n) == pytest.approx(k, abs=1e-12)


def test_offline_and_burst():
    assert differentiable_average_lagging([8.0] * 8, 8.0) == 8.0
    # d' = 2, 3, 4, 5, so (2 + 2 + 2 + 2) / 4.
    assert differentiable_average_lagging([2, 2, 2, 4], 4) == 2.0
    assert math.isnan(yet_another_average_lagging([8.0] * 8, 8.0, 8))
    assert average_lagging([9.0, 9.0], 8.0, 2) == 9.0


def test_a_longer_output_is_rewarded_by_al_and_not_by_laal():
    d = np.arange(1, 17) * 0.5
    assert average_lagging(d, 8.0, 8) < 0
    assert length_adaptive_average_lagging(d, 8.0, 8) > 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: average_lagging([], 4.0, 2), "at least one emission"),
        (lambda: average_lagging([1.0], 0.0, 2), "source_length"),
        (lambda: average_lagging([1.0], 4.0, 0), "reference_length"),
        (lambda: average_token_delay([3.0, 1.0]), "order of emission"),
        (lambda: average_token_delay([1.0, math.nan]), "finite"),
        (lambda: average_token_delay([1.0, 2.0], compute=[1.0]), "compute"),
    ],
)
def test_bad_delays_are_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_metrics_of_a_trace_count_silence_apart():
    w = world(tasks.get("alert"), 400, seed=3, episodes=4, delay=(300, 300))
    acts = honest(w)
    kept = w.episode[acts["row"]] != 2  # in episode 2 the agent says nothing
    told = latency_metrics(trace(w, {name: column[kept] for name, column in acts.items()}))
    assert (told.episodes, told.silent) == (4, 1)
    assert told.values["DAL"] > 0 and "1 of 4 episodes left out" in told.reasons["AL"]
    assert told.values["AL"] <= told.computation_aware["AL"]
    assert math.isnan(told.values["ATD"]) and "not every tick" in told.reasons["ATD"]
    silent = latency_metrics(trace(w, nobody(w)))
    assert math.isnan(silent.values["AL"]) and silent.reasons["AL"] == "no emission"
    assert silent.to_dict()["values"]["AL"] is None


def test_a_punctual_choice_lags_by_its_delay():
    """A response 200 ms after each onset. ATD is 0: its source chunks end where the agent speaks."""
    w = world(tasks.get("choice8"), 100, seed=3, delay=(200, 200))
    told = latency_metrics(trace(w, honest(w)))
    for name in ("AL", "LAAL", "DAL", "YAAL"):
        assert told.values[name] == pytest.approx(200.0, abs=1e-9)
    assert told.values["ATD"] == pytest.approx(0.0, abs=1e-9)


def test_a_delay_moves_the_lag_of_a_trace_by_itself():
    w = world(tasks.get("alert"), 200, seed=3, delay=(300, 300))
    acts = honest(w)
    early = latency_metrics(trace(w, acts)).values["DAL"]
    late = latency_metrics(trace(w, acts | {"time": acts["time"] + 400})).values["DAL"]
    # Emissions after the source's end are charged with the source's length only, here one of about a hundred.
    assert late - early == pytest.approx(400.0, abs=10.0)


# Wolpaw et al. 2000, by hand from log2 N + P log2 P + (1 - P) log2((1 - P) / (N - 1)).
@pytest.mark.parametrize(
    ("n", "p", "bits"),
    [(2, 0.9, 0.531004), (2, 0.8, 0.278072), (2, 0.5, 0.0), (4, 0.9, 1.372508), (36, 0.88, 4.0251), (36, 1.0, 5.169925),
     (40, 0.91, 4.4098), (40, 1.0, 5.321928), (4, 0.1, 0.0), (2, 0.0, 0.0)],
)  # fmt: skip
def test_wolpaw(n, p, bits):
    assert wolpaw_rate(n, p) == pytest.approx(bits, abs=5e-5)


def test_wolpaw_against_the_oracle_file(shared_data):
    import json

    for row in json.loads((shared_data / "rd_oracles.json").read_text())["wolpaw_fano"]["rows"]:
        assert wolpaw_rate(row["N"], float(row["P"])) == pytest.approx(float(row["B"]), abs=1e-12)


def test_achieved_bitrate_and_fitts():
    assert achieved_bitrate(36, 90, 10, 60.0) == pytest.approx(6.839, abs=5e-4)  # log2(35) * 80 / 60
    assert achieved_bitrate(36, 3, 9, 60.0) == 0.0
    # W_e = 4.133 * 10, log2(512 / 41.33 + 1) / 0.8.
    deviations = np.array([-1.0, 1.0]) * 10 / np.sqrt(2.0)
    expected = math.log2(512 / 41.33 + 1) / 0.8
    assert fitts_throughput([512, 512], deviations, [0.8, 0.8]) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="do not vary"):
        fitts_throughput([512, 512], [1.0, 1.0], [0.8, 0.8])


def test_selection_rates_of_a_choice_task():
    task = tasks.get("choice8").replace(micro_turn_ms=100)
    w = world(task, 4000, seed=5, delay=(200, 200))
    acts = honest(w)
    wrong = w.generator.random(len(acts["row"])) < 0.2
    acts["value"] = np.where(wrong, 1 + acts["value"] % 8, acts["value"])
    told = selection_rates(trace(w, acts))
    share = 1.0 - wrong.mean()
    assert told.accuracy == pytest.approx(share, abs=1e-12) and told.num_options == 8
    assert told.wolpaw == pytest.approx(wolpaw_rate(8, share), abs=1e-12)  # one selection per second
    assert told.achieved == pytest.approx(math.log2(7) * (2 * share - 1), abs=1e-12)
    assert selection_rates(trace(w, acts), 100).wolpaw == 0.0
    alert = selection_rates(trace(world(tasks.get("alert"), 100), respond(*(np.zeros(0, np.int64),) * 3)))
    assert math.isnan(alert.wolpaw) and "selection due at every tick" in alert.reason


def test_unequal_options_have_no_wolpaw_rate():
    task = Task(latent=MarkovChain(((0.7, 0.3),) * 2), response=(1, 2))
    w = world(task, 100, seed=1)
    assert "equiprobable" in selection_rates(trace(w, honest(w))).reason


def test_reference_rates_carry_their_definition_and_source(shared_data):
    rates = reference_rates()
    assert len(rates) > 20 and all(r.definition and r.source and r.bits_per_s > 0 for r in rates)
    table = (shared_data / "external_scores" / "human_and_bci_reference_rates.tsv").read_text().splitlines()[1:]
    assert sorted(r.bits_per_s for r in rates) == sorted(float(line.split("\t")[1]) for line in table)


def test_reference_rates_are_drawn_with_their_caution():
    from envrate.plots import frontier as draw
    from envrate.plots_rates import add_reference_rates
    from envrate.scorers import CAUTION, frontier

    w = world(tasks.get("alert"), 400, seed=3, delay=(300, 300))
    figure = draw([frontier(trace(w, honest(w), agent="reactive"), resamples=100)])
    add_reference_rates(figure, ["typing", "speech production"])
    said = [text.get_text() for text in (*figure.texts, *figure.axes[0].texts)]
    assert CAUTION in said and any(text.startswith("typing, 10 (Zheng") for text in said)
    assert figure.axes[0].get_ylim()[1] > 39.15
    with pytest.raises(ValueError, match="juggling"):
        add_reference_rates(figure, ["juggling"])
