"""Task: what it checks, what it computes, and its JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import envrate as er
from envrate.latents import MarkovChain

FAIR = MarkovChain([[0.5, 0.5]] * 2)


def test_presets_round_trip_as_json() -> None:
    for name in er.tasks.names():
        task = er.tasks.get(name)
        assert er.Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_worked_example_demands_two_bits_per_second() -> None:
    # Law (1/4, 1/4, 1/2) drawn afresh at 2 Hz, the last state is the alert: H(1/2) = 1 bit per tick.
    bracket = er.tasks.get("alert").demand()
    assert (bracket.lower, bracket.upper, bracket.kind) == (2.0, 2.0, "exact")


def test_stationary_law_solves_its_equation() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        matrix = rng.dirichlet(np.full(5, 0.5), size=5) * 0.99 + 0.01 / 5
        chain = MarkovChain(matrix)
        np.testing.assert_allclose(chain.stationary @ chain.matrix, chain.stationary, atol=1e-12)
        assert math.isclose(chain.stationary.sum(), 1.0, abs_tol=1e-12)


def test_periodic_chain_is_irreducible() -> None:
    np.testing.assert_allclose(MarkovChain([[0, 1], [1, 0]]).stationary, [0.5, 0.5])


def test_severity_matrix_per_symbol() -> None:
    severity = er.Severity(miss=(20.0, 10.0), wrong=((0, 3), (4, 0)), over=1.0)
    np.testing.assert_array_equal(severity.matrix(3), [[0, 1, 1], [20, 0, 3], [10, 4, 0]])


def test_question_defaults_to_the_state() -> None:
    task = er.tasks.get("alert").replace(probes=er.Probes(rate=0.1, after_ms=2000))
    assert task.question == (0, 1, 2)
    assert task.num_answers == 3
    assert task.probe_leak() == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latent": {"kind": "markov", "transition": [[0.5, 0.47], [0.5, 0.5]]}}, r"transition: row 0 sums to 0.97"),
        ({"latent": {"kind": "markov", "transition": [[1, 0], [0, 1]]}}, r"transition: the chain is reducible"),
        (
            {"latent": {"kind": "markov", "transition": [[0.5, math.nan], [0.5, 0.5]]}},
            r"transition: entry \[0, 1\] is nan",
        ),
        ({"latent": {"kind": "walk"}}, r"latent.kind: expected one of .*markov"),
        ({"latent": 3}, "latent: expected a law"),
        ({"response": (0, 1, 1)}, "response: expected 2 symbols"),
        ({"response": (0, -1)}, "response: expected an integer >= 0"),
        ({"response": (0, 0)}, "response: every state requires 0"),
        ({"tick_ms": 0}, "tick_ms: expected an integer"),
        ({"tick_ms": 100}, "tick_ms: expected an integer in \\[200"),
        ({"micro_turn_ms": 1.5}, "micro_turn_ms: expected an integer"),
        ({"severity": {"kind": "severity", "miss": -1.0}}, "severity.miss: expected weights > 0"),
        ({"severity": {"kind": "severity", "miss": (1.0, 2.0)}}, "severity.miss: expected a number or 1 numbers"),
        ({"severity": {"kind": "severity", "mis": 1.0}}, "severity: unknown key 'mis'"),
        ({"tolerance": -0.1}, "tolerance: expected a number"),
        ({"reply": "latest"}, "reply: expected one of named, newest"),
        ({"exchangeable": ((0, 1),)}, "exchangeable: expected disjoint groups"),
        ({"probes": er.Probes(rate=0.1, after_ms=1999)}, "probes.after_ms: 1999 ms is before the horizon of 2000 ms"),
        ({"probes": er.Probes(rate=0.1, question=(0, 0))}, "probes.question: answer 0 covers the responses"),
        ({"probes": er.Probes(rate=0.1, question=(0, 1, 2))}, "probes.question: expected 2 answers"),
        ({"probes": er.Probes(rate=(0.5, 0.0))}, r"probes.rate: the schedule tells 0.\d+ bits"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"latent": FAIR, "response": (0, 1)} | change
    with pytest.raises(ValueError, match=message):
        er.Task(**arguments)  # type: ignore[arg-type]


def test_leak_of_a_schedule_that_follows_the_null_ticks() -> None:
    # Probing exactly the null ticks of a fair binary source tells everything: I = H(1/2) = 1 bit.
    with pytest.raises(ValueError, match="tells 1 bits"):
        er.Task(latent=FAIR, response=(0, 1), probes=er.Probes(rate=(1.0, 0.0)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delay_ms": -1}, "delay_ms: expected an integer"),
        ({"loss": 1.5}, "loss: expected a number in"),
        ({"loss": {"kind": "gilbert-elliott", "p_good_to_bad": 0.0, "p_bad_to_good": 0.0}}, "chain that never moves"),
        ({"bandwidth_bps": 0}, "bandwidth_bps: expected a number"),
        ({"jitter": {"kind": "uniform", "low_ms": 5, "high_ms": 4}}, "jitter.high_ms: expected an integer >= 5"),
        ({"jitter": {"kind": "normal"}}, "jitter.kind: expected one of constant, exponential, two-point, uniform"),
        ({"drop": "random"}, "drop: expected one of newest, oldest"),
        ({"buffer_bits": -8}, "buffer_bits: expected an integer"),
    ],
)
def test_bad_links_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        er.channels.Link(**arguments)  # type: ignore[arg-type]


def test_link_from_dict_name_and_none() -> None:
    link = er.channels.as_link(
        {"delay_ms": 300, "jitter": {"kind": "two-point", "low_ms": 0, "high_ms": 300, "p_high": 0.4}}
    )
    assert link == er.channels.as_link("worked")
    assert er.channels.as_link(None) == er.channels.Link()
    with pytest.raises(ValueError, match="link: unknown key 'latency'"):
        er.channels.as_link({"latency": 3})
    with pytest.raises(ValueError, match="link: expected one of"):
        er.channels.as_link("5g")
