"""`envrate serve` and `envrate play`: a task on a socket, for any agent, or for a person in a browser."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envrate.cli._app import app

if TYPE_CHECKING:
    from envrate.live import Server
    from envrate.trace import Trace

Modality = Annotated[str, typer.Option(help="symbols, audio, video, screen or proprio.")]
LinkName = Annotated[str, typer.Option(help="A standard link by name, or a link as JSON.")]
Ticks = Annotated[int, typer.Option(help="Length of each episode in ticks.")]
Port = Annotated[int, typer.Option(help="0 picks a free one, which is printed.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the traces, written as they happen.")]
Seed = Annotated[int, typer.Option(help="Of the first episode; each next one adds one.")]


def _server(task: str, modality: str, link: str, ticks: int, port: int, out: Path | None, seed: int) -> Server:
    from envrate import tasks
    from envrate.live import Server

    try:
        described = json.loads(link) if link.lstrip().startswith("{") else link
    except ValueError as error:
        raise ValueError(f"link: expected a name or a JSON object: {error}") from None
    return Server(
        tasks.get(task), modality=modality, link=described, num_ticks=ticks, port=port, out=out, seed=seed,
        on_trace=_say_trace,
    )  # fmt: skip


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

    from envrate.live import serve as run_server

    def ready(host: str, port: int) -> None:
        address = f"http://{host}:{port}/"
        print(address, flush=True)
        if browser:
            webbrowser.open(address)

    run_server(_server(task, modality, link, ticks, port, out, seed), on_ready=ready)
