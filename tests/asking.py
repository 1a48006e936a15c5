"""Send requests to a local server, with exactly the headers that a test passes."""

import socket
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPMessage, HTTPResponse

from tests.waiting import PATIENCE

OURS = ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "localhost:8888", "LOCALHOST"]
"""Hosts that a browser on this machine sends; a tunnel has another port than the server."""

OTHERS = [
    "evil.example:{port}",
    "evil.example",
    "localhost.evil.example:{port}",
    "127.0.0.1.evil.example",
    "evil-localhost",
    "192.0.2.1:{port}",
    "[2001:db8::1]:{port}",
]
"""Hosts that a local server was not started for."""

MALFORMED = [
    "localhost@evil.example",
    "evil.example@localhost",
    "localhost:{port}, evil.example",
    "localhost:{port}\r\nHost: evil.example",
    "localhost:port",
    "localhost/",
    "[::1",
    "",
    None,
]
"""Invalid `Host` headers; None sends no header."""


@dataclass(frozen=True)
class Answer:
    """The answer of a server."""

    status: int
    headers: HTTPMessage
    body: bytes


def ask(port, path, host, *, version="1.1", method="GET", **headers):
    """Send a request on a new connection; underscores in header names become dashes."""
    lines = [f"{method} {path} HTTP/{version}"]
    lines += [] if host is None else [f"Host: {host.format(port=port)}"]
    given = {"Connection": "close", **headers}
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = HTTPResponse(connection)
        answer.begin()
        is_open = answer.status == HTTPStatus.SWITCHING_PROTOCOLS  # a websocket stays open
        body = b"" if is_open else answer.read()
        return Answer(answer.status, answer.headers, body)
