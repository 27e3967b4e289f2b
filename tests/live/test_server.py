"""The WebSocket server: whatever a client does, the episode's trace stays whole and says what happened."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import envrate as er
from envrate import live

pytest.importorskip("websockets")
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

FAST = er.tasks.get("alert").replace(tick_ms=100, micro_turn_ms=50, horizon_ms=400)


def play(
    script: Callable[[Any, str], Awaitable[None]], *, wait_for: int = 1, num_ticks: int = 12, **settings: Any
) -> list[er.Trace]:
    """Runs `script(server, url)` against a server and returns the traces that it finished."""
    traces: list[er.Trace] = []

    async def main() -> None:
        task = settings.pop("task", FAST)
        async with live.Server(task, num_ticks=num_ticks, on_trace=traces.append, **settings) as server:
            host, port = server.address
            await script(server, f"ws://{host}:{port}/ws")
            async with asyncio.timeout(30):
                while len(traces) < wait_for:
                    await asyncio.sleep(0.02)

    asyncio.run(main())
    return traces


async def react(connection: Any, response: tuple[int, ...]) -> dict[str, Any]:
    """Plays a symbols episode like the reactive agent; returns the goodbye."""
    await connection.send('{"type":"start"}')
    while True:
        message = json.loads(await connection.recv())
        if message["type"] == "bye":
            return dict(message)
        for token in message["signal"]:
            value = response[token]
            if value:
                await connection.send(json.dumps({"type": "action", "step": message["step"], "value": value}))


def test_hello_tells_the_public_part_only() -> None:
    hellos = []

    async def script(server: Any, url: str) -> None:
        async with connect(url) as connection:
            hellos.append(json.loads(await connection.recv()))
            await connection.send('{"type":"start"}')
            await connection.send('{"type":"leave"}')
            await connection.recv()

    play(script)
    (hello,) = hellos
    assert (hello["type"], hello["protocol"], hello["encoding"]) == ("hello", 1, "json")
    assert er.Task.from_dict(hello["task"]) == FAST
    assert not {"seed", "latent", "required"} & set(hello)


def test_an_episode_is_booked_and_scored() -> None:
    byes = []

    async def script(server: Any, url: str) -> None:
        async with connect(url) as connection:
            await connection.recv()
            byes.append(await react(connection, FAST.response))

    (trace,) = play(script, num_ticks=30)
    (bye,) = byes
    assert bye["reason"] == "complete"
    assert bye["score"]["unit"] == "bits/s"
    required = dict(zip(trace.ticks["tick"], trace.ticks["required"], strict=True))
    assert trace.responses["tick"].size > 5
    assert all(required[t] == 1 for t in trace.responses["tick"])


def test_several_episodes_at_once_have_worlds_of_their_own() -> None:
    async def script(server: Any, url: str) -> None:
        async def one() -> None:
            async with connect(url) as connection:
                await connection.recv()
                await react(connection, FAST.response)

        await asyncio.gather(*(one() for _ in range(4)))

    traces = play(script, wait_for=4, num_ticks=20)
    assert sorted(t.header.seed or 0 for t in traces) == [0, 1, 2, 3]
    assert len({t.ticks["required"].tobytes() for t in traces}) > 1


def test_a_disconnect_leaves_a_whole_trace_that_says_so(tmp_path: Path) -> None:
    async def script(server: Any, url: str) -> None:
        async with connect(url) as connection:
            await connection.recv()
            await connection.send('{"type":"start"}')
            for _ in range(6):
                await connection.recv()

    (trace,) = play(script, out=tmp_path)
    assert any("disconnected" in note for note in trace.header.notes)
    loaded = er.Trace.load(tmp_path / "episode-0000.jsonl")
    assert loaded.report is not None and loaded.report.complete
    assert len(loaded) >= 3
    assert loaded.header.notes == trace.header.notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "malformed message"),
        ('{"type": "jump"}', "malformed message"),
        ("[" * 5000, "malformed message"),
        (b"\x00\x01", "expected a JSON text"),
        ('{"type": "action", "step": 99, "value": 1}', "action.step: expected 0"),
        ('{"type": "action", "step": 0, "value": 9}', "action.value: expected 0 ... 1, got 9"),
        ('{"type": "action", "step": 0, "value": 1, "back": 1}', "action.back: expected none"),
        ('{"type": "action", "step": 0, "answer": 1}', "action.answer: expected 0 ... 0"),
        ('{"type": "action", "step": 1e400}', "malformed message"),
        ('{"type": "action", "step": 0, "value": [0.5]}', "action.value: expected a member of"),
    ],
)
def test_bad_messages_are_answered_and_the_episode_goes_on(text: str | bytes, said: str) -> None:
    errors = []

    async def script(server: Any, url: str) -> None:
        async with connect(url) as connection:
            await connection.recv()
            await connection.send('{"type":"start"}')
            await connection.recv()
            await connection.send(text)
            while not errors:
                message = json.loads(await connection.recv())
                if message["type"] == "error":
                    errors.append(message["message"])
            await react(connection, FAST.response)

    (trace,) = play(script)
    assert said in errors[0]
    assert trace.header.extra["malformed"] >= 1
    assert not any("ended at" in note for note in trace.header.notes)


def test_a_flood_is_not_booked_beyond_the_allowance() -> None:
    async def script(server: Any, url: str) -> None:
        async with connect(url) as connection:
            await connection.recv()
            await connection.send('{"type":"start"}')
            await connection.recv()
            for _ in range(500):
                await connection.send('{"type":"action","step":0,"value":1}')
            await react(connection, (0, 0, 0))

    (trace,) = play(script)
    assert trace.header.extra["flooded"] > 200
    assert len(trace.responses["tick"]) < 200


def test_a_slow_reader_misses_steps_and_the_clock_goes_on() -> None:
    async def script(server: Any, url: str) -> None:
        async with connect(url, max_queue=1) as connection:
            await connection.recv()
            await connection.send('{"type":"start"}')
            connection.transport.pause_reading()
            await asyncio.sleep(1.0)
            connection.transport.resume_reading()
            while json.loads(await connection.recv())["type"] != "bye":
                pass

    (trace,) = play(script)
    assert trace.ticks["scored"].sum() == 12


def test_huge_messages_and_wrong_tokens_and_crowds_are_refused() -> None:
    async def script(server: Any, url: str) -> None:
        with pytest.raises(InvalidStatus, match="401"):
            await connect(url)
        with pytest.raises(InvalidStatus, match="401"):
            await connect(url + "?token=wrong")
        for accepted in (url + "?token=s3cret", url):
            headers = {"Authorization": "Bearer s3cret"} if accepted == url else {}
            connection = await connect(accepted, additional_headers=headers)
            await connection.recv()
            await connection.send('{"type":"start"}')
            with pytest.raises(ConnectionClosed) as closed:
                await connection.send("x" * 10**8)
                while True:
                    await connection.recv()
            assert closed.value.rcvd is None or closed.value.rcvd.code == 1009

    play(script, wait_for=2, token="s3cret")


def test_a_thousand_connections_are_refused_cleanly() -> None:
    counts = {"taken": 0, "refused": 0}

    async def script(server: Any, url: str) -> None:
        gate = asyncio.Semaphore(50)

        async def one() -> None:
            async with gate:
                try:
                    connection = await connect(url, open_timeout=60)
                    await connection.recv()
                    counts["taken"] += 1
                    kept.append(connection)
                except (InvalidStatus, ConnectionClosed):
                    counts["refused"] += 1

        kept: list[Any] = []
        await asyncio.gather(*(one() for _ in range(1000)))
        for connection in kept:
            await connection.close()

    play(script, wait_for=0, max_connections=4)
    assert counts == {"taken": 4, "refused": 996}


def test_other_hosts_need_a_token() -> None:
    with pytest.raises(ValueError, match="host: 0.0.0.0 can be reached from other machines; give a token"):
        live.Server(FAST, host="0.0.0.0")
    live.Server(FAST, host="0.0.0.0", token="s3cret")


@pytest.mark.parametrize(("modality", "dtype"), [("audio", np.float32), ("video", np.uint8), ("screen", np.uint8)])
def test_client_reads_sound_and_pictures(modality: str, dtype: type) -> None:
    seen = []

    async def script(server: Any, url: str) -> None:
        def client() -> None:
            with live.Client(url) as player:
                for observation in player:
                    if observation.fresh:
                        seen.append(observation.signal)
                    if len(seen) == 3:
                        player.leave()

        await asyncio.to_thread(client)

    play(script, modality=modality, num_ticks=20, task=er.tasks.get("alert"))
    assert seen[0].dtype == dtype
    assert seen[0].shape[0] >= 1
    assert np.std(seen[0]) > 0


def _start_server(tmp_path: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "envrate", "serve", "alert", "--ticks", "200", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline().split(":")[2].split("/")[0])


def test_a_killed_server_leaves_a_readable_trace(tmp_path: Path) -> None:
    process, port = _start_server(tmp_path)
    client = Path(__file__).parents[2] / "examples" / "socket_client.py"
    player = subprocess.Popen(
        [sys.executable, str(client), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    path = tmp_path / "episode-0000.jsonl"
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (path.exists() and path.read_text().count('"ticks"') >= 8):
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
        player.kill()
        player.wait()
        assert process.stdout is not None
        process.stdout.close()
    trace = er.Trace.load(path)
    assert trace.report is not None and not trace.report.complete
    assert not trace.report.damaged
    assert len(trace) >= 8
    assert trace.responses["tick"].size > 0


def test_the_dependency_free_client_plays() -> None:
    assert "import websockets" not in (Path(__file__).parents[2] / "examples" / "socket_client.py").read_text()
    result: dict[str, Any] = {}

    async def script(server: Any, url: str) -> None:
        port = server.address[1]
        client = Path(__file__).parents[2] / "examples" / "socket_client.py"

        def run() -> None:
            done = subprocess.run(
                [sys.executable, str(client), str(port)], capture_output=True, text=True, timeout=60, check=True
            )
            result.update(json.loads(done.stdout))

        await asyncio.to_thread(run)

    (trace,) = play(script, num_ticks=20)
    assert result["reason"] == "complete"
    required = dict(zip(trace.ticks["tick"], trace.ticks["required"], strict=True))
    assert trace.responses["tick"].size and all(required[t] == 1 for t in trace.responses["tick"])
