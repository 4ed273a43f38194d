"""Requests of the scheduler: only where the rule permits, at every redirect, and with credentials for one origin alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ork.model.outbound import OutboundRule, parse_allowed
from ork.outbound.connect import BlockedAddressError, NoAnswerError, check_url
from ork.outbound.fetch import fetch
from tests.loopback import loopback

LOOPBACK = OutboundRule((parse_allowed("127.0.0.1"),))


@contextmanager
def redirector(target: str, status: int = 302) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that sends everybody to `target`, and the headers it was asked with."""
    asked: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({"path": self.path, **dict(self.headers)})
            here = self.path == "/start" and target.startswith("/")
            self.send_response(status if here or not target.startswith("/") else 200)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_a_private_address_is_refused_however_it_is_written(host: str) -> None:
    with loopback() as site:
        port = site.url.rpartition(":")[2]
        with pytest.raises((BlockedAddressError, NoAnswerError), match=r"not a public address|no address"):
            fetch(f"http://{host}:{port}/", OutboundRule())
        assert site.asked == []


def test_the_error_holds_the_line_for_ork_yaml_and_nothing_of_the_path() -> None:
    with pytest.raises(BlockedAddressError) as refused:
        fetch("http://user:pw@127.0.0.1:8080/hush?key=hush", OutboundRule())
    assert 'outbound: {allow: ["127.0.0.1:8080"]}' in refused.value.message
    assert "hush" not in refused.value.message
    assert "pw" not in refused.value.message


def test_a_redirect_is_checked_like_the_first_address() -> None:
    with loopback() as inside:
        inside.answers["/secret"] = (200, {"inside": True})
        port = inside.url.rpartition(":")[2]
        with redirector(f"http://127.0.0.2:{port}/secret") as (url, _), pytest.raises(BlockedAddressError):
            fetch(f"{url}/start", LOOPBACK)
        assert inside.asked == []


def test_credentials_stay_at_their_origin() -> None:
    headers = {"Authorization": "a", "cookie": "b", "X-Key": "c", "X-Plain": "d"}
    with loopback() as other:
        other.answers["/there"] = (200, {"ok": True})
        with redirector(f"{other.url}/there") as (url, asked):
            answer = fetch(f"{url}/start", LOOPBACK, headers=headers, secret_headers=["X-Key"])
        (there,) = other.asked
    assert answer.json() == {"ok": True}
    assert asked[0].items() >= headers.items()
    assert {name.lower() for name in there.headers} & {"authorization", "cookie", "x-key"} == set()
    assert there.headers["X-Plain"] == "d"


def test_a_redirect_within_the_origin_keeps_them() -> None:
    with redirector("/end") as (url, asked):
        assert fetch(f"{url}/start", LOOPBACK, headers={"Authorization": "a"}).status == 200
    assert [each["Authorization"] for each in asked] == ["a", "a"]


def test_redirects_end() -> None:
    with redirector("http://127.0.0.1:1/", 301) as (url, asked), pytest.raises(NoAnswerError):
        fetch(f"{url}/start", LOOPBACK)
    assert len(asked) == 1


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is public when it is checked and private when it is connected to."""
    looked_up: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host != "rebind.example":
            return real(host, port, *args, **more)
        looked_up.append(host)
        return real("192.0.2.1" if len(looked_up) == 1 else "127.0.0.1", port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    rule = OutboundRule((parse_allowed("192.0.2.0/24"),))
    with loopback() as site:
        with pytest.raises(NoAnswerError):
            fetch(f"http://rebind.example:{site.url.rpartition(':')[2]}/", rule, timeout=0.5)
        assert site.asked == []
    assert looked_up == ["rebind.example"]


def test_an_answer_has_a_limit_and_a_time() -> None:
    with loopback() as site:
        site.answers["/large"] = (200, b"x" * 1000)
        with pytest.raises(NoAnswerError, match="more than 10 bytes"):
            fetch(f"{site.url}/large", LOOPBACK, limit=10)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NoAnswerError, match="no answer"):
        fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/", LOOPBACK, timeout=0.2)


@pytest.mark.parametrize(
    "url", ["ftp://example.org", "file:///etc/passwd", "https://", "http://a b", "http://[::1", "", "http://x:0/", 7]
)
def test_only_whole_http_urls_are_called_and_what_is_none_is_not_repeated(url: object) -> None:
    with pytest.raises(ValueError, match=r"^it is not an http or https URL$"):
        check_url(url)
