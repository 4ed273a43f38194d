"""Home, runs, the palette, workflows and one workflow: what a person finds there and does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.ui.conftest import NewPage, UiServer
from tests.ui.test_pages import settled

if TYPE_CHECKING:
    from playwright.sync_api import Page

Axe = Callable[["Page"], list[str]]

UNKNOWN = "zzzzzzzzzzzz"
VIEWS = {
    "home with all workflows": "?all=1",
    "failed runs": "runs?status=failed",
    "graph": "workflows/my_etl?view=graph&task=load",
    "durations": "workflows/my_etl?view=durations",
    "schedule": "workflows/reports?view=schedule",
    "backfill": "workflows/reports?view=backfill&first=2026-11-02&last=2026-11-06",
    "versions": "workflows/my_etl?view=versions",
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_accessible(server: UiServer, new_page: NewPage, axe: Axe, name: str, theme: Any) -> None:
    page = new_page(server, color_scheme=theme)
    page.goto(f"{server.url}/ui/{VIEWS[name]}")
    settled(page)
    assert axe(page) == []


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_fits_a_phone(server: UiServer, new_page: NewPage, name: str) -> None:
    page = new_page(server, viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    page.goto(f"{server.url}/ui/{VIEWS[name]}")
    settled(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 375


def test_failures_with_one_message_are_one_line_and_are_retried_together(
    live_server: UiServer, new_page: NewPage
) -> None:
    page = new_page(live_server)
    row = page.locator(".need:not(.need-run)", has_text="HTTPError: 503")
    row.wait_for()
    row.get_by_role("button", name="2 runs").click()
    assert page.locator(".need-run").count() == 2
    row.get_by_role("link", name="Compare").wait_for()
    row.get_by_role("button", name="Retry 2").click()
    dialog = page.get_by_role("dialog")
    assert "ork retry $run" in dialog.locator("code").inner_text()
    dialog.get_by_role("button", name="Retry 2").click()
    page.get_by_text("Retrying 2 runs").wait_for()
    runs = live_server.get("/runs?workflow=my_etl")["runs"]
    assert sorted(run["round"] for run in runs) == [1, 1, 1, 2, 2]


def test_an_approval_is_given_at_home(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Comment").fill("looks right")
    dialog.get_by_role("button", name="Approve").click()
    page.get_by_role("button", name="Approve").wait_for(state="detached")
    page.get_by_text("Running now").wait_for(state="detached")
    assert live_server.run("release", "success")


def test_what_was_seen_is_not_new(server: UiServer, page: Page) -> None:
    page.locator(".need", has_text="billing").wait_for()
    page.get_by_role("button", name="Mark as seen").click()
    page.locator(".need", has_text="billing").wait_for(state="detached")
    page.get_by_role("button", name="24 h").click()
    page.locator(".need", has_text="billing").wait_for()
    assert page.url.endswith("?since=1d")


def test_runs_are_found_by_filters_that_are_in_the_address(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/runs")
    rows = page.locator(".table-row")
    page.get_by_role("button", name="failed").click()
    page.get_by_label("Workflow", exact=True).select_option("my_etl")
    page.get_by_text("2 runs").wait_for()
    assert rows.count() == 2
    page.get_by_label("Param, as name=value").fill("broken=[7]")
    page.get_by_text("1 run", exact=True).wait_for()
    command = page.locator(".page-foot code").inner_text()
    assert command == "$ ork runs --workflow my_etl --status failed -p 'broken=[7]'"
    page.reload()
    page.get_by_text("1 run", exact=True).wait_for()
    page.get_by_label("Trigger").select_option("schedule")
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_text("more than 1,000 runs").wait_for()


def test_older_runs_are_added_without_doubles(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/runs")
    page.get_by_text("The first 100 runs").wait_for()
    page.get_by_role("button", name="Show more").click()
    page.get_by_text("The first 200 runs").wait_for()
    assert page.get_by_role("grid").get_attribute("aria-rowcount") == "1001"
    page.get_by_role("row").nth(1).focus()
    page.keyboard.press("End")
    page.locator('[aria-rowindex="201"]:focus').wait_for()


def test_many_runs_are_commanded_with_an_answer_for_each(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/runs?workflow=my_etl")
    page.get_by_label("All rows").click()
    bar = page.get_by_role("region", name="Picked runs")
    bar.get_by_text("5 runs picked").wait_for()
    assert bar.get_by_role("button", name="Cancel").get_attribute("title") == "All of these runs have ended."
    # One of them is removed meanwhile, as retention would do.
    page.route(
        "**/run-commands", lambda route: route.continue_(post_data=with_unknown_run(route.request.post_data_json))
    )
    page.keyboard.press("R")
    page.get_by_role("dialog").get_by_role("button", name="Retry failed 2").click()
    page.get_by_role("dialog", name=re.compile("1 of 2 runs refused")).wait_for()
    assert page.locator(".bulk-results li").count() == 2
    page.get_by_text(f"no run `{UNKNOWN}`").wait_for()


def with_unknown_run(body: dict[str, Any]) -> str:
    return json.dumps({**body, "runs": [UNKNOWN, *body["runs"][1:]]})


def test_the_palette_finds_tasks_runs_and_codes(server: UiServer, page: Page) -> None:
    find = page.get_by_role("combobox")
    page.keyboard.press("Control+k")
    find.fill("ork201")
    page.get_by_role("option", name=re.compile("ORK201")).wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="ORK201").get_by_text("Wrong").wait_for()
    page.get_by_role("button", name="Back").click()
    find.fill("my_etl/publ")
    page.get_by_role("option", name="publish").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"workflows/my_etl\?view=graph&task=publish"))
    page.keyboard.press("Control+k")
    find.fill(server.run("billing", "failed")[:7])
    page.get_by_role("option", name=re.compile("billing")).wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/ui/runs/" + server.run("billing", "failed")))


def test_the_grid_says_how_many_instances_failed(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/workflows/my_etl")
    cell = page.get_by_role("link", name=re.compile(r"load, .*: 4 of 24 instances failed"))
    assert cell.inner_text() == "4"
    page.keyboard.press("2")
    page.get_by_role("grid", name="Tasks by layer").get_by_text("publish").first.click()
    assert page.get_by_role("complementary").get_by_role("heading").inner_text() == "publish"
    page.go_back()
    page.get_by_role("complementary").wait_for(state="detached")


def test_versions_show_what_changed(live_server: UiServer, new_page: NewPage) -> None:
    file = live_server.folder / "my_etl.yaml"
    file.write_text(file.read_text().replace("concurrency: 8", "concurrency: 9"))
    live_server.ork("deploy", "my_etl.yaml")
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/workflows/my_etl?view=versions")
    row = page.get_by_role("row", name=re.compile("load.concurrency"))
    row.wait_for()
    assert row.locator("td").all_inner_texts() == ["8", "9"]


def test_a_schedule_is_turned_off_and_on(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/workflows")
    row = page.get_by_role("row", name=re.compile("reports"))
    row.get_by_text("every day at 02:00 Berlin").wait_for()
    row.click(position={"x": 20, "y": 20})
    page.locator(".page-actions").get_by_role("button", name="Turn off").click()
    page.get_by_role("dialog").get_by_role("button", name="Turn off").click()
    page.locator(".timing", has_text="off").wait_for()
    assert live_server.get("/workflows/reports")["enabled"] is False
    page.locator(".page-actions").get_by_role("button", name="Turn on").click()
    page.locator(".timing .is-on").wait_for()


def test_a_viewer_sees_why_buttons_do_not_work(server: UiServer, new_page: NewPage) -> None:
    token = server.post("/tokens", {"name": "looker", "role": "viewer"})["token"]
    page = new_page(server, token=token)
    retry = page.locator(".need", has_text="billing").get_by_role("button", name="Retry")
    assert retry.get_attribute("title") == "This needs the role operator."
    retry.click(force=True)
    assert page.get_by_role("dialog").count() == 0
    page.goto(f"{server.url}/ui/workflows/reports?view=backfill")
    page.get_by_role("group", name=re.compile("Days")).wait_for()
