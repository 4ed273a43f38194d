"""Every page in both themes: axe finds nothing, nothing is written to the console, nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.ui.conftest import NewPage, UiServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

Axe = Callable[["Page"], list[str]]

PAGES = {
    "home": "",
    "runs": "runs",
    "run": "runs/{failed}",
    "graph": "runs/{failed}?view=graph",
    "table": "runs/{failed}?view=table",
    "deep": "runs/{deep}",
    "wide": "runs/{wide}",
    "task": "runs/{failed}/tasks/load/3/1",
    "compare": "runs/{good}/compare/{failed}",
    "workflows": "workflows",
    "workflow": "workflows/my_etl",
    "schedules": "schedules",
    "system": "system",
    "access": "access",
    "approvals": "approvals",
    "search": "runs/{failed}?view=search&q=503",
}


@pytest.fixture(scope="module")
def names(server: UiServer) -> dict[str, str]:
    return {**server.large, "failed": server.run("my_etl", "failed"), "good": server.run("my_etl", "success")}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_quiet(
    server: UiServer, new_page: NewPage, axe: Axe, names: dict[str, str], name: str, theme: Any
) -> None:
    page = new_page(server, color_scheme=theme)
    page.goto(f"{server.url}/ui/{PAGES[name].format(**names)}")
    settled(page)
    assert axe(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(server: UiServer, new_page: NewPage, names: dict[str, str], name: str) -> None:
    page = new_page(server, viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    page.goto(f"{server.url}/ui/{PAGES[name].format(**names)}")
    settled(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 375


def settled(page: Page) -> None:
    """Waits until the page shows its data: it has a heading and is not busy."""
    page.locator("main h1").first.wait_for()
    page.wait_for_function("() => !document.querySelector('main [aria-busy=true]')")


@pytest.mark.parametrize("path", ["runs/{hostile}", "runs/{hostile}/tasks/a/-/1", "workflows/hostile", "runs"])
def test_text_of_users_stays_text(server: UiServer, new_page: NewPage, path: str) -> None:
    page = new_page(server)
    page.goto(f"{server.url}/ui/" + path.format(hostile=server.run("hostile", "failed")))
    settled(page)
    assert page.evaluate("() => globalThis.pwned") is None
    assert page.locator("img[src=x]").count() == 0


def test_an_address_without_a_page_says_so(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/no/such/page")
    page.get_by_text(re.compile("no .*page", re.I)).first.wait_for()
