"""Schedules, system, access and approvals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ui.conftest import NewPage, UiServer, environment
from tests.ui.test_pages import settled

if TYPE_CHECKING:
    from playwright.sync_api import Page

Axe = Callable[["Page"], list[str]]

ASKING = {
    "name": "asking",
    "tasks": {"ok": {"approval": {"message": "Send 48 invoices?", "timeout": "2d", "not_by": "starter"}}},
}
VIEWS = ("schedules?view=week", "schedules?view=month", "schedules?view=list", "access?view=audit", "approvals")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", VIEWS)
def test_a_view_is_accessible(server: UiServer, new_page: NewPage, axe: Axe, path: str, theme: Any) -> None:
    page = new_page(server, color_scheme=theme)
    page.goto(f"{server.url}/ui/{path}")
    settled(page)
    assert axe(page) == []


@pytest.mark.parametrize(
    "path", [*VIEWS, "schedules", "workflows/reports?dialog=backfill", "workflows/my_etl?dialog=run"]
)
def test_a_view_fits_a_phone(server: UiServer, new_page: NewPage, path: str) -> None:
    page = new_page(server, viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    page.goto(f"{server.url}/ui/{path}")
    settled(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 375


# ── schedules ────────────────────────────────────────────────────────────────────────────────────


def test_a_clock_change_is_explained_in_words(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/schedules?view=week&from=2027-03-22")
    page.get_by_role("heading", name="Notes").wait_for()
    note = page.locator(".list li", has_text="reports").inner_text()
    assert "2027-03-28" in note
    assert "Europe/Berlin" in note
    # It fires at 03:00 on that day, at 02:00 on the others.
    cells = page.get_by_role("row", name=re.compile("^reports")).get_by_role("link", name=re.compile("at 0"))
    assert [text.strip() for text in cells.all_inner_texts()] == ["02:00"] * 6 + ["03:00"]


def test_a_day_of_the_calendar_leads_to_its_list(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/schedules?view=month&from=2028-05-01")
    page.get_by_role("link", name=re.compile("reports, Tue, 9 May 2028: 1 planned")).click()
    page.wait_for_url(re.compile("view=list.*day=2028-05-09|day=2028-05-09.*view=list"))
    settled(page)
    assert page.get_by_role("row").nth(1).inner_text().split()[:2] == ["2028-05-09", "02:00"]
    page.keyboard.press("1")
    page.wait_for_url(re.compile("view=week"))


# ── system ───────────────────────────────────────────────────────────────────────────────────────


def test_the_installation_is_paused_with_a_reason_and_resumed(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/system")
    page.get_by_role("button", name="Pause the installation").click()
    page.get_by_label("Reason").fill("database upgrade")
    dialog = page.get_by_role("dialog")
    assert "ork scheduler pause --all --reason 'database upgrade'" in dialog.inner_text()
    page.keyboard.press("Enter")
    page.get_by_text("The installation is paused").first.wait_for()
    (control,) = live_server.get("/controls")["controls"]
    assert (control["target"], control["mode"], control["reason"]) == ("*", "paused", "database upgrade")
    page.get_by_role("button", name="Resume the installation").click()
    page.get_by_role("button", name="Pause the installation").wait_for()
    assert live_server.get("/controls")["controls"] == []


@pytest.fixture
def broken_location(tmp_path: Path) -> Iterator[UiServer]:
    """A server whose location has a workflow with a mistake."""
    folder = tmp_path / "shop"
    (folder / "flows").mkdir(parents=True)
    (folder / "ork.yaml").write_text("pools: {api: {slots: 4, rate: 100/m}}\n")
    (folder / "flows" / "d.yaml").write_text("name: d\ntasks:\n  b: {command: 'true', depends_on: [aa]}\n")
    (folder / "locations.yaml").write_text("- {name: flows, path: flows}\n")
    server = UiServer(folder, environment())
    yield server
    server.close()


def test_errors_of_a_location_stand_at_their_place_with_an_explanation(
    broken_location: UiServer, new_page: NewPage, axe: Axe
) -> None:
    page = new_page(broken_location)
    page.goto(f"{broken_location.url}/ui/system")
    error = page.locator(".placed")
    error.wait_for()
    assert re.search(r"d\.yaml:3:\d+", error.inner_text())
    assert "100/60s" in page.get_by_role("row", name=re.compile("pool api")).inner_text()
    error.get_by_text("ORK201").click()
    page.locator(".explanation").wait_for()
    assert axe(page) == []


# ── access ───────────────────────────────────────────────────────────────────────────────────────


def test_a_token_is_shown_once_works_and_is_revoked_after_a_question(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/access")
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("ci")
    page.get_by_label("Role").select_option("operator")
    page.get_by_role("dialog").get_by_role("button", name="New token").click()
    secret = page.locator(".secret code").inner_text()
    assert live_server.call("GET", "/session", token=secret)["role"] == "operator"
    page.get_by_role("button", name="I have copied it").click()
    assert secret not in page.content()
    row = page.get_by_role("row", name=re.compile("^ci"))
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    row.wait_for(state="detached")
    assert next(each for each in live_server.get("/tokens")["tokens"] if each["name"] == "ci")["revoked_at"] is not None


def test_a_viewer_reads_which_role_is_missing(live_server: UiServer, new_page: NewPage) -> None:
    token = live_server.post("/tokens", {"name": "looker", "role": "viewer"})["token"]
    page = new_page(live_server, token=token)
    page.goto(f"{live_server.url}/ui/access")
    page.get_by_text("This page needs the role admin").wait_for()
    page.goto(f"{live_server.url}/ui/system")
    pause = page.get_by_role("button", name="Pause the installation")
    assert (pause.get_attribute("aria-disabled"), pause.get_attribute("title")) == (
        "true",
        "This needs the role admin.",
    )
    page.goto(f"{live_server.url}/ui/workflows/my_etl?dialog=run")
    assert page.get_by_role("button", name="Start run").get_attribute("title") == "This needs the role operator."


def test_the_audit_is_filtered(live_server: UiServer, new_page: NewPage) -> None:
    live_server.post("/tokens", {"name": "looker", "role": "viewer"})
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/access?view=audit&q=looker")
    page.get_by_role("row", name=re.compile("token.create")).click()
    page.get_by_role("complementary", name="token.create").wait_for()
    assert page.get_by_role("row").count() == 2


# ── approvals ────────────────────────────────────────────────────────────────────────────────────


def test_an_approval_is_given_with_a_comment_but_not_by_the_starter(live_server: UiServer, new_page: NewPage) -> None:
    live_server.post("/workflows", ASKING)
    token = live_server.post("/tokens", {"name": "ann", "role": "operator"})["token"]
    run = live_server.post("/workflows/asking/runs", token=token)["id"]
    starter = new_page(live_server, token=token)
    starter.goto(f"{live_server.url}/ui/approvals")
    own = starter.get_by_role("listitem").filter(has_text="Send 48 invoices?")
    own.get_by_text("you started it, somebody else must approve").wait_for()
    assert own.get_by_role("button", name="Approve").get_attribute("aria-disabled") == "true"
    other = new_page(live_server)
    other.goto(f"{live_server.url}/ui/approvals")
    row = other.get_by_role("listitem").filter(has_text="Send 48 invoices?")
    row.get_by_role("button", name="Approve").click()
    other.get_by_label("Comment").fill("numbers look right")
    other.get_by_role("dialog").get_by_role("button", name="Approve").click()
    row.wait_for(state="detached")
    (task,) = live_server.get(f"/runs/{run}/tasks")["tasks"]
    assert (task["status"], task["output"]["comment"]) == ("success", "numbers look right")
