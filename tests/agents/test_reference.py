"""Reference agents: what each must and must not score."""

from __future__ import annotations

import numpy as np
import pytest

import envrate
from envrate import Probes, tasks
from envrate.agents import Always, GuessUnheard, IdealObserver, Never, names
from envrate.channels import Link, Uniform
from envrate.latents import MarkovChain
from envrate.scorers._outcome import outcomes


def scored(trace: envrate.Trace) -> tuple[np.ndarray, ...]:
    """(required, first value, first latency) of the scored ticks."""
    found, keep = outcomes(trace), trace.ticks["scored"]
    return trace.ticks["required"][keep], found.first_value[keep], found.first_ms[keep]


@pytest.mark.parametrize("name", ["alert", "watch", "hold", "choice8"])
def test_never_and_always(name: str) -> None:
    task = tasks.get(name)
    silent = envrate.rollout(task, Never(task), num_envs=2, num_ticks=20)
    assert len(silent.responses["tick"]) == 0
    loud = envrate.rollout(task, Always(task), num_envs=2, num_ticks=20)
    _, value, latency = scored(loud)
    assert (value == 1 + np.argmax(task.pmf[1:])).all() and (latency < task.tick_ms).all()


def test_random_guess_is_uniform_over_the_space() -> None:
    task = tasks.get("choice8").replace(reply="named")
    trace = envrate.rollout(task, "random", num_envs=8, num_ticks=500)
    values = np.bincount(trace.responses["value"], minlength=9)[1:]
    assert np.abs(values / values.sum() - 1 / 8).max() < 5 * np.sqrt(1 / 8 * 7 / 8 / values.sum())
    back = trace.responses["time_ms"] // task.tick_ms - trace.responses["tick"]
    named = np.bincount(back[trace.responses["tick"] >= 0])
    assert len(named) == task.ticks_nameable and named.min() > 0.9 * named.max()


@pytest.mark.parametrize("name", ["watch", "hold", "choice8"])
def test_reactive_is_right_on_all_it_hears(name: str) -> None:
    task = tasks.get(name)
    trace = envrate.rollout(task, "reactive", link=Link(delay_ms=100, loss=0.3), num_envs=4, num_ticks=200)
    required, value, _ = scored(trace)
    heard = (trace.ticks["delivered_ms"] >= 0)[trace.ticks["scored"]]
    assert (value[heard] == required[heard]).all() and (value[~heard] == 0).all()
    assert 0.6 < heard.mean() < 0.8


def test_several_arrivals_at_once_are_answered_one_by_one() -> None:
    """Packets that queue up and arrive together; every one of them is answered in the end, by name."""
    task = tasks.get("hold").replace(horizon_ms=3000)
    trace = envrate.rollout(task, "reactive", link=Link(jitter=Uniform(0, 1500)), num_envs=4, num_ticks=200)
    required, value, _ = scored(trace)
    fresh = np.unique(np.stack([trace.ticks["episode"], trace.ticks["delivered_ms"]]), axis=1, return_counts=True)[1]
    assert (fresh > 1).sum() > 20
    assert (value == required).all()


def test_echo_answers_with_the_tick_before() -> None:
    task = tasks.get("hold")
    trace = envrate.rollout(task, "echo", num_envs=4, num_ticks=100)
    required, value, _ = scored(trace)
    required, value = required.reshape(4, -1), value.reshape(4, -1)
    np.testing.assert_array_equal(value[:, 1:], required[:, :-1])
    assert (value[:, 0] == 0).all()


def test_guesser_is_right_four_times_in_five() -> None:
    """60 % heard at 300 ms and right, 40 % guessed with a fair coin: 80 % right, whatever was required."""
    task = tasks.get("alert").replace(reply="named")
    trace = envrate.rollout(task, GuessUnheard(task, 300), link="worked", num_envs=20, num_ticks=500)
    required, value, latency = scored(trace)
    given = np.where(latency <= 300, value, 0)
    for a in (0, 1):
        right = (given == a)[required == a].mean()
        assert abs(right - 0.8) < 5 * 0.4 / np.sqrt((required == a).sum())
    with pytest.raises(ValueError, match="needs reply='named'"):
        GuessUnheard(tasks.get("alert"))


def test_probes_are_answered_from_memory() -> None:
    task = tasks.get("alert-probed").replace(probes=Probes(rate=0.5, after_ms=2000, deadline_ms=2000))
    trace = envrate.rollout(task, "reactive", link="worked", num_envs=4, num_ticks=200)
    answers = trace.responses["kind"] == 1
    row = {(e, k): i for i, (e, k) in enumerate(zip(trace.ticks["episode"], trace.ticks["tick"], strict=True))}
    said = (trace.responses[name][answers] for name in ("episode", "tick"))
    rows = [row[pair] for pair in zip(*said, strict=True)]
    np.testing.assert_array_equal(trace.responses["value"][answers], trace.ticks["probe_required"][rows])
    probed = trace.ticks["probe_ms"] >= 0
    assert probed.mean() == pytest.approx(0.5, abs=0.1) and len(rows) > 0.95 * probed.sum()
    late = trace.responses["time_ms"][answers] - trace.ticks["probe_ms"][rows]
    assert (late >= 0).all() and np.median(late) == 0


def brute_posterior(task: envrate.Task, z_seen: dict[int, int], ticks: int, target: int) -> np.ndarray:
    """(K,) law of z_target given the states seen, by summing over every path."""
    law = task.latent
    weight = np.zeros(law.num_states)
    for path in np.ndindex(*(law.num_states,) * ticks):
        if any(path[i] != z for i, z in z_seen.items()):
            continue
        p = law.stationary[path[0]] if law.initial is None else law.initial[path[0]]
        for a, b in zip(path, path[1:], strict=False):
            p *= law.matrix[a, b]
        weight[path[target]] += p
    return weight / weight.sum()


@pytest.mark.parametrize("latency", [0, 200, 600, 1000])
@pytest.mark.parametrize("initial", [None, (0.0, 1.0, 0.0)])
def test_ideal_observer_decides_by_the_exact_posterior(latency: int, initial: tuple[float, ...] | None) -> None:
    """Its decision on each of 7 ticks, against a sum over all paths of what the trace says was delivered by then."""
    matrix = ((0.8, 0.15, 0.05), (0.1, 0.7, 0.2), (0.3, 0.1, 0.6))
    task = envrate.Task(
        latent=MarkovChain(matrix, initial=initial),
        response=(0, 1, 2),
        tick_ms=300,
        micro_turn_ms=100,
        horizon_ms=1000,
        severity=envrate.Severity(miss=3.0, wrong=2.0, over=1.0),
        reply="named",
    )
    link = Link(delay_ms=50, jitter=Uniform(0, 500), loss=0.4)
    observer = IdealObserver(task, latency)
    trace = envrate.rollout(task, observer, link=link, num_envs=12, num_ticks=7, seed=latency)
    found = outcomes(trace)
    t = {name: column.reshape(12, -1) for name, column in trace.ticks.items()}
    value, first = found.first_value.reshape(12, -1), found.first_ms.reshape(12, -1)
    for e in range(12):
        for target in range(7):
            moment = t["onset_ms"][e, target] + latency
            known = np.flatnonzero((t["delivered_ms"][e] >= 0) & (t["delivered_ms"][e] <= moment))
            seen = {i: int(t["latent"][e, i]) for i in known.tolist()}
            posterior = brute_posterior(task, seen, min(9, t["tick"].shape[1]), target)
            cost = posterior @ task.distortion
            given = value[e, target] if first[e, target] <= latency else 0
            assert cost[given] <= cost.min() + 1e-5, (e, target, posterior)
            assert value[e, target] == 0 or first[e, target] == latency


def test_ideal_observer_refuses_what_it_cannot_do() -> None:
    task = tasks.get("hold")
    with pytest.raises(ValueError, match="latency_ms: expected an integer"):
        IdealObserver(task, 5000)
    with pytest.raises(ValueError, match="weights: expected shape"):
        IdealObserver(task, weights=((0.0, 1.0), (1.0, 0.0)))


def test_names() -> None:
    assert {"reactive", "never", "always", "random", "echo", "guess", "ideal"} <= set(names())
    with pytest.raises(ValueError, match="agent: expected one of"):
        envrate.agents.get("nobody", tasks.get("alert"))


def test_the_observer_by_name_has_to_name_its_ticks() -> None:
    get = envrate.agents.get
    assert get("ideal", tasks.get("hold")).task == tasks.get("hold")
    with pytest.raises(ValueError, match="agent: ideal decides at the horizon and has to name its tick, alert takes"):
        get("ideal", tasks.get("alert"))
