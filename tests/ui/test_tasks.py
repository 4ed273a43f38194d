"""Pages about one task, its log, and two runs compared."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ui import seeds
from tests.ui.conftest import NewPage, UiServer, environment

if TYPE_CHECKING:
    from playwright.sync_api import Page

Axe = Callable[["Page"], list[str]]
IMPORTS_CODE = """
def price_of(row: dict):
    return row["price"]


def parse():
    try:
        return price_of({"name": "tea"})
    except KeyError as error:
        raise ValueError("line 7 has no price") from error
"""
IMPORTS = """
name: imports
tasks:
  fetch:
    command: [sh, -c, 'for n in $(seq 0 39); do echo "row $n of <b>orders</b>"; done; echo "fatal: the disk is full" >&2; exit 3']
  parse: {file: imports.py, function: parse}
"""
LINES = 60_000
LONG = 3_000_000


@pytest.fixture(scope="module")
def server(seeded_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    """A server of its own, because these tests write logs."""
    folder = tmp_path_factory.mktemp("logs") / "shop"
    shutil.copytree(seeded_folder, folder)
    running = UiServer(folder, environment(), "--no-scheduler")
    yield running
    running.close()


@pytest.fixture(scope="module")
def logs(server: UiServer) -> str:
    """A failed run whose instances have logs worth reading: long (4), hostile (3), with a traceback (11). Returns its id."""
    run = server.run("my_etl", "failed")
    folder = server.folder / ".ork" / "objects" / "runs" / run
    _write(folder / "load.4.1.log", _long_log())
    _write(folder / "load.3.1.log", HOSTILE + b"x" * LONG + b" END\nlast line\n")
    _write(folder / "load.11.1.log", TRACEBACK.encode())
    return run


def test_a_failed_instance_is_explained(page: Page, server: UiServer, logs: str, axe: Axe) -> None:
    page.goto(f"{server.url}/ui/runs/{logs}/tasks/load/11/1")
    failure = page.get_by_role("region", name="Failure")
    failure.get_by_text("HTTPError: 503 Service Unavailable").first.wait_for()
    assert "tasks.py:18" in failure.inner_text()
    assert failure.locator("mark").inner_text().startswith("raise HTTPError")
    page.get_by_role("button", name="Same error in 3 others").click()
    page.get_by_role("link", name="load[17]").wait_for()
    page.get_by_text("Log, at its first error").wait_for()
    page.locator(".short-log .is-current", has_text="Traceback").wait_for()
    assert axe(page) == []


@pytest.fixture(scope="module")
def imports(server: UiServer) -> str:
    """A run with a command that failed after some output, and a function whose exception has a cause. Returns its id."""
    (server.folder / "imports.py").write_text(IMPORTS_CODE)
    (server.folder / "imports.yaml").write_text(IMPORTS)
    seeds.ork(server.folder, environment(), "run", "imports.yaml", exits=(1,))
    return server.run("imports", "failed")


def test_a_failed_command_shows_its_last_lines_on_the_page_of_its_run(
    page: Page, server: UiServer, imports: str, axe: Axe
) -> None:
    page.goto(f"{server.url}/ui/runs/{imports}")
    failures = page.get_by_role("group", name="Failures")
    failures.get_by_role("link", name="fetch").click()
    panel = page.get_by_role("complementary")
    lines = panel.get_by_label("Last lines of the log")
    lines.wait_for()
    assert lines.inner_text().splitlines()[-2:] == ["row 39 of <b>orders</b>", "fatal: the disk is full"]
    assert "row 0 " not in lines.inner_text()  # only the last lines
    assert "exit code 3" in panel.inner_text()
    assert axe(page) == []


def test_the_causes_of_an_exception_are_shown_with_their_places(
    page: Page, server: UiServer, imports: str, axe: Axe
) -> None:
    page.goto(f"{server.url}/ui/runs/{imports}")
    page.get_by_role("group", name="Failures").get_by_role("link", name="parse").click()
    failure = page.get_by_role("complementary").get_by_role("region", name="Failure")
    failure.get_by_text("caused by KeyError").wait_for()
    text = failure.inner_text()
    assert "ValueError: line 7 has no price" in text
    assert text.index("in parse") < text.index("caused by KeyError: 'price'") < text.index("in price_of")
    assert axe(page) == []


@pytest.mark.parametrize("tab", ["log", "data", "tries", "spec"])
def test_tabs_of_a_task(page: Page, server: UiServer, logs: str, axe: Axe, tab: str) -> None:
    shown = {
        "log": "Traceback (most recent",
        "data": "[3, 4, 11, 17]",
        "tries": "exit code 1",
        "spec": "concurrency: 8",
    }
    page.goto(f"{server.url}/ui/runs/{logs}/tasks/load/11/1?panel={tab}")
    page.get_by_text(shown[tab]).first.wait_for()
    assert axe(page) == []


def test_an_output_of_records_is_a_table(page: Page, server: UiServer) -> None:
    page.goto(f"{server.url}/ui/runs/{server.run('my_etl', 'success')}/tasks/publish/0/1?panel=data")
    table = page.get_by_role("region", name="Rows of the output")
    table.wait_for()
    assert table.get_by_role("columnheader").all_inner_texts()[1:] == ["part", "rows", "share"]
    assert table.get_by_role("row").count() == 25


def test_a_task_that_waits_for_approval_can_be_approved(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    run = live_server.get("/runs?workflow=release&limit=1")["runs"][0]["id"]
    page.goto(f"{live_server.url}/ui/runs/{run}/tasks/approve/0/1")
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("heading", name=re.compile("success")).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_log_opens_at_its_end_and_any_line_is_near(
    new_page: NewPage, server: UiServer, logs: str, axe: Axe, scheme: str
) -> None:
    page = new_page(server, color_scheme=scheme)
    page.goto(f"{server.url}/ui/runs/{logs}/tasks/load/4/1/log")
    page.get_by_text(f"batch {LINES} ").wait_for()
    page.get_by_text(f"{LINES:,} lines").wait_for()
    go = page.get_by_role("textbox", name="Go to line")
    go.fill("31000-31002")
    go.press("Enter")
    page.locator(".is-selected", has_text="batch 31002 ").wait_for()
    assert page.url.endswith("#L31000-L31002")
    assert page.locator(".log-row").count() < 120
    assert axe(page) == []


def test_a_link_to_lines_shows_them(page: Page, server: UiServer, logs: str) -> None:
    page.goto(f"{server.url}/ui/runs/{logs}/tasks/load/4/1/log#L20000-L20003")
    page.locator(".log-row.is-selected", has_text="batch 20003 ").wait_for()
    assert page.locator(".log-row.is-selected").count() == 4
    page.get_by_role("button", name="Copy 4 lines").wait_for()


def test_a_log_is_searched_for_texts_patterns_and_errors(page: Page, server: UiServer, logs: str) -> None:
    page.goto(f"{server.url}/ui/runs/{logs}/tasks/load/4/1/log")
    field = page.get_by_role("searchbox", name="Search this log")
    field.fill("BATCH 4567")
    page.get_by_text("1 of 11 lines").wait_for()
    page.locator(".is-current .hit", has_text="batch 4567").wait_for()
    page.get_by_role("button", name="Regular expression").click()
    field.fill(r"batch \d*777 ")
    page.get_by_text(re.compile(rf"1 of {LINES // 1000} lines$")).wait_for()
    field.fill("batch (")
    page.get_by_text("Invalid regular expression").wait_for()
    field.fill("")
    page.get_by_label("Errors only").check()
    page.get_by_role("button", name=f"Next of {LINES // 5000} errors").wait_for()
    assert page.locator(".log-row").count() == LINES // 5000


def test_frames_of_libraries_are_folded(page: Page, server: UiServer, logs: str) -> None:
    page.goto(f"{server.url}/ui/runs/{logs}/tasks/load/11/1/log")
    fold = page.get_by_role("button", name="2 frames of libraries folded")
    fold.wait_for()
    assert page.get_by_text("site-packages").count() == 0
    fold.click()
    page.get_by_text("site-packages/requests/sessions.py").wait_for()


def test_a_hostile_log_is_only_text(page: Page, server: UiServer, logs: str, axe: Axe) -> None:
    page.goto(f"{server.url}/ui/runs/{logs}/tasks/load/3/1/log")
    page.get_by_text("<script>globalThis.pwned=1</script>").wait_for()
    page.get_by_text("user ⟨U+202E⟩txt.exe").wait_for()
    assert page.locator(".log-box a:not(.log-number), .log-box img, .log-box script").count() == 0
    page.get_by_role("button", name="… 3.0 MB more").click()
    line = page.get_by_role("dialog", name="Line 7")
    line.get_by_role("button", name="Next", exact=True).click()
    line.get_by_text("Bytes 32,768 to 65,536 of 3.0 MB").wait_for()
    assert page.evaluate("() => globalThis.pwned") is None
    assert axe(page) == []


def test_a_running_log_is_followed(live_server: UiServer, new_page: NewPage) -> None:
    page = new_page(live_server)
    go = live_server.folder / "say"
    (live_server.folder / "teller.yaml").write_text(TELLER)
    live_server.ork("deploy", "teller.yaml")
    run = live_server.post("/workflows/teller/runs")["id"]
    _type(go, "first\n" * 100)
    page.goto(f"{live_server.url}/ui/runs/{run}/tasks/tell/0/1/log")
    page.get_by_text("100 lines").wait_for()
    _type(go, "second\n")
    page.locator(".log-row", has_text="second").wait_for()
    page.get_by_role("region", name="Lines of the log").press("Home")
    page.locator(".log-number", has_text=re.compile("^1$")).wait_for()
    _type(go, "third\nfourth\n")
    page.get_by_role("button", name="2 new lines").click()
    page.locator(".log-row", has_text="fourth").wait_for()
    _type(go, "end\n")
    page.get_by_role("heading", name=re.compile("success")).wait_for()


def test_a_log_is_downloaded(page: Page, server: UiServer, logs: str) -> None:
    page.goto(f"{server.url}/ui/runs/{logs}/tasks/load/11/1/log")
    with page.expect_download() as found:
        page.get_by_role("button", name="Download").click()
    assert Path(found.value.path()).read_text() == TRACEBACK


def test_two_runs_are_compared_in_words(page: Page, server: UiServer, axe: Axe) -> None:
    a, b = server.run("my_etl", "success"), server.run("my_etl", "failed")
    page.goto(f"{server.url}/ui/runs/{a}/compare/{b}")
    page.get_by_text("The first run succeeded, the second failed").wait_for()
    page.get_by_text(re.compile(r"Param broken is \[3,\s?4,\s?11,\s?17\] instead of \[\]")).wait_for()
    page.get_by_text("5 tasks ended differently").wait_for()
    assert axe(page) == []
    page.get_by_role("link", name="Swap").click()
    page.get_by_text("The first run failed, the second succeeded").wait_for()


def test_pages_about_tasks_fit_a_phone(new_page: NewPage, server: UiServer, logs: str) -> None:
    page = new_page(server, viewport={"width": 375, "height": 740})
    a, b = server.run("my_etl", "success"), server.run("my_etl", "failed")
    tasks = f"runs/{logs}/tasks/load/11/1"
    for address in (tasks, f"{tasks}?panel=tries", f"{tasks}/log", f"runs/{a}/compare/{b}"):
        page.goto(f"{server.url}/ui/{address}")
        page.locator(".log-row, .tries, .compare-words").first.wait_for()
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), address


HOSTILE = (
    b"<script>globalThis.pwned=1</script>\n"
    b"\x1b]8;;javascript:globalThis.pwned=1\x07click me\x1b]8;;\x07 after\n"
    b"user \xe2\x80\xaetxt.exe\xe2\x80\xac end\n"
    b"nul \x00 bell \x07 back\x08\n"
    b"  0%\r 50%\r100% done\n"
    b"\x1b[2J\x1b[Hcleared \xff\n"
)
TRACEBACK = """INFO GET /v2/part/11
Traceback (most recent call last):
  File "/srv/shop/tasks.py", line 18, in load
    response = session.get(url)
  File "/usr/lib/python3.12/site-packages/requests/sessions.py", line 602, in get
    return self.request("GET", url)
  File "/usr/lib/python3.12/site-packages/requests/adapters.py", line 589, in send
    raise ConnectionError(error)
HTTPError: 503 Service Unavailable from api.example.com, part 11
"""
TELLER = """
name: teller
tasks:
  tell: {command: [sh, -c, 'touch say; tail -n +1 -f say & until grep -q ^end say; do sleep 0.1; done; sleep 0.5; kill $!']}
"""


def _long_log() -> bytes:
    def line(number: int) -> str:
        if number % 5000 == 0:
            return f"\x1b[31mERROR\x1b[0m 503, batch {number} "
        return f"10:33:18 \x1b[36mworker-{number % 8}\x1b[0m \x1b[32mINFO\x1b[0m processed batch {number} of many"

    return ("\n".join(line(number) for number in range(1, LINES + 1)) + "\n").encode()


def _write(path: Path, data: bytes) -> None:
    assert path.exists()
    path.write_bytes(data)


def _type(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)
