"""A real HTTP server on the loopback address, whose answers a test sets and whose requests it can count."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Loopback:
    """`answers` maps paths to (status, value); a list of such pairs is given one by one, the last for ever."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[Asked] = []
        self.url = ""

    def count(self, method: str, path: str) -> int:
        return sum((each.method, each.path) == (method, path) for each in self.asked)

    def answer(self, path: str) -> tuple[int, Any]:
        found = self.answers.get(path.partition("?")[0], (404, {"error": "no such thing"}))
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        status, value = found
        return status, value


@contextmanager
def loopback(certificate: Path | None = None) -> Iterator[Loopback]:
    """Over TLS with a certificate (a file with its key, too)."""
    site = Loopback()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            site.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            status, value = site.answer(self.path)
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(value, bytes) else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the names of http.server

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    site.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
