"""A server on a seeded project, and Debian's Chromium. All tests here are marked `ui`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ork.bench.pages.server import SECONDS, PageServer
from tests.ui import seeds

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

INSTANCES, TASKS, RUNS = 20_000, 4_970, 2_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("ui")
            item.add_marker("slow")


class UiServer(PageServer):
    """`ork serve` on a project."""

    def __init__(self, folder: Path, environment: dict[str, str], *options: str, port: int = 0) -> None:
        self.large: dict[str, str] = {}  # ids of large runs by workflow
        super().__init__(folder, environment, *options, port=port)

    def run(self, workflow: str, status: str) -> str:
        """The id of the newest run of a workflow that has this status."""
        return str(self.get(f"/runs?workflow={workflow}&status={status}&limit=1")["runs"][0]["id"])

    def ork(self, *args: str) -> str:
        return seeds.ork(self.folder, self.environment, *args)


@pytest.fixture(scope="session")
def seeded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with runs of every kind. Tests that change it copy it."""
    folder = tmp_path_factory.mktemp("shop")
    seeds.fill(folder, environment())
    return folder


@pytest.fixture(scope="session")
def server(seeded_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    """For tests that only look. It has no scheduler, so nothing changes."""
    folder = tmp_path_factory.mktemp("seen") / "shop"
    shutil.copytree(seeded_folder, folder)
    # In a thread of its own: the browser may have started already, and its event loop is that of this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(seeds.add_history, folder, RUNS).result()
        deep = thread.submit(seeds.add_deep_run, folder, TASKS).result()
        wide = thread.submit(seeds.add_wide_run, folder, INSTANCES).result()
    running = UiServer(folder, environment(), "--no-scheduler")
    running.large = {"deep": deep, "wide": wide}
    yield running
    running.close()


@pytest.fixture
def live_server(seeded_folder: Path, tmp_path: Path) -> Iterator[UiServer]:
    """For tests that act: a server with a scheduler, on a copy of the project."""
    shutil.copytree(seeded_folder, tmp_path / "shop")
    running = UiServer(tmp_path / "shop", environment())
    yield running
    running.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the whole session: while it is open, Playwright runs an event loop in this thread, which other tests would meet."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: no browser looks at the pages"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        message = "chromium is not installed (scripts/components.sh browser): no browser looks at the pages"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


class Watched:
    """What a page must not do: write to the console, raise, report a violation, or call another origin."""

    def __init__(self, page: Page, url: str) -> None:
        self.heard: list[str] = []
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))
        page.on("request", lambda request: self._request(request.url, url))

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.heard.append(f"{kind}: {text}")

    def _request(self, asked: str, url: str) -> None:
        if not asked.startswith((f"{url}/", "data:", "blob:")):
            self.heard.append(f"request to {asked}")


NewPage = Callable[..., "Page"]


@pytest.fixture
def new_page(browser: Browser) -> Iterator[NewPage]:
    """`new_page(server)`: a page that is signed in (`token=None`), in a browser of its own. Options are those of a context.

    `hears` are texts that the console may show; anything else fails the test.
    """
    made: list[tuple[Any, Watched, tuple[str, ...]]] = []

    def make(server: UiServer, *, token: str | None = None, hears: tuple[str, ...] = (), **options: Any) -> Page:
        context = browser.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options)
        context.set_default_timeout(SECONDS * 1000)
        page = context.new_page()
        made.append((context, Watched(page, server.url), hears))
        page.goto(server.sign_in_address(token))
        page.get_by_role("navigation").first.wait_for()
        return page

    yield make
    for context, _, _ in made:
        context.close()
    heard = [text for _, watched, hears in made for text in watched.heard if not any(part in text for part in hears)]
    assert heard == []


@pytest.fixture
def page(server: UiServer, new_page: NewPage) -> Page:
    return new_page(server)


@pytest.fixture
def axe() -> Callable[[Page], list[str]]:
    """The rules that a page breaks, with the elements."""
    found = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    source = (Path(found.__file__).parent / "axe.min.js").read_text()

    def check(page: Page) -> list[str]:
        page.evaluate(source)
        result = page.evaluate("() => axe.run()")
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:160] for node in each['nodes'][:4]]}"
            for each in result["violations"]
        ]

    return check


def environment() -> dict[str, str]:
    dropped = ("ORK_", "OTEL_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "NO_COLOR": "1"}
