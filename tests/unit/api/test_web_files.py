"""The pages of the web UI: what is sent, how long it is kept, and who may open it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import httpx
import pytest

from ork import __version__
from ork.api.guard import PAGE_POLICY, SECURITY_HEADERS
from ork.api.routes.ui import FOREVER
from ork.ui.assets import WebFiles, read_files
from tests.unit.api.conftest import Bench

BUILD = "3f9c01ab"
SCRIPT = "console.log('a page of Ork');\n" * 100
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
INDEX = """<!doctype html><meta name="ork-version">
<link rel="stylesheet" href="/ui/assets/__BUILD__/app.css"><script type="module" src="/ui/assets/__BUILD__/app.js"></script>
"""


def build(folder: Path, **changes: str) -> Path:
    files = {
        "index.html": INDEX,
        "app.js": SCRIPT,
        "app.css": "a{}",
        "build.json": json.dumps({"build": BUILD}),
        **changes,
    }
    (folder / "parts").mkdir(parents=True)
    for name, text in {**files, "parts/log.js": SCRIPT, ".hidden": "x"}.items():
        (folder / name).write_text(text)
    return folder


async def client_of(bench: Bench, **headers: str) -> httpx.AsyncClient:
    bench.api.kept[WebFiles] = read_files(build(bench.folder / "static"))
    return await bench.client(None, **{"accept-encoding": "identity", **headers})


def test_the_files_are_read_and_compressed_once(tmp_path: Path) -> None:
    files = read_files(build(tmp_path / "static"))
    assert files is not None
    assert (files.build, set(files.assets)) == (BUILD, {"app.js", "app.css", "parts/log.js"})
    script = files.assets["app.js"]
    assert script.compressed is not None
    assert gzip.decompress(script.compressed) == script.body == SCRIPT.encode()
    assert files.assets["app.css"].compressed is None
    page = files.page.body.decode()
    assert f'<meta name="ork-version" content="{__version__}">' in page
    assert page.count(f"/ui/assets/{BUILD}/app.") == 2
    assert "__BUILD__" not in page


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"build": 3}', '{"build": "\\"><script>"}'])
def test_a_folder_without_a_build_is_none(tmp_path: Path, text: str) -> None:
    assert read_files(tmp_path / "nowhere") is None
    assert read_files(build(tmp_path / "static", **{"build.json": text})) is None


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/runs/7f3k?view=graph&any=thing#L2", "/ui/workflows/a%2Fb", "/ui/index.html"]
)
async def test_every_path_is_the_same_page(bench: Bench, path: str) -> None:
    async with await client_of(bench) as client:
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert f"/ui/assets/{BUILD}/app.js" in answer.text
        wanted = {**SECURITY_HEADERS, "Content-Security-Policy": PAGE_POLICY, "Cache-Control": "no-cache"}
        assert {name: answer.headers[name] for name in wanted} == wanted
        again = await client.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_the_policy_of_pages_allows_no_inline_script_and_demands_trusted_types() -> None:
    rules = dict(each.strip().split(" ", 1) for each in PAGE_POLICY.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["worker-src"] == rules["connect-src"] == "'self'"
    assert (rules["require-trusted-types-for"], rules["trusted-types"]) == ("'script'", "ork")


async def test_files_of_this_build_are_kept_for_ever_and_others_are_not_there(bench: Bench) -> None:
    async with await client_of(bench) as client:
        answer = await client.get(f"/ui/assets/{BUILD}/app.js")
        assert (answer.status_code, answer.text, answer.headers["cache-control"]) == (200, SCRIPT, FOREVER)
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        small = await client.get(f"/ui/assets/{BUILD}/parts/log.js", headers={"accept-encoding": "gzip"})
        assert (small.headers["content-encoding"], small.text) == ("gzip", SCRIPT)
        assert small.headers["vary"] == "Accept-Encoding"
        for path in (f"{BUILD}/other.js", f"{BUILD}/index.html", "old/app.js", f"{BUILD}/..%2F..%2Fassets.py", BUILD):
            wrong = await client.get(f"/ui/assets/{path}")
            kept = "no-store" if path != BUILD else "no-cache"  # a page may have that path
            assert (wrong.status_code, wrong.headers["cache-control"]) == (404 if path != BUILD else 200, kept), path


async def test_without_the_files_a_page_says_so(bench: Bench) -> None:
    bench.api.kept[WebFiles] = None
    async with await bench.client(None) as client:
        answer = await client.get("/ui/")
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "packaged without the web UI" in answer.text
        assert (await client.get(f"/ui/assets/{BUILD}/app.js")).status_code == 404


@pytest.mark.parametrize("path", ["/", "/ui"])
async def test_the_root_leads_to_the_pages(bench: Bench, path: str) -> None:
    async with await client_of(bench) as client:
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (307, "/ui/")


async def test_a_link_on_another_site_opens_a_page_and_nothing_else(bench: Bench) -> None:
    async with await client_of(bench, **LINK) as client:
        assert (await client.get("/ui/runs/7f3k")).status_code == 200
        assert (await client.get("/")).status_code == 307
        for path in ("/api/v1/runs", "/api/v1/session", "/healthz", "/metrics"):
            answer = await client.get(path, headers={"Authorization": "Bearer x"})
            assert (answer.status_code, answer.json()["code"]) == (403, "ORK832"), path
        for other in (
            {"Sec-Fetch-Dest": "iframe"},
            {"Sec-Fetch-Dest": "frame"},
            {"Sec-Fetch-Dest": "object"},
            {"Sec-Fetch-Dest": "script", "Sec-Fetch-Mode": "no-cors"},
            {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "no-cors"},  # <link rel="prefetch">
            {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors", "Origin": "http://evil.example"},
            {"Sec-Purpose": "prefetch"},
            {"Sec-Purpose": "prefetch;prerender"},
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "iframe"},
            {"Origin": "http://evil.example"},
        ):
            assert (await client.get("/ui/", headers=other)).status_code == 403, other
        assert (await client.post("/ui/")).status_code == 403
        assert (await client.get("/ui/", headers={"Host": "evil.example"})).status_code == 421


async def test_a_page_needs_get(bench: Bench) -> None:
    async with await client_of(bench) as client, await bench.client() as admin:
        assert (await client.post("/ui/")).status_code == 401
        assert (await admin.post("/ui/")).status_code == 405
