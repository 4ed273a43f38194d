"""Measures pages of the web UI in a real browser, and what open pages cost the server. The targets are the UI's budgets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Sample, Work, judged, latencies, one_result, result_of
from ork.bench.pages.browser import (
    FLOOR,
    chromium,
    floor_seconds,
    heap_mb,
    hide,
    is_drawn,
    open_page,
    redraw_seconds,
    seconds_after,
    seconds_until,
)
from ork.bench.pages.delays import delays
from ork.bench.pages.large_runs import LOG_TASK, add_deep_run, add_history, add_log_run, add_wide_run
from ork.bench.pages.server import PageServer
from ork.bench.processes import ORK, environment, run
from ork.bench.scale import Scale
from ork.bench.services import SETTLE_SECONDS, cpu_seconds
from ork.errors import UsageError
from ork.model.installation import ALL_SCHEDULERS, Mode

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

REPEATS = 3
OPEN_PAGES = 5
HIDDEN_SECONDS = 8.0  # longer than a server keeps an idle connection
MOST_HEAP_MB, MOST_NODES, MOST_FRAME_MS = 60, 1500, 16
MOST_SMOOTH = 5_000  # tasks, up to which pictures move without a jerk
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
    moves: bool = False  # it can be zoomed and moved, and the time of its frames is judged, too


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
            found, asked = [sizes()], set[str]()
            found += [measured(browser, server, view, repeats, asked) for view in views]
            found += log_results(browser, server, log, lines, repeats)
            found += [beside(server, asked), hidden(browser, server), tabs(browser, server)]
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
        View("ui-graph", tasks, seconds, f"runs/{run}?view=graph", is_drawn(".graph-canvas", ".minimap"), moves=True)
        for tasks, run, seconds in zip(scale.ui_deep, deep, (2.0, 3.0), strict=True)
    ]
    return [
        View("ui-home", scale.ui_runs, 1.0, "", home),
        *graphs,
        View("ui-timeline", scale.ui_deep[0], 1.0, f"runs/{deep[0]}", is_drawn(".timeline-canvas"), moves=True),
        View("ui-table", scale.ui_wide, 2.0, f"runs/{wide}?view=table", rows, is_large=True),
        View("ui-mosaic", scale.ui_wide, 2.0, f"runs/{wide}", is_drawn(".mosaic-canvas"), is_large=True),
    ]


def sizes() -> dict[str, Any]:
    """What browsers load, compressed. The first page is the one that `ork ui` opens."""
    from ork.ui.assets import BUILD, STATIC

    build = json.loads((STATIC / BUILD).read_text("utf-8"))
    kb = {name: entry["gz"] / 1000 for name, entry in build["outputs"].items()}
    # The same pages as one script, for exports: no browser loads it beside the others.
    scripts = [name for name in kb if name.endswith(".js") and name != "snapshot.js"]
    targets = (
        ResultTarget(60, at_most=True, field="first_kb"),
        ResultTarget(180, at_most=True, field="scripts_kb"),
        ResultTarget(15, at_most=True, field="styles_kb"),
    )
    found = {
        "first_kb": round(sum(kb[name] for name in build["first"]), 1),
        "scripts_kb": round(sum(kb[name] for name in scripts), 1),
        "styles_kb": round(kb["app.css"], 1),
    }
    return one_result("ui-sizes", NO_FLOOR, targets, **found)


def measured(browser: Browser, server: PageServer, view: View, repeats: int, asked: set[str]) -> dict[str, Any]:
    """The page, each time in a new profile. The home page is also where one signs in. `asked` gets the requests of the API."""
    samples, heap, nodes, redraws = [], 0.0, 0, []
    elsewhere: list[str] = []
    for _ in range(repeats):
        page = open_page(browser, server)
        floor = floor_seconds(page)
        page.goto("about:blank")
        page.on("request", lambda request: note_request(request, server, asked, elsewhere))
        seconds = seconds_until(page, f"{server.url}/ui/{view.path}", view.is_ready)
        samples.append(Sample(seconds, floor))
        heap = max(heap, heap_mb(page))
        nodes = max(nodes, int(page.evaluate("() => document.querySelectorAll('*').length")))
        if view.moves:
            redraws.append(redraw_seconds(page) * 1000)
        page.context.close()
    targets = [ResultTarget(view.most_seconds, at_most=True, field="seconds")]
    if view.is_large:
        targets.append(ResultTarget(MOST_HEAP_MB, at_most=True, field="heap_mb"))
        targets.append(ResultTarget(MOST_NODES, at_most=True, field="nodes"))
    if view.moves and view.size <= MOST_SMOOTH:
        targets.append(ResultTarget(MOST_FRAME_MS, at_most=True, field="redraw_ms"))
    targets.append(ResultTarget(0, at_most=True, field="elsewhere"))
    result = result_of(Work(view.name, 0, FLOOR), samples)
    result |= {"size": view.size, "heap_mb": round(heap, 1), "nodes": nodes, "elsewhere": len(elsewhere)}
    result["redraw_ms"] = round(median(redraws), 1) if redraws else None
    return result | judged(targets, result)


def note_request(request: Request, server: PageServer, asked: set[str], elsewhere: list[str]) -> None:
    """Streams are not answers: they end with their page."""
    path = request.url.removeprefix(server.url)
    if path == request.url and not request.url.startswith(("data:", "blob:", "about:")):
        elsewhere.append(request.url)
    if path.startswith("/api/") and request.method == "GET" and "/events" not in path and "/session" not in path:
        asked.add(path)


def log_results(browser: Browser, server: PageServer, run: str, lines: int, repeats: int) -> list[dict[str, Any]]:
    """The end of a long log, any line of it, and a search in all of it."""
    address = f"{server.url}/ui/runs/{run}/tasks/{LOG_TASK}/0/1/log"
    ends, jumps, searches, heap = [], [], [], 0.0
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
        heap = max(heap, heap_mb(page))
        page.context.close()
    parts = (("ui-log-end", 0.5, ends), ("ui-log-line", 0.2, jumps), ("ui-log-search", 3.0, searches))
    found = [
        result_of(Work(name, 0, FLOOR, (ResultTarget(most, at_most=True, field="seconds"),)), samples) | {"size": lines}
        for name, most, samples in parts
    ]
    memory = (ResultTarget(MOST_HEAP_MB, at_most=True, field="heap_mb"),)
    return [*found, one_result("ui-log-memory", NO_FLOOR, memory, size=lines, heap_mb=round(heap, 1))]


def shows_text(text: str) -> str:
    return f"return [...document.querySelectorAll('.log-row')].some((row) => row.textContent.includes({text!r}));"


def typing(text: str) -> str:
    return f"""const field = document.querySelector('.log-search input');
      field.value = {text!r};
      field.dispatchEvent(new Event("input", {{ bubbles: true }}))"""


def beside(server: PageServer, asked: set[str]) -> dict[str, Any]:
    """How much longer `GET /status` takes while the server answers what these pages asked."""
    found = delays(server, sorted(asked))
    return one_result(
        "ui-status-beside",
        {"what": "`GET /status` while no page is read", "seconds": found.quiet},
        (ResultTarget(50, at_most=True, field="added_ms"),),
        seconds=round(found.busy, 4),
        latency_ms=latencies(found.all),
        added_ms=round((found.busy - found.quiet) * 1000, 1),
        repeats=len(asked),
        note=f"most beside {found.worst}",
    )


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
    found = {"requests": len(requests), "connections": connections, "note": " ".join(requests[:3])}
    return one_result("ui-hidden", NO_FLOOR, targets, **found)


def tabs(browser: Browser, server: PageServer) -> dict[str, Any]:
    """How many streams several visible tabs of one browser hold, and what they ask while nothing runs."""
    first = open_page(browser, server)
    context, streams, requests = first.context, set[Any](), list[str]()
    context.on("request", lambda request: streams.add(request) if "/events" in request.url else None)
    context.on("requestfinished", lambda request: streams.discard(request))
    context.on("requestfailed", lambda request: streams.discard(request))
    pages = [context.new_page() for _ in range(OPEN_PAGES)]
    for page in pages:
        page.goto(f"{server.url}/ui/runs")
        page.locator(".liveness.is-live").wait_for()
    first.close()  # it held the stream since before it was watched; another takes over
    while not streams:
        pages[0].wait_for_timeout(100)
    pages[0].wait_for_timeout(SETTLE_SECONDS * 1000)
    context.on("request", lambda request: requests.append(request.url))
    pages[0].wait_for_timeout(HIDDEN_SECONDS * 1000)
    found = {"streams": len(streams), "requests": len(requests), "note": " ".join(requests[:3])}
    context.close()  # the stream passes from tab to tab while they close
    targets = (ResultTarget(1, at_most=True, field="streams"), ResultTarget(0, at_most=True, field="requests"))
    return one_result("ui-tabs", NO_FLOOR, targets, size=OPEN_PAGES, **found)


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
