"""A live client in the standard library alone: connects to `envrate serve alert`, answers each alert token.

Run `envrate serve alert --port 8765` in one terminal and `python examples/socket_client.py 8765` in another.
"""

import base64
import json
import os
import socket
import struct
import sys


def connect(port: int, path: str = "/ws") -> socket.socket:
    """Opens a TCP connection and upgrades it to a WebSocket (RFC 6455)."""
    connection = socket.create_connection(("127.0.0.1", port))
    key = base64.b64encode(os.urandom(16)).decode()
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    connection.sendall(f"{request}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    reply = b""
    while not reply.endswith(b"\r\n\r\n"):
        reply += connection.recv(1)
    if b" 101 " not in reply.split(b"\r\n")[0]:
        raise ConnectionError(reply.decode(errors="replace"))
    return connection


def read(connection: socket.socket, size: int) -> bytes:
    """Reads exactly `size` bytes."""
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data)) or sys.exit("the server hung up")
    return data


def receive(connection: socket.socket) -> dict:
    """Reads one JSON text, answering pings on the way."""
    while True:
        opcode, size = read(connection, 2)
        size &= 127
        if size > 125:
            size = struct.unpack(">H" if size == 126 else ">Q", read(connection, 2 if size == 126 else 8))[0]
        data = read(connection, size)
        if opcode & 15 == 1:
            return json.loads(data)
        if opcode & 15 == 9:
            send(connection, data, opcode=10)


def send(connection: socket.socket, data: bytes, opcode: int = 1) -> None:
    """Sends one masked frame."""
    size = bytes([len(data) | 128]) if len(data) < 126 else bytes([126 | 128]) + struct.pack(">H", len(data))
    connection.sendall(bytes([opcode | 128]) + size + bytes(4) + data)


link = connect(int(sys.argv[1]))
hello = receive(link)
send(link, b'{"type":"start"}')
while (message := receive(link))["type"] != "bye":
    for token in message.get("signal", []):
        response = (hello["task"]["response"] + [0])[token]
        if response:
            send(link, json.dumps({"type": "action", "step": message["step"], "value": response}).encode())
print(json.dumps(message, indent=1))
