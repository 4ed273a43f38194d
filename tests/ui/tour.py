"""Makes the pictures of docs/ui.md from a seeded project: `python -m tests.ui.tour`. Both themes, no server needed beforehand."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.ui import seeds
from tests.ui.conftest import UiServer

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images"
PAGES = {
    "home": "",
    "run": "runs/{failed}?task=load&index=3",
    "graph": "runs/{deep}?view=graph",
}
SIZE: Any = {"width": 1280, "height": 800}


def main() -> int:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ORK_")}
    with tempfile.TemporaryDirectory(prefix="ork-tour-") as place:
        folder = Path(place) / "shop"
        folder.mkdir()
        seeds.fill(folder, kept, is_hostile=False)
        deep = seeds.add_deep_run(folder, 484, columns=22)
        server = UiServer(folder, kept, "--no-scheduler")
        try:
            names = {"failed": server.run("my_etl", "failed"), "deep": deep}
            PICTURES.mkdir(exist_ok=True)
            for theme in ("light", "dark"):
                _take(server, names, theme)
        finally:
            server.close()
    return 0


def _take(server: UiServer, names: dict[str, str], theme: Any) -> None:
    chromium = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport=SIZE, color_scheme=theme)
        page.goto(server.sign_in_address())
        page.locator("main h1").first.wait_for()
        for name, path in PAGES.items():
            page.goto(f"{server.url}/ui/{path.format(**names)}")
            page.locator("main h1").first.wait_for()
            page.wait_for_function("() => !document.querySelector('main [aria-busy=true]')")
            page.wait_for_timeout(1500)  # for what is drawn after the data are there
            page.screenshot(path=PICTURES / f"{name}-{theme}.png")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
