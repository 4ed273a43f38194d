"""Single sign-on in a real browser, at a real provider: Dex."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests import dex
from tests.ui.conftest import SECONDS, UiServer, environment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    why = dex.missing()
    if why is not None:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("shop")
    with socket.create_server(("127.0.0.1", 0)) as free:
        provider = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "ork.yaml").write_text((dex.EXAMPLE / "ork.yaml").read_text().replace(dex.PROVIDER, provider))
    running = UiServer(folder, {**environment(), "ORK_OIDC_CLIENT_SECRET": dex.SECRET})
    try:
        with dex.dex(folder, provider, running.url.partition("://")[2]):
            yield running
    finally:
        running.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(1000 * SECONDS)
    yield context.new_page()
    context.close()


def with_password(page: Page, email: str) -> None:
    """What Dex asks a person."""
    page.get_by_role("link", name="Email").or_(page.get_by_role("button", name="Email")).first.click()
    page.locator("input[name=login]").fill(email)
    page.locator("input[name=password]").fill(dex.PASSWORD)
    page.locator("[type=submit]").click()


def test_somebody_with_a_group_signs_in_returns_to_the_page_and_signs_out(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/schedules?x=1#L3-L5")
    page.get_by_role("link", name="Sign in with Dex").click()
    page.get_by_text("Log in with Example").click()
    page.locator(".user").wait_for()
    assert page.locator(".user").inner_text() == f"{dex.WITH_GROUP} (admin)"
    assert page.url == f"{server.url}/ui/schedules?x=1#L3-L5"
    rows: list[dict[str, Any]] = [each for each in server.get("/tokens")["tokens"] if each["name"] == dex.WITH_GROUP]
    assert [(each["role"], each["revoked_at"]) for each in rows] == [("admin", None)]
    trail = {each["action"]: each for each in server.get("/audit")["entries"] if each["by"] == dex.WITH_GROUP}
    assert trail.keys() == {"sign_in", "session.create"}
    detail = trail["sign_in"]["detail"]
    assert (detail if isinstance(detail, dict) else json.loads(detail))["email"] == dex.WITH_GROUP
    page.locator(".user").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign in with Dex").wait_for()
    (row,) = [each for each in server.get("/tokens")["tokens"] if each["name"] == dex.WITH_GROUP]
    assert row["revoked_at"] is not None


def test_an_ended_session_leaves_the_page_as_it_is(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/runs")
    page.get_by_role("link", name="Sign in with Dex").click()
    with_password(page, dex.BY_DOMAIN)
    page.locator(".user").wait_for()
    assert page.locator(".user").inner_text() == f"{dex.BY_DOMAIN} (viewer)"
    (row,) = [each for each in server.get("/tokens")["tokens"] if each["name"] == dex.BY_DOMAIN]
    server.call("DELETE", f"/tokens/{row['id']}")
    page.get_by_role("navigation").get_by_role("link", name="Workflows").click()
    page.get_by_text("Your session has ended").wait_for()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in with Dex").click()
    with_password(opened.value, dex.BY_DOMAIN)
    opened.value.locator(".user").wait_for()
    page.get_by_text("Your session has ended").wait_for(state="detached")
    assert page.url == f"{server.url}/ui/workflows"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_somebody_without_a_role_reads_why(
    server: UiServer, page: Page, axe: Callable[[Page], list[str]], theme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=theme)
    wanted = f"{server.url}/ui/runs?status=failed#L3"
    page.goto(wanted)
    page.get_by_role("link", name="Sign in with Dex").wait_for()
    assert axe(page) == []
    page.get_by_role("link", name="Sign in with Dex").click()
    with_password(page, dex.WITHOUT_ROLE)
    page.get_by_role("heading", name="You have no role in Ork").wait_for()
    assert f"{dex.WITHOUT_ROLE} has signed in at Dex" in page.locator("main").inner_text()
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.sign-in')).borderRadius") != "0px"
    )  # it has its style
    assert axe(page) == []
    page.get_by_role("link", name="Sign in with a token").click()
    page.get_by_label("Or paste a token").fill(server.token)
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Runs").wait_for()
    assert page.url == wanted  # what the person came for
