"""A WebSocket server: one episode per connection, several connections at once, the clock kept whatever they do."""

from __future__ import annotations

import asyncio
import hmac
import http
import ipaddress
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from envrate import _checks
from envrate.channels import Link, as_link
from envrate.envs._build import as_renderer, make_core
from envrate.live import _messages as messages
from envrate.live._episode import Episode, World
from envrate.live._mailbox import Mailbox
from envrate.live._runner import report_scheduling
from envrate.live._samples import samples
from envrate.task import Task
from envrate.trace import Trace

MAX_MESSAGE_BYTES = 16 * 1024
START_TIMEOUT_S = 600.0
#: A client may send this many messages a second on average, with a burst of as many; above it they are dropped.
MAX_MESSAGES_PER_S = 50.0
#: After so many dropped or malformed messages the connection is closed.
MAX_OFFENCES = 1000
PAGES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}


@dataclass
class Allowance:
    """A token bucket: what remains of a client's message rate."""

    left: float = MAX_MESSAGES_PER_S
    at: float = 0.0

    def take(self, now: float) -> bool:
        """Whether one more message may pass at time `now` in seconds."""
        self.left = min(MAX_MESSAGES_PER_S, self.left + (now - self.at) * MAX_MESSAGES_PER_S)
        self.at = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


@dataclass
class Server:
    """Serves episodes of one task.

    Args:
        task: the task.
        modality: the renderer, its dict or its kind.
        link: the link, its dict or its name.
        num_ticks: length of each episode.
        host: address to bind; one that is not loopback needs a token.
        port: 0 picks a free one; see `address`.
        token: a secret that clients give as `?token=` or as a bearer token.
        seed: of the first episode; each next one adds one.
        max_connections: further ones are refused with status 503.
        out: a folder for the traces; None keeps none.
        on_trace: called with each finished trace.
        pictures: "png" or "jpeg", how video and screen are sent.
    """

    task: Task
    modality: Any = "symbols"
    link: Link | dict[str, Any] | str | None = None
    num_ticks: int = 100
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    seed: int = 0
    max_connections: int = 16
    out: Path | None = None
    on_trace: Callable[[Trace], None] | None = None
    pictures: str = "png"
    _open: int = field(default=0, init=False)
    _served: int = field(default=0, init=False)
    _server: Any = field(default=None, init=False)
    _samples: list[tuple[str, bytes]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Checks the settings."""
        self.link = as_link(self.link)
        self.modality = as_renderer(self.modality)
        _checks.choice("modality", self.modality.kind, messages.ENCODINGS)
        _checks.choice("pictures", self.pictures, messages.PICTURES)
        _checks.integer("port", self.port, 0, 65535)
        _checks.integer("max_connections", self.max_connections, 1)
        if not _is_loopback(self.host) and not self.token:
            raise ValueError(f"host: {self.host} can be reached from other machines; give a token or bind 127.0.0.1")
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)

    @property
    def encoding(self) -> str:
        """How observations are encoded."""
        encoding = messages.ENCODINGS[self.modality.kind]
        return self.pictures if encoding in messages.PICTURES else encoding

    @property
    def address(self) -> tuple[str, int]:
        """Host and port it listens on."""
        host, port, *_ = next(iter(self._server.sockets)).getsockname()
        return str(host), int(port)

    async def start(self) -> None:
        """Begins to listen."""
        try:
            from websockets.asyncio.server import serve as ws_serve
        except ImportError as error:
            raise ImportError("the server needs websockets: pip install 'envrate[live]'") from error
        # A task or modality that cannot be served says so now, not to the first client.
        core = make_core(self.task, self.modality, self.link, num_ticks=self.num_ticks, compute_ms=0)
        self._samples = await asyncio.to_thread(samples, self.task, core.renderer)
        self._server = await ws_serve(
            self._serve_connection,
            self.host,
            self.port,
            process_request=self._answer_http,
            max_size=MAX_MESSAGE_BYTES,
            max_queue=64,
            compression=None,
        )

    async def stop(self) -> None:
        """Closes every connection and stops listening."""
        self._server.close()
        await self._server.wait_closed()

    async def __aenter__(self) -> Server:
        """Starts it."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stops it."""
        await self.stop()

    # -- HTTP ---------------------------------------------------------------------------------------------------

    def _answer_http(self, connection: Any, request: Any) -> Any:
        """Pages at / and the socket at /ws; None lets the WebSocket handshake go on."""
        url = urlsplit(request.path)
        if url.path in PAGES:
            name, kind = PAGES[url.path]
            return _file(connection, f"{kind}; charset=utf-8", _page(name))
        number = url.path.removeprefix("/sample/")
        if number in map(str, range(len(self._samples))):
            kind, file = self._samples[int(number)]
            return _file(connection, kind, file)
        if url.path != "/ws":
            return connection.respond(http.HTTPStatus.NOT_FOUND, "the socket is at /ws\n")
        if not self._authorised(url.query, request.headers.get("Authorization", "")):
            return connection.respond(http.HTTPStatus.UNAUTHORIZED, "token: missing or wrong\n")
        if self._open >= self.max_connections:
            return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "all places are taken, try again later\n")
        return None

    def _authorised(self, query: str, authorization: str) -> bool:
        if self.token is None:
            return True
        given = parse_qs(query).get("token", [authorization.removeprefix("Bearer ")])[0]
        return hmac.compare_digest(given.encode(), self.token.encode())

    # -- one episode --------------------------------------------------------------------------------------------

    async def _serve_connection(self, socket: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        if self._open >= self.max_connections:  # others may have come in since the handshake
            await socket.close(1013, "all places are taken")
            return
        self._open += 1
        number, self._served = self._served, self._served + 1
        try:
            world = await asyncio.to_thread(
                World, self.task, self.modality, self.link, num_ticks=self.num_ticks, seed=self.seed + number
            )
            await socket.send(json.dumps(messages.hello(world, self.encoding, len(self._samples))))
            await self._await_start(socket)
            path = None if self.out is None else self.out / f"episode-{number:04d}.jsonl"
            trace = await _Connection(socket, Episode(world, "wall", "remote", path), self.encoding).run()
            if self.on_trace is not None:
                self.on_trace(trace)
        except (ConnectionClosed, TimeoutError):
            pass  # it left before its episode began
        finally:
            self._open -= 1

    async def _await_start(self, socket: Any) -> None:
        async with asyncio.timeout(START_TIMEOUT_S):
            while True:
                try:
                    if isinstance(messages.decode(await socket.recv()), messages.Start):
                        return
                except ValueError as error:
                    await socket.send(json.dumps({"type": "error", "message": str(error)}))


class _Connection:
    """The three tasks of one running episode: the clock, the sender and the receiver."""

    def __init__(self, socket: Any, episode: Episode, encoding: str) -> None:
        self.socket, self.episode, self.encoding = socket, episode, encoding
        self.world = episode.world
        self.mailbox = Mailbox(self.world.micro_turn_ms)
        self.loop = asyncio.get_running_loop()
        self.start = self.loop.time()
        self.sent_step = -1
        self.counts = {"malformed": 0, "flooded": 0}
        self.errors_ms: list[float] = []

    def now_ms(self) -> int:
        return int((self.loop.time() - self.start) * 1000.0) + 1

    async def run(self) -> Trace:
        """Runs the episode to its end or to the client's, and says goodbye."""
        from websockets.exceptions import ConnectionClosed

        views = self.world.observations()
        first = await asyncio.to_thread(next, views)
        self.start = self.loop.time()
        clock = asyncio.create_task(self._keep_clock(views, first))
        sender = asyncio.create_task(self._send())
        receiver = asyncio.create_task(self._receive())
        done, _ = await asyncio.wait({clock, receiver}, return_when=asyncio.FIRST_COMPLETED)
        complete = clock in done
        ended_ms = None if complete else self.now_ms()
        for task in (clock, receiver):
            task.cancel()
        self.mailbox.close()
        await asyncio.gather(clock, receiver, return_exceptions=True)
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)
        reason = "complete" if complete else receiver.result()
        self._report(reason)
        trace = self.episode.finish(ended_ms=ended_ms)
        try:
            async with asyncio.timeout(30):
                score = await asyncio.to_thread(_score, trace)
                await self.socket.send(json.dumps({"type": "bye", "reason": reason, **score}))
                await self.socket.close(1008 if reason == "too many bad messages" else 1000, reason)
        except (ConnectionClosed, TimeoutError):
            pass
        return trace

    def _report(self, reason: str) -> None:
        report_scheduling(self.episode, self.errors_ms, self.mailbox.missed)
        self.episode.extra |= self.counts
        if reason != "complete":
            self.episode.notes.append(f"ended at {self.now_ms()} ms: {reason}")
        for name, count in self.counts.items():
            if count:
                self.episode.notes.append(f"{count} {name} messages were not taken")

    async def _keep_clock(self, views: Any, observation: Any) -> None:
        world = self.world
        for step in range(world.num_steps):
            due = self.start + step * world.micro_turn_ms / 1000.0
            await asyncio.sleep(max(0.0, due - self.loop.time()))
            self.errors_ms.append((self.loop.time() - due) * 1000.0)
            self.mailbox.put(step, observation)
            self.episode.begin(step * world.micro_turn_ms)
            observation = await asyncio.to_thread(next, views)
        await asyncio.sleep(max(0.0, self.start + world.end_ms / 1000.0 - self.loop.time()))

    async def _send(self) -> None:
        """Sends what is in the mailbox; while a slow reader holds it up, steps are merged there and counted."""
        while (taken := await self.mailbox.take()) is not None:
            step, observation = taken
            time_ms = step * self.world.micro_turn_ms
            frame = messages.encode_observation(step, time_ms, observation, self.encoding)
            self.sent_step = step
            await self.socket.send(frame)

    async def _receive(self) -> str:
        """Books what the client says; returns why it ended."""
        from websockets.exceptions import ConnectionClosed

        allowance = Allowance(at=self.loop.time())
        while sum(self.counts.values()) < MAX_OFFENCES:
            try:
                text = await self.socket.recv()
            except ConnectionClosed as error:
                return f"the client disconnected ({error.rcvd.code if error.rcvd else 'no close frame'})"
            arrived = self.now_ms()
            if not allowance.take(self.loop.time()):
                self.counts["flooded"] += 1
                continue
            try:
                message = messages.decode(text)
                if isinstance(message, messages.Leave):
                    return "the client left"
                if isinstance(message, messages.ActionMessage):
                    action = messages.to_action(message, self.world, self.sent_step)
                    self.episode.act(
                        action, step=message.step, time_ms=arrived, compute_ms=max(0, min(message.compute_ms, arrived))
                    )
            except ValueError as error:
                self.counts["malformed"] += 1
                await self.socket.send(json.dumps({"type": "error", "message": str(error)}))
        return "too many bad messages"


def _score(trace: Trace) -> dict[str, Any]:
    """The frontier of an episode, or the reason why there is none."""
    from envrate.scorers import frontier

    try:
        return {"score": frontier(trace, resamples=200).to_json()}
    except ValueError as error:
        return {"score": None, "why": str(error)}


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _page(name: str) -> bytes:
    return (resources.files("envrate.live") / "_page" / name).read_bytes()


def _file(connection: Any, kind: str, body: bytes) -> Any:
    """A response with a body of any kind; the library makes text responses only."""
    response = connection.respond(http.HTTPStatus.OK, "")
    for name, value in (("Content-Type", kind), ("Content-Length", str(len(body)))):
        del response.headers[name]
        response.headers[name] = value
    response.body = body
    return response


def serve(server: Server, *, on_ready: Callable[[str, int], None] | None = None) -> None:
    """Serves until interrupted; `on_ready` is told the host and port."""

    async def forever() -> None:
        async with server:
            if on_ready is not None:
                on_ready(*server.address)
            await asyncio.get_running_loop().create_future()

    try:
        asyncio.run(forever())
    except KeyboardInterrupt:
        pass
