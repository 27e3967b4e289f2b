"""Chat agents on the frontier: latency moves it, garbage earns nothing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from chat_server import chat_server, newest_state

import envrate as er
from envrate import live
from envrate.agents import ChatAgent, Poller

pytest.importorskip("openai")
ALERT = er.tasks.get("alert")


def perfect(messages: list[dict[str, Any]]) -> str:
    return "A" if newest_state(messages) == 2 else "-"


def frontier_of(script: Any, delay_s: float) -> er.Frontier:
    with chat_server(script, delay_s=delay_s) as server:
        agent = ChatAgent(server.base_url, "scripted", Poller(ALERT, window=1))
        trace = live.run(ALERT, agent, clock="virtual", num_ticks=30, seed=5)
    return er.frontier(trace, resamples=100)


def test_latency_moves_the_frontier() -> None:
    fast, slow = frontier_of(perfect, 0.15), frontier_of(perfect, 0.9)
    first = {
        name: min(p.latency_ms for p in f.reading() if p.credited > 1.0) for name, f in {"f": fast, "s": slow}.items()
    }
    assert 200 <= first["f"] <= 400
    assert 900 <= first["s"] <= 1100
    assert fast.at(2000).credited == pytest.approx(slow.at(2000).credited)


def test_garbage_earns_nothing_and_never_stops_the_run() -> None:
    words = itertools.cycle(["", "A or B?", "\x00\x01", "{" * 500, "the answer", "9" * 50, "I am a model"])
    frontier = frontier_of(lambda messages: next(words), 0.0)
    assert all(p.credited == 0.0 for p in frontier.reading())
