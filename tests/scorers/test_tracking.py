from __future__ import annotations

import numpy as np
import pytest

from envrate import tasks
from envrate.envs import rollout
from envrate.scorers import compare, rank
from envrate.scorers._tracking import kalman_distortion, tracking_distortion, tracking_frontier, tracking_rate
from envrate.trace import Trace

DELAY, T, TAU = 300, 200, 1000.0
LEVELS = np.arange(0, 1001, 100)


@pytest.fixture(scope="module")
def echo() -> Trace:
    return rollout("track", "echo", link={"delay_ms": DELAY}, num_envs=64, num_ticks=500)


def test_an_echo_has_the_distortion_of_its_delay(echo: Trace) -> None:
    # E (z_t - z_{t+m})^2 = 2 s2 (1 - exp(-m T / tau)): before the value has come, and after a newer one has.
    m = np.where(LEVELS < DELAY, np.ceil((DELAY - LEVELS) / T), np.floor((LEVELS - DELAY) / T))
    expected = 2 * (1 - np.exp(-m * T / TAU))
    found = tracking_distortion(echo, LEVELS)
    # 64 episodes of 500 ticks with correlation exp(-0.2): about 6400 independent squares; 4 standard errors.
    assert (np.abs(found - expected) <= 4 * expected * np.sqrt(2 / 6400) + 1e-12).all()


def test_the_observer_has_the_prediction_variance(echo: Trace) -> None:
    # Exact values up to m ticks ago of a Markov process of unit variance leave 1 - exp(-2 m T / tau).
    m = np.ceil(np.maximum(DELAY - LEVELS, 0) / T)
    assert np.allclose(kalman_distortion(echo, LEVELS), 1 - np.exp(-2 * m * T / TAU), atol=2e-3)


@pytest.mark.parametrize("name", ["track", "track3"])
def test_the_kalman_agent_reaches_the_observer_at_once(name: str) -> None:
    run = rollout(name, "ideal", link={"delay_ms": DELAY, "loss": 0.1}, num_envs=64, num_ticks=500)
    found, bound = tracking_distortion(run, [0])[0], kalman_distortion(run, [0])[0]
    assert abs(found / bound - 1) < 0.04
    assert (
        found
        < tracking_distortion(
            rollout(name, "echo", link={"delay_ms": DELAY, "loss": 0.1}, num_envs=64, num_ticks=500), [0]
        )[0]
    )


def test_the_frontier_of_an_echo(echo: Trace) -> None:
    task, front = echo.task, tracking_frontier(echo, LEVELS, resamples=200)
    points = {p.latency_ms: p for p in front.points}
    assert points[0].keeps_up == "no" and points[300].keeps_up == "yes" and front.keeps_up_at_ms == 300
    credited = [p.credited for p in front.points]
    assert credited == sorted(credited) and max(credited) <= front.demand.upper + 1e-9
    # At l = 100 the echo is one tick old: D = 2 (1 - exp(-0.2)), and C its R(D).
    assert abs(points[100].credited - float(tracking_rate(task, 2 * (1 - np.exp(-0.2))))) < 0.03
    assert points[100].credited_low < points[100].credited < points[100].credited_high
    assert points[1000].credited == points[300].credited  # a later read may not lose what an earlier one had
    assert abs(points[300].gap) < 1e-9


def test_saying_the_mean_earns_nothing() -> None:
    run = rollout("track", "never", num_envs=32, num_ticks=300)
    front = tracking_frontier(run, [0, 1000], resamples=200)
    assert max(p.credited for p in front.points) < 0.02 and all(p.keeps_up == "no" for p in front.points)


def test_runs_of_symbols_are_refused() -> None:
    run = rollout(tasks.get("alert"), "never", num_envs=2, num_ticks=4)
    with pytest.raises(ValueError, match="trace: its responses are symbols"):
        tracking_distortion(run)


@pytest.fixture(scope="module")
def observer() -> Trace:
    return rollout("track", "ideal", link={"delay_ms": DELAY}, num_envs=64, num_ticks=500)


def test_tracking_runs_are_compared_in_pairs(echo: Trace, observer: Trace) -> None:
    # At l = 0 the newest value known is two ticks old: D = 2 (1 - e^-0.4) as it is, 1 - e^-0.8 as the best estimate.
    found = compare(observer, echo)
    assert found.paired and found.notes == () and {p.reading for p in found.points} == {"output-only"}
    point = found.at(0)
    errors = np.array([1 - np.exp(-4 * T / TAU), 2 * (1 - np.exp(-2 * T / TAU))])
    truth = tracking_rate(echo.task, errors)
    assert point.low < truth[0] - truth[1] < point.high and point.verdict == "a"
    assert point.severity_low < errors[0] - errors[1] < point.severity_high < 0
    assert found.at(1000).difference == 0.0  # both within the tolerance: no bits beyond it are credited
    assert found.at(1000).verdict == "not shown"
    other = rollout("track", "echo", link={"delay_ms": DELAY}, num_envs=64, num_ticks=500, seed=1)
    apart = compare(observer, other)
    assert not apart.paired and apart.at(0).high - apart.at(0).low > 1.1 * (point.high - point.low)


def test_tracking_runs_are_ranked(echo: Trace, observer: Trace) -> None:
    found = rank([echo, observer], 100)
    assert [run.name for run in found.runs] == ["ideal", "echo"] and found.order[0, 1] == 1.0 and found.paired
    front = tracking_frontier(observer, [0, 100]).at(100)
    assert found.runs[0].credited == pytest.approx(front.credited)
    assert found.runs[0].low == pytest.approx(front.credited_low, abs=0.01)
    with pytest.raises(ValueError, match="'echo' follows values, so there is no resolved reading"):
        rank([echo, observer], 100, reading="resolved")


def test_values_and_symbols_are_not_compared(echo: Trace) -> None:
    symbols = rollout("alert", "reactive", num_envs=2, num_ticks=20)
    with pytest.raises(ValueError, match="b: it follows values and a answers with symbols"):
        compare(symbols, echo)
