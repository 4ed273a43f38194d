"""Single sign-on: who gets in with which role, for how long, and what a provider with problems does."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from ork.api.app import create_app
from ork.api.oidc import flow as flows
from ork.api.oidc.provider import Provider
from ork.api.oidc.sign_on import IN_A_BURST, SignOn
from ork.api.tokens import make_token
from ork.model.access import Role
from ork.model.outbound import OutboundRule
from ork.model.record import replaced
from ork.model.sign_in import OidcConfig, person_of, role_of
from tests.oidc_provider import CLIENT, OidcProvider
from tests.unit.api.browser import Browser
from tests.unit.api.conftest import Bench
from tests.unit.api.sign_on_desk import (
    ROLES,
    Desk,
    begin,
    come_back,
    desk,
    enter,
    provider,
    refused,
    said,
    sign_on,
)

__all__ = ["desk", "provider"]  # fixtures


# ── signing in ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_person_signs_in_with_the_role_of_a_group(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        ways = (await browser.get("/api/v1/sign-in")).json()
        assert ways == {"single_sign_on": {"name": "127.0.0.1", "url": "/ui/oidc/start"}}
        answer = await enter(browser, await sign_on(browser, provider))
        assert (answer.status_code, answer.json()["name"], answer.json()["role"]) == (201, "ada@example.com", "admin")
        assert (await browser.read()).status_code == 200
    created, entry = [each for each in await desk.bench.store.list_audit(10) if each.by == "ada@example.com"]
    assert (entry.action, created.action) == ("sign_in", "session.create")
    detail = {"issuer": provider.issuer, "subject": "ada-1", "email": "ada@example.com", "role": "admin"}
    assert json.loads(entry.detail or "") == detail
    assert entry.address == "127.0.0.1"


async def test_without_a_provider_there_is_only_the_token(bench: Bench) -> None:
    async with Browser(bench.app) as browser:
        assert (await browser.get("/api/v1/sign-in")).json() == {"single_sign_on": None}
        for path in ("start", "callback?code=1&state=2"):
            answer = await browser.get(f"/ui/oidc/{path}")
            assert (answer.status_code, answer.headers["location"]) == (303, "/ui/")


ROLE_CASES: list[tuple[dict[str, Any], Role | None]] = [
    ({"groups": ["staff", "platform"]}, Role.ADMIN),
    ({"groups": "staff"}, Role.VIEWER),
    ({"groups": [], "email": "GRACE@example.com"}, Role.OPERATOR),
    ({"groups": [], "email": None, "sub": "sub-7"}, Role.OPERATOR),
    ({"groups": ["staff"], "email": "grace@example.com"}, Role.OPERATOR),
    ({"groups": [], "email": "x@example.org"}, Role.VIEWER),
    ({"groups": [], "email": "x@example.org", "email_verified": False}, None),
    ({"groups": [], "email": "grace@example.com", "email_verified": None}, None),
    ({"groups": [], "email": "x@sub.example.org"}, None),
    ({"groups": [], "email": "example.org"}, None),
    ({"groups": ["Platform"], "email": None}, None),
    ({"groups": [["platform"]], "email": None}, None),
]


@pytest.mark.parametrize(("claims", "role"), ROLE_CASES)
def test_the_highest_role_counts(claims: dict[str, Any], role: Role | None) -> None:
    person = person_of({"sub": "ada-1", "email": "ada@example.com", "email_verified": True, **claims}, "groups")
    assert role_of(person, OidcConfig("https://x.example", CLIENT, roles=ROLES)) is role


async def test_a_role_is_that_of_the_last_sign_in(desk: Desk, provider: OidcProvider) -> None:
    for group, role in (("platform", "admin"), ("staff", "viewer")):
        provider.claims["groups"] = [group]
        async with desk.browser() as browser:
            assert (await enter(browser, await sign_on(browser, provider))).json()["role"] == role


async def test_who_has_no_role_reads_why_and_the_audit_log_names_them(desk: Desk, provider: OidcProvider) -> None:
    provider.claims |= {"groups": ["<script>alert(1)</script>", "guests"]}
    async with desk.browser() as browser:
        answer = await sign_on(browser, provider)
    assert (answer.status_code, answer.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert "ada@example.com has signed in at 127.0.0.1, but has no role" in said(answer)
    assert "None of your groups has one: <script>alert(1)</script>, guests." in unescape(answer.text)
    assert "<script>alert" not in answer.text
    assert "?account=other" in answer.text
    (entry,) = await desk.bench.store.list_audit(10)
    assert (entry.by, entry.action) == ("ada@example.com", "sign_in.failed")
    provider.claims |= {"groups": None}
    provider.userinfo = {"sub": "ada-1"}
    async with desk.browser() as browser:
        assert "it sends no claim groups" in said(await sign_on(browser, provider))


async def test_after_a_refusal_the_page_that_was_wanted_is_still_known(desk: Desk, provider: OidcProvider) -> None:
    wanted = "/ui/runs/7f3k?view=graph&q=a%26b#L3-L5"
    allowed, provider.claims["groups"] = provider.claims["groups"], []
    async with desk.browser() as browser:
        shown = links(await sign_on(browser, provider, wanted))
        assert shown["Sign in with a token"] == wanted
        provider.claims["groups"] = allowed
        answer = await browser.get(shown["Use another account"])
        _, given = provider.sign_in(answer.headers["location"])
        location = (await come_back(browser, given)).headers["location"]
    assert location.startswith("/ui/runs/7f3k?view=graph&q=a%26b#ticket=")
    assert location.endswith("&then=L3-L5")


async def test_a_sign_in_that_failed_or_took_too_long_is_tried_again_for_the_same_page(
    desk: Desk, provider: OidcProvider
) -> None:
    earlier = desk.server(now=lambda: datetime.now(UTC) - timedelta(seconds=flows.SECONDS))
    async with Browser(earlier) as before, desk.browser() as browser:
        _, given = provider.sign_in(await begin(before, "/ui/schedules?x=1"))
        browser.cookies.update(before.cookies)
        late = links(await come_back(browser, given))
        provider.is_away = True
        desk.app = desk.server()
    async with desk.browser() as browser:
        away = links(await browser.get("/ui/oidc/start", params={"back": "/ui/schedules?x=1"}))
        unknown = links(await browser.get("/ui/oidc/start", params={"back": "https://evil.example/"}))
    assert late["Try again"] == away["Try again"] == "/ui/oidc/start?back=%2Fui%2Fschedules%3Fx%3D1"
    assert unknown == {"Try again": "/ui/oidc/start", "Sign in with a token": "/ui/"}


def links(answer: httpx.Response) -> dict[str, str]:
    """The addresses of a page's links, by their texts."""
    return {text: unescape(href) for href, text in re.findall(r'<a [^>]*href="([^"]*)"[^>]*>([^<]*)</a>', answer.text)}


async def test_another_account_can_be_chosen(desk: Desk) -> None:
    async with desk.browser() as browser:
        answer = await browser.get("/ui/oidc/start?account=other")
        assert parse_qs(urlsplit(answer.headers["location"]).query)["prompt"] == ["select_account"]


async def test_allowed_domains_hold_for_everybody(bench: Bench, provider: OidcProvider) -> None:
    desk = Desk(bench, provider, allowed_domains=frozenset({"example.com"}), default_role=Role.VIEWER)
    provider.userinfo = {"sub": "ada-1"}
    for email, is_in in (("ada@example.com", True), ("ada@example.org", False), (None, False)):
        provider.claims["email"] = email
        async with desk.browser() as browser:
            assert (await sign_on(browser, provider)).status_code == (303 if is_in else 403)


async def test_groups_may_be_below_a_path_or_in_userinfo(bench: Bench, provider: OidcProvider) -> None:
    desk = Desk(bench, provider, groups_claim="realm_access.roles")
    provider.claims |= {"groups": None, "realm_access": {"roles": ["platform"]}}
    async with desk.browser() as browser:
        assert (await sign_on(browser, provider)).status_code == 303
    provider.claims["realm_access"] = None
    provider.userinfo = {"sub": "ada-1", "realm_access": {"roles": ["staff"]}, "email": "eve@example.org"}
    async with desk.browser() as browser:
        answer = await enter(browser, await sign_on(browser, provider))
        assert (answer.json()["role"], answer.json()["name"]) == ("viewer", "ada@example.com")
    provider.userinfo["sub"] = "eve-2"
    async with desk.browser() as browser:
        assert "about somebody else" in said(await sign_on(browser, provider))


async def test_a_name_that_a_person_has_chosen_stands_beside_the_subject(desk: Desk, provider: OidcProvider) -> None:
    provider.claims |= {"email": "root@example.com", "email_verified": False, "preferred_username": "root\u202e\n"}
    async with desk.browser() as browser:
        assert (await enter(browser, await sign_on(browser, provider))).json()["name"] == "root (ada-1)"


async def test_another_server_on_the_store_can_complete_a_sign_in(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        _, given = provider.sign_in(await begin(browser))
        async with Browser(desk.server()) as elsewhere:
            elsewhere.cookies = browser.cookies
            answer = await come_back(elsewhere, given)
        assert (await enter(browser, answer)).status_code == 201


# ── how long it lasts ────────────────────────────────────────────────────────────────────────────────


async def test_a_session_ends_in_time_and_old_rows_are_deleted(bench: Bench, provider: OidcProvider) -> None:
    desk, now = Desk(bench, provider, session_seconds=3600.0), datetime.now(UTC)
    for name, age in (("ada@example.com", 31), ("ada@example.com", 29), ("bob@example.com", 90)):
        await bench.store.add_token(make_token(name, Role.ADMIN, now, now - timedelta(days=age))[1])
    async with desk.browser() as browser:
        until = (await enter(browser, await sign_on(browser, provider))).json()["until"]
    assert timedelta(minutes=59) < datetime.fromisoformat(until) - now <= timedelta(minutes=61)
    assert sorted(each.name[:3] for each in await desk.rows()) == ["ada", "ada", "bob"]


async def test_signing_out_ends_the_session_for_copies_of_it_too(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser, desk.browser() as thief:
        await enter(browser, await sign_on(browser, provider))
        thief.half = browser.half
        for name, value in browser.cookies.items():
            thief.cookies.set(name, value)
        assert (await thief.read()).status_code == 200
        assert (await browser.request("DELETE", "/api/v1/session", headers={"X-Ork-Session": browser.half})).is_success
        assert (await thief.read()).status_code == 401
    assert [each.revoked_at is None for each in await desk.rows()] == [False]
    newest, *_ = await desk.bench.store.list_audit(1)
    assert (newest.by, newest.action) == ("ada@example.com", "session.end")


async def test_signing_out_with_a_token_leaves_the_token(desk: Desk) -> None:
    async with desk.browser() as browser:
        await browser.sign_in(token=await desk.bench.token(Role.ADMIN))
        assert (await browser.request("DELETE", "/api/v1/session", headers={"X-Ork-Session": browser.half})).is_success
    assert [each.revoked_at for each in await desk.rows()] == [None]


async def test_revoking_the_row_ends_the_session(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        await enter(browser, await sign_on(browser, provider))
        (row,) = await desk.rows()
        await desk.bench.store.revoke_token(row.id, datetime.now(UTC))
        assert (await browser.read()).status_code == 401


# ── where it leads ───────────────────────────────────────────────────────────────────────────────────


async def test_a_person_returns_to_the_page(desk: Desk, provider: OidcProvider) -> None:
    for back in ("/ui/runs/7f3k?view=graph&task=load%5B3%5D", "/ui/runs/a/tasks/x/0/1#L212-L219", "/ui/"):
        async with desk.browser() as browser:
            found, wanted = urlsplit((await sign_on(browser, provider, back)).headers["location"]), urlsplit(back)
        assert (found.scheme, found.netloc, found.path, found.query) == ("", "", wanted.path, wanted.query)
        assert parse_qs(found.fragment).get("then", [""])[0] == wanted.fragment


ELSEWHERE = [
    "https://evil.example/", "//evil.example/ui/", "/\\evil.example", "\\\\evil.example", "/ui/../..//evil.example", "/ui//evil.example",
    "/ui/\n//evil.example", "/ui/%2e%2e/api/v1/runs", "/ui/..", "/ui/x/%2E%2e/%2e./y", "javascript:alert(1)", "/api/v1/runs", "/uix", "ui/runs",
    " /ui/", "/ui/\t", "/ui/oidc/callback?code=1", "/ui/oidc/start", "/UI/", "http:/ui/", "/ui/\u2028", "/ui/" + "a" * 2000,
]  # fmt: skip


@pytest.mark.parametrize("back", ELSEWHERE)
def test_nothing_else_is_a_page_to_return_to(back: str) -> None:
    assert flows.safe_back(back) == "/ui/"


async def test_nothing_leads_to_another_place(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        for back in ELSEWHERE[:4]:
            location = (await sign_on(browser, provider, back)).headers["location"]
            assert re.fullmatch(r"/ui/#ticket=[\w.-]+", location)


async def test_a_changed_return_address_is_not_accepted(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        _, given = provider.sign_in(await begin(browser, "/ui/runs"))
        name, value = browser.cookie()
        random, ends, _, signature = value.split(".")
        other = flows.urlsafe_b64encode(b"https://evil.example/").rstrip(b"=").decode()
        browser.without_cookies()
        browser.cookies.set(name, f"{random}.{ends}.{other}.{signature}")
        assert (await come_back(browser, given)).status_code == 400


# ── a provider with problems ─────────────────────────────────────────────────────────────────────────


async def test_a_provider_that_is_away_has_a_page_and_tokens_work(bench: Bench, provider: OidcProvider) -> None:
    desk = Desk(bench, provider)
    provider.is_away = True
    async with desk.browser() as browser:
        answer = await browser.get("/ui/oidc/start")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "127.0.0.1 cannot be reached" in said(answer)
        asked = len(provider.requests)
        assert (await browser.get("/ui/oidc/start")).status_code == 503
        assert len(provider.requests) == asked  # it is not asked again at once
        assert (await browser.sign_in(token=await bench.token(Role.VIEWER))).status_code == 201
        assert (await browser.read()).status_code == 200


async def test_a_provider_that_goes_away_during_a_sign_in_can_be_tried_again(
    desk: Desk, provider: OidcProvider
) -> None:
    async with desk.browser() as browser:
        _, given = provider.sign_in(await begin(browser))
        provider.is_away = True
        assert "cannot be reached" in await refused(browser, given, 503)
        provider.is_away = False
        assert (await sign_on(browser, provider)).status_code == 303


async def test_new_keys_are_found_at_once(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        assert (await sign_on(browser, provider)).status_code == 303
        provider.rotate()
        assert (await sign_on(browser, provider)).status_code == 303
    assert provider.requests.count("/oidc/keys") == 2


async def test_a_wrong_or_missing_client_secret_is_the_admins_problem(bench: Bench, provider: OidcProvider) -> None:
    for secret, why in ((lambda _: "wrong", "invalid_client"), (lambda _: None, "The secret SSO has no value")):
        desk = Desk(bench, provider)
        sign_on_of = SignOn(Provider(desk.config, OutboundRule(), secret), bench.store)
        desk.app = create_app(replaced(bench.api, sign_on=sign_on_of))
        async with desk.browser() as browser:
            _, given = provider.sign_in(await begin(browser))
            assert why in await refused(browser, given, 503)


async def test_what_the_provider_refuses_is_shown_as_text(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        for error, status in (("access_denied", 403), ("server_error", 502), ("<b>", 502), ("\x01", 502)):
            _, given = provider.sign_in(await begin(browser))
            answer = await come_back(
                browser, {"state": given["state"], "error": error, "error_description": "<script>"}
            )
            assert answer.status_code == status
            assert "<b>" not in answer.text
            assert "<script>" not in answer.text


async def test_nobody_can_make_ork_ask_without_end(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        statuses = [(await browser.get("/ui/oidc/start")).status_code for _ in range(IN_A_BURST + 20)]
    assert statuses[-1] == 429
    assert statuses.count(429) >= 10
    assert provider.requests == ["/oidc/.well-known/openid-configuration"]
