"""`envrate serve` and `envrate play`: a task on a socket, for any agent, or for a person in a browser."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envrate.cli._app import app, emit_json, only_json

if TYPE_CHECKING:
    from envrate.live import Server
    from envrate.trace import Trace

Modality = Annotated[str, typer.Option(help="symbols, audio, video, screen or proprio, or a renderer as JSON.")]
LinkName = Annotated[str, typer.Option(help="A standard link by name, or a link as JSON.")]
Ticks = Annotated[int, typer.Option(help="Length of each episode in ticks.")]
Port = Annotated[int, typer.Option(help="0 picks a free one, which is printed.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the traces, written as they happen.")]
Seed = Annotated[int, typer.Option(help="Of the first episode; each next one adds one.")]


def _server(task: str, modality: str, link: str, ticks: int, port: int, out: Path | None, seed: int) -> Server:
    from envrate import tasks
    from envrate.live import Server

    return Server(
        tasks.get(task), modality=_settings("modality", modality), link=_settings("link", link), num_ticks=ticks,
        port=port, out=out, seed=seed, on_trace=_say_trace,
    )  # fmt: skip


def _settings(option: str, text: str) -> Any:
    """A name, or settings as a JSON object."""
    try:
        return json.loads(text) if text.lstrip().startswith("{") else text
    except ValueError as error:
        raise ValueError(f"{option}: expected a name or a JSON object: {error}") from None


def _say_trace(trace: Trace) -> None:
    notes = "; ".join(trace.header.notes) or "complete"
    sys.stderr.write(f"episode over: {len(trace)} ticks, {len(trace.responses['tick'])} responses, {notes}\n")


@app.command()
def serve(
    task: str,
    modality: Modality = "symbols",
    link: LinkName = "ideal",
    ticks: Ticks = 600,
    host: Annotated[str, typer.Option(help="Address to bind; one that is not loopback needs --token.")] = "127.0.0.1",
    port: Port = 0,
    token: Annotated[str | None, typer.Option(envvar="ENVRATE_TOKEN", help="Secret that clients must give.")] = None,
    max_connections: Annotated[int, typer.Option(help="Episodes at once.")] = 16,
    out: Out = None,
    seed: Seed = 0,
) -> None:
    """Serves a task over WebSocket, one episode per connection; the protocol is in docs/live.md."""
    from dataclasses import replace

    from envrate.live import serve as run_server

    server = replace(
        _server(task, modality, link, ticks, port, out, seed), host=host, token=token, max_connections=max_connections
    )
    run_server(server, on_ready=lambda h, p: print(f"ws://{h}:{p}/ws", flush=True))


@app.command()
def play(
    task: str,
    modality: Modality = "symbols",
    link: LinkName = "ideal",
    ticks: Ticks = 120,
    port: Port = 0,
    out: Out = None,
    seed: Seed = 0,
    browser: Annotated[bool, typer.Option(help="Open the page; without it, only its address is printed.")] = True,
) -> None:
    """Opens a page on which you see or hear the stream and answer with keys; your run is a trace like any other."""
    import webbrowser

    from envrate import tasks
    from envrate.live import serve as run_server

    if tasks.get(task).is_tracking:
        raise ValueError(f"task: {task} asks for real values, which keys cannot give; play alert or hold")

    def ready(host: str, port: int) -> None:
        address = f"http://{host}:{port}/"
        print(address, flush=True)
        if browser:
            webbrowser.open(address)

    run_server(_server(task, modality, link, ticks, port, out, seed), on_ready=ready)


@app.command()
def live(
    task: str,
    agent: Annotated[str, typer.Option(help="A reference agent, voice-activity or screen-reader.")] = "reactive",
    model: Annotated[str | None, typer.Option(help="A model of an OpenAI-compatible endpoint plays instead.")] = None,
    base_url: Annotated[str, typer.Option(help="The endpoint, up to and including /v1.")] = "http://127.0.0.1:8000/v1",
    protocol: Annotated[str, typer.Option(help="sliding, cumulative or interleaved.")] = "sliding",
    poll_every: Annotated[int, typer.Option(help="Micro-turns between polls of the model.")] = 1,
    modality: Modality = "symbols",
    link: LinkName = "ideal",
    ticks: Ticks = 100,
    clock: Annotated[str, typer.Option(help="wall, or virtual: as fast as possible.")] = "wall",
    speed: Annotated[float, typer.Option(help="World seconds per second.")] = 1.0,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="The trace, written as it happens.")] = Path("live.jsonl"),
    replies: Annotated[Path | None, typer.Option(help="Keeps the model's replies; an interrupted run goes on.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Runs one agent in real time: the world never waits, and its own compute time counts."""
    with only_json(as_json):
        from envrate import live as real_time
        from envrate import tasks
        from envrate.agents import ChatAgent, Poller

        chosen, shown = tasks.get(task), _settings("modality", modality)
        player: Any = agent
        if model is not None:
            poller = Poller(chosen, shown, protocol=protocol, poll_every=poll_every, log=replies)
            player = ChatAgent(base_url, model, poller)
        trace = real_time.run(
            chosen, player, modality=shown, link=_settings("link", link), clock=clock, speed=speed, num_ticks=ticks,
            seed=seed, out=out,
        )  # fmt: skip
    extra = trace.header.extra
    if as_json:
        emit_json({"trace": str(out), "responses": len(trace.responses["tick"]), **extra, "notes": trace.header.notes})
        return
    counts = (
        f"{len(trace)} ticks, {len(trace.responses['tick'])} responses, {extra.get('missed_steps', 0)} missed steps"
    )
    print(f"{out}: {counts}")
    for note in trace.header.notes:
        sys.stderr.write(f"{note}\n")
