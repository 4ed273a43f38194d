"""Single sign-on: every way in which somebody must not get in."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ork.api.oidc import flow as flows
from tests.oidc_provider import CLIENT, OidcProvider, key_number
from tests.unit.api.browser import Browser
from tests.unit.api.conftest import Bench
from tests.unit.api.sign_on_desk import (
    LINK,
    Desk,
    begin,
    come_back,
    desk,
    provider,
    refused,
    said,
    sign_on,
)

__all__ = ["desk", "provider"]  # fixtures


async def test_forged_states_missing_cookies_and_other_browsers_are_refused(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser, desk.browser() as other:
        _, given = provider.sign_in(await begin(browser))
        await begin(other)
        for state in ("", "x", given["state"][:-1] + "A", given["state"] + "A", "é"):
            assert "not begun in this browser" in await refused(browser, {**given, "state": state})
            await begin(browser)  # the answer has deleted the cookie
        assert "not begun in this browser" in await refused(other, given)
        async with desk.browser() as stranger:
            assert "not begun in this browser" in await refused(stranger, given)
    assert await desk.rows() == []
    assert "/oidc/token" not in provider.requests  # nobody's code was even tried
    assert {each.action for each in await desk.bench.store.list_audit(10)} == {"sign_in.failed"}


async def test_an_answer_works_once(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        _, given = provider.sign_in(await begin(browser))
        cookie = dict(browser.cookies)
        assert (await come_back(browser, given)).status_code == 303
        assert browser.cookies.get("ork_oidc_8700") is None
        browser.cookies.update(cookie)
        assert "does not accept the code: invalid_grant" in await refused(browser, given)
    assert len(await desk.rows()) == 1


async def test_of_replays_at_a_provider_that_allows_them_one_gets_in(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        _, given = provider.sign_in(await begin(browser))
        provider.allows_replays = True
    browsers = [Browser(desk.server()) for _ in range(4)]
    for each in browsers:
        each.cookies.update(browser.cookies)
    answers = await asyncio.gather(*(come_back(each, given) for each in browsers))
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400, 400]
    assert len(await desk.rows()) == 1


async def test_a_sign_in_has_to_be_completed_in_time(desk: Desk, provider: OidcProvider) -> None:
    earlier = desk.server(now=lambda: datetime.now(UTC) - timedelta(seconds=flows.SECONDS))
    async with Browser(earlier) as before, desk.browser() as browser:
        _, given = provider.sign_in(await begin(before))
        browser.cookies.update(before.cookies)
        assert "longer than ten minutes" in await refused(browser, given)


WRONG_CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"nonce": "another"}, "nonce"),
    ({"nonce": None}, "nonce"),
    ({"aud": "other"}, "aud"),
    ({"aud": ["other", "more"]}, "aud"),
    ({"aud": [CLIENT, "other"]}, "azp"),
    ({"aud": [CLIENT, "other"], "azp": "other"}, "azp"),
    ({"aud": None}, "aud"),
    ({"iss": "https://evil.example"}, "iss"),
    ({"iss": None}, "iss"),
    ({"exp": 1_700_000_000}, "expired"),
    ({"exp": None}, "exp"),
    ({"exp": "never"}, "exp"),
    ({"iat": 4_000_000_000}, "in the future"),
    ({"nbf": 4_000_000_000}, "not yet valid"),
    ({"sub": None}, "sub"),
    ({"sub": ""}, "nobody"),
    ({"sub": 7}, "sub"),
    ({"at_hash": "wrong"}, "at_hash"),
]


async def test_an_id_token_for_anything_else_is_refused(desk: Desk, provider: OidcProvider) -> None:
    good = provider.claims
    async with desk.browser() as browser:
        for claims, why in WRONG_CLAIMS:
            _, given = provider.sign_in(await begin(browser))
            provider.claims = {**good, **claims}
            assert why in await refused(browser, given, 502), claims
        assert await desk.rows() == []
        provider.claims = good
        assert (await sign_on(browser, provider)).status_code == 303


async def test_signatures_of_others_are_refused(desk: Desk, provider: OidcProvider) -> None:
    from joserfc.jwk import OctKey, RSAKey

    published = provider.keys[0].as_dict(private=False)
    kid = provider.keys[0].kid
    foreign = RSAKey.import_key({**key_number(1).as_dict(private=True), "kid": kid})
    confused = OctKey.import_key({"kty": "oct", "k": published["n"], "kid": kid})
    for algorithm, key in (("none", None), ("RS256", foreign), ("HS256", confused), ("RS256", key_number(1))):
        provider.algorithm, provider.signs_with = algorithm, key  # type: ignore[assignment]
        async with desk.browser() as browser:
            _, given = provider.sign_in(await begin(browser))
            assert "not accepted" in await refused(browser, given, 502)
    assert await desk.rows() == []


async def test_a_provider_that_mixes_itself_up_is_refused(bench: Bench, provider: OidcProvider) -> None:
    desk = Desk(bench, provider)
    async with desk.browser() as browser:
        _, given = provider.sign_in(await begin(browser))
        assert "another provider" in await refused(browser, {**given, "iss": "https://evil.example"}, 502)
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    desk = Desk(bench, provider)
    async with desk.browser() as browser:
        _, given = provider.sign_in(await begin(browser))
        assert "another provider" in await refused(browser, given, 502)
        _, given = provider.sign_in(await begin(browser))
        assert (await come_back(browser, {**given, "iss": provider.issuer})).status_code == 303
    provider.metadata = {"issuer": "https://evil.example"}
    async with Desk(bench, provider).browser() as browser:
        answer = await browser.get("/ui/oidc/start")
        assert (answer.status_code, "of another issuer" in said(answer)) == (502, True)


async def test_an_address_inside_that_nobody_allowed_is_not_asked(bench: Bench, provider: OidcProvider) -> None:
    """The issuer's own host may be asked, but its document leads nowhere else inside."""
    for url, why in (
        ("http://127.0.0.1:9/token", "not a public address"),
        ("file:///etc/passwd", "not an https address"),
    ):
        provider.metadata = {"token_endpoint": url}
        async with Desk(bench, provider).browser() as browser:
            answer = await browser.get("/ui/oidc/start")
            if answer.status_code == 303:
                _, given = provider.sign_in(answer.headers["location"])
                answer = await come_back(browser, given)
            assert why in said(answer)


async def test_frames_forms_and_other_sites_cannot_use_the_way_back(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser:
        _, given = provider.sign_in(await begin(browser))
        for other in ({"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "no-cors"}, {"Origin": "https://evil.example"}):
            answer = await browser.get("/ui/oidc/callback", params=given, headers={**LINK, **other})
            assert answer.status_code == 403
        assert (await browser.post("/ui/oidc/callback", headers=LINK)).status_code in (401, 403, 405)
        assert (await come_back(browser, given)).status_code == 303


async def test_the_cookie_tells_nothing_and_is_bound_to_the_port(desk: Desk, provider: OidcProvider) -> None:
    async with desk.browser() as browser, desk.browser("http://127.0.0.1:9000") as other:
        address = await begin(browser)
        ((name, value),) = browser.cookies.items()
        sent = parse_qs(urlsplit(address).query)
        for secret in ("state", "nonce", "code_challenge"):
            assert sent[secret][0] not in value
        assert name == "ork_oidc_8700"
        _, given = provider.sign_in(address)
        other.cookies.set("ork_oidc_9000", value)
        await refused(other, given)


async def test_over_tls_the_cookie_is_for_this_host_alone(desk: Desk) -> None:
    async with desk.browser("https://ork.example") as browser:
        answer = await browser.get("/ui/oidc/start")
    said_cookie = answer.headers["set-cookie"].lower()
    assert said_cookie.startswith("__host-ork-oidc=")
    for part in ("httponly", "secure", "samesite=lax", "path=/;"):
        assert part in said_cookie + ";"
    assert (
        unquote(parse_qs(urlsplit(answer.headers["location"]).query)["redirect_uri"][0])
        == "https://ork.example/ui/oidc/callback"
    )
