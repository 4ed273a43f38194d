"""Journeys without a mouse: find a failure, read its log, retry it, cancel a run, look around."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.ui.conftest import NewPage, UiServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOCUSED = "() => `${document.activeElement.textContent} ${document.activeElement.getAttribute('aria-label') ?? ''}`"
MOST_TABS = 80


def tab_to(page: Page, name: str) -> None:
    """Presses Tab until something with this name has the focus."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if re.search(name, page.evaluate(FOCUSED)):
            return
    raise AssertionError(f"{name!r} cannot be reached by Tab")


def test_a_failure_is_found_read_and_retried_by_keyboard(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    run = live_server.run("my_etl", "failed")
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.get_by_role("grid").get_by_text(run[:6]).first.wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("combobox").wait_for()
    page.keyboard.type(run)
    page.get_by_role("option").filter(has_text=run[:6]).first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/ui/runs/{run}"))
    page.locator(".timeline-canvas").wait_for()
    page.get_by_role("group", name="Failures").wait_for()
    page.keyboard.press("n")
    page.wait_for_url(re.compile(r"task=load&index=3"))
    page.keyboard.press("l")
    page.get_by_text("503 Service Unavailable").first.wait_for()
    page.go_back()  # Alt and the left arrow belong to the browser's window, which there is none of here
    page.wait_for_url(re.compile(f"/ui/runs/{run}"))
    page.get_by_role("group", name="Failures").wait_for()
    page.keyboard.press("R")
    page.get_by_text("round 2").wait_for()


def test_a_run_is_cancelled_by_keyboard(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    run = live_server.post("/workflows/nightly/runs")["id"]
    page.goto(f"{live_server.url}/ui/runs/{run}")
    page.locator("h1").get_by_text("running").wait_for()
    page.keyboard.press("x")
    page.get_by_role("dialog").get_by_text(f"ork cancel {run[:6]}").wait_for()
    tab_to(page, "^Cancel ")
    page.keyboard.press("Enter")
    page.locator("h1").get_by_text("cancelled").wait_for()


def test_an_approval_is_given_at_home_by_keyboard(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.get_by_role("button", name="Approve").wait_for()
    tab_to(page, "^Approve ")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_label("Comment").wait_for()
    page.keyboard.type("looks right")  # the comment has the focus
    assert "--comment 'looks right'" in page.get_by_role("dialog").locator("code").inner_text()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Approve").wait_for(state="detached")
    assert until_ended(live_server, page, "release") == "success"
    run = live_server.run("release", "success")
    assert "looks right" in str(live_server.get(f"/runs/{run}/tasks?name=approve")["tasks"])


def test_a_question_is_left_by_keyboard(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.get_by_role("button", name="Reject").wait_for()
    tab_to(page, "^Reject ")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert "Reject" in page.evaluate(FOCUSED)
    assert live_server.get("/runs?workflow=release&limit=1")["runs"][0]["status"] == "running"


def until_ended(server: UiServer, page: Page, workflow: str) -> str:
    """The status of the newest run, when it has ended."""
    while (run := server.get(f"/runs?workflow={workflow}&limit=1")["runs"][0])["finished_at"] is None:
        page.wait_for_timeout(200)
    return str(run["status"])


def test_every_page_begins_with_a_way_to_its_content(server: UiServer, page: Page) -> None:
    for path in ("workflows/my_etl", "schedules", "system", "access", "approvals", "runs?status=failed"):
        page.goto(f"{server.url}/ui/{path}")
        page.locator("main h1").first.wait_for()
        page.wait_for_function("() => !document.querySelector('main [aria-busy=true]')")
        page.keyboard.press("Tab")
        assert "To the content" in page.evaluate(FOCUSED), path
        page.keyboard.press("Enter")
        assert page.evaluate("() => document.activeElement.id") == "main", path
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.closest('main') !== null"), path
        outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineWidth")
        assert float(outline.removesuffix("px")) >= 2, path
