"""The check in front of everything: nobody comes in without a token, and nobody does what their role does not allow."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from ork.api.app import all_routes
from ork.api.connections import IS_FULL
from ork.api.guard import SECURITY_HEADERS
from ork.api.quotas import Quota
from ork.api.throttle import FAILURES
from ork.model.access import Role
from ork.state.records import RunFilter
from tests.unit.api.conftest import NOW, Bench

OPEN = {"/healthz", "/readyz", "/api/v1/healthz", "/api/v1/readyz"}
PAGES = {
    "/", "/ui", "/ui/{path:path}", "/ui/assets/{build}/{name:path}", "/ui/oidc/start", "/ui/oidc/callback",
}  # fmt: skip
SIGN_IN = "/api/v1/session"
WAYS = "/api/v1/sign-in"
ROUTES = [(route.method, route.path, route.role) for route in all_routes()]


def filled(path: str) -> str:
    names = {
        "run": "@last",
        "name": "flow",
        "index": "0",
        "number": "1",
        "value": "0",
        "version": "v",
        "id": "0a",
        "target": "0a",
        "other": "0a",
        "code": "ORK201",
    }
    return path.replace(":path}", "}").format(**names, path="runs", build="b")


def test_only_health_signing_in_and_the_pages_are_open() -> None:
    assert {(method, path) for method, path, role in ROUTES if role is None} == {
        *(("GET", path) for path in {*OPEN, *PAGES, WAYS}),
        ("POST", SIGN_IN),
    }


async def test_every_route_without_a_token_is_refused_but_the_open_ones(bench: Bench) -> None:
    async with await bench.client(None) as client:
        for method, path, role in ROUTES:
            answer = await client.request(method, filled(path))
            if path in OPEN or role is not None:
                assert answer.status_code == (200 if role is None else 401), (method, path)


async def test_a_full_server_answers_the_health_routes_alone(bench: Bench) -> None:
    async def full(scope: Scope, receive: Receive, send: Send) -> None:
        await bench.app({**scope, "state": {IS_FULL: True}}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(full), base_url="http://localhost") as client:
        for method, path, _ in ROUTES:
            answer = await client.request(method, filled(path))
            assert (answer.status_code == 503) == (path not in OPEN), (method, path)


@pytest.mark.parametrize(
    "path", ["/uix", "/api", "/api/v1", "/healthz/", "http://localhost//healthz", "/docs", "/openapi.json", "/HEALTHZ"]
)
async def test_what_is_no_route_tells_a_stranger_nothing(bench: Bench, path: str) -> None:
    async with await bench.client(None) as client:
        assert (await client.get(path)).status_code == 401
    async with await bench.client() as client:
        assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/healthz%0a", "/healthz%0A", "/api/v1/runs%0a", "/healthz%0d%0a", "/%7f"])
async def test_a_path_with_a_control_character_is_no_path(bench: Bench, path: str) -> None:
    async with await bench.client(None) as stranger, await bench.client() as client:
        assert (await stranger.get(path)).status_code == 404
        assert (await client.get(path)).status_code == 404


async def test_another_method_of_a_known_path_names_those_it_has(bench: Bench) -> None:
    async with await bench.client() as client:
        answer = await client.put("/api/v1/workflows")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")


@pytest.mark.parametrize("role", list(Role))
async def test_a_role_opens_its_own_routes_and_no_others(bench: Bench, role: Role) -> None:
    async with await bench.client(role) as client:
        for method, path, needed in ROUTES:
            if needed is None or path.endswith("/events"):
                continue
            answer = await client.request(method, filled(path), content=b"{")
            assert (answer.status_code == 403) == (not role.includes(needed)), (method, path, answer.text)


async def test_an_unknown_a_revoked_and_a_mangled_token_are_refused(bench: Bench) -> None:
    text = await bench.token(Role.VIEWER)
    (token,) = await bench.store.list_tokens()
    async with await bench.client(None) as client:
        for wrong in ("Bearer nobody", f"Basic {text}", "Bearer", f"Bearer {text}x", text):
            answer = await client.get("/api/v1/runs", headers={"Authorization": wrong})
            assert answer.status_code == 401, wrong
            assert "ork token create" in answer.json()["hint"]
        good = {"Authorization": f"Bearer {text}"}
        assert (await client.get("/api/v1/runs", headers=good)).status_code == 200
        await bench.store.revoke_token(token.id, NOW)
        assert (await client.get("/api/v1/runs", headers=good)).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "localhost@evil.example", "localhost:x"]
)
async def test_a_foreign_host_is_refused(bench: Bench, host: str) -> None:
    async with await bench.client(Host=host) as client:
        for path in ("/api/v1/runs", "/healthz"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (421, "ORK832")
            assert "--allowed-host" in answer.json()["hint"]


@pytest.mark.parametrize("host", ["localhost", "localhost:8700", "127.0.0.1:1", "[::1]:8700", "LOCALHOST"])
async def test_the_names_of_this_machine_are_welcome(bench: Bench, host: str) -> None:
    async with await bench.client(Host=host) as client:
        assert (await client.get("/api/v1/runs")).status_code == 200


@pytest.mark.parametrize(
    "header", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
               {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://localhost"}],
    ids=str,
)  # fmt: skip
async def test_a_foreign_page_is_refused_even_with_a_good_token(bench: Bench, header: dict[str, str]) -> None:
    async with await bench.client(**header) as client:
        assert (await client.get("/api/v1/runs")).status_code == 403
        assert (await client.post("/api/v1/wake")).status_code == 403


async def test_our_own_pages_are_not_refused(bench: Bench) -> None:
    own = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    async with await bench.client(**own) as client:
        answer = await client.get("/api/v1/runs")
        assert answer.status_code == 200
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_every_answer_carries_the_security_headers(bench: Bench) -> None:
    async with await bench.client() as client, await bench.client(None) as stranger:
        for answer in (await client.get("/api/v1/runs"), await stranger.get("/api/v1/runs"), await client.get("/x")):
            assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS


async def test_tokens_that_look_alike_are_slowed_down_and_good_ones_never_are(bench: Bench) -> None:
    good = {"Authorization": f"Bearer {await bench.token(Role.VIEWER)}"}
    async with await bench.client(None) as client:

        async def statuses(*texts: str) -> list[int]:
            return [
                (await client.get("/api/v1/runs", headers={"Authorization": f"Bearer {text}"})).status_code
                for text in texts
            ]

        alike = [f"ork_AAAA{number}" for number in range(FAILURES + 3)]
        assert await statuses(*alike) == [401] * FAILURES + [429] * 3
        blocked = await client.get("/api/v1/runs", headers={"Authorization": "Bearer ork_AAAAnother"})
        assert (blocked.status_code, int(blocked.headers["retry-after"]) > 0) == (429, True)
        # Seen for the first time, from the very same address.
        assert (await client.get("/api/v1/runs", headers=good)).status_code == 200
        assert await statuses("ork_BBBB") == [401]


async def test_a_token_that_was_good_lately_is_not_slowed_down_by_others_that_begin_like_it(bench: Bench) -> None:
    text = await bench.token(Role.VIEWER)
    async with await bench.client(None) as client:
        for shown in (text, *(f"{text[:8]}{number}" for number in range(FAILURES)), text):
            answer = await client.get("/api/v1/runs", headers={"Authorization": f"Bearer {shown}"})
        assert answer.status_code == 200


async def test_one_token_has_a_limit_of_requests_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    going, go_on = asyncio.Event(), asyncio.Event()
    list_runs = bench.store.list_runs

    async def slow(query: RunFilter) -> object:
        going.set()
        await go_on.wait()
        return await list_runs(query)

    monkeypatch.setattr(bench.store, "list_runs", slow)
    monkeypatch.setattr(bench.app, "_requests", Quota(10, 1))
    async with await bench.client(Role.VIEWER) as client, await bench.client(Role.OPERATOR) as other:
        first = asyncio.create_task(client.get("/api/v1/runs"))
        await going.wait()
        second = await client.get("/api/v1/workflows")
        assert (second.status_code, second.json()["code"], second.headers["retry-after"]) == (429, "ORK836", "10")
        assert (await other.get("/api/v1/workflows")).status_code == 200
        go_on.set()
        assert (await first).status_code == 200
        assert (await client.get("/api/v1/workflows")).status_code == 200


async def test_a_body_that_is_too_large_is_refused_however_it_is_sent(bench: Bench) -> None:
    await bench.deploy()

    async def pieces() -> object:
        for _ in range(30):
            yield b" " * 100_000

    async with await bench.client() as client:
        told = await client.post("/api/v1/workflows/flow/runs", content=b" " * 3_000_000)
        untold = await client.post("/api/v1/workflows/flow/runs", content=pieces())  # type: ignore[arg-type]
        hook = await client.post("/api/v1/hooks/flow", content=pieces(), headers={"authorization": ""})  # type: ignore[arg-type]
    assert [(answer.status_code, answer.json()["code"]) for answer in (told, untold)] == [(413, "ORK833")] * 2
    assert hook.status_code in (401, 413)
    assert (await bench.store.list_runs(RunFilter())).runs == ()


async def test_a_websocket_is_turned_away_before_anything_else(bench: Bench) -> None:
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/api/v1/events", "headers": [], "scheme": "ws", "query_string": b""}
    await bench.app(scope, receive, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_a_store_that_fails_is_no_way_in(bench: Bench) -> None:
    client = await bench.client()
    await bench.store.close()
    async with client:
        assert (await client.get("/api/v1/runs")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200
        ready = await client.get("/readyz")
        assert (ready.status_code, str(bench.folder) in ready.text) == (503, False)


async def test_a_nul_in_a_path_reaches_no_store(bench: Bench) -> None:
    async with await bench.client() as client:
        assert (await client.get("/api/v1/runs/a%00b")).status_code == 400
        assert (await client.get("/api/v1/runs?workflow=a%00b")).status_code == 400
