"""Who may ask a real `ork serve`, and for how long: revoked tokens, replayed hooks, proxies in between."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from http.client import HTTPResponse

import pytest

from tests.acceptance.conftest import Place
from tests.acceptance.waiting import wait_until
from tests.serving import Served

pytestmark = pytest.mark.slow

TALKING = """
name: talking
tasks:
  a: {command: [sh, -c, 'while [ ! -e go ]; do echo words; sleep 0.1; done']}
"""
# Far less than the fifteen seconds after which a silent stream says that it is still there.
SOON_SECONDS = 8.0


def stream(served: Served, token: str, path: str) -> HTTPResponse:
    """An open stream that has said something."""
    connection = served.connect()
    connection.request("GET", f"/api/v1{path}", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.readline().startswith(b"id:")
    return answer


def new_token(place: Place, role: str = "viewer") -> tuple[str, str]:
    """Its id and its text."""
    made = json.loads(place.ork("token", "create", "--role", role, "--json"))
    return made["id"], made["token"]


def test_a_token_revoked_beside_the_server_loses_its_streams_at_once_and_others_keep_theirs(place: Place) -> None:
    served = place.serve()
    (place.folder / "talking.yaml").write_text(TALKING)
    place.ork("deploy", "talking.yaml")
    run = place.ork("trigger", "talking").split()[0]
    log = f"/runs/{run}/tasks/a/0/attempts/1/log"
    wait_until(lambda: b"words" in served.ask("GET", log)[1] if served.ask("GET", log)[0] == 200 else False)
    log += "?follow"
    id, text = new_token(place)
    ended = [stream(served, text, path) for path in ("/events", log)]
    kept = stream(served, new_token(place)[1], log)
    place.ork("token", "revoke", id)
    revoked_at = time.monotonic()
    for answer in ended:
        answer.read()
    assert time.monotonic() - revoked_at < SOON_SECONDS
    assert served.ask("GET", "/runs", Authorization=f"Bearer {text}")[0] == 401
    for _ in range(20):
        assert kept.readline()
    kept.close()


def hub_signature(body: bytes, secret: str = "hook secret") -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def post(served: Served, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, object]]:
    connection = served.connect()
    connection.request("POST", f"/api/v1{path}", body, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_a_captured_hook_request_starts_nothing_new_whatever_is_put_around_it(place: Place) -> None:
    place.environment["ORK_HOOK_HELD"] = "hook secret"
    served = place.serve("--no-scheduler")
    place.ork("deploy", "held.yaml")
    body = b'{"n": 3}'
    signature = {"X-Hub-Signature-256": hub_signature(body)}
    status, run = post(served, "/hooks/held", body, **signature)
    assert status == 201
    for around in (
        {},
        {"X-GitHub-Delivery": "another"},
        {"Idempotency-Key": "another"},
        {"X-Ork-Signature": "anything"},
        {"X-Ork-Signature": "t=1,v1=" + "0" * 64},
        {"X-Ork-Signature": ""},
    ):
        status, again = post(served, "/hooks/held", body, **signature, **around)
        assert (status, again.get("id")) in ((200, run["id"]), (401, None)), around
    assert len(served.ask("GET", "/runs")[1]["runs"]) == 1


def test_a_delivery_that_is_signed_again_later_names_the_same_run(place: Place) -> None:
    place.environment["ORK_HOOK_HELD"] = "hook secret"
    served = place.serve("--no-scheduler")
    place.ork("deploy", "held.yaml")
    body = b'{"n": 3}'

    def signed(moment: int, delivery: str) -> dict[str, str]:
        data = f"{moment}.{delivery}.".encode() + body
        digest = hmac.new(b"hook secret", data, hashlib.sha256).hexdigest()
        return {"X-Ork-Signature": f"t={moment},d={delivery},v1={digest}"}

    now = int(time.time())
    first = post(served, "/hooks/held", body, **signed(now, "17"))
    again = post(served, "/hooks/held", body, **signed(now - 20, "17"))
    other = post(served, "/hooks/held", body, **signed(now, "18"))
    assert [first[0], again[0], other[0]] == [201, 200, 201]
    assert first[1]["id"] == again[1]["id"] != other[1]["id"]
    forged = {"X-Ork-Signature": signed(now, "17")["X-Ork-Signature"].replace("d=17", "d=19")}
    assert post(served, "/hooks/held", body, **forged)[0] == 401


def test_workflows_that_would_share_a_hook_secret_are_started_by_neither(place: Place) -> None:
    place.environment["ORK_HOOK_DEPLOY_PROD"] = "hook secret"
    served = place.serve("--no-scheduler")
    for name in ("deploy-prod", "deploy_prod"):
        (place.folder / f"{name}.yaml").write_text(f"name: {name}\ntasks:\n  a: {{command: echo done}}\n")
    place.ork("deploy", "deploy-prod.yaml")
    signature = {"X-Hub-Signature-256": hub_signature(b"{}")}
    assert post(served, "/hooks/deploy-prod", b"{}", **signature)[0] == 201
    place.ork("deploy", "deploy_prod.yaml")
    for name in ("deploy-prod", "deploy_prod"):
        status, problem = post(served, f"/hooks/{name}", b"{}", **signature)
        assert (status, problem["code"]) == (409, "ORK803"), problem
        assert "share the secret ORK_HOOK_DEPLOY_PROD" in str(problem["detail"])
    assert len(served.ask("GET", "/runs")[1]["runs"]) == 1


def test_a_page_served_through_a_trusted_tls_proxy_may_post_and_no_other(place: Place) -> None:
    names = ("--no-scheduler", "--allowed-host", "ork.example.com")
    page = {
        "Host": "ork.example.com",
        "Origin": "https://ork.example.com",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-For": "192.0.2.7",
    }
    untrusting, trusting = place.serve(*names), place.serve(*names, "--trusted-proxy", "127.0.0.0/8")
    (place.folder / "ork.yaml").write_text("trusted_proxies: [127.0.0.1]\n")
    configured = place.serve(*names)
    assert untrusting.ask("POST", "/wake", **page)[0] == 403
    for served in (trusting, configured):
        assert served.ask("POST", "/wake", **page)[0] == 202
        assert served.ask("POST", "/wake", **{**page, "Origin": "https://evil.example"})[0] == 403
        rewritten = {**page, "Host": "127.0.0.1:8700", "X-Forwarded-Host": "ork.example.com"}
        assert served.ask("POST", "/wake", **rewritten)[0] == 202
        assert served.ask("POST", "/wake", **{**rewritten, "X-Forwarded-Host": "evil.example"})[0] == 421


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_trusted_proxy_that_is_no_address_is_refused_at_the_start(place: Place) -> None:
    said = place.ork("serve", "--port", "0", "--trusted-proxy", "proxy.local", code=2)
    assert "'proxy.local' is neither an IP address nor a network" in said
    (place.folder / "ork.yaml").write_text("trusted_proxies: [10.0.0.0/40]\n")
    assert "expected an IP address or a network" in place.ork("serve", "--port", "0", code=2)


def test_tokens_expire_and_are_rotated_with_an_overlap(place: Place) -> None:
    served = place.serve("--no-scheduler")
    through = ("--server", served.url)

    def statuses(*texts: str) -> list[int]:
        return [served.ask("GET", "/runs", Authorization=f"Bearer {text}")[0] for text in texts]

    for where in ((), through):
        made = json.loads(place.ork(*where, "token", "create", "--name", "ci", "--expires", "90d", "--json"))
        listed = {each["id"]: each for each in json.loads(place.ork(*where, "token", "list", "--json"))["tokens"]}
        id = next(id for id, each in listed.items() if each["name"] == "ci" and each["last_used_at"] is None)
        assert listed[id]["expires_at"] is not None
        new = place.ork(*where, "token", "rotate", id).strip()
        assert statuses(made["token"], new) == [200, 200]
        shown = json.loads(place.ork(*where, "token", "list", "--json"))["tokens"]
        successor = next(each for each in shown if each["name"] == "ci" and each["expires_at"] is None)
        assert successor["last_used_at"] is not None
        last = place.ork(*where, "token", "rotate", successor["id"], "--overlap", "0s", "--expires", "12h").strip()
        assert statuses(new, last) == [401, 200]
        assert "expired" in place.ork(*where, "token", "list")
        assert "no valid token" in place.ork(*where, "token", "rotate", successor["id"], code=3)
        for each in json.loads(place.ork("token", "list", "--json"))["tokens"]:
            if each["name"] == "ci" and each["revoked_at"] is None:
                place.ork("token", "revoke", each["id"])
    for wrong in ("0d", "soon", "9999999999d"):
        place.ork("token", "create", "--expires", wrong, code=2)


def test_a_token_made_elsewhere_is_registered_once(place: Place) -> None:
    """Deployments make a token of their own before there is a store, and register it at every start."""
    file = place.folder / "given"
    file.write_text("ork_4f1e8b2c9d7a6053f8e1b4c7d2a9065e\n")
    register = ("token", "create", "--role", "operator", "--name", "chart", "--from-file", "given")
    assert [place.ork(*register), place.ork(*register)] == ["", ""]
    served = place.serve("--no-scheduler")
    assert served.ask("GET", "/runs", Authorization=f"Bearer {file.read_text().strip()}")[0] == 200
    tokens = json.loads(place.ork("token", "list", "--json"))["tokens"]
    (id,) = [each["id"] for each in tokens if (each["name"], each["role"]) == ("chart", "operator")]
    assert "another role" in place.ork("token", "create", "--role", "admin", "--from-file", "given", code=2)
    place.ork("token", "revoke", id)
    assert "was revoked" in place.ork(*register, code=2)
    file.write_text("password")
    assert "easy to guess" in place.ork(*register, code=2)
    assert "through a server" in place.ork("--server", served.url, *register[:-1], __file__, code=2)


def test_the_audit_trail_names_token_and_address_and_failed_sign_ins(place: Place) -> None:
    served = place.serve("--no-scheduler", "--trusted-proxy", "127.0.0.1")
    place.ork("deploy", "held.yaml")
    id, text = new_token(place, "operator")
    client = {"Authorization": f"Bearer {text}", "X-Forwarded-For": "192.0.2.7"}
    assert served.ask("POST", "/workflows/held/runs", {}, **client)[0] == 201
    for number in range(30):
        wrong = {"Authorization": f"Bearer ork_{number:040}", "X-Forwarded-For": "192.0.2.66"}
        assert served.ask("GET", "/runs", **wrong)[0] in (401, 429)
    assert served.ask("GET", "/runs", **{**client, "X-Forwarded-For": "192.0.2.66"})[0] == 200
    entries = json.loads(place.ork("--server", served.url, "audit", "--json"))["entries"]
    assert entries == json.loads(place.ork("audit", "--json"))["entries"]
    trigger = next(entry for entry in entries if entry["action"] == "run.trigger")
    assert (trigger["token"], trigger["address"]) == (id, "192.0.2.7")
    failed = [entry for entry in entries if entry["action"] == "sign_in.failed"]
    assert [(entry["address"], entry["detail"]["failures"]) for entry in failed] == [
        ("192.0.2.66", 10),
        ("192.0.2.66", 1),
    ]
    assert "192.0.2.66" in place.ork("audit")


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_weak_token_is_not_even_sent(place: Place) -> None:
    served = place.serve("--no-scheduler")
    (place.folder / "file").write_text("secretsecretsecretsecret\n")
    for weak in ({"ORK_TOKEN": "changeme"}, {"ORK_TOKEN_FILE": str(place.folder / "file")}):
        place.environment |= {"ORK_SERVER": served.url, **weak}
        said = place.ork("runs", code=2)
        assert "too easy to guess" in said
        assert "ork token create" in said
        assert "changeme" not in said
        place.environment.pop("ORK_TOKEN", None)
    place.environment.pop("ORK_TOKEN_FILE")
    (place.folder / ".ork/token").write_text("changeme\n")
    assert "too easy to guess" in place.ork("runs", code=2)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_weak_token_in_the_servers_own_file_is_replaced(place: Place) -> None:
    place.serve("--no-scheduler").stop()
    (place.folder / ".ork/token").write_text("changeme\n")
    served = place.serve("--no-scheduler")
    assert served.token != "changeme"
    assert served.ask("GET", "/runs")[0] == 200


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_password_on_the_command_line_is_warned_about(place: Place) -> None:
    url = place.environment.pop("ORK_STORE")
    secret = url.replace("://ork@", "://ork:hush@")
    assert secret != url
    for words in (("--store", secret, "runs"), ("runs", "--store", secret)):
        said = place.ork(*words)
        assert said.count("warning: the password in --store is visible in the process list") == 1
        assert "ORK_STORE_FILE" in said
        assert "hush" not in said
    assert "warning" not in place.ork("--store", url, "runs")
    place.environment["ORK_STORE"] = secret
    assert "warning" not in place.ork("runs")
