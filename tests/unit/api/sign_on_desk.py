"""A server with single sign-on, browsers at it, and the steps of a sign-in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from ork.api.app import create_app
from ork.api.guard import RequestGuard
from ork.api.oidc.provider import Provider
from ork.api.oidc.sign_on import SignOn
from ork.model.access import Role, Token
from ork.model.outbound import OutboundRule
from ork.model.record import replaced
from ork.model.sign_in import OidcConfig, RoleRule
from tests.oidc_provider import CLIENT, SECRET, OidcProvider
from tests.unit.api.browser import Browser
from tests.unit.api.conftest import Bench

LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
ROLES = (
    RoleRule(Role.ADMIN, groups=frozenset({"platform"})),
    RoleRule(Role.OPERATOR, users=frozenset({"grace@example.com", "sub-7"})),
    RoleRule(Role.VIEWER, groups=frozenset({"staff"}), domains=frozenset({"example.org"})),
)


@pytest.fixture
def provider() -> Iterator[OidcProvider]:
    with OidcProvider().running() as running:
        yield running


class Desk:
    """A server with single sign-on, and browsers at it."""

    def __init__(self, bench: Bench, provider: OidcProvider, **changes: Any) -> None:
        self.bench = bench
        self.config = OidcConfig(provider.issuer, CLIENT, "SSO", roles=ROLES, **changes)
        self.app = self.server()

    def server(self, **changes: Any) -> RequestGuard:
        """A server that has kept nothing from others: each has its own memory."""
        secret = {"SSO": SECRET}.get
        sign_on = SignOn(Provider(self.config, OutboundRule(), secret), self.bench.store)
        return create_app(replaced(self.bench.api, sign_on=sign_on, **changes), allowed_hosts=["ork.example"])

    def browser(self, address: str = "http://127.0.0.1:8700") -> Browser:
        return Browser(self.app, address)

    async def rows(self) -> list[Token]:
        return list(await self.bench.store.list_tokens())


@pytest.fixture
def desk(bench: Bench, provider: OidcProvider) -> Desk:
    return Desk(bench, provider)


async def begin(browser: Browser, back: str | None = None) -> str:
    """Presses the button. Returns the address of the provider."""
    answer = await browser.get("/ui/oidc/start", params={"back": back} if back else {})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def come_back(browser: Browser, given: dict[str, str]) -> httpx.Response:
    return await browser.get("/ui/oidc/callback", params=given, headers=LINK)


async def sign_on(browser: Browser, provider: OidcProvider, back: str | None = None) -> httpx.Response:
    redirect_uri, given = provider.sign_in(await begin(browser, back))
    assert redirect_uri == str(browser.base_url.join("/ui/oidc/callback"))
    return await come_back(browser, given)


async def enter(browser: Browser, answer: httpx.Response) -> httpx.Response:
    """What the page does: it takes the ticket from its address."""
    assert answer.status_code == 303, said(answer)
    ticket = parse_qs(urlsplit(answer.headers["location"]).fragment)["ticket"][0]
    return await browser.sign_in(ticket=ticket)


def said(answer: httpx.Response) -> str:
    """The text of a page."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.text)))


async def refused(browser: Browser, given: dict[str, str], status: int = 400) -> str:
    answer = await come_back(browser, given)
    assert (answer.status_code, "location" in answer.headers) == (status, False), said(answer)
    return said(answer)
