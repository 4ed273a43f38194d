"""What pages cost: requests, elements and CPU time, which do not depend on how busy the machine is. `ork bench ui` has the
times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ork.bench.ground import Ground
from ork.bench.pages.browser import floor_seconds, hide, is_drawn, seconds_until
from ork.bench.scale import QUICK
from ork.bench.scenarios.ui import ui
from ork.model.record import replaced
from tests.ui.conftest import NewPage, UiServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

MOST_NODES = 1500
MOST_HEAP_MB = 60
ROWS = "return document.querySelectorAll('[role=grid] [role=row]').length > 5;"
HOME = (
    "return document.querySelectorAll('main section').length > 1 && !document.querySelector('main [aria-busy=true]');"
)


class CpuTime:
    """CPU seconds of the page's main thread."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds(self) -> float:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


# Path, readiness, most requests of the API, most CPU over the fixed script.
VIEWS: dict[str, tuple[str, str, int, float]] = {
    "home": ("", HOME, 14, 6),  # eight, and one for each of the six failures that it shows at most
    "graph": ("runs/{deep}?view=graph", is_drawn(".graph-canvas", ".minimap"), 8, 12),
    "timeline": ("runs/{deep}", is_drawn(".timeline-canvas"), 8, 8),
    "table": ("runs/{wide}?view=table", ROWS, 8, 8),
    "mosaic": ("runs/{wide}", is_drawn(".mosaic-canvas"), 8, 8),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_page_of_much_data_costs_little(server: UiServer, new_page: NewPage, name: str) -> None:
    page = new_page(server)
    path, is_ready, most_requests, most_cpu = VIEWS[name]
    cpu = CpuTime(page)
    floors = []
    for _ in range(3):
        before = cpu.seconds()
        floor_seconds(page)
        floors.append(cpu.seconds() - before)
    page.goto("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: "/api/" in request.url and asked.append(request.url))
    before = cpu.seconds()
    seconds_until(page, f"{server.url}/ui/{path.format(**server.large)}", is_ready)
    used = cpu.seconds() - before
    print(f"{name}: {used:.2f} s of CPU, floor {min(floors):.2f} s, {len(asked)} requests")
    assert len(asked) <= most_requests, asked
    assert len(asked) == len(set(asked)), "asked twice"
    assert page.evaluate("() => document.querySelectorAll('*').length") < MOST_NODES
    assert page.evaluate("() => performance.memory.usedJSHeapSize") < MOST_HEAP_MB << 20
    assert used < most_cpu * min(floors)


def test_a_hidden_page_asks_nothing_and_has_no_connection(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    page.goto(f"{live_server.url}/ui/runs")
    page.locator(".liveness.is-live").wait_for()
    page.get_by_role("grid").get_by_text("my_etl").first.wait_for()
    asked: list[Any] = []
    with page.expect_event("requestfailed", lambda request: "/events" in request.url):
        hide(page)
    page.on("request", lambda request: asked.append(request.url))
    run = live_server.post("/workflows/customers/runs")["id"]
    while live_server.get(f"/runs/{run}/tasks?limit=1")["run"]["finished_at"] is None:
        page.wait_for_timeout(200)
    while live_server.connections():
        page.wait_for_timeout(200)
    assert asked == []
    hide(page, False)
    page.get_by_role("grid").get_by_text(run[:6]).first.wait_for()


def test_all_tabs_of_a_browser_share_one_stream_and_say_that_they_are_live(server: UiServer, new_page: NewPage) -> None:
    first = new_page(server)
    streams: set[Any] = set()
    first.context.on("request", lambda request: streams.add(request) if "/events" in request.url else None)
    first.context.on("requestfailed", lambda request: streams.discard(request))
    tabs = [first, *(first.context.new_page() for _ in range(3))]
    for tab in tabs:
        tab.goto(f"{server.url}/ui/runs")
        tab.locator(".liveness.is-live").wait_for()
    assert len(streams) == 1
    for left, tab in zip((1, 1, 1, 0), tabs, strict=True):  # the next one takes over
        hide(tab)
        while len(streams) != left:
            first.wait_for_timeout(100)


@pytest.mark.soak
def test_every_gate_is_measured_in_one_go(tmp_path: Path) -> None:
    """Only that each has a figure. What the figures are depends on the machine: `ork bench ui`."""
    small = replaced(QUICK, ui_runs=200, ui_deep=(200, 300), ui_wide=300, ui_log_mb=1, ui_live=10)
    parts = ui(small, Ground(tmp_path))
    assert [part["scenario"] for part in parts] == [
        "ui-sizes", "ui-home", "ui-graph", "ui-graph", "ui-timeline", "ui-table", "ui-mosaic", "ui-log-end", "ui-log-line",
        "ui-log-search", "ui-log-memory", "ui-status-beside", "ui-hidden", "ui-tabs", "ui-five-pages",
    ]  # fmt: skip
    figures = [gate["value"] for part in parts for gate in part["gates"]]
    assert None not in figures
    assert {part["scenario"]: part["target_met"] for part in parts if part["scenario"] in ("ui-sizes", "ui-hidden", "ui-tabs")} == {
        "ui-sizes": True, "ui-hidden": True, "ui-tabs": True,
    }  # fmt: skip
