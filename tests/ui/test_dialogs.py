"""Dialogs that start runs: a form by the types of the params, and backfills with a preview."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.ui.conftest import NewPage, UiServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

Axe = Callable[["Page"], list[str]]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["workflows/my_etl?dialog=run", "workflows/reports?dialog=backfill", "?dialog=run"])
def test_a_dialog_is_accessible(server: UiServer, new_page: NewPage, axe: Axe, path: str, theme: Any) -> None:
    page = new_page(server, color_scheme=theme)
    page.goto(f"{server.url}/ui/{path}")
    page.get_by_role("dialog").locator("input, select").first.wait_for()
    assert axe(page) == []


def test_a_run_is_started_with_typed_params_by_keyboard(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/workflows/my_etl?dialog=run")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("4 tasks of version").wait_for()
    assert dialog.get_by_label("day").evaluate("field => field === document.activeElement")
    dialog.get_by_label("region").select_option("us")
    dialog.get_by_label("broken").fill("[1,")
    dialog.get_by_text("This is not JSON").wait_for()
    dialog.get_by_label("broken").fill("[7]")
    assert dialog.get_by_text("This is not JSON").count() == 0
    command = dialog.locator(".dialog-foot code").inner_text()
    assert command == "$ ork trigger my_etl -p region=us -p 'broken=[7]'"
    dialog.get_by_label("limit").fill("12")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/ui/runs/\w{12}$"))
    found = live_server.get(f"/runs/{page.url.rsplit('/', 1)[1]}/summary")["run"]
    assert {key: found["params"][key] for key in ("region", "broken", "limit")} == {
        "region": "us", "broken": [7], "limit": 12,
    }  # fmt: skip


def test_what_the_server_refuses_stands_at_its_field(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server, hears=("status of 400", "status of 422"))
    page.goto(f"{live_server.url}/ui/workflows/my_etl?dialog=run")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("broken").fill('["x"]')
    dialog.get_by_role("button", name="Start run").click()
    field = dialog.get_by_label("broken")
    page.wait_for_function("field => field.getAttribute('aria-invalid') === 'true'", arg=field.element_handle())
    assert "is not list[int]" in dialog.locator(".field-error").inner_text()


def test_a_run_like_an_earlier_one_starts_with_its_params(server: UiServer, page: Page) -> None:
    run = server.run("my_etl", "failed")
    page.goto(f"{server.url}/ui/workflows/my_etl?dialog=run&like={run}")
    field = page.get_by_role("dialog").get_by_label("broken")
    field.wait_for()
    assert field.input_value() == "[3,4,11,17]"


def test_a_backfill_is_created_after_its_preview_only(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/workflows/reports?dialog=backfill&first=2026-03-01&last=2026-03-03")
    dialog = page.get_by_role("dialog")
    create = dialog.get_by_role("button", name=re.compile("^Create"))
    assert create.get_attribute("aria-disabled") == "true"
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("3 new runs").wait_for()
    # 02:00 in Berlin is 01:00 UTC in winter.
    assert dialog.get_by_role("row").nth(1).inner_text().split() == [
        "2026-03-01",
        "02:00",
        "2026-03-01",
        "01:00",
        "new",
    ]
    dialog.get_by_label("Last day").fill("2026-03-02")
    page.wait_for_function("button => button.getAttribute('aria-disabled') === 'true'", arg=create.element_handle())
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Create 2 runs").click()
    page.wait_for_url(re.compile(r"/ui/workflows/reports$"))
    page.goto(f"{live_server.url}/ui/workflows/reports?dialog=backfill&first=2026-03-01&last=2026-03-03")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("1 new run, 2 times with a run already").or_(dialog.get_by_text("1 new run")).first.wait_for()
    assert dialog.locator(".plan a").count() == 2


def test_a_workflow_without_a_schedule_has_no_backfill(server: UiServer, page: Page) -> None:
    page.goto(f"{server.url}/ui/workflows/billing?dialog=backfill")
    page.get_by_text("This workflow has no schedule").wait_for()
