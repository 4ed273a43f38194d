"""Measures pages of the web UI in a real browser, and what open pages cost the server. The targets are the UI's budgets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Sample, Work, judged, latencies, one_result, result_of
from ork.bench.pages.browser import (
    FLOOR,
    chromium,
    floor_seconds,
    hide,
    is_drawn,
    open_page,
    seconds_after,
    seconds_until,
)
from ork.bench.pages.large_runs import LOG_TASK, add_deep_run, add_history, add_log_run, add_wide_run
from ork.bench.pages.server import PageServer
from ork.bench.processes import ORK, environment, run
from ork.bench.scale import Scale
from ork.bench.services import SETTLE_SECONDS, cpu_seconds
from ork.errors import UsageError
from ork.model.installation import ALL_SCHEDULERS, Mode

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REPEATS = 3
OPEN_PAGES = 5
HIDDEN_SECONDS = 8.0  # longer than a server keeps an idle connection
PING_SECONDS = 0.005
MOST_HEAP_MB, MOST_NODES = 60, 1500
NO_FLOOR: dict[str, Any] = {"what": "nothing at all", "seconds": 0.0}
ALONE = "the same run with no page open"


class View(NamedTuple):
    """A page, and when it is ready: a function body."""

    name: str
    size: int
    most_seconds: float
    path: str
    is_ready: str
    is_large: bool = False  # its memory and elements are judged, too


def ui(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    if ground.server is not None:
        raise UsageError("pages are measured on SQLite", hint="ork bench ui")
    with chromium() as browser:
        folder = ground.folder / "pages"
        folder.mkdir()
        (folder / "ork.yaml").touch()
        add_history(folder, scale.ui_runs)
        deep = [add_deep_run(folder, tasks) for tasks in scale.ui_deep]
        wide = add_wide_run(folder, scale.ui_wide)
        log, lines = add_log_run(folder, scale.ui_log_mb)
        repeats = min(scale.repeats, REPEATS)
        with serving(PageServer(folder, environment(), "--no-scheduler")) as server:
            views = views_of(scale, deep, wide)
            found = [measured(browser, server, view, repeats) for view in views]
            found += log_results(browser, server, log, lines, repeats)
            found += [beside(browser, server, views), hidden(browser, server)]
        return [*found, five_pages(browser, scale, ground)]


@contextmanager
def serving(server: PageServer) -> Iterator[PageServer]:
    try:
        yield server
    finally:
        server.close()


def views_of(scale: Scale, deep: list[str], wide: str) -> list[View]:
    rows = "return document.querySelectorAll('[role=grid] [role=row]').length > 5;"
    home = "return document.querySelectorAll('main section').length > 1 && !document.querySelector('main [aria-busy=true]');"
    graphs = [
        View("ui-graph", tasks, seconds, f"runs/{run}?view=graph", is_drawn(".graph-canvas", ".minimap"))
        for tasks, run, seconds in zip(scale.ui_deep, deep, (2.0, 3.0), strict=True)
    ]
    return [
        View("ui-home", scale.ui_runs, 1.0, "", home),
        *graphs,
        View("ui-timeline", scale.ui_deep[0], 1.0, f"runs/{deep[0]}", is_drawn(".timeline-canvas")),
        View("ui-table", scale.ui_wide, 2.0, f"runs/{wide}?view=table", rows, is_large=True),
        View("ui-mosaic", scale.ui_wide, 2.0, f"runs/{wide}", is_drawn(".mosaic-canvas"), is_large=True),
    ]


def measured(browser: Browser, server: PageServer, view: View, repeats: int) -> dict[str, Any]:
    """The page, each time in a new profile. The home page is also where one signs in."""
    samples, heap, nodes = [], 0.0, 0
    for _ in range(repeats):
        page = open_page(browser, server)
        floor = floor_seconds(page)
        page.goto("about:blank")
        seconds = seconds_until(page, f"{server.url}/ui/{view.path}", view.is_ready)
        samples.append(Sample(seconds, floor))
        heap = max(heap, float(page.evaluate("() => performance.memory.usedJSHeapSize")) / 2**20)
        nodes = max(nodes, int(page.evaluate("() => document.querySelectorAll('*').length")))
        page.context.close()
    targets = [ResultTarget(view.most_seconds, at_most=True, field="seconds")]
    if view.is_large:
        targets.append(ResultTarget(MOST_HEAP_MB, at_most=True, field="heap_mb"))
        targets.append(ResultTarget(MOST_NODES, at_most=True, field="nodes"))
    result = result_of(Work(view.name, 0, FLOOR), samples)
    result |= {"size": view.size, "heap_mb": round(heap, 1), "nodes": nodes}
    return result | judged(targets, result)


def log_results(browser: Browser, server: PageServer, run: str, lines: int, repeats: int) -> list[dict[str, Any]]:
    """The end of a long log, any line of it, and a search in all of it."""
    address = f"{server.url}/ui/runs/{run}/tasks/{LOG_TASK}/0/1/log"
    ends, jumps, searches = [], [], []
    middle = lines // 3
    for number in range(repeats):
        page = open_page(browser, server)
        floor = floor_seconds(page)
        page.goto("about:blank")
        ends.append(Sample(seconds_until(page, address, shows_text(f"batch {lines} ")), floor))
        page.wait_for_function("() => !document.querySelector('.go-to-line').disabled")  # lines are counted
        line = middle + number * 1000
        jump = f"location.hash = '#L{line}'"
        jumps.append(Sample(seconds_after(page, jump, shows_text(f"batch {line} ")), floor))
        has_hits = "return /\\d of [\\d,]+ lines?/.test(document.querySelector('.log-hits').textContent);"
        searches.append(Sample(seconds_after(page, typing("ERROR"), has_hits), floor))
        page.context.close()
    parts = (("ui-log-end", 0.5, ends), ("ui-log-line", 0.2, jumps), ("ui-log-search", 3.0, searches))
    return [
        result_of(Work(name, 0, FLOOR, (ResultTarget(most, at_most=True, field="seconds"),)), samples) | {"size": lines}
        for name, most, samples in parts
    ]


def shows_text(text: str) -> str:
    return f"return [...document.querySelectorAll('.log-row')].some((row) => row.textContent.includes({text!r}));"


def typing(text: str) -> str:
    return f"""const field = document.querySelector('.log-search input');
      field.value = {text!r};
      field.dispatchEvent(new Event("input", {{ bubbles: true }}))"""


def beside(browser: Browser, server: PageServer, views: list[View]) -> dict[str, Any]:
    """How much longer `GET /status` takes while pages of large runs are read."""
    page = open_page(browser, server)
    start = time.monotonic()
    with pinging(server) as busy:
        for view in views:
            page.goto("about:blank")
            seconds_until(page, f"{server.url}/ui/{view.path}", view.is_ready)
    elapsed = time.monotonic() - start
    page.context.close()
    with pinging(server) as quiet:
        time.sleep(elapsed)
    return one_result(
        "ui-status-beside",
        {"what": "`GET /status` while no page is read", "seconds": max(quiet)},
        (ResultTarget(50, at_most=True, field="added_ms"),),
        seconds=round(max(busy), 4),
        latency_ms=latencies(busy),
        added_ms=round((max(busy) - max(quiet)) * 1000, 1),
        repeats=len(busy),
    )


@contextmanager
def pinging(server: PageServer) -> Iterator[list[float]]:
    """The seconds of each `GET /status`, one after the other on one connection, until the end of the block."""
    seconds: list[float] = []
    is_over = threading.Event()
    thread = threading.Thread(target=ping, args=(server, seconds, is_over), daemon=True)
    thread.start()
    yield seconds
    is_over.set()
    thread.join()


def ping(server: PageServer, seconds: list[float], is_over: threading.Event) -> None:
    import httpx2

    headers = {"Authorization": f"Bearer {server.token}"}
    with httpx2.Client(timeout=60, trust_env=False, headers=headers) as client:
        while not is_over.wait(PING_SECONDS):
            start = time.perf_counter()
            client.get(f"{server.url}/api/v1/status")
            seconds.append(time.perf_counter() - start)


def hidden(browser: Browser, server: PageServer) -> dict[str, Any]:
    """What a page asks, and how many connections it keeps, while nobody sees it."""
    page = open_page(browser, server)
    page.wait_for_timeout(SETTLE_SECONDS * 1000)  # what it shows first has been read
    hide(page)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.wait_for_timeout(HIDDEN_SECONDS * 1000)
    connections = server.connections()
    page.context.close()
    targets = (
        ResultTarget(0, at_most=True, field="requests"),
        ResultTarget(0, at_most=True, field="connections"),
    )
    return one_result("ui-hidden", NO_FLOOR, targets, requests=len(requests), connections=connections)


def five_pages(browser: Browser, scale: Scale, ground: Ground) -> dict[str, Any]:
    """CPU seconds of a server for a run that five browsers look at, over those for the same run alone."""
    place = workloads.instances(ground.folder / "live", scale.ui_live)
    ratios, alone, watched = [], 0.0, 0.0
    run((*ORK, "deploy", "workflow.yaml"), place)
    with serving(PageServer(place, environment())) as server:
        run_seconds(server, [])  # imports are done, workers are there
        for _ in range(min(scale.repeats, 2)):
            alone = run_seconds(server, [])
            pages = [open_page(browser, server) for _ in range(OPEN_PAGES)]
            watched = run_seconds(server, pages)
            for page in pages:
                page.context.close()
            ratios.append(watched / alone)
    return one_result(
        "ui-five-pages",
        {"what": ALONE, "seconds": round(alone, 3)},
        (ResultTarget(1.25, at_most=True),),
        tasks=scale.ui_live,
        cpu_s=round(watched, 3),
        ratio=round(sorted(ratios)[len(ratios) // 2], 3),
        ratio_range=[round(min(ratios), 3), round(max(ratios), 3)],
        repeats=len(ratios),
    )


def run_seconds(server: PageServer, pages: list[Page]) -> float:
    """CPU seconds of the server from the start of a run, which these pages show, to its end."""
    server.call("PUT", f"/controls/{ALL_SCHEDULERS}", {"mode": Mode.PAUSED.value})
    id = server.post("/workflows/live/runs")["id"]
    for page in pages:
        page.goto(f"{server.url}/ui/runs/{id}")
        page.locator(".run-head").wait_for()
    before = cpu_seconds(server.pid)
    server.call("DELETE", f"/controls/{ALL_SCHEDULERS}")
    while server.get(f"/runs/{id}/tasks?limit=1")["run"]["status"] in ("pending", "running"):
        time.sleep(0.5)
    return cpu_seconds(server.pid) - before
