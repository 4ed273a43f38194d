"""Requests of the scheduler: only where the rule permits, at every redirect, and with credentials for one origin alone."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ork.errors import UsageError
from ork.model.outbound import OutboundRule, parse_allowed
from ork.outbound import clients
from ork.outbound.addresses import BlockedAddressError, NoResponseError, check_url
from ork.outbound.fetch import FetchedResponse
from ork.outbound.fetch import fetch as fetch_async
from tests.loopback import loopback

LOOPBACK = OutboundRule((parse_allowed("127.0.0.1"),))


def fetch(url: str, rule: OutboundRule | None, **options: Any) -> FetchedResponse:
    return asyncio.run(fetch_async(url, rule, **options))


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
        with pytest.raises((BlockedAddressError, NoResponseError), match=r"not a public address|no address"):
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
    with redirector("http://127.0.0.1:1/", 301) as (url, asked), pytest.raises(NoResponseError):
        fetch(f"{url}/start", LOOPBACK)
    assert len(asked) == 1


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is public when it is checked and private when it is connected to."""
    looked_up: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host not in ("rebind.example", b"rebind.example"):
            return real(host, port, *args, **more)
        looked_up.append(host)
        return real("192.0.2.1" if len(looked_up) == 1 else "127.0.0.1", port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    rule = OutboundRule((parse_allowed("192.0.2.0/24"),))
    with loopback() as site:
        with pytest.raises(NoResponseError):
            fetch(f"http://rebind.example:{site.url.rpartition(':')[2]}/", rule, timeout=0.5)
        assert site.asked == []
    assert looked_up == ["rebind.example"]


def test_an_answer_has_a_limit_and_a_time() -> None:
    with loopback() as site:
        site.answers["/large"] = (200, b"x" * 1000)
        with pytest.raises(NoResponseError, match="more than 10 bytes"):
            fetch(f"{site.url}/large", LOOPBACK, limit=10)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NoResponseError, match="no response"):
        fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/", LOOPBACK, timeout=0.2)


@pytest.mark.parametrize(
    "url", ["ftp://example.org", "file:///etc/passwd", "https://", "http://a b", "http://[::1", "", "http://x:0/", 7]
)
def test_only_whole_http_urls_are_called_and_what_is_none_is_not_repeated(url: object) -> None:
    with pytest.raises(ValueError, match=r"^it is not an http or https URL$"):
        check_url(url)


def test_every_permitted_address_is_tried_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with two addresses, as `localhost` is where a server listens on one of them only."""
    real = socket.getaddrinfo

    def three(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host not in ("three.example", b"three.example"):
            return real(host, port, *args, **more)
        return [entry for ip in ("127.0.0.3", "127.0.0.2", "127.0.0.1") for entry in real(ip, port, *args, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", three)
    rule = OutboundRule((parse_allowed("127.0.0.2"), parse_allowed("127.0.0.1")))
    with loopback() as site:
        site.answers["/"] = (200, {"ok": True})
        port = int(site.url.rpartition(":")[2])
        with socket.create_server(("127.0.0.3", port)) as forbidden:
            forbidden.settimeout(0)
            assert fetch(f"http://three.example:{port}/", rule).json() == {"ok": True}
            with pytest.raises(BlockingIOError):
                forbidden.accept()
        assert site.asked[0].headers["Host"] == f"three.example:{port}"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and a certificate for `named.example`."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    names = ["-subj", "/CN=named.example", "-addext", "subjectAltName=DNS:named.example"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*made, "-keyout", file, "-out", file.with_suffix(".crt")], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + file.with_suffix(".crt").read_bytes())
    return file


@pytest.mark.parametrize(("host", "is_its_name"), [("named.example", True), ("other.example", False)])
def test_a_certificate_is_verified_for_the_name_though_the_address_is_connected_to(
    monkeypatch: pytest.MonkeyPatch, certificate: Path, host: str, is_its_name: bool
) -> None:
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda name, *args, **more: real("127.0.0.1" if name.endswith(".example") else name, *args, **more),
    )
    trusting = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(clients, "_system_tls", lambda: trusting)
    with loopback(certificate) as site:
        site.answers["/"] = (200, {"ok": True})
        url = f"https://{host}:{site.url.rpartition(':')[2]}/"
        if is_its_name:
            assert fetch(url, LOOPBACK).json() == {"ok": True}
        else:
            with pytest.raises(NoResponseError, match=r"(?i)certificate verify failed.*other\.example"):
                fetch(url, LOOPBACK)
            assert site.asked == []


def test_the_time_limit_is_for_everything_together() -> None:
    """A server that sends a byte now and then, in its headers, is not waited for."""
    is_over = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not is_over.wait(0.05):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        try:
            with pytest.raises(NoResponseError, match="in time"):
                fetch(f"http://127.0.0.1:{server.getsockname()[1]}/", LOOPBACK, timeout=0.5)
        finally:
            is_over.set()
            thread.join()


@pytest.mark.parametrize("value", ["hush\r\nX-More: 1", "hush €"])
def test_a_header_that_http_cannot_send_is_refused_and_not_repeated(value: str) -> None:
    with loopback() as site, pytest.raises(ValueError) as refused:
        fetch(site.url, LOOPBACK, headers={"X-Key": value})
    assert "hush" not in str(refused.value)
    assert site.asked == []


def test_requests_under_the_rule_use_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would resolve names by itself."""
    with loopback() as proxy, loopback() as site:
        site.answers["/"] = (200, {"ok": True})
        monkeypatch.setenv("http_proxy", proxy.url)
        assert fetch(f"{site.url}/", LOOPBACK).status == 200
        assert proxy.asked == []


def test_other_requests_use_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "own.example, 10.0.0.0/8")
        fetch("http://elsewhere.example/there", None)
        assert [each.path for each in proxy.asked] == ["http://elsewhere.example/there"]


@pytest.mark.parametrize(
    ("url", "is_used"),
    [
        ("http://elsewhere.example/", True),
        ("http://11.1.2.3/", True),
        ("https://elsewhere.example/", False),
        ("http://127.0.0.1:8000/", False),
        ("http://localhost:8000/", False),
        ("http://[::1]:8000/", False),
        ("http://own.example/", False),
        ("http://a.own.example:8000/", False),
        ("http://10.1.2.3/", False),
    ],
)
def test_who_is_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch, url: str, is_used: bool) -> None:
    monkeypatch.setenv("http_proxy", "proxy.example:3128")
    monkeypatch.setenv("no_proxy", "own.example, 10.0.0.0/8")
    assert (clients.proxy_for(url) is not None) == is_used


def test_a_socks_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://proxy.example:1080")
    assert clients.proxy_for("http://elsewhere.example/") is None


def test_no_log_shows_a_url_or_a_header(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with loopback() as site:
        site.answers["/hush"] = (200, {})
        assert fetch(f"{site.url}/hush?key=hush", LOOPBACK, headers={"Authorization": "Bearer hush"}).status == 200
    assert "hush" not in caplog.text


def test_a_proxy_that_is_no_url_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://[me:secret")
    with pytest.raises(UsageError, match="HTTP_PROXY or ALL_PROXY is not a URL") as refused:
        clients.proxy_for("http://elsewhere.example/")
    assert "secret" not in refused.value.message
