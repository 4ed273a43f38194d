"""The page of a run: failures first, then a timeline, a graph, a table and log search with one selection."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.ui.conftest import NewPage, UiServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

Axe = Callable[["Page"], list[str]]

# A canvas has something on it if one pixel is not transparent.
IS_DRAWN = """(selector) => {
  const canvas = document.querySelector(selector);
  if (!canvas || !canvas.width || !canvas.height) return false;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return copy.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0);
}"""


def show(server: UiServer, page: Page, run: str, query: str = "") -> None:
    page.goto(f"{server.url}/ui/runs/{run}{query}")
    page.locator(".run-head").wait_for()


def drawn(page: Page, selector: str) -> None:
    page.wait_for_function(IS_DRAWN, arg=selector)


def address(page: Page, part: str) -> None:
    page.wait_for_url(re.compile(part))


def test_failures_of_one_kind_are_one_line_at_the_top(server: UiServer, page: Page) -> None:
    show(server, page, server.run("my_etl", "failed"))
    failures = page.get_by_role("group", name="Failures")
    assert failures.locator(".verdict-row").count() == 1
    text = failures.inner_text()
    assert "HTTPError: 503 Service Unavailable from api.example.com, part …" in text
    assert "× 4" in text
    failures.get_by_role("link", name="load[4]").click()
    page.get_by_role("complementary").get_by_text("load[4]").first.wait_for()
    address(page, r"task=load&index=4")


def test_many_failures_are_counted_completely(server: UiServer, page: Page) -> None:
    show(server, page, server.large["wide"])
    page.get_by_role("link", name=re.compile(r"^× 20$")).wait_for()


@pytest.mark.parametrize("view", ["timeline", "graph", "table", "search&q=503"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_is_accessible(server: UiServer, new_page: NewPage, axe: Axe, view: str, theme: Any) -> None:
    page = new_page(server, color_scheme=theme)
    show(server, page, server.run("my_etl", "failed"), f"?view={view}&task=load&index=4")
    page.wait_for_function("() => !document.querySelector('main [aria-busy=true]')")
    assert axe(page) == []


def test_keys_lead_from_view_to_view_and_to_each_failure(server: UiServer, page: Page) -> None:
    show(server, page, server.run("my_etl", "failed"))
    drawn(page, ".timeline-canvas")
    page.keyboard.press("n")
    address(page, r"task=load&index=3")
    page.keyboard.press("n")
    address(page, r"task=load&index=4")
    page.keyboard.press("N")
    address(page, r"task=load&index=3")
    page.keyboard.press("Escape")
    page.get_by_role("complementary").wait_for(state="detached")
    page.keyboard.press("3")
    page.get_by_role("grid", name="Tasks").wait_for()
    page.keyboard.press("2")
    page.get_by_role("tree").wait_for()
    page.keyboard.press("4")
    page.locator("input[type=search]:focus").wait_for()  # one can type at once
    page.keyboard.type("503 after")
    page.keyboard.press("Enter")
    page.locator(".hit").first.wait_for()
    page.keyboard.press("Escape")  # keys are shortcuts again
    page.keyboard.press("1")
    drawn(page, ".timeline-canvas")


def test_the_timeline_zooms_opens_fan_outs_and_keeps_both_in_the_address(server: UiServer, page: Page) -> None:
    run = server.run("my_etl", "failed")
    show(server, page, run)
    drawn(page, ".timeline-canvas")
    canvas = page.get_by_role("application", name=re.compile("Timeline of 4 rows"))
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.get_by_role("application", name=re.compile("Timeline of 28 rows")).wait_for()
    page.keyboard.press("w")
    address(page, r"zoom=[\d.]+-[\d.]+")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("complementary").wait_for()
    address(page, r"open=load.*task=load&index=0")
    page.reload()
    page.get_by_role("application", name=re.compile("Timeline of 28 rows")).wait_for()
    address(page, r"zoom=[\d.]+-[\d.]+")


def test_graph_and_tree_have_one_selection(server: UiServer, page: Page) -> None:
    show(server, page, server.run("my_etl", "failed"), "?view=graph")
    drawn(page, ".graph-canvas")
    tree = page.get_by_role("tree", name="Tasks")
    assert [item.get_attribute("aria-level") for item in tree.get_by_role("treeitem").all()] == ["1", "2", "3", "4"]
    tree.get_by_role("treeitem").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    address(page, "task=load")
    assert tree.locator("[aria-selected=true]").inner_text().split()[-2:] == ["load", "×24"]
    page.get_by_role("application", name=re.compile("Graph of 4 tasks")).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    address(page, "task=publish")


def test_a_large_graph_opens_in_focus_with_a_map_of_the_whole(server: UiServer, page: Page) -> None:
    show(server, page, server.large["deep"], "?view=graph")
    drawn(page, ".graph-canvas")
    drawn(page, ".minimap")
    shown = page.get_by_role("application", name=re.compile(r"Graph of \d+ tasks of 4,970")).get_attribute("aria-label")
    assert shown is not None
    assert int(shown.split()[2]) <= 150
    page.get_by_role("button", name="All 4,970").click()
    page.get_by_role("application", name=re.compile(r"Graph of 4970 tasks|Graph of 4,970 tasks")).wait_for()
    drawn(page, ".graph-canvas")
    assert page.evaluate("() => document.querySelectorAll('*').length") < 1500


def test_a_wide_run_has_a_cell_for_each_instance_and_a_table_of_all(server: UiServer, page: Page) -> None:
    show(server, page, server.large["wide"])
    drawn(page, ".mosaic-canvas")
    cells = page.get_by_role("application", name=re.compile("20,000 instances of load, by index"))
    cells.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    address(page, r"task=load&index=1\b")
    page.get_by_label("Order of the cells").select_option("duration")
    address(page, "by=duration")
    page.keyboard.press("Escape")
    show(server, page, server.large["wide"], "?view=table&sort=-ran")
    table = page.get_by_role("grid", name="Tasks")
    table.get_by_role("row").nth(2).wait_for()
    assert table.get_attribute("aria-rowcount") == "20004"
    page.get_by_label("State", exact=True).select_option("failed")
    page.wait_for_function("() => document.querySelector('[role=grid]').getAttribute('aria-rowcount') === '22'")
    page.get_by_label("Find a task").fill("load[1417]")
    page.wait_for_function("() => document.querySelector('[role=grid]').getAttribute('aria-rowcount') === '2'")
    assert page.evaluate("() => document.querySelectorAll('*').length") < 1500


def test_log_search_shows_hits_by_instance_with_links_to_their_lines(server: UiServer, page: Page) -> None:
    run = server.run("my_etl", "failed")
    show(server, page, run, "?view=search")
    page.get_by_label("Text to search for").fill("503 after")
    page.keyboard.press("Enter")
    page.get_by_text("4 lines in 4 logs").wait_for()
    hit = page.locator(".hit").filter(has_text="load[11]")
    link = hit.get_by_role("link", name=re.compile("503 after 30.0s"))
    assert link.get_attribute("href") == f"/ui/runs/{run}/tasks/load/11/1?q=503%20after#L2"
    assert page.locator(".page-foot code").inner_text() == f"$ ork logs {run[:6]} --search '503 after'"


def test_a_waiting_run_is_approved_on_its_page_and_shows_its_end(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    show(live_server, page, live_server.run("release", "running"))
    page.get_by_role("group", name="Why").get_by_text("Publish version 1.4?").wait_for()
    page.get_by_role("button", name="Approve").click()
    page.locator("h1").get_by_text("success").wait_for()
    page.get_by_role("group", name="Why").wait_for(state="detached")
    page.get_by_role("link", name=re.compile("3 success")).wait_for()


def test_failed_tasks_are_retried_by_a_key_and_a_running_run_is_cancelled_after_a_question(
    live_server: UiServer, new_page: NewPage
) -> None:
    page = new_page(live_server)
    show(live_server, page, live_server.run("my_etl", "failed"))
    page.keyboard.press("R")
    page.get_by_text("Retrying", exact=False).first.wait_for()
    page.get_by_text("round 2").wait_for()
    run = live_server.post("/workflows/nightly/runs")["id"]
    show(live_server, page, run)
    page.locator("h1").get_by_text("running").wait_for()
    page.keyboard.press("x")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(f"ork cancel {run[:6]}").wait_for()
    dialog.get_by_role("button", name="Cancel", exact=True).click()
    page.locator("h1").get_by_text("cancelled").wait_for()
