"""`ork report`: a file that anybody can open, looked at by a real browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.snapshots import readable, unpacked

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

WORKFLOW = """
name: flow
tasks:
  a: {command: [sh, -c, "echo '<script>document.title=1</script>'; yes words | head -n 60000; echo last words; exit 3"]}
  b: {command: echo 1, depends_on: [a]}
"""


@pytest.fixture
def report(tmp_path: Path, ork_cli: OrkCli) -> Path:
    (tmp_path / "flow.yaml").write_text(WORKFLOW)
    ork_cli("run", "flow.yaml", cwd=tmp_path)
    done = ork_cli("report", "@last", "-o", "out.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("out.html  ")
    return tmp_path / "out.html"


def test_it_is_one_file_with_the_end_of_long_logs(report: Path, ork_cli: OrkCli) -> None:
    text = report.read_text()
    documents = unpacked(text)
    (log,) = (data.decode() for name, data in documents.items() if name.endswith("/a.0.1.txt"))
    assert "last words" in log
    assert "bytes before this are omitted" in log
    assert [name.partition("/")[0] for name in documents].count("run") == 1
    assert len(text) < 200_000
    told = json.loads(ork_cli("report", "@last", "--json", cwd=report.parent).stdout)
    assert Path(told["path"]).stat().st_size == told["bytes"]
    assert ork_cli("report", "@last", "-o", "-", cwd=report.parent).stdout.startswith("<!doctype html>")
    assert sorted(path.name for path in report.parent.glob("*.html*")) == sorted([Path(told["path"]).name, "out.html"])


def test_it_has_the_logs_of_tasks_that_succeeded_and_creates_nothing(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "flow.yaml").write_text("name: flow\ntasks: {only: {command: echo all is well}}\n")
    ork_cli("run", "flow.yaml", cwd=tmp_path)
    assert "all is well" in readable(ork_cli("report", "@last", "-o", "-", cwd=tmp_path).stdout)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "ork.yaml").touch()
    assert ork_cli("report", "@last", cwd=tmp_path / "elsewhere").returncode == 3
    assert [each.name for each in (tmp_path / "elsewhere").iterdir()] == ["ork.yaml"]


def test_what_cannot_be_written_or_found_is_told(report: Path, ork_cli: OrkCli) -> None:
    refused = ork_cli("report", "@last", "-o", "no/such/folder.html", cwd=report.parent)
    assert (refused.returncode, "cannot write no/such/folder.html" in refused.stderr) == (2, True)
    assert ork_cli("report", "zzzz", cwd=report.parent).returncode == 3


@pytest.mark.slow
def test_a_browser_shows_it_and_finds_nothing_to_run_to_fetch_or_to_complain_of(report: Path) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser looks at the page")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed (scripts/components.sh browser): no browser looks at the page")
    heard: list[str] = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        shown = browser.new_page()
        shown.on("console", lambda message: heard.append(message.text))
        shown.on("pageerror", lambda error: heard.append(str(error)))
        shown.on("request", lambda request: heard.append(request.url))
        shown.goto(report.as_uri())
        shown.get_by_text("exit code 3").wait_for()
        assert "/runs/" in shown.url
        assert "flow" in shown.locator("h1").inner_text()
        assert (
            shown.evaluate("getComputedStyle(document.body).backgroundColor") != "rgba(0, 0, 0, 0)"
        )  # it has its style
        shown.get_by_role("link", name="Log", exact=True).or_(
            shown.get_by_role("button", name="Log", exact=True)
        ).click()
        shown.get_by_text("last words").first.wait_for()
        assert shown.title() != "1"
        browser.close()
    assert [each for each in heard if not each.startswith(("blob:", "data:"))] == [report.as_uri()]
