"""A client of the live protocol, for agents in Python that run in another process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envrate.live import _messages as messages


@dataclass(frozen=True)
class Received:
    """One observation as a client gets it."""

    step: int
    time_ms: int
    fresh: int
    age_ms: tuple[int, ...]  # (n,) of the new packets, oldest first
    signal: NDArray[Any]  # (n, ...) the new packets


class Client:
    """Connects to a server and plays one episode.

    Use as a context manager, iterate over the observations and `act`:

        with Client("ws://127.0.0.1:8765/ws") as client:
            for seen in client:
                if seen.fresh:
                    client.act(seen.step, value=1)
        print(client.bye)

    Args:
        url: address of the socket, with `?token=...` where the server asks for one.
    """

    def __init__(self, url: str) -> None:
        """Connects and reads the server's hello; raises ValueError on another protocol version."""
        try:
            from websockets.sync.client import connect
        except ImportError as error:
            raise ImportError("the client needs websockets: pip install 'envrate[live]'") from error
        self._open = ExitStack()
        self._socket = self._open.enter_context(connect(url, max_size=None, compression=None))
        self.hello: dict[str, Any] = json.loads(self._socket.recv())
        if self.hello.get("protocol") != messages.PROTOCOL:
            self._open.close()
            raise ValueError(f"protocol: expected version {messages.PROTOCOL}, got {self.hello.get('protocol')!r}")
        self.bye: dict[str, Any] | None = None
        self.errors: list[str] = []
        self._received = time.monotonic()

    def __iter__(self) -> Iterator[Received]:
        """Starts the clock; yields observations until the server says goodbye."""
        self._socket.send('{"type":"start"}')
        while self.bye is None:
            frame = self._socket.recv()
            header, payload = (json.loads(frame), b"") if isinstance(frame, str) else messages.unpack(frame)
            if header["type"] == "bye":
                self.bye = header
            elif header["type"] == "error":
                self.errors.append(header["message"])
            else:
                self._received = time.monotonic()
                yield self._read(header, payload)

    def _read(self, header: dict[str, Any], payload: bytes) -> Received:
        shape = self.hello["shape"]
        signal = messages.decode_payload(header, payload, shape) if payload else np.asarray(header.get("signal", []))
        return Received(header["step"], header["time_ms"], header["fresh"], tuple(header["age_ms"]), signal)

    def act(self, step: int, value: int | list[float], *, back: int | None = None, answer: int = 0) -> None:
        """Sends an action computed from observation `step`; the time since it arrived is declared as compute time."""
        spent = round((time.monotonic() - self._received) * 1000.0)
        body = {"type": "action", "step": step, "value": value, "answer": answer, "compute_ms": spent}
        self._socket.send(json.dumps(body | ({} if back is None else {"back": back})))

    def leave(self) -> None:
        """Ends the episode early."""
        self._socket.send('{"type":"leave"}')

    def __enter__(self) -> Client:
        """Returns itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Closes the connection."""
        self._open.close()
