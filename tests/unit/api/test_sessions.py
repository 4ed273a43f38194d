"""Signing in with a browser: tickets, the two halves of a session, and what ends it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie

import httpx
import pytest

from ork import __version__
from ork.api.app import create_app
from ork.api.sessions import LIFETIME, Sessions
from ork.api.throttle import FAILURES
from ork.api.tickets import TICKET_SECONDS, UI, Tickets
from ork.api.tokens import digest_of, make_token
from ork.model.access import Role
from ork.model.record import replaced
from tests.unit.api.browser import Browser, ticket_for
from tests.unit.api.conftest import NOW, Bench


async def signed_in(bench: Bench, role: Role = Role.OPERATOR, address: str = "http://127.0.0.1:8700") -> Browser:
    browser = Browser(bench.app, address)
    assert (await browser.sign_in(token=await bench.token(role))).status_code == 201
    return browser


def detail_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["detail"]


# ── tickets ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_ticket_signs_in_once(bench: Bench) -> None:
    async with await bench.client(Role.OPERATOR) as client, Browser(bench.app) as first, Browser(bench.app) as second:
        ticket = await ticket_for(client)
        assert (await first.sign_in(ticket=ticket)).status_code == 201
        assert detail_of(await second.sign_in(ticket=ticket)) == (401, "this ticket was used before")
        assert (await first.read()).status_code == 200
        assert (await first.read("/api/v1/session")).json()["role"] == "operator"


async def test_of_many_that_use_a_ticket_at_once_one_gets_in(bench: Bench) -> None:
    async with await bench.client(Role.VIEWER) as client:
        ticket = await ticket_for(client)
    browsers = [Browser(create_app(bench.api)) for _ in range(5)]  # each server on the store by itself
    answers = await asyncio.gather(*(browser.sign_in(ticket=ticket) for browser in browsers))
    assert sorted(answer.status_code for answer in answers) == [201, 401, 401, 401, 401]


async def test_an_expired_a_foreign_and_a_mangled_ticket_are_refused(bench: Bench) -> None:
    digest, tickets, now = digest_of(await bench.token(Role.VIEWER)), Tickets(bench.store), datetime.now(UTC)
    good = await tickets.make(UI, digest, now)
    late = await tickets.make(UI, digest, now - timedelta(seconds=TICKET_SECONDS))
    for_a_log = await tickets.make("GET /api/v1/runs", digest, now)
    of_nobody = await tickets.make(UI, "0" * 64, now)
    async with Browser(bench.app) as browser:
        assert detail_of(await browser.sign_in(ticket=late)) == (401, "this ticket has expired")
        assert detail_of(await browser.sign_in(ticket=of_nobody)) == (401, "this ticket has expired")
        for wrong in (for_a_log, good[:-1] + ("A" if good[-1] != "A" else "B"), good.replace(".", "-"), "", "\ud800"):
            answer = await browser.post(
                "/api/v1/session", content=f'{{"ticket": "{wrong}"}}'.encode("utf-8", "replace")
            )
            assert detail_of(answer) == (401, "this ticket is unknown")
        later = good.split(".")
        later[1] = str(int(later[1]) + 600)
        assert (await browser.sign_in(ticket=".".join(later))).status_code == 401
        assert (await browser.sign_in(ticket=good)).status_code == 201


async def test_a_ticket_ends_with_its_token(bench: Bench) -> None:
    async with await bench.client(Role.VIEWER) as client, Browser(bench.app) as browser:
        ticket = await ticket_for(client)
        (token,) = await bench.store.list_tokens()
        await bench.store.revoke_token(token.id, NOW)
        assert (await browser.sign_in(ticket=ticket)).status_code == 401


async def test_a_ticket_is_no_token_and_a_session_makes_no_ticket(bench: Bench) -> None:
    browser = await signed_in(bench)
    answer = await browser.post("/api/v1/ui-tickets", headers={"X-Ork-Session": browser.half})
    assert answer.status_code == 403
    async with await bench.client(Role.VIEWER) as client:
        ticket = await ticket_for(client)
        answer = await client.get("/api/v1/runs", headers={"Authorization": f"Bearer {ticket}"})
        assert answer.status_code == 401


# ── the two halves ───────────────────────────────────────────────────────────────────────────────────


async def test_neither_half_works_alone(bench: Bench) -> None:
    browser = await signed_in(bench)
    assert (await browser.read()).status_code == 200
    assert (await browser.get("/api/v1/runs")).status_code == 401
    assert (await browser.get("/api/v1/runs", headers={"X-Ork-Session": "A" * 43})).status_code == 401
    assert (await browser.get("/api/v1/runs", headers={"X-Ork-Session": ""})).status_code == 401
    browser.without_cookies()
    assert (await browser.read()).status_code == 401


async def test_halves_of_two_sessions_do_not_fit(bench: Bench) -> None:
    one, other = await signed_in(bench), await signed_in(bench)
    one.half = other.half
    assert (await one.read()).status_code == 401
    assert (await other.read()).status_code == 200


async def test_the_cookie_is_named_after_its_port_and_kept_from_scripts(bench: Bench) -> None:
    async with Browser(bench.app) as browser:
        answer = await browser.sign_in(token=await bench.token(Role.VIEWER))
        ((name, morsel),) = SimpleCookie(answer.headers["set-cookie"]).items()
    assert (name, morsel["path"], morsel["samesite"], morsel["httponly"]) == ("ork_8700", "/api/", "strict", True)
    assert morsel["secure"] == ""
    assert LIFETIME.total_seconds() - 5 <= int(morsel["max-age"]) <= LIFETIME.total_seconds()
    assert morsel.value not in answer.text
    assert answer.json()["half"] not in answer.headers["set-cookie"]


async def test_a_cookie_of_another_port_is_refused(bench: Bench) -> None:
    browser = await signed_in(bench)
    (name, value), half = browser.cookie(), browser.half
    for given in (name, "ork_9000"):
        async with Browser(bench.app, "http://127.0.0.1:9000", Cookie=f"{given}={value}") as other:
            other.half = half
            assert (await other.read()).status_code == 401
    async with Browser(bench.app, Cookie=f"{name}=planted; x=y; {name}={value}") as same:
        same.half = half
        assert (await same.read()).status_code == 200


async def test_a_session_at_another_host_name_is_refused(bench: Bench) -> None:
    browser = await signed_in(bench)
    answer = await browser.read(Host="evil.example:8700")
    assert answer.status_code == 421


@pytest.mark.parametrize(
    "site", [{}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}], ids=str
)
async def test_a_session_works_for_its_own_pages_alone(bench: Bench, site: dict[str, str]) -> None:
    browser = await signed_in(bench)
    del browser.headers["Sec-Fetch-Site"]
    answer = await browser.read(**site)
    assert answer.status_code == 403
    assert (await browser.post("/api/v1/session", json={"token": "x"}, headers=site)).status_code == 403


async def test_authorization_is_judged_before_a_cookie(bench: Bench) -> None:
    browser = await signed_in(bench, Role.VIEWER)
    admin = await bench.token(Role.ADMIN)
    assert (await browser.read("/api/v1/tokens")).status_code == 403
    assert (await browser.read("/api/v1/tokens", Authorization=f"Bearer {admin}")).status_code == 200
    assert (await browser.read(Authorization="Bearer wrong")).status_code == 401
    browser.half = "A" * 43
    assert (await browser.read(Authorization=f"Bearer {admin}")).status_code == 200


async def test_over_tls_behind_a_trusted_proxy_the_cookie_belongs_to_the_host(bench: Bench) -> None:
    app = create_app(bench.api, allowed_hosts=["ork.example"], trusted_proxies=["127.0.0.1"])
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "ork.example", "X-Forwarded-For": "203.0.113.7"}
    async with Browser(app, "http://127.0.0.1:8700", **forwarded) as browser:
        answer = await browser.sign_in(token=await bench.token(Role.VIEWER))
        ((name, morsel),) = SimpleCookie(answer.headers["set-cookie"]).items()
        assert (name, morsel["path"], morsel["secure"], morsel["httponly"]) == ("__Host-ork", "/", True, True)
        browser.without_cookies()
        cookie = f"__Host-ork={morsel.value}"
        assert (await browser.read(Cookie=cookie)).status_code == 200
        # The same cookie without TLS, or at another port, is none.
        assert (await browser.read(Cookie=cookie, **{"X-Forwarded-Proto": "http"})).status_code == 401
        assert (await browser.read(Cookie=cookie, **{"X-Forwarded-Host": "ork.example:8443"})).status_code == 401
    (entry,) = [each for each in await bench.store.list_audit() if each.action == "session.create"]
    assert entry.address == "203.0.113.7"


# ── what a session may do, and what ends it ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.ADMIN])
async def test_a_session_may_do_what_its_token_may(bench: Bench, role: Role) -> None:
    browser = await signed_in(bench, role)
    state = (await browser.read("/api/v1/session")).json()
    assert (state["name"], state["role"], state["version"]) == (f"the {role}", role.value, __version__)
    assert state["is_session"] is True
    assert ("get_run" in state["may"], "cancel_run" in state["may"] or "create_token" in state["may"]) == (
        True,
        role is not Role.VIEWER,
    )
    assert ("create_token" in state["may"]) == (role is Role.ADMIN)
    answer = await browser.read("/api/v1/tokens")
    assert answer.status_code == (200 if role is Role.ADMIN else 403)


async def test_a_token_may_ask_too_what_it_may(bench: Bench) -> None:
    async with await bench.client(Role.VIEWER) as client:
        state = (await client.get("/api/v1/session")).json()
    assert (state["is_session"], state["until"], state["role"]) == (False, None, "viewer")


async def test_a_session_has_the_role_that_its_token_has_now(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = await signed_in(bench, Role.ADMIN)
    assert (await browser.read("/api/v1/tokens")).status_code == 200
    find_token = bench.store.find_token

    async def changed(digest: str) -> object:
        return replaced(await find_token(digest), role=Role.VIEWER)

    monkeypatch.setattr(bench.store, "find_token", changed)
    assert (await browser.read("/api/v1/tokens")).status_code == 403
    assert (await browser.read()).status_code == 200


async def test_a_token_of_a_scheduler_opens_no_session(bench: Bench) -> None:
    async with Browser(bench.app) as browser, await bench.client(Role.SCHEDULER) as client:
        answer = await browser.sign_in(token=await bench.token(Role.SCHEDULER))
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
        assert (await client.post("/api/v1/ui-tickets")).status_code == 403


async def test_revoking_the_token_ends_the_session_at_once(bench: Bench) -> None:
    browser = await signed_in(bench)
    (token,) = await bench.store.list_tokens()
    await bench.store.revoke_token(token.id, NOW)
    assert detail_of(await browser.read()) == (401, "the session has ended")


async def test_a_session_ends_after_its_time_and_never_later_than_its_token(bench: Bench) -> None:
    now = datetime.now(UTC)
    text, token = make_token("short", Role.VIEWER, NOW, now + timedelta(hours=1))
    await bench.store.add_token(token)
    async with Browser(bench.app) as browser:
        answer = await browser.sign_in(token=text)
        assert answer.json()["until"][:19] == (now + timedelta(hours=1)).isoformat()[:19]
        made = await Sessions(bench.store).begin(token, 8700, now - LIFETIME)
        browser.without_cookies()
        browser.half = made.half
        assert detail_of(await browser.read(Cookie=f"ork_8700={made.cookie}")) == (401, "the session has ended")
        stretched = made.cookie.split(".")
        stretched[1] = str(int(stretched[1]) + 3600)
        assert (await browser.read(Cookie=f"ork_8700={'.'.join(stretched)}")).status_code == 401


async def test_signing_out_deletes_the_cookie(bench: Bench) -> None:
    browser = await signed_in(bench)
    answer = await browser.delete("/api/v1/session", headers={"X-Ork-Session": browser.half})
    ((name, morsel),) = SimpleCookie(answer.headers["set-cookie"]).items()
    assert (answer.status_code, name, morsel.value, morsel["max-age"], morsel["path"]) == (
        204,
        "ork_8700",
        "",
        "0",
        "/api/",
    )
    assert dict(browser.cookies) == {}
    assert (await browser.read()).status_code == 401


async def test_any_server_on_the_store_accepts_a_session(bench: Bench) -> None:
    browser = await signed_in(bench)
    name, value = browser.cookie()
    async with Browser(create_app(bench.api), Cookie=f"{name}={value}") as other:
        other.half = browser.half
        assert (await other.read()).status_code == 200


# ── refused sign-ins ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("body", ["{}", '{"token": "a", "ticket": "b"}', '{"token": 1}', '{"other": "x"}', "[]", "{"])
async def test_a_body_that_is_not_one_of_the_two_is_refused(bench: Bench, body: str) -> None:
    async with Browser(bench.app) as browser:
        assert (await browser.post("/api/v1/session", content=body)).status_code == 400
        assert (await browser.post("/api/v1/session", content=b" " * 5000)).status_code == 413


async def test_wrong_tokens_tickets_and_sessions_are_throttled_like_tokens(bench: Bench) -> None:
    good = await bench.token(Role.VIEWER)
    browser = await signed_in(bench)
    for wrong in ({"token": "ork_AAAA"}, {"ticket": "AAAABBBB"}):
        statuses = [
            (await browser.sign_in(**{kind: f"{text}{n}" for kind, text in wrong.items()})).status_code
            for n in range(FAILURES + 1)
        ]
        assert statuses == [401] * FAILURES + [429]
    async with Browser(bench.app) as thief:
        thief.half = "C" * 43
        assert [(await thief.read()).status_code for _ in range(FAILURES + 1)] == [401] * FAILURES + [429]
    assert (await browser.read()).status_code == 200
    assert (await browser.sign_in(token=good)).status_code == 201
    noted = {each.subject for each in await bench.store.list_audit(1000) if each.action == "sign_in.failed"}
    assert noted == {"too easy to guess token"}  # of one address the first and the tenth of all


async def test_a_form_of_another_site_cannot_sign_anybody_in(bench: Bench) -> None:
    form = {
        "Origin": "http://evil.example",
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    token = await bench.token(Role.VIEWER)
    for headers in (form, {**form, "Origin": "http://127.0.0.1:9000", "Sec-Fetch-Site": "same-site"}):
        async with Browser(bench.app, **headers) as browser:
            assert (await browser.sign_in(token=token)).status_code == 403
            assert (await browser.post("/ui/", content=b"a=b")).status_code == 403


async def test_signing_in_is_recorded_without_any_secret(bench: Bench) -> None:
    browser = await signed_in(bench)
    (token,) = await bench.store.list_tokens()
    (entry,) = await bench.store.list_audit()
    assert (entry.by, entry.action, entry.subject, entry.token) == (token.name, "session.create", token.id, token.id)
    assert browser.half not in str(entry)
