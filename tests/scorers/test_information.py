"""The auxiliary-channel bound against entropy rates that are known to many digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthetic import chain_path, honest, respond, trace, world

from envrate import rd, tasks
from envrate.latents import GaussianProcess, MarkovChain
from envrate.scorers import information
from envrate.scorers._information import information_of
from envrate.scorers._information_kernels import log_outcome_likelihood
from envrate.scorers._information_tracking import (
    kalman_log_likelihood,
    linear_gaussian_information,
    tracking_information,
)
from envrate.scorers._posterior import Chain, chain_of
from envrate.task import Task
from envrate.trace import Header, Trace

BINARY = Chain(np.array([[0.7, 0.3], [0.3, 0.7]]), np.array([0.5, 0.5]), np.array([0, 1]))


def h(p):
    return -(p * math.log2(p) + (1 - p) * math.log2(1 - p))


def test_forward_recursion_equals_the_sum_over_all_paths():
    rng = np.random.default_rng(1)
    chain = Chain(*random_chain(rng, 3), np.array([0, 1, 1]))
    later = rng.dirichlet(np.ones(2), (1, 2, 2))
    first = rng.dirichlet(np.ones(2), (1, 2))
    y = rng.integers(0, 2, 5)
    y[2] = -1  # not observed
    starts = np.array([True, False, False, False, False])
    log = log_outcome_likelihood(
        chain.matrix, chain.stationary, chain.response, first, later, y, starts, np.zeros(5, np.int64)
    ).sum()
    total = 0.0
    for code in range(3**5):
        z = [code // 3**k % 3 for k in range(5)]
        a = chain.response[z]
        p = chain.stationary[z[0]] * first[0, a[0], y[0]]
        for t in range(1, 5):
            p *= chain.matrix[z[t - 1], z[t]] * (1.0 if y[t] < 0 else later[0, a[t - 1], a[t], y[t]])
        total += p
    assert log == pytest.approx(math.log(total), abs=1e-12)


def random_chain(rng, size):
    matrix = rng.dirichlet(np.ones(size), size)
    values, vectors = np.linalg.eig(matrix.T)
    pi = np.real(vectors[:, np.argmax(np.real(values))])
    return matrix, pi / pi.sum()


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_a_binary_chain_through_a_symmetric_channel(noise):
    # I = H(Y) - H(noise) per tick, H(Y) the entropy rate of the hidden Markov outcomes (0.951042482561 for 0.3, 0.1).
    rng = np.random.default_rng(3)
    n = 200_000
    a = chain_path(BINARY.matrix, BINARY.stationary, n, rng)
    y = np.where(rng.random(n) < noise, 1 - a, a)
    rate = rd.hidden_markov_entropy_rate(BINARY.matrix, [[1 - noise, noise], [noise, 1 - noise]]).mid - h(noise)
    if noise == 0.1:
        assert rate == pytest.approx(0.9510424825612 - h(0.1), abs=1e-9)
    found = information_of(BINARY, a, y, np.zeros(n, np.int64), np.ones(n, bool))
    assert found.memoryless == pytest.approx(rate, abs=4 * (found.high - found.low) / 4)
    assert found.one_step == pytest.approx(found.memoryless, abs=1e-3)
    assert found.high - found.low < 0.02


def test_an_echo_carries_everything_and_only_a_channel_with_memory_sees_it():
    rng = np.random.default_rng(4)
    n = 50_000
    a = chain_path(BINARY.matrix, BINARY.stationary, n, rng)
    y = np.append(0, a[:-1])
    found = information_of(BINARY, a, y, np.zeros(n, np.int64), np.ones(n, bool))
    assert found.channel == "one-step"
    assert found.one_step == pytest.approx(h(0.3), abs=0.01)
    assert found.memoryless < 0.75 * h(0.3)


def test_noise_holds_no_information():
    rng = np.random.default_rng(5)
    n = 20_000
    a = chain_path(BINARY.matrix, BINARY.stationary, n, rng)
    found = information_of(BINARY, a, rng.integers(0, 3, n), np.zeros(n, np.int64), np.ones(n, bool))
    # Cross-fitting: the estimate is at or below 0 in expectation, and not clipped.
    assert found.rate < 1e-3
    assert information_of(BINARY, a, np.zeros(n, np.int64), np.zeros(n, np.int64), np.ones(n, bool)).rate == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_few_ticks_of_noise_are_not_taken_for_information(seed):
    """A channel fitted on the ticks that it is used on would find about (A - 1)(Y - 1) / (2 n ln 2) = 0.2 bits."""
    rng = np.random.default_rng(seed)
    n, k = 180, 8
    chain = Chain(np.full((k, k), 1 / k), np.full(k, 1 / k), np.arange(k))
    found = information_of(chain, rng.integers(0, k, n), rng.integers(0, k, n), np.zeros(n, np.int64), np.ones(n, bool))
    assert found.rate < 0.05


def test_unscored_ticks_only_move_the_chain_on():
    rng = np.random.default_rng(6)
    n = 100_000
    a = chain_path(BINARY.matrix, BINARY.stationary, n, rng)
    scored = np.arange(n) % 2 == 0
    # Every other tick is seen: h of the chain at two steps, 0.42 = 2 * 0.3 * 0.7.
    found = information_of(BINARY, a, a, np.zeros(n, np.int64), scored)
    assert found.ticks == n // 2 and found.memoryless == pytest.approx(h(0.42), abs=0.01)


def test_worked_example_in_both_readings():
    w = world(tasks.get("alert"), 20_000, seed=1, delay=(300, 600), late=0.4)
    run = trace(w, honest(w))
    # Z-channel H(.3) - .5 H(.4) = 0.395816 per tick; erasure 0.6; two ticks per second.
    assert information(run, 300).rate == pytest.approx(2 * 0.395816, abs=0.04)
    assert information(run, 300, reading="resolved").rate == pytest.approx(1.2, abs=0.04)
    assert information(run, 600).rate == pytest.approx(2.0, abs=1e-3)
    assert information(run, 200).rate == 0.0


@pytest.mark.parametrize("late", [0, 1], ids=["at once", "echo"])
@pytest.mark.parametrize("name", ["hold", "watch"])
def test_what_conveys_everything_has_the_demand_whatever_the_sample(name, late):
    # 1500 ticks of `watch` hold about 50 events: without the control their number alone moves the estimate by 14 %.
    task = tasks.get(name)
    for seed in range(3):
        w = world(task, 1500, seed=seed, delay=(0, 0))
        rows = np.arange(late, len(w.tick))
        rows = rows[w.required[rows - late] > 0]
        found = information(trace(w, respond(rows, w.onset[rows], w.required[rows - late])), 0)
        assert found.rate == pytest.approx(task.demand().mid, rel=0.03)


def test_the_control_keeps_the_mean_and_narrows_the_interval():
    # An erasure channel: I = H(Y) - H(lost), H(Y) the entropy rate of the hidden Markov outcomes.
    rng = np.random.default_rng(8)
    lost, n = 0.1, 1000
    channel = [[1 - lost, 0.0, lost], [0.0, 1 - lost, lost]]
    rate = rd.hidden_markov_entropy_rate(BINARY.matrix, channel).mid - h(lost)
    errors = {True: [], False: []}
    for _ in range(40):
        a = chain_path(BINARY.matrix, BINARY.stationary, n, rng)
        y = np.where(rng.random(n) < lost, 2, a)
        for known in errors:
            found = information_of(
                BINARY, a, y, np.zeros(n, np.int64), np.ones(n, bool), entropy_rate=h(0.3) if known else None
            )
            errors[known].append(found.memoryless - rate)
    with_control, without = (np.array(errors[known]) for known in (True, False))
    assert with_control.std() < 0.7 * without.std()
    # Smoothing and cross-fitting cost a little; 4 standard errors of the mean beside it.
    assert abs(with_control.mean()) < 0.006 + 4 * with_control.std() / np.sqrt(40)


def test_the_headline_is_the_larger_bound():
    w = world(tasks.get("alert"), 2000, seed=1, delay=(300, 600), late=0.4)
    run = trace(w, honest(w))
    told = information(run, 300, reading="resolved")
    assert told.headline(0.0) == (told.rate, told.channel)
    assert told.headline(1.9) == (1.9, "credited") and told.headline(math.nan)[0] == told.rate
    few = world(tasks.get("alert"), 10, seed=1)
    assert information(trace(few, honest(few))).headline(0.5) == (0.5, "credited")
    assert math.isnan(information(trace(few, honest(few))).headline(math.nan)[0])


def test_what_an_agent_says_it_does_not_know_is_no_code():
    from envrate.task import Probes

    task = tasks.get("alert").replace(probes=Probes(rate=0.5, after_ms=2000))
    w = world(task, 4000, seed=2, delay=(300, 300))
    none = np.zeros(0, np.int64)
    run = trace(w, respond(none, none, none), lambda w, rows: np.where(w.required[rows] > 0, -1, w.latent[rows]))
    assert information(run, reading="resolved").rate == 0.0


def test_too_few_ticks_and_a_missing_log_are_withheld():
    w = world(tasks.get("alert"), 10, seed=1)
    few = information(trace(w, honest(w)))
    assert math.isnan(few.rate) and "10 ticks" in few.reason and few.to_dict()["rate"] is None
    w = world(tasks.get("alert"), 100, seed=1)
    assert "no link log" in information(trace(w, honest(w), link=False), reading="resolved").reason
    with pytest.raises(ValueError, match="reading"):
        information(trace(w, honest(w)), reading="both")


def test_strata_of_a_run_without_a_task_add():
    from envrate.rd import Bracket
    from envrate.trace import Stratum

    rng = np.random.default_rng(7)
    n = 4000
    stratum = np.arange(n) % 2
    required = np.where(stratum == 0, rng.integers(0, 2, n), 1 + rng.integers(0, 2, n))
    header = Header(
        tick_ms=1000, micro_turn_ms=1000, horizon_ms=1000, demand=Bracket(1.0, 1.0, kind="nominal"),
        strata=(Stratum("timing", (0.5, 0.5)), Stratum("choice", (0.0, 0.5, 0.5))), duration_ms=n * 1000,
    )  # fmt: skip
    acts = np.flatnonzero(required > 0)
    run = Trace(
        header,
        {
            "episode": np.zeros(n),
            "tick": np.arange(n),
            "onset_ms": np.arange(n) * 1000,
            "required": required,
            "stratum": stratum,
        },
        {"episode": np.zeros(len(acts)), "time_ms": acts * 1000, "tick": acts, "value": required[acts]},
    )
    # Half a tick of each stratum per second, one bit each.
    assert information(run).rate == pytest.approx(1.0, abs=0.01)


def test_kalman_likelihood_equals_the_joint_normal_density():
    rng = np.random.default_rng(8)
    space = GaussianProcess(kernel="matern32", timescale_ms=800.0).state_space(500)
    n = 6
    y = rng.standard_normal((n, 1))
    error = np.array([[0.3]])
    starts = np.arange(n) == 0
    read = space.output.reshape(1, -1)
    log = kalman_log_likelihood(space.transition, space.noise, space.stationary, 0.8 * read, error, y, starts).sum()
    r = GaussianProcess(kernel="matern32", timescale_ms=800.0).correlation(n, 500)
    cov = 0.64 * r[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))] + 0.3 * np.eye(n)
    direct = -0.5 * (n * math.log(2 * math.pi) + np.linalg.slogdet(cov)[1] + y[:, 0] @ np.linalg.solve(cov, y[:, 0]))
    assert log == pytest.approx(direct, abs=1e-10)


def ornstein(n, a, rng):
    z = np.empty(n)
    z[0] = rng.standard_normal()
    shock = rng.standard_normal(n) * math.sqrt(1 - a * a)
    for t in range(1, n):
        z[t] = a * z[t - 1] + shock[t]
    return z


def test_tracking_information_of_a_noisy_reader():
    # y = z + v: I = (1/4 pi) integral of log2(1 + S(w) / var v), S the spectrum of the AR(1) sequence (Pinsker).
    rng = np.random.default_rng(9)
    law = GaussianProcess(kernel="ou", timescale_ms=1000.0)
    a, n, noise = math.exp(-0.5), 60_000, 0.2
    z = ornstein(n, a, rng)
    y = z + math.sqrt(noise) * rng.standard_normal(n)
    w = np.linspace(0, math.pi, 20_001)
    s = (1 - a * a) / (1 - 2 * a * np.cos(w) + a * a)
    rate = float(np.trapezoid(0.5 * np.log2(1 + s / noise), w) / math.pi)
    episode, starts = np.zeros(n, np.int64), np.arange(n) == 0
    found = linear_gaussian_information(law, z[:, None], y[:, None], episode, starts, tick_ms=500)
    assert found.rate == pytest.approx(2 * rate, abs=4 * (found.high - found.low) / 4)
    assert found.high - found.low < 0.05 * found.rate
    unrelated = linear_gaussian_information(law, z[:, None], y[::-1, None].copy(), episode, starts, tick_ms=500)
    assert unrelated.rate < 1e-2


def test_tracking_information_of_a_trace_reads_the_value_in_force():
    rng = np.random.default_rng(10)
    task = Task(latent=GaussianProcess(kernel="ou", timescale_ms=1000.0), response="track", tolerance=0.25)
    n = 4000
    z = ornstein(n, math.exp(-0.5), rng)
    onset = np.arange(n) * 500
    said = (z + 0.3 * rng.standard_normal(n))[:, None]
    run = Trace(
        Header.for_task(task, duration_ms=n * 500),
        {"episode": np.zeros(n), "tick": np.arange(n), "onset_ms": onset, "required": z[:, None], "latent": z[:, None]},
        {"episode": np.zeros(n), "time_ms": onset + 200, "tick": np.arange(n), "value": said},
    )
    late = tracking_information(run, 0)  # what was said about the tick before: worth something, less
    told = tracking_information(run, 200)
    assert 0 < late.rate < 0.5 * told.rate
    odd = Task(latent=GaussianProcess(kernel="rbf"), response="track", tolerance=0.25)
    reason = tracking_information(run.with_header(task=odd)).reason
    assert "no state space" in reason
    with pytest.raises(ValueError, match="symbols"):
        w = world(tasks.get("alert"), 50)
        tracking_information(trace(w, honest(w)))


def test_the_law_of_a_preset_is_read():
    assert chain_of(tasks.get("hold")).matrix.shape == (2, 2)
    assert MarkovChain(((0.5, 0.5), (0.5, 0.5))).is_memoryless
