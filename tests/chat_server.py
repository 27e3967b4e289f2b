"""A local OpenAI-compatible endpoint with scripted replies, delays, errors and streaming."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[list[dict[str, Any]]], str]


def newest_state(messages: list[dict[str, Any]]) -> int | None:
    """The last state named in the conversation."""
    texts = [
        part["text"] for m in messages if isinstance(m["content"], list) for part in m["content"] if "text" in part
    ]
    found = re.findall(r"state (\d+)", " ".join(texts))
    return int(found[-1]) if found else None


class ChatServer(ThreadingHTTPServer):
    """Answers with `script(messages)` after `delay_s`; the first `failures` requests get status 500."""

    daemon_threads = True

    def __init__(self, script: Script, *, delay_s: float = 0.0, failures: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.delay_s, self.failures = script, delay_s, failures
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.keys.append(self.headers.get("Authorization"))
        time.sleep(self.server.delay_s)
        if self.server.failures > 0:
            self.server.failures -= 1
            self._send(500, "application/json", b'{"error": {"message": "scripted failure"}}')
            return
        reply = self.server.script(body["messages"])
        usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
        common = {"id": "x", "created": 0, "model": body["model"]}
        if body.get("stream"):
            chunks = [{"index": 0, "delta": {"content": c}, "finish_reason": None} for c in reply]
            events = [common | {"object": "chat.completion.chunk", "choices": [c]} for c in chunks]
            events.append(common | {"object": "chat.completion.chunk", "choices": [], "usage": usage})
            text = "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"
            self._send(200, "text/event-stream", text.encode())
            return
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
        document = common | {"object": "chat.completion", "choices": [choice], "usage": usage}
        self._send(200, "application/json", json.dumps(document).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def chat_server(script: Script, **options: Any) -> Iterator[ChatServer]:
    """The server on a free loopback port."""
    server = ChatServer(script, **options)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
