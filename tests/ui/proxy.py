"""A proxy in front of a server that delays, breaks or changes its answers."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Rule = Callable[["Passing"], None]
_OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding"}


class Proxy:
    """Passes requests on to `url`. `rules` has what is done to paths that contain a text; more can be set at any time."""

    def __init__(self, url: str) -> None:
        self.rules: dict[str, Rule] = {}
        self.open: dict[socket.socket, str] = {}
        self.target = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
        self._server.daemon_threads = True
        self._server.proxy = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def drop(self, part: str) -> None:
        """Ends the connections of paths that contain the text."""
        for connection, path in list(self.open.items()):
            if part in path:
                with suppress(OSError):  # the browser was faster
                    connection.shutdown(socket.SHUT_RDWR)

    def rule_for(self, path: str) -> Rule:
        return next((rule for part, rule in self.rules.items() if part in path), passed)


class Passing(BaseHTTPRequestHandler):
    """One connection of a browser."""

    protocol_version = "HTTP/1.1"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.passed_on
        raise AttributeError(name)

    def passed_on(self) -> None:
        proxy: Proxy = self.server.proxy  # type: ignore[attr-defined]
        self.close_connection = True
        proxy.open[self.connection] = self.path
        try:
            proxy.rule_for(self.path)(self)
        except OSError:
            pass  # one of the two has gone away
        finally:
            del proxy.open[self.connection]

    def asked(self) -> http.client.HTTPResponse:
        """The server's answer to this request."""
        proxy: Proxy = self.server.proxy  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        connection = http.client.HTTPConnection(*proxy.target, timeout=120)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        return connection.getresponse()

    def begin(self, answer: http.client.HTTPResponse, **changed: str) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_ONE_CONNECTION and name.lower() not in changed:
                self.send_header(name, value)
        for name, value in changed.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_given: Any) -> None:
        """Says nothing."""


def passed(request: Passing) -> None:
    answer = request.asked()
    request.begin(answer)
    while piece := answer.read1(65536):
        request.wfile.write(piece)
        request.wfile.flush()


def held(until: threading.Event) -> Rule:
    """The server's answer, once the event is set."""

    def rule(request: Passing) -> None:
        until.wait(120)
        passed(request)

    return rule


def hanging(request: Passing) -> None:
    """No answer until the browser gives up."""
    request.connection.settimeout(120)
    request.connection.recv(1, socket.MSG_PEEK)


def cut(request: Passing) -> None:
    """Half of the answer, then the end of the connection."""
    answer = request.asked()
    body = answer.read()
    request.begin(answer, **{"content-length": str(len(body))})
    request.wfile.write(body[: len(body) // 2])


def answered(status: int, body: bytes, kind: str = "application/problem+json", **headers: str) -> Rule:
    """An answer that the server did not give."""

    def rule(request: Passing) -> None:
        request.send_response_only(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Connection": "close",
            **headers,
        }.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return rule


def edited(old: bytes, new: bytes) -> Rule:
    """The server's answer with another text in it."""

    def rule(request: Passing) -> None:
        request.headers.replace_header("Accept-Encoding", "identity")
        answer = request.asked()
        body = answer.read().replace(old, new)
        request.begin(answer, **{"content-length": str(len(body))})
        request.wfile.write(body)

    return rule
