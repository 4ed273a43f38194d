"""Exported pages, opened by a real browser: one file from a disk, and a folder from a plain web server."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ork.bench.pages.server import SECONDS
from tests.ui import seeds
from tests.ui.conftest import Watched, environment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MESSAGE = "503 Service Unavailable from api.example.com"
BROKEN = 3  # an instance that fails in the last run of my_etl
NAMES = ("Home", "Runs", "Workflows", "Schedules", "System")


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Writes nothing."""


@pytest.fixture(scope="module")
def exported(seeded_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    for target in ("pages.html", "pages"):
        seeds.ork(seeded_folder, environment(), "ui", "export", str(folder / target))
    return folder


@pytest.fixture(scope="module")
def folder_url(exported: Path) -> Iterator[str]:
    handler = functools.partial(_Silent, directory=str(exported / "pages"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["file", "folder"])
def address(request: pytest.FixtureRequest, exported: Path) -> str:
    if request.param == "file":
        return (exported / "pages.html").as_uri()
    return f"{request.getfixturevalue('folder_url')}/index.html"


Open = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """`open_page(address)`: in a browser of its own. A console message or a request to elsewhere fails the test."""
    made: list[tuple[Any, Watched]] = []

    def make(address: str, **options: Any) -> Page:
        context = browser.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options)
        context.set_default_timeout(SECONDS * 1000)
        page = context.new_page()
        made.append((context, Watched(page, address.partition("#")[0].rpartition("/")[0])))
        page.goto(address)
        page.get_by_role("navigation", name="Pages").wait_for()
        return page

    yield make
    for context, _ in made:
        context.close()
    assert [text for _, watched in made for text in watched.heard] == []


def failed_run(page: Page) -> str:
    """The address of a run of my_etl that failed, from the list of runs."""
    page.goto(page.url.partition("#")[0] + "#/runs?workflow=my_etl&status=failed")
    link = page.locator("a[href^='#/runs/']").first
    link.wait_for()
    return str(link.get_attribute("href"))


def test_it_shows_runs_and_says_how_old_it_is(address: str, open_page: Open) -> None:
    page = open_page(address)
    page.get_by_text("read only").first.wait_for()
    page.get_by_role("navigation", name="Pages").get_by_text("Runs").click()
    page.get_by_role("heading", name="Runs").wait_for()
    page.locator("a[href^='#/runs/']").first.wait_for()
    assert page.get_by_role("button", name="Retry").count() == 0


def test_a_failed_task_has_its_message_and_its_log(address: str, open_page: Open) -> None:
    page = open_page(address)
    run = failed_run(page)
    page.goto(page.url.partition("#")[0] + run)
    page.get_by_text(MESSAGE).first.wait_for()
    page.goto(f"{page.url.partition('#')[0]}{run}/tasks/load/{BROKEN}/1")
    page.get_by_text(f"{MESSAGE}, part {BROKEN}").first.wait_for()
    page.get_by_text("ERROR 503 after 30.0s").first.wait_for()


def test_a_log_is_searched_by_a_worker(address: str, open_page: Open) -> None:
    page = open_page(address)
    run = failed_run(page)
    started: list[str] = []
    page.on("worker", lambda worker: started.append(worker.url))
    page.goto(f"{page.url.partition('#')[0]}{run}/tasks/load/{BROKEN}/1/log?re=1&q=50[0-9]%20aft.r")
    page.get_by_text("1 of 1 line").first.wait_for()
    assert started
    assert page.get_by_role("button", name="Download").count() == 0


def test_a_failed_run_is_compared_with_the_last_success(address: str, open_page: Open) -> None:
    page = open_page(address)
    page.goto(page.url.partition("#")[0] + failed_run(page))
    page.get_by_role("link", name="Compare").or_(page.get_by_role("button", name="Compare")).first.click()
    page.get_by_role("heading", name="What is different").wait_for()
    page.get_by_text("Swap").click()
    page.get_by_role("heading", name="What is different").wait_for()


def test_a_link_opens_the_same_page_anew(address: str, open_page: Open) -> None:
    run = failed_run(open_page(address))
    page = open_page(f"{address}{run}")
    page.get_by_text(MESSAGE).first.wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_accessible(address: str, open_page: Open, axe: Callable[[Page], list[str]], theme: str) -> None:
    page = open_page(address, color_scheme=theme)
    for name in NAMES:
        page.get_by_role("navigation", name="Pages").get_by_text(name).click()
        page.get_by_role("heading", level=1, name=name).wait_for()
        page.locator(".is-fresh").first.wait_for()
        assert axe(page) == [], name


def test_what_was_not_exported_is_told(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/runs/zzzzzzzzzzzz")
    page.get_by_role("heading", name="Not in this snapshot").wait_for()


def test_a_phone_shows_it_without_sideways_scrolling(address: str, open_page: Open) -> None:
    page = open_page(address, viewport={"width": 375, "height": 700})
    page.goto(page.url.partition("#")[0] + failed_run(page))
    page.get_by_text(MESSAGE).first.wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_text_of_users_stays_text(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/workflows/hostile")
    page.get_by_role("heading", name="hostile").wait_for()
    page.goto(page.url.partition("#")[0] + "#/runs?workflow=hostile")
    page.locator("a[href^='#/runs/']").first.click()
    page.get_by_role("heading", level=1).wait_for()
    assert page.evaluate("() => globalThis.pwned === undefined")


def test_a_folder_that_is_opened_from_a_disk_says_what_it_needs(exported: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((exported / "pages" / "index.html").as_uri())
    page.get_by_text("cannot load these pages from a disk").wait_for()
    page.close()
