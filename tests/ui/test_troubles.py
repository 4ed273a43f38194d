"""Servers that restart, are slow, answer nonsense, or are newer than the page; and sessions that end under an open page."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ork import __version__
from tests.ui.conftest import NewPage, UiServer, environment
from tests.ui.proxy import Proxy, Rule, answered, cut, edited, hanging, held

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOUD = ("Failed to load resource", "net::ERR")  # a browser says so itself
PROBLEM = (
    b'{"type":"about:blank","title":"Internal error","status":500,"code":"ORK500","detail":"It is broken.","hint":null}'
)


class ProxiedServer:
    """Signs a page in through the proxy."""

    def __init__(self, server: UiServer, proxy: Proxy) -> None:
        self._server, self.url = server, proxy.url

    def sign_in_address(self, token: str | None = None) -> str:
        return self._server.sign_in_address(token).replace(self._server.url, self.url)


@pytest.fixture
def proxy(server: UiServer) -> Iterator[Proxy]:
    made = Proxy(server.url)
    yield made
    made.close()


@pytest.fixture
def proxied(server: UiServer, proxy: Proxy, new_page: NewPage) -> Page:
    """A page behind the proxy, signed in."""
    return new_page(ProxiedServer(server, proxy), hears=LOUD)


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        (answered(500, PROBLEM), "Internal error"),
        (answered(500, b"<h1>oh no</h1>", "text/html"), "The server has an error"),
        (answered(503, b"{}", Retry_After="1"), "The store is unavailable"),
        (answered(200, b"<html>a captive portal</html>", "text/html"), "The server does not answer"),
        (cut, "The server does not answer"),
    ],
    ids=["500", "500-html", "503", "not-json", "half"],
)
def test_a_broken_answer_is_explained_and_tried_again(proxied: Page, proxy: Proxy, rule: Rule, shown: str) -> None:
    proxy.rules["/api/v1/workflows"] = proxy.rules["/api/v1/overview"] = rule
    proxied.goto(f"{proxy.url}/ui/workflows")
    alert = proxied.get_by_role("alert")
    alert.get_by_text(shown).wait_for()
    assert "oh no" not in alert.inner_text()
    proxy.rules.clear()
    if not shown.startswith(("The store", "The server does not")):
        alert.get_by_role("button", name="Try again").click()  # what may pass is tried again by itself
    proxied.get_by_role("link", name="my_etl").first.wait_for()


def test_data_stay_with_their_time_while_the_server_fails(proxied: Page, proxy: Proxy) -> None:
    proxied.goto(f"{proxy.url}/ui/system")
    proxied.get_by_role("heading", name="Limits").wait_for()
    proxy.rules["/api/v1/"] = answered(503, b"{}")
    proxied.wait_for_function("() => document.querySelector('.banner.is-warning')", timeout=60_000)
    banner = proxied.locator(".banner.is-warning").first
    assert re.search(r"As of \d\d:\d\d:\d\d UTC", banner.inner_text())
    assert proxied.get_by_role("heading", name="Limits").is_visible()
    proxy.rules.clear()
    banner.get_by_role("button", name="Try now").click()
    banner.wait_for(state="detached")


def test_a_slow_answer_is_awaited_and_one_that_never_comes_is_an_error(proxied: Page, proxy: Proxy) -> None:
    is_ready = threading.Event()
    proxy.rules["/api/v1/overview"] = held(is_ready)
    proxied.goto(f"{proxy.url}/ui/workflows")
    proxied.get_by_text("Waiting for").first.wait_for()
    is_ready.set()
    proxied.get_by_role("link", name="my_etl").first.wait_for()
    proxy.rules["/api/v1/runs"] = hanging
    proxied.goto(f"{proxy.url}/ui/runs")
    alert = proxied.get_by_role("alert")
    alert.get_by_text("No answer yet").wait_for()
    proxy.rules.clear()
    alert.get_by_role("button", name="Try again").click()
    proxied.get_by_role("grid").get_by_text("my_etl").first.wait_for()


def test_a_newer_server_under_an_open_page_asks_for_a_reload(proxied: Page, proxy: Proxy) -> None:
    proxied.goto(f"{proxy.url}/ui/runs")
    proxied.locator(".liveness.is-live").wait_for()
    proxy.rules["/api/v1/session"] = edited(f'"{__version__}"'.encode(), b'"99.0"')
    proxy.rules["/api/v1/events"] = answered(503, b"{}")
    proxy.drop("/api/v1/events")
    proxied.locator(".liveness.is-lost").wait_for()
    del proxy.rules["/api/v1/events"]
    banner = proxied.get_by_role("status").filter(has_text="The server is newer than this page")
    banner.get_by_role("button", name="Reload").wait_for()


def test_a_page_outlives_a_restart_of_its_server(seeded_folder: Path, tmp_path: Path, new_page: NewPage) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(seeded_folder, folder)
    first = UiServer(folder, environment())
    try:
        page = new_page(first, hears=LOUD)
        page.goto(f"{first.url}/ui/runs/{first.run('my_etl', 'failed')}")
        page.locator(".liveness.is-live").wait_for()
    finally:
        first.close()
    page.locator(".liveness.is-lost").wait_for()
    retry = page.get_by_role("button", name="Retry failed").first
    assert retry.get_attribute("aria-disabled") == "true"
    assert retry.get_attribute("title") == "The server does not answer at the moment."
    assert page.locator(".run-head").is_visible()
    second = UiServer(folder, environment(), port=first.port)
    try:
        page.locator(".liveness.is-live").wait_for()
        retry.click()
        page.get_by_text("round 2").wait_for()
    finally:
        second.close()


def test_a_revoked_token_signs_the_page_out_and_keeps_what_was_typed(live_server: UiServer, new_page: NewPage) -> None:
    given = live_server.post("/tokens", {"name": "guest", "role": "operator"})
    page = new_page(live_server, token=given["token"], hears=("401", *LOUD))
    page.goto(f"{live_server.url}/ui/workflows/my_etl?dialog=run")
    page.get_by_label("limit").fill("77")
    live_server.call("DELETE", f"/tokens/{given['id']}")
    page.get_by_role("dialog", name="Signed out").wait_for()
    other = live_server.post("/tokens", {"name": "guest again", "role": "operator"})
    page.get_by_label("Token").fill(other["token"])
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Signed out").wait_for(state="detached")
    assert page.get_by_label("limit").input_value() == "77"
