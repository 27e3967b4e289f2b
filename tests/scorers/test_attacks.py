"""Policies that game a score: none may get more than what it conveys, in either reading.

Each attack is scored twice: on the population, from a table of conditional frequencies that is known exactly, and by
simulation through the environment.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from synthetic import honest, nobody, respond, trace, world

import envrate as er
from envrate import rd, tasks
from envrate.agents import Always, Echo, Never, RandomGuess, Reactive
from envrate.channels import Link, TwoPoint
from envrate.latents import MarkovChain
from envrate.scorers import frontier, information, restraint_table, retention
from envrate.scorers._ideal import Scale
from envrate.task import Probes, Severity, Task

READINGS = ("output-only", "resolved")
ALERT = tasks.get("alert")
PROBED = ALERT.replace(probes=Probes(rate=0.3, after_ms=2000), reply="named")
#: Alerts at a fifth of the ticks, so that nulls and alerts are not alike.
RARE = Task(latent=MarkovChain(((0.5, 0.3, 0.2),) * 3), response=(0, 0, 1), probes=Probes(rate=0.3, after_ms=2000))
FOUR = Task(latent=MarkovChain(((0.4, 0.2, 0.2, 0.1, 0.1),) * 5), response=(0, 1, 2, 3, 4))


def h(*p):
    return -sum(x * math.log2(x) for x in p if x > 0)


def population(task, table, reading):
    """C in bits per tick of a table: silence, responses, "wrong, unknown which", e."""
    table = np.asarray(table, dtype=float)
    if reading == "output-only":  # what is not known is silent
        table[:, 0] += table[:, -1]
        table[:, -1] = 0.0
    # In the resolved reading the larger of the two, as everywhere.
    outputs = np.column_stack([table[:, 0] + table[:, -1], table[:, 1:-1], 0 * table[:, -1]])
    best = float(Scale(task, False).credited(outputs))
    return max(best, float(Scale(task, True).credited(table))) if reading == "resolved" else best


# -- populations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("task", [ALERT, RARE, FOUR], ids=["alert", "rare", "four"])
def test_constant_policies_get_exactly_nothing(task, reading):
    size = task.num_symbols
    for y in range(size + 2):
        table = np.zeros((size, size + 2))
        table[:, y] = 1.0
        if y != size:  # "wrong, unknown which" is no outcome of a policy
            assert population(task, table, reading) == 0.0
    for law in np.random.default_rng(1).dirichlet(np.ones(size), 5):  # speakers that do not look
        assert population(task, np.tile(np.append(law, [0.0, 0.0]), (size, 1)), reading) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("task", [ALERT, RARE, FOUR], ids=["alert", "rare", "four"])
def test_not_knowing_alerts_only_is_no_code(task, reading):
    size = task.num_symbols
    table = np.zeros((size, size + 2))
    table[0, 0] = 1.0
    table[1:, -1] = 1.0  # never acts, and says "don't know" on alerts only
    assert population(task, table, reading) == 0.0
    table[1:, -1], table[1:, 0] = 0.3, 0.7  # nor does it help to say so now and then
    assert population(task, table, reading) == 0.0
    table[:] = 0.0
    table[0, -1] = 1.0  # or on nulls only
    table[1:, 0] = 1.0
    assert population(task, table, reading) == 0.0


@pytest.mark.parametrize("e", [0.1, 0.4, 0.9])
@pytest.mark.parametrize("pmf", [(0.5, 0.5), (0.8, 0.2), (0.6, 0.25, 0.1, 0.05)])
def test_honest_erasure_gets_its_due_at_unequal_probabilities(pmf, e):
    task = Task(latent=MarkovChain((pmf,) * len(pmf)), response=tuple(range(len(pmf))))
    table = np.column_stack([(1 - e) * np.eye(len(pmf)), np.zeros(len(pmf)), np.full(len(pmf), e)])
    assert population(task, table, "resolved") == pytest.approx((1 - e) * h(*pmf), abs=1e-9)


def test_hearing_nulls_fully_and_alerts_in_part():
    # At p = 1/2 with 60 % of the alerts heard: e is bounded in common, so 0.6 of a bit, not more.
    table = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.6, 0.0, 0.4]]
    assert population(ALERT, table, "resolved") == pytest.approx(0.6, abs=1e-9)
    # By its outputs alone it is the Z-channel, H(.3) - .5 H(.4).
    assert population(ALERT, table, "output-only") == pytest.approx(h(0.3, 0.7) - 0.5 * h(0.4, 0.6), abs=1e-9)


@pytest.mark.parametrize("reading", READINGS)
def test_swapped_labels_leave_detection_only(reading):
    swap = [0, 2, 1, 4, 3]
    table = np.column_stack([np.eye(5)[swap], np.zeros((5, 2))])
    assert population(FOUR, table, reading) == pytest.approx(h(0.4, 0.6), abs=1e-9)


def random_channel(rng, size):
    """A channel with the law of its outcomes somewhere between noise and the right answer; the last column is e."""
    q = rng.dirichlet(np.full(size + 1, 0.5), size) * rng.uniform(0, 1)
    q[:, :size] += (1 - q.sum(axis=1, keepdims=True)) * np.eye(size)
    return q / q.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("reading", READINGS)
def test_chain_of_inequalities_on_memoryless_populations(reading):
    """0 <= R(D) <= C <= I <= h / T on 100 random channels; R(D) is that of the reading's own severity."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        size = int(rng.integers(2, 5))
        task = Task(
            latent=MarkovChain((tuple(rng.dirichlet(np.full(size, 3.0))),) * size),
            response=tuple(range(size)),
            severity=Severity(miss=float(rng.uniform(0.5, 20)), wrong=float(rng.uniform(0.5, 5)), over=1.0),
        )
        q = random_channel(rng, size)
        if reading == "output-only":
            q[:, 0] += q[:, -1]
            q[:, -1] = 0.0
        credited = population(task, np.insert(q, size, 0.0, axis=1), reading)
        harm = task.distortion  # e is a silence
        if reading == "resolved":
            harm = np.column_stack([harm, harm[:, 0]])
        given = q if reading == "resolved" else q[:, :size]
        reached = float((task.pmf[:, None] * given * harm).sum())
        equivalent = rd.blahut_arimoto(task.pmf, task.distortion, D=reached, tol=1e-7).lower
        joint = task.pmf[:, None] * given
        product = task.pmf[:, None] * joint.sum(axis=0)
        seen = joint > 0
        told = float((joint[seen] * np.log2(joint[seen] / product[seen])).sum())
        assert 0.0 <= equivalent <= credited + 1e-6
        assert credited <= told + 1e-8 and told <= h(*task.pmf) + 1e-9


def sticky_chain(rng, size, reading):
    """The same inequalities for one random chain with memory; each rate is known as a bracket only."""
    matrix = rng.uniform(0.2, 0.8) * np.eye(size)
    matrix += (1 - matrix[0, 0]) * rng.dirichlet(np.ones(size), size)
    task = Task(latent=MarkovChain(tuple(map(tuple, matrix))), response=tuple(range(size)))
    q = random_channel(rng, size)
    if reading == "output-only":
        q[:, 0] += q[:, -1]
        q[:, -1] = 0.0
    table = np.insert(q, size, 0.0, axis=1)
    credited = population(task, table, reading)
    told = rd.hidden_markov_entropy_rate(task.latent.matrix, q, tol=1e-6)
    noise = float(task.pmf @ [h(*row) for row in q])
    silent = q[:, :size] + q[:, -1:] * np.eye(size)[0]
    reached = float((task.pmf[:, None] * silent * task.distortion).sum())
    equivalent = rd.markov(task.latent.matrix, task.table, task.distortion, reached)
    scale = Scale(task, False)
    outputs = np.column_stack([silent, np.zeros((size, 2))])
    ceiling = rd.MarkovProfile(task.latent.matrix, task.table, scale.profile.matrix).upper(scale.frequencies(outputs))
    assert 0.0 <= equivalent.lower <= float(ceiling) + 1e-6
    assert credited <= told.upper - noise + 1e-6
    assert told.lower - noise <= task.demand().upper * task.tick_ms / 1000 + 1e-6


@pytest.mark.parametrize("reading", READINGS)
def test_chain_of_inequalities_on_sticky_populations(reading):
    rng = np.random.default_rng(4)
    for _ in range(5):
        sticky_chain(rng, 2, reading)


@pytest.mark.nightly
@pytest.mark.parametrize("reading", READINGS)
def test_chain_of_inequalities_on_many_sticky_populations(reading):
    rng = np.random.default_rng(5)
    for k in range(50):
        sticky_chain(rng, 2 + k % 2, reading)


# -- by simulation ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Changed:
    """A reactive agent whose action is changed before it acts; the factors are symbol, tick named, answer."""

    task: Task
    how: str
    name: str = "attacker"

    def init(self, num_envs: int, seed: int) -> Any:
        """The reactive agent's memory, and a random agent's place."""
        return Reactive(self.task).init(num_envs, seed), RandomGuess(self.task).init(num_envs, seed)

    def __call__(self, observation: Any, state: Any) -> Any:
        """The changed action."""
        action, memory = Reactive(self.task)(observation, state[0])
        dice, random = RandomGuess(self.task)(observation, state[1])
        symbol, back, answer = action[:, 0], action[:, 1], action[:, 2]
        nothing = jnp.zeros_like(symbol)
        asked = jnp.asarray((0, *self.task.table))[answer]  # what the tick that a question is about required
        if self.how == "don't know on alerts":
            symbol, answer = nothing, jnp.where(asked > 0, 0, answer)
        elif self.how == "acts when probed":
            symbol, back = asked, nothing
        elif self.how == "always idle":
            symbol, answer = nothing, jnp.minimum(answer, 1)
        elif self.how == "closed ticks":
            back = jnp.full_like(back, self.task.ticks_nameable - 1)
        elif self.how == "floods":
            symbol, back = dice[:, 0], nothing
        return jnp.stack([symbol, back, answer], axis=1), (memory, random)


NUM_ENVS, NUM_TICKS = 64, 320
LINK = Link(delay_ms=300, jitter=TwoPoint(0, 300, p_high=0.4))


def rolled(agent, task=PROBED, link=LINK):
    return er.rollout(task, agent, link=link, num_envs=NUM_ENVS, num_ticks=NUM_TICKS, seed=11)


def rates(run, latency_ms):
    scored = frontier(run, [0, latency_ms], resamples=200)
    return {reading: scored.at(latency_ms, reading) for reading in READINGS}


@pytest.mark.parametrize("how", ["don't know on alerts", "acts when probed", "always idle", "floods"])
def test_simulated_attacks_get_nothing(how):
    run = rolled(Changed(PROBED, how))
    for latency in (300, 2000):
        for point in rates(run, latency).values():
            assert point.credited < 0.01, (how, point)
    if how == "always idle":
        whole, null, _ = retention(run)
        # "Idle" is the answer of one tick in four; a guess is right for one in two.
        assert whole.high < 0.0
        assert abs(null.value) < 3.89 * 2 * math.sqrt(0.25 / null.asked)  # 99.99 %
    if how == "floods":
        # Half of five micro-turns a tick speak, and one response counts.
        assert restraint_table(run, 2000).redundant > 1.2 * NUM_ENVS * NUM_TICKS


def test_naming_closed_ticks_gets_nothing_within_the_horizon():
    # Named at 2000 ms back from a tick heard after 300 ms or more, each response comes after the horizon.
    run = rolled(Changed(PROBED, "closed ticks"))
    for point in rates(run, 1900).values():
        assert point.credited < 0.01


def test_naming_ticks_not_begun_is_void():
    w = world(ALERT, 2000, seed=1)
    rows = np.flatnonzero(w.required == 1)
    acts = respond(rows, w.onset[rows], w.required[rows])
    run = trace(w, acts)
    run.responses["tick"][:] = -1  # no tick
    for reading in READINGS:
        assert frontier(run, [2000], resamples=100).at(2000, reading).credited == 0.0
    early = trace(w, respond(rows, w.onset[rows] - 1, w.required[rows]))  # before the tick it names began
    for reading in READINGS:
        assert frontier(early, [2000], resamples=100).at(2000, reading).credited == 0.0


@pytest.mark.parametrize("agent", [Never(PROBED), Always(PROBED)], ids=["never", "always"])
def test_simulated_constant_policies_get_exactly_nothing(agent):
    run = rolled(agent)
    for point in rates(run, 2000).values():
        assert point.credited == 0.0 and point.keeps_up == "no"


@pytest.mark.parametrize("seed", range(4))
def test_a_constant_policy_that_waits_for_packets_gets_what_chance_leaves(seed):
    """It answers when something arrives, so its outcome within 300 ms is random, the same whatever is required.

    With all its rows alike the population's rate is 0 (also that of the table below). A run's two conditional
    frequencies differ by sampling, and on the right side that is information: 2 n ln 2 I is chi-squared with one
    degree of freedom there, at most 15.1 with a probability of 99.99 %. The interval says so: it begins at 0.
    """
    for reading in READINGS:
        assert population(ALERT, [[0.4, 0.6, 0.0, 0.0], [0.4, 0.6, 0.0, 0.0]], reading) == 0.0
        assert population(ALERT, [[0.0, 0.6, 0.0, 0.4], [0.0, 0.6, 0.0, 0.4]], reading) == 0.0
    link = Link(delay_ms=300, jitter=TwoPoint(0, 300, p_high=0.4))
    run = er.rollout(ALERT, Always(ALERT), link=link, num_envs=NUM_ENVS, num_ticks=NUM_TICKS, seed=seed)
    most = 15.14 / (2 * NUM_ENVS * NUM_TICKS * math.log(2)) * 1000 / ALERT.tick_ms
    for point in rates(run, 300).values():
        assert point.credited <= most and point.credited_low == 0.0 and point.keeps_up == "no"


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("reading", READINGS)
def test_random_speakers_get_nothing(rate, reading):
    w = world(ALERT, 20_000, seed=2, delay=(100, 100))
    rows = np.flatnonzero(w.generator.random(len(w.tick)) < rate)
    run = trace(w, respond(rows, w.onset[rows] + w.generator.choice([0, 300], len(rows)), np.ones(len(rows), np.int64)))
    for latency in (0, 300):
        assert frontier(run, [latency], resamples=100).at(latency, reading).credited < 0.01
    assert information(run, 300, reading=reading).rate < 0.01


def test_an_echo_gets_its_share_and_not_the_demand():
    """One tick late on a chain that flips with probability 0.1: the response is right nine times in ten."""
    task = tasks.get("hold")
    run = er.rollout(task, Echo(task), link=Link(), num_envs=NUM_ENVS, num_ticks=NUM_TICKS, seed=11)
    point = frontier(run, [0, 1000, 2000], resamples=100).at(2000)
    table = np.zeros((3, 5))
    table[1:, 1:3] = [[0.9, 0.1], [0.1, 0.9]]
    share = float(Scale(task, False).credited(table)) * 1000 / task.tick_ms
    assert point.credited == pytest.approx(share, abs=0.05)
    assert point.credited < 0.6 * task.demand().lower and point.keeps_up == "no"


def test_swapped_labels_by_simulation():
    w = world(FOUR, 20_000, seed=3, delay=(100, 100))
    acts = honest(w)
    acts["value"] = np.array([0, 2, 1, 4, 3])[acts["value"]]
    scored = frontier(trace(w, acts), [100], resamples=100)
    for reading in READINGS:
        point = scored.at(100, reading)
        assert point.credited == pytest.approx(2 * h(0.4, 0.6), abs=0.02)
        assert point.identification == pytest.approx(0.0, abs=0.01)


def test_the_worked_example_with_probes():
    """Resolved 1.2 / 0.8, output-only 0.7916 / 1.2084: the silences are resolved by the log and by what is recalled."""
    run = rolled(Reactive(PROBED))
    found = rates(run, 300)
    assert found["resolved"].credited == pytest.approx(1.2, abs=0.06)
    assert found["output-only"].credited == pytest.approx(0.7916, abs=0.06)
    assert found["resolved"].gap == pytest.approx(0.8, abs=0.06)
    whole = retention(run)[0]
    # A question that arrives at the run's very end finds nobody to answer it.
    assert whole.value > 0.99 and whole.asked > 5000
    table = restraint_table(run, 300)
    assert table.row("correct silence").rate == pytest.approx(0.6, abs=0.03)
    assert table.row("miss by loss").rate == pytest.approx(0.4, abs=0.03)


def test_ten_correct_events_out_of_ten_show_nothing():
    w = world(ALERT, 2000, seed=4)
    last = np.flatnonzero(np.cumsum(w.required) == 10)[0] + 1
    columns = ("episode", "tick", "onset", "latent", "required", "delivered", "probed")
    short = dataclasses.replace(w, **{name: getattr(w, name)[:last] for name in columns})
    point = frontier(trace(short, honest(short)), [0]).at(0)
    assert point.events == 10 and point.credited == pytest.approx(2.0)
    assert point.keeps_up == "not shown"
    silent = frontier(trace(short, nobody(short)), [0]).at(0)
    assert silent.credited == 0.0 and silent.keeps_up == "no"
