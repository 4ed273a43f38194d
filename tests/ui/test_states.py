"""Every page in every state that data can be in: each says what it is, and breaks no rule of accessibility."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ui.conftest import NewPage, UiServer, environment

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

Axe = Callable[["Page"], list[str]]
THEMES = ("light", "dark")
LOUD = ("Failed to load resource", "net::ERR")
PAGES = (
    "", "runs", "runs/{run}", "runs/{run}?view=graph", "runs/{run}/tasks/load/3/1", "runs/{run}/tasks/load/3/1/log",
    "runs/{run}/compare/{run}", "workflows", "workflows/my_etl", "schedules", "system", "access", "approvals",
)  # fmt: skip
STATES = ("loading", "error", "no permission", "gone")
DETAILS = {
    "error": (500, "ORK500", "It is broken."),
    "no permission": (403, "ORK403", "this needs the role admin"),
    "gone": (404, "ORK404", "no run `x`"),
}
EMPTY = {
    "": "No workflow is deployed yet",
    "runs": "ork run",
    "workflows": "ork deploy",
    "schedules": "schedule",
    "approvals": "wait",
}
IS_SETTLED = "() => document.querySelector('main h1') && !document.querySelector('main [aria-busy=true]')"


def in_state(page: Page, state: str) -> None:
    """From now on the API answers reads like this; who is signed in is answered by the server."""

    def answer(route: Route) -> None:
        if route.request.url.endswith("/session"):
            route.continue_()
            return
        if state == "loading":
            return  # there is no answer
        status, code, detail = DETAILS[state]
        body = {"type": "about:blank", "title": f"Test of {state}", "status": status, "code": code, "detail": detail}
        route.fulfill(status=status, content_type="application/problem+json", body=json.dumps({**body, "hint": None}))

    page.route("**/api/v1/**", answer)


def shows_state(page: Page, state: str) -> None:
    main = page.get_by_role("main")
    if state == "loading":
        main.get_by_text("Waiting for").first.wait_for()
        assert main.locator("[aria-busy=true]").count() > 0
        return
    alert = main.get_by_role("alert").first
    alert.wait_for()
    text = alert.inner_text()
    assert "Traceback" not in text
    if state == "no permission":
        assert "with the role admin" in text  # who one is
        assert alert.get_by_role("button", name="Try again").count() == 0
    if state == "error":
        assert DETAILS[state][2] in text
        alert.get_by_role("button", name="Try again").wait_for()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["one-theme", "both-themes"])
def test_every_page_has_the_state(server: UiServer, new_page: NewPage, axe: Axe, state: str, every: bool) -> None:
    page = new_page(server, hears=LOUD)
    run = server.run("my_etl", "failed")
    in_state(page, state)
    found = {}
    for place, (path, theme) in enumerate(product(PAGES, THEMES)):
        number = place // 2 + STATES.index(state)
        if not every and THEMES[number % 2] != theme:
            continue
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.goto(f"{server.url}/ui/{path.format(run=run)}")
        shows_state(page, state)
        broken = axe(page)
        page.set_viewport_size({"width": 375, "height": 740})
        if page.evaluate("() => document.documentElement.scrollWidth") > 375:
            broken.append("wider than a phone")
        page.set_viewport_size({"width": 1280, "height": 800})
        if broken:
            found[path, theme] = broken
    assert found == {}


# Pages that read several things: what fails, what is said about it, and what is shown all the same.
PARTIAL = (
    ("", "approvals", "Without approvals: It is broken.", "Last 24 hours"),
    ("", "calendar", "Without scheduled times: It is broken.", "HTTPError: 503"),
    ("workflows", "schedules", "Without schedules: It is broken.", "my_etl"),
    ("workflows/my_etl", "runs", "Without the last 30 days: It is broken.", "publish"),
    ("runs/{waiting}", "runs/{waiting}/why", "Without the reasons why it waits: It is broken.", "by hand"),
)


def test_what_could_not_be_read_does_not_look_like_nothing(server: UiServer, new_page: NewPage, axe: Axe) -> None:
    page = new_page(server, hears=LOUD)
    waiting = server.get("/runs?workflow=release&limit=1")["runs"][0]["id"]
    body = json.dumps({"type": "about:blank", "title": "Broken", "status": 500, "detail": DETAILS["error"][2]})
    for place, (path, source, said, shown) in enumerate(PARTIAL):
        failing = re.compile(rf"/api/v1/{source.format(waiting=waiting)}(\?|$)")
        page.emulate_media(color_scheme=THEMES[place % 2])  # type: ignore[arg-type]
        page.route(failing, lambda route: route.fulfill(status=500, content_type="application/problem+json", body=body))
        page.goto(f"{server.url}/ui/{path.format(waiting=waiting)}")
        notice = page.get_by_role("main").get_by_role("status").filter(has_text=said)
        notice.wait_for()
        page.get_by_role("main").get_by_text(shown).first.wait_for()
        assert page.get_by_text("Nothing needs you").count() == 0
        assert axe(page) == [], source
        page.unroute(failing)
        notice.get_by_role("button", name="Try again").click()
        notice.wait_for(state="detached")


@pytest.fixture(scope="module")
def empty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    folder: Path = tmp_path_factory.mktemp("empty")
    (folder / "ork.yaml").write_text("")
    running = UiServer(folder, environment(), "--no-scheduler")
    yield running
    running.close()


def test_an_empty_page_says_what_to_do(empty_server: UiServer, new_page: NewPage, axe: Axe) -> None:
    page = new_page(empty_server)
    for place, (path, text) in enumerate(EMPTY.items()):
        page.emulate_media(color_scheme=THEMES[place % 2])  # type: ignore[arg-type]
        page.goto(f"{empty_server.url}/ui/{path}")
        page.wait_for_function(IS_SETTLED)
        blank = page.locator("main .blank").first
        blank.wait_for()
        assert re.search(text, blank.inner_text()), path
        assert axe(page) == [], path
