"""Which image a name stands for: asked of registries that log people in in all the ways there are."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from ork.executors.docker.names import read_image_name
from ork.locations.registry import RegistryError, ask_digest

DIGEST = "sha256:" + "b" * 64
MANIFEST = b'{"schemaVersion": 2}'
LOGIN = {"username": "ork", "password": "open sesame", "serveraddress": "x"}
BASIC = "Basic " + base64.b64encode(b"ork:open sesame").decode()


class FakeRegistry(ThreadingHTTPServer):
    """Speaks as much of the protocol as it takes to ask for a digest. `asked` holds method and path of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.wants = ""
        self.also_offers = ""
        self.says_digest = True
        self.realm = f"http://{self.address}/token"
        self.asked: list[tuple[str, str]] = []
        self.forms: list[dict[str, list[str]]] = []


class _Handler(BaseHTTPRequestHandler):
    server: FakeRegistry

    def do_HEAD(self) -> None:
        self._manifest(with_body=False)

    def do_GET(self) -> None:
        if self.path.startswith("/token"):
            self._token(parse_qs(urlsplit(self.path).query), self.headers.get("Authorization") in (None, BASIC))
        else:
            self._manifest(with_body=True)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._token(form, form.get("refresh_token") == ["long-lived"])

    def _token(self, form: dict[str, list[str]], is_fine: bool) -> None:
        self.server.forms.append(form)
        self.send_response(200 if is_fine else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"token": "short-lived"}).encode())

    def _manifest(self, *, with_body: bool) -> None:
        self.server.asked.append((self.command, self.path))
        shown = self.headers.get("Authorization")
        if self.server.wants and shown != {"Basic": BASIC, "Bearer": "Bearer short-lived"}[self.server.wants]:
            self.send_response(401)
            challenge = f'realm="{self.server.realm}",service="reg",scope="repository:etl:pull"'
            self.send_header("WWW-Authenticate", f"{self.server.wants} {challenge}")
            if self.server.also_offers:
                self.send_header("WWW-Authenticate", self.server.also_offers)
            self.end_headers()
            return
        self.send_response(200 if self.path == "/v2/etl/manifests/latest" else 404)
        if self.server.says_digest:
            self.send_header("Docker-Content-Digest", DIGEST)
        self.end_headers()
        if with_body:
            self.wfile.write(MANIFEST)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    server = FakeRegistry()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(registry: FakeRegistry, credentials: dict[str, str] | None = None, image: str = "etl") -> str:
    return asyncio.run(ask_digest(read_image_name(f"{registry.address}/{image}"), credentials))


def test_an_open_registry_is_asked_once(registry: FakeRegistry) -> None:
    assert ask(registry) == DIGEST
    assert registry.asked == [("HEAD", "/v2/etl/manifests/latest")]


def test_an_image_with_a_digest_needs_no_request(registry: FakeRegistry) -> None:
    assert ask(registry, image=f"etl@{DIGEST}") == DIGEST
    assert registry.asked == []


def test_without_a_digest_header_the_manifest_is_hashed(registry: FakeRegistry) -> None:
    registry.says_digest = False
    assert ask(registry) == f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"


def test_a_password_is_sent_when_the_registry_requires_it(registry: FakeRegistry) -> None:
    registry.wants = "Basic"
    assert ask(registry, LOGIN) == DIGEST


def test_a_token_is_fetched_with_the_password_for_that_image_alone(registry: FakeRegistry) -> None:
    registry.wants = "Bearer"
    assert ask(registry, LOGIN) == DIGEST
    assert registry.forms == [{"scope": ["repository:etl:pull"], "service": ["reg"]}]


def test_an_anonymous_token_is_used(registry: FakeRegistry) -> None:
    registry.wants = "Bearer"
    assert ask(registry) == DIGEST


def test_a_token_is_preferred_where_a_password_would_do_as_well(registry: FakeRegistry) -> None:
    registry.wants, registry.also_offers = "Bearer", 'Basic realm="elsewhere"'
    assert ask(registry, LOGIN) == DIGEST


def test_a_long_lived_token_is_changed_for_a_short_lived_one(registry: FakeRegistry) -> None:
    registry.wants = "Bearer"
    assert ask(registry, {"identitytoken": "long-lived", "serveraddress": "x"}) == DIGEST


@pytest.mark.parametrize(
    ("wants", "credentials", "said"),
    [
        ("Basic", None, "requires a login: docker login 127.0.0.1"),
        ("Basic", {**LOGIN, "password": "wrong"}, "does not allow access to etl"),
        ("Bearer", {**LOGIN, "password": "wrong"}, "rejected the login"),
    ],
)
def test_rejected_credentials_are_reported(
    registry: FakeRegistry, wants: str, credentials: dict[str, str] | None, said: str
) -> None:
    registry.wants = wants
    with pytest.raises(RegistryError, match=said):
        ask(registry, credentials)


def test_a_password_is_not_sent_unencrypted(registry: FakeRegistry) -> None:
    registry.wants, registry.realm = "Bearer", "ftp://elsewhere.example.org/token"
    with pytest.raises(RegistryError, match="no secure URL for the login"):
        ask(registry, LOGIN)


def test_an_image_that_is_not_there_is_named(registry: FakeRegistry) -> None:
    with pytest.raises(RegistryError, match="has no image gone:2"):
        ask(registry, image="gone:2")


def test_a_registry_that_is_not_there_cannot_be_asked(registry: FakeRegistry) -> None:
    with pytest.raises(RegistryError, match="cannot be reached"):
        asyncio.run(ask_digest(read_image_name("127.0.0.1:1/etl"), None))
