"""The client of a server that keeps documents: what it sends, when it asks again, and what it says of a server that refuses."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ork.errors import DocumentError, ObjectsError, ObjectsRefusedError, UsageError
from ork.objects.documents import objects_proof, token_hash
from ork.objects.opening import of_spec_url, open_objects, open_values
from ork.objects.served import ServedObjects

ATTEMPT = "00000000000a/load/0/1"
STEM = "runs/00000000000a/load.0.1"
SECRET = token_hash("token")


class Script:
    """A server that gives the next of its answers to each request, and then 204. 0 ends the connection without one."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.connections = 0
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                script.connections += 1
                super().setup()

            def _answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                script.requests.append((self.command, self.path, {**self.headers}))
                status, data = script.answers.pop(0) if script.answers else (204, b"")
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                if status != 204:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def script() -> Iterator[Script]:
    script = Script()
    yield script
    script.server.shutdown()
    script.server.server_close()


def problem(code: str, detail: str = "no") -> bytes:
    return json.dumps({"code": code, "detail": detail, "hint": None}).encode()


def test_the_token_of_an_attempt_is_never_sent(script: Script) -> None:
    objects = ServedObjects(script.url)
    access = objects.sign_in(ATTEMPT, SECRET)
    objects.read_stop(ATTEMPT)
    (_, path, headers) = script.requests[0]
    assert headers["X-Ork-Attempt"] == ATTEMPT
    assert headers["X-Ork-Proof"] == objects_proof(ATTEMPT, SECRET)
    assert SECRET not in str(script.requests)
    assert "Authorization" not in headers
    open_values(script.url, "normal", access).put_output(ATTEMPT, b"1")  # as the process of the task does
    assert script.requests[1][2]["X-Ork-Proof"] == headers["X-Ork-Proof"]
    assert path == "/api/v1/objects?key=runs%2F00000000000a%2Fload.0.1.stop.json&limit=1048576"


def test_each_attempt_shows_its_own_proof_and_the_last_one_reads_values(script: Script) -> None:
    objects = ServedObjects(script.url)
    second = "00000000000a/load/1/1"
    objects.sign_in(ATTEMPT, SECRET)
    objects.sign_in(second, SECRET)
    objects.read_stop(ATTEMPT)
    objects.get("runs/00000000000a/before.0.1.output.json")
    assert [headers["X-Ork-Attempt"] for _, _, headers in script.requests] == [ATTEMPT, second]


def test_a_connection_is_kept_and_made_anew_after_a_fork(script: Script) -> None:
    objects = ServedObjects(script.url, "ork_token")
    objects.get("a")
    objects.get("a")
    assert script.connections == 1
    child = os.fork()
    if child == 0:
        os._exit(0 if objects.get("a") is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    objects.get("a")
    assert script.connections == 2


def test_what_may_pass_is_asked_again(script: Script) -> None:
    script.answers = [(503, problem("ORK820")), (429, problem("ORK836")), (0, b""), (502, b"bad gateway"), (200, b"x")]
    assert ServedObjects(script.url, "ork_token").get("a") == b"x"


def test_a_write_that_may_have_won_is_not_sent_again(script: Script) -> None:
    """Whoever claims a gate reads back instead whether the first one had won."""
    script.answers = [(0, b""), (200, b'{"is_written": true}')]
    with pytest.raises(ObjectsError):
        ServedObjects(script.url, "ork_token").put_if_absent("a", b"x")
    assert len(script.requests) == 1
    script.answers = [(429, problem("ORK836")), (200, b'{"is_written": true}')]
    assert ServedObjects(script.url, "ork_token").put_if_absent("a", b"x")


def test_a_worker_does_not_ask_for_longer_than_its_fence_time_allows(script: Script) -> None:
    objects = ServedObjects(script.url)
    objects.sign_in(ATTEMPT, SECRET, 3.6)
    script.answers = [(503, problem("ORK820"))] * 1000
    with pytest.raises(ObjectsError):
        objects.put_status(ATTEMPT, b"{}")
    assert len(script.requests) < 20


def test_documents_that_many_ask_for_come_in_one_request(script: Script) -> None:
    script.answers = [
        (200, b'{"objects":[3,null,{"error":"too large","is_damaged":true}]}\nabc'),
        (200, b'{"objects":[1]}\nx'),
    ]
    found = ServedObjects(script.url, "ork_token").read_values(["a", "b", "c", "d"], 3)
    assert [found[0], found[1], found[3]] == [b"abc", None, b"x"]  # the server had left out the last one
    assert isinstance(found[2], DocumentError)
    script.requests.clear()
    ServedObjects(script.url, "ork_token").put_shared([(f"k{number}", b"x") for number in range(400)])
    assert [path for _, path, _ in script.requests] == ["/api/v1/objects/many/put"]


@pytest.mark.parametrize(
    ("status", "token", "says", "hint"),
    [
        (401, "ork_t", "does not accept the token in ORK_TOKEN: no", "--role scheduler"),
        (403, "ork_t", "is not a scheduler's: no", "--role scheduler"),
        (401, None, "needs a scheduler's token", "--role scheduler"),
        (404, "ork_t", "is an older Ork, or no Ork", "upgrade the server"),
    ],
)
def test_a_refusal_says_what_is_wrong(script: Script, status: int, token: str | None, says: str, hint: str) -> None:
    script.answers = [(status, problem("ORK830"))]
    with pytest.raises(ObjectsError) as raised:
        ServedObjects(script.url, token).check()
    assert says in raised.value.message
    assert hint in (raised.value.hint or "")
    assert isinstance(raised.value, ObjectsRefusedError) == (status != 404)


def test_a_server_that_is_not_there_is_named_at_once_to_people() -> None:
    with pytest.raises(ObjectsError, match="cannot reach the server that keeps the documents"):
        open_objects("http://127.0.0.1:9", creates=False, token="ork_t").read_identity()


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1", "http://127.evil.example", "http://ork.example?insecure=1", "http://ork.example?x=true"]
)
def test_documents_do_not_cross_a_network_in_the_clear_unless_that_is_said(url: str) -> None:
    with pytest.raises(UsageError):
        open_objects(url)


@pytest.mark.parametrize(
    "url", ["https://ork.example", "http://localhost:1", "http://[::1]:1", "http://10.0.0.1:1?insecure=true"]
)
def test_a_server_can_be_named(url: str) -> None:
    assert open_objects(url).url == url
    assert of_spec_url(f"{url}/{STEM}.spec.json") == (url, ATTEMPT)


@pytest.mark.parametrize(
    "url", ["https://", "https://user@ork.example", "https://ork.example:x", "https://ork.example#x"]
)
def test_what_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        open_objects(url)
