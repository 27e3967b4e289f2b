"""Language models as agents: what they are shown, what their replies mean, what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import ChatServer, chat_server, newest_state

import envrate as er
from envrate.agents import Action, ChatAgent, HFAgent, Poller
from envrate.agents._chat_content import content, instructions, parse_reply
from envrate.renderers import Audio, Proprio, Screen, Symbols, Video

pytest.importorskip("openai")
ALERT = er.tasks.get("alert")
CHOICE = er.tasks.get("choice8")
TRACK3 = er.tasks.get("track3")
EXCEED = er.tasks.get("exceed")
PROBED = ALERT.replace(probes=er.Probes(rate=0.5, after_ms=2000))


def seen(*tokens: int) -> dict[str, np.ndarray[Any, Any]]:
    """An observation of one environment whose newest packets show `tokens`."""
    window = 4
    signal = np.full((1, window), -1, dtype=np.int32)
    age = np.full((1, window), -1, dtype=np.int32)
    if tokens:
        signal[0, -len(tokens) :] = tokens
        age[0, -len(tokens) :] = 300
    return {"signal": signal, "age_ms": age, "fresh": np.array([len(tokens)], dtype=np.int32)}


def alert_script(messages: list[dict[str, Any]]) -> str:
    return "A" if newest_state(messages) == 2 else "-"


def agent_for(server: ChatServer, poller: Poller | None = None, **options: Any) -> ChatAgent:
    return ChatAgent(server.base_url, "scripted", poller or Poller(ALERT), timeout_s=10.0, **options)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("A", (1,)),
        ("(h).", (8,)),
        ("Answer: C", (3,)),
        ("I think that the answer is B.", (2,)),
        ("-", None),
        ("", None),
        ("I", None),  # no such option among eight
        ("a dog ran by", None),
        ("A or B", None),
        ("silence", None),
        ("\x00{]", None),
    ],
)
def test_replies_are_read_strictly(text: str, meant: tuple[int, int]) -> None:
    assert parse_reply(CHOICE, text) == (Action(*meant) if meant else None)


@pytest.mark.parametrize(("text", "answer"), [("2", 3), ("state 0", 1), ("3", None)])
def test_numbers_answer_questions(text: str, answer: int | None) -> None:
    assert parse_reply(PROBED, text) == (None if answer is None else Action(answer=answer))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5 -1.25 3", (0.5, -1.25, 3.0)),
        ("[0.5, -1.25, 3e-1]", (0.5, -1.25, 0.3)),
        ("0.5", None),
        ("0.5 1 2 3", None),
        ("about 0.5 1 2 I guess", None),
        ("nan nan nan", None),
        ("-", None),
    ],
)
def test_estimates_are_read_strictly(text: str, values: tuple[float, ...] | None) -> None:
    assert parse_reply(TRACK3, text) == (None if values is None else Action(values))


def test_a_model_is_told_how_states_show_and_when_a_response_is_due() -> None:
    told = instructions(PROBED, Audio().legend(PROBED))
    assert "state 2: a tone of 524 Hz" in told
    assert "A: in state 2" in told and "B:" not in told
    assert "A question is a chirp that rises from 300 to 3000 Hz" in told and "2000 ms" in told
    assert "A: when value 1 is below -2 or 2 or more" in instructions(EXCEED, Symbols().legend(EXCEED))
    assert "3 decimal numbers" in instructions(TRACK3, Screen().legend(TRACK3))
    assert "question" not in instructions(ALERT, Video().legend(ALERT))


def test_content_of_each_modality() -> None:
    label = "#7, 40 ms old when it came:"
    assert content(ALERT, Symbols(), np.array(2), 7, 40) == [{"type": "text", "text": f"{label} state 2"}]
    assert content(PROBED, Symbols(), np.array(3), 7, 40)[0]["text"] == f"{label} question"
    picture = content(ALERT, Video(), np.zeros((8, 8, 3), np.uint8), 7, 40)[1]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    sound = content(ALERT, Audio(), np.zeros(160, np.float32), 7, 40)[1]
    assert sound["input_audio"]["format"] == "wav"
    assert content(ALERT, Proprio(), np.float32([0.5, -1.0]), 7, 40)[0]["text"] == f"{label} 0.500 -1.000"


@pytest.mark.parametrize("stream", [False, True])
def test_asks_and_acts(stream: bool, tmp_path: Path) -> None:
    log = tmp_path / "replies.jsonl"
    with chat_server(alert_script, delay_s=0.02) as server:
        agent = agent_for(server, Poller(ALERT, log=log), stream=stream)
        state = agent.init(1, 0)
        quiet, state, _ = agent(seen(), state)
        alert, state, spent = agent(seen(0, 2), state)
    assert quiet == Action() and alert == Action(1)
    assert len(server.requests) == 1  # nothing new, nothing asked
    assert spent >= 20
    (entry,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (entry["reply"], entry["error"]) == ("A", None)
    assert entry["usage"] == {"prompt_tokens": 7, "completion_tokens": 1}


def test_protocols_differ_in_what_they_show() -> None:
    shown = {}
    for protocol in ("sliding", "cumulative", "interleaved"):
        with chat_server(alert_script) as server:
            agent = agent_for(server, Poller(ALERT, protocol=protocol, window=2))
            state = agent.init(1, 0)
            for token in (0, 1, 2):
                _, state, _ = agent(seen(token), state)
        shown[protocol] = [
            (m["role"], len(m["content"])) for m in server.requests[-1]["messages"] if m["role"] != "system"
        ]
    assert shown["sliding"] == [("user", 2)]
    assert shown["cumulative"] == [("user", 3)]
    assert shown["interleaved"] == [("user", 1), ("assistant", 1), ("user", 1), ("assistant", 1), ("user", 1)]


def test_polls_every_second_turn_with_all_that_is_new() -> None:
    with chat_server(alert_script) as server:
        agent = agent_for(server, Poller(ALERT, poll_every=2))
        state = agent.init(1, 0)
        for token in (0, 1, 2):
            _, state, _ = agent(seen(token), state)
    assert [len(r["messages"][1]["content"]) for r in server.requests] == [1, 3]


def test_retries_lie_inside_the_latency() -> None:
    with chat_server(alert_script, failures=1) as server:
        action, _, spent = agent_for(server, max_retries=1)(seen(2), agent_for(server).init(1, 0))
    assert action == Action(1)
    assert len(server.requests) == 2
    assert spent > 300  # the client waits at least about half a second before a retry


def test_an_endpoint_that_fails_is_silence() -> None:
    with chat_server(alert_script, failures=100) as server:
        agent = agent_for(server, max_retries=0)
        action, state, _ = agent(seen(2), agent.init(1, 0))
        assert action == Action()
        (entry,) = agent.poller._known.values()
        assert "500" in entry["error"]


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "replies.jsonl"
    with chat_server(alert_script, delay_s=0.05) as server:
        agent = agent_for(server, Poller(ALERT, log=log))
        first = agent(seen(2), agent.init(1, 0))
        log.write_text(log.read_text() + '{"request": "torn')
        again = agent_for(server, Poller(ALERT, log=log))
        second = again(seen(2), again.init(1, 0))
    assert len(server.requests) == 1
    assert (first[0], first[2]) == (second[0], second[2])


def test_the_same_sight_is_asked_about_anew(tmp_path: Path) -> None:
    """Each poll costs its own time: a reply of another moment, or of another episode, is never taken for it."""
    with chat_server(alert_script) as server:
        agent = agent_for(server, Poller(ALERT, log=tmp_path / "replies.jsonl"))
        state = agent.init(1, 0)
        for _ in range(3):
            _, state, _ = agent(seen(2), state)
        assert len(server.requests) == 3
        agent(seen(2), agent.init(1, 1))
    assert len(server.requests) == 4


def test_tracks_and_holds_the_last_estimate() -> None:
    replies = iter(["0.5 1 -2", "I lost it", "1 1 1"])
    agent = HFAgent(lambda messages, **_: next(replies), Poller(TRACK3))
    state, given = agent.init(1, 0), []
    for k in range(3):
        observation = {
            "signal": np.full((1, 4, 3), k, np.float32),
            "age_ms": np.array([[-1, -1, -1, 40]]),
            "fresh": np.array([1]),
        }
        action, state, _ = agent(observation, state)
        given.append(action.value)
    assert given == [(0.5, 1.0, -2.0), (0.5, 1.0, -2.0), (1.0, 1.0, 1.0)]


def test_the_key_comes_from_the_environment_and_goes_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-123")
    log = tmp_path / "replies.jsonl"
    with chat_server(alert_script) as server:
        agent = agent_for(server, Poller(ALERT, log=log), api_key_env="MY_KEY")
        agent(seen(2), agent.init(1, 0))
    assert server.keys == ["Bearer sk-secret-123"]
    assert "secret" not in log.read_text() + repr(agent)


def test_local_pipeline() -> None:
    def pipeline(messages: list[dict[str, Any]], **_: Any) -> list[dict[str, str]]:
        return [{"generated_text": "A" if "state 2" in messages[-1]["content"] else "-"}]

    agent = HFAgent(pipeline, Poller(ALERT))
    state = agent.init(1, 0)
    assert agent(seen(1), state)[0] == Action()
    assert agent(seen(0, 2), state)[0] == Action(1)


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="protocol: expected one of cumulative, interleaved, sliding"):
        Poller(ALERT, protocol="push")
    with pytest.raises(ValueError, match="poll_every"):
        Poller(ALERT, poll_every=0)
    with pytest.raises(ValueError, match="num_envs"):
        HFAgent(None, Poller(ALERT)).init(2, 0)
