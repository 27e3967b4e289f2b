"""The real-time runner: one world on three clocks, nothing booked to the wrong tick."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import envrate as er
from envrate import live
from envrate.agents import Action
from envrate.live._mailbox import Mailbox, merge

# A fast world, so that wall-clock tests are short: ticks of 100 ms, micro-turns of 40 ms off the tick's grid.
FAST = er.tasks.get("alert").replace(tick_ms=100, micro_turn_ms=40, horizon_ms=400)


def assert_same_events(a: er.Trace, b: er.Trace) -> None:
    for mine, other in ((a.ticks, b.ticks), (a.responses, b.responses)):
        for name in mine:
            np.testing.assert_array_equal(mine[name], other[name], err_msg=name)


@pytest.mark.parametrize("preset", ["alert", "hold", "alert-probed"])
@pytest.mark.parametrize("compute_ms", [0, 350])
def test_a_virtual_run_is_the_simulated_one(preset: str, compute_ms: int) -> None:
    task = er.tasks.get(preset)
    settings: dict[str, Any] = {"link": "worked", "num_ticks": 40, "seed": 3, "compute_ms": compute_ms}
    simulated = er.rollout(task, "reactive", num_envs=1, **settings)
    virtual = live.run(task, "reactive", clock="virtual", **settings)
    assert isinstance(simulated, er.Trace)
    assert len(virtual.responses["tick"]) > 5
    assert_same_events(simulated, virtual)


class NumpyReactive:
    """Answers the newest token; sleeps for `sleep_s` when there is one."""

    def __init__(self, sleep_s: float = 0.0) -> None:
        self.sleep_s = sleep_s

    def __call__(self, observation: dict[str, Any], state: Any) -> tuple[Action, Any]:
        if not observation["fresh"][0]:
            return Action(), state
        time.sleep(self.sleep_s)
        return Action(int(FAST.response[int(observation["signal"][0, -1])])), state


async def async_reactive(observation: dict[str, Any], state: Any) -> tuple[Action, Any]:
    await asyncio.sleep(0)
    return NumpyReactive()(observation, state)


@pytest.mark.parametrize("agent", [NumpyReactive(), async_reactive])
def test_wall_clock_answers_the_right_ticks(agent: Any) -> None:
    trace = live.run(FAST, agent, num_ticks=30, seed=1)
    assert trace.header.clock == "wall"
    required = dict(zip(trace.ticks["tick"], trace.ticks["required"], strict=True))
    answered = trace.responses["tick"]
    assert all(required[t] == 1 for t in answered)
    # A packet is seen at the next micro-turn, so an answer can be late by that and the scheduler's error only.
    assert set(answered) >= {t for t, a in required.items() if a and t < 30} - set(answered[-1:] + 1)
    assert set(trace.header.extra["scheduling_error_ms"]) == {"p50", "p99"}


def test_sleep_moves_latency_by_the_sleep_and_no_more_than_a_micro_turn_beyond() -> None:
    sleep_ms = 90
    medians = []
    for sleep in (0.0, sleep_ms / 1000):
        trace = live.run(FAST, NumpyReactive(sleep), num_ticks=40, seed=1)
        latency = trace.responses["time_ms"] - trace.responses["tick"] * FAST.tick_ms
        required = trace.ticks["required"][trace.responses["tick"]]
        assert (required == 1).all()  # nothing booked to the wrong tick
        assert latency.min() >= sleep * 1000
        medians.append(float(np.median(latency)))
    assert medians[1] - medians[0] <= sleep_ms + FAST.micro_turn_ms


def test_a_late_agent_misses_steps_and_they_are_counted() -> None:
    trace = live.run(FAST, NumpyReactive(0.15), num_ticks=20, seed=1)
    assert trace.header.extra["missed_steps"] > 10


class FromALog:
    """Answers at once and declares the time that the answer once took, as a chat agent does from its log."""

    def __call__(self, observation: dict[str, Any], state: Any) -> tuple[Action, Any, int]:
        action, state = NumpyReactive()(observation, state)
        return action, state, 90 if action.value else 0


def test_an_action_is_held_for_the_time_that_its_agent_declares() -> None:
    slow = live.run(FAST, NumpyReactive(0.09), num_ticks=40, seed=1)
    held = live.run(FAST, FromALog(), num_ticks=40, seed=1)
    latencies = [t.responses["time_ms"] - t.responses["tick"] * FAST.tick_ms for t in (slow, held)]
    assert latencies[1].min() >= 90
    assert abs(np.median(latencies[0]) - np.median(latencies[1])) <= FAST.micro_turn_ms
    assert (held.ticks["required"][held.responses["tick"]] == 1).all()


def test_a_perceiver_is_called_by_name_in_its_modality() -> None:
    settings: dict[str, Any] = {"modality": "audio", "link": "worked", "num_ticks": 12, "seed": 3}
    task = er.tasks.get("alert")
    simulated = er.rollout(task, "perceiver", num_envs=1, **settings)
    virtual = live.run(task, "perceiver", clock="virtual", **settings)
    assert isinstance(simulated, er.Trace) and len(virtual.responses["tick"]) > 2
    assert_same_events(simulated, virtual)


def test_merged_observations_lose_no_packet() -> None:
    def shows(*tokens: int) -> dict[str, Any]:
        signal = np.array([-1] * (4 - len(tokens)) + list(tokens), np.int32)
        age = np.where(signal >= 0, 10, -1).astype(np.int32)
        return {"signal": signal, "age_ms": age, "fresh": np.int32(len(tokens))}

    both = merge(shows(5, 6), shows(7), 40)
    assert both["signal"].tolist() == [-1, 5, 6, 7]
    assert both["age_ms"].tolist() == [-1, 50, 50, 10]
    assert int(both["fresh"]) == 3
    assert merge(shows(5), shows(), 40)["age_ms"].tolist() == [-1, -1, -1, 50]

    async def two_puts() -> tuple[int, int]:
        box = Mailbox(40)
        box.put(0, shows(1))
        box.put(1, shows(2))
        taken = await box.take()
        assert taken is not None
        return taken[0], box.missed

    assert asyncio.run(two_puts()) == (1, 1)


def test_written_as_it_happens(tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    trace = live.run(FAST, NumpyReactive(), num_ticks=20, seed=1, out=out)
    loaded = er.Trace.load(out)
    assert loaded.report is not None and loaded.report.complete
    assert_same_events(trace, loaded)
    assert loaded.header.extra == trace.header.extra


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="clock: expected one of virtual, wall"):
        live.run(FAST, NumpyReactive(), clock="video")
    with pytest.raises(ValueError, match="speed"):
        live.run(FAST, NumpyReactive(), speed=0.0)
    with pytest.raises(ValueError, match="num_ticks"):
        live.run(FAST, NumpyReactive(), num_ticks=0)
    with pytest.raises(ValueError, match="action: expected a member of Discrete"):
        live.run(FAST, lambda observation, state: (np.array([7]), state), clock="virtual", num_ticks=5)
