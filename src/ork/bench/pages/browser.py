"""Chromium, driven by Playwright, and how long pages take in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from ork.bench.pages.server import SECONDS, PageServer
from ork.errors import UsageError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLOOR = "a fixed script in the same page: numbers written and read as JSON, sorted, and drawn"
_FLOOR_SCRIPT = """() => {
  const start = performance.now();
  const numbers = JSON.parse(JSON.stringify(Array.from({ length: 300000 }, (_, place) => (place * 7919) % 1000003)));
  numbers.sort((a, b) => a - b);
  const canvas = new OffscreenCanvas(1200, 700), pen = canvas.getContext("2d");
  for (let place = 0; place < 20000; place += 1) pen.fillRect(numbers[place * 10] % 1200, place % 700, 3, 3);
  pen.getImageData(0, 0, 1, 1);
  return performance.now() - start;
}"""


_TIME_FRAMES = """
  globalThis.orkFrames = [];
  const ask = globalThis.requestAnimationFrame.bind(globalThis);
  globalThis.requestAnimationFrame = (callback) => ask((time) => {
    const start = performance.now();
    callback(time);
    globalThis.orkFrames.push(performance.now() - start);
  });"""
_REDRAW_SCRIPT = """async () => {
  globalThis.orkFrames.length = 0;
  for (const key of "wwwwwwdddddaaaaassssss".repeat(5)) {
    dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
  const frames = globalThis.orkFrames.filter((frame) => frame > 0.05).sort((a, b) => a - b);
  if (frames.length < 50) throw new Error(`only ${frames.length} frames were drawn`);
  return frames[Math.floor(frames.length * 0.95)];
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window. UsageError if this machine has none."""
    try:
        api = import_module("playwright.sync_api")
    except ModuleNotFoundError as error:
        raise UsageError("pages are measured with the package playwright", hint="pip install playwright") from error
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
        except api.Error as error:
            hint = "install Chromium, or run `playwright install chromium`"
            raise UsageError(f"pages are measured in Chromium: {str(error).splitlines()[0]}", hint=hint) from error
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser: Browser, server: PageServer) -> Page:
    """A page that is signed in, in a browser profile of its own: nothing is cached."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(SECONDS * 1000)
    context.add_init_script(_TIME_FRAMES)
    page = context.new_page()
    page.goto(server.sign_in_address())
    page.get_by_role("navigation").first.wait_for()
    return page


def seconds_until(page: Page, address: str, is_ready: str) -> float:
    """Seconds from the navigation until the script, a function body, returns a true value."""
    page.goto(address, wait_until="commit")
    found = page.wait_for_function(f"() => (() => {{ {is_ready} }})() && performance.now()", polling="raf")
    return float(found.json_value()) / 1000


def seconds_after(page: Page, action: str, is_ready: str) -> float:
    """Seconds from the first script, which acts, until the second one, a function body, returns a true value."""
    script = f"""async () => {{
      const isReady = () => {{ {is_ready} }};
      const start = performance.now();
      {action};
      while (!isReady()) await new Promise(requestAnimationFrame);
      return performance.now() - start;
    }}"""
    return float(page.evaluate(script)) / 1000


def redraw_seconds(page: Page) -> float:
    """Seconds that the page's own code needs for a frame while it zooms and moves: of 95 of 100 frames at most."""
    return float(page.evaluate(_REDRAW_SCRIPT)) / 1000


def heap_mb(page: Page) -> float:
    return float(page.evaluate("() => performance.memory.usedJSHeapSize")) / 2**20


def is_drawn(*selectors: str) -> str:
    """A function body: whether each canvas has a pixel that is not transparent."""
    return f"""
      return {list(selectors)}.every((selector) => {{
        const canvas = document.querySelector(selector);
        if (!canvas || !canvas.width || !canvas.height) return false;
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {{ willReadFrequently: true }});
        copy.drawImage(canvas, 0, 0);
        return copy.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0);
      }});"""


def floor_seconds(page: Page) -> float:
    return float(page.evaluate(_FLOOR_SCRIPT)) / 1000


def hide(page: Page, is_hidden: bool = True) -> None:
    """Tells the page that nobody sees it, as a browser does for the tabs behind the first."""
    page.evaluate(
        """(isHidden) => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
          Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (isHidden ? "hidden" : "visible") });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )
