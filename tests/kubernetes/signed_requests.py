"""Stands before a stand-in for S3, which lets everybody in, and refuses requests that nobody has signed."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_NOT_PASSED_ON = {"connection", "transfer-encoding", "content-length", "server", "date"}


@contextmanager
def only_signed(port: int, key: str) -> Iterator[int]:
    """The port of a server that passes requests of this access key on to another port, and answers 403 to all others."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if f"Credential={key}/" not in self.headers.get("Authorization", ""):
                self._answer(403, [], b"<Error><Code>AccessDenied</Code></Error>")
                return
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                self._answer(answer.status, answer.getheaders(), answer.read())
            finally:
                connection.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response(status)
            length = len(body)
            for name, value in headers:
                if self.command == "HEAD" and name.lower() == "content-length":
                    length = int(value)
                if name.lower() not in _NOT_PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
