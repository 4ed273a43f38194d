"""The built web pages agree with their sources. Nothing here needs Node: `make ui-check` builds and compares bytes."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TREE = Path(__file__).resolve().parents[2]
UI = TREE / "ui"
STATIC = TREE / "src" / "ork" / "ui" / "static"
KB = 1000
FIRST_PAGE, ALL_SCRIPTS, STYLES = 60 * KB, 180 * KB, 15 * KB


@pytest.fixture(scope="module")
def build() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((STATIC / "build.json").read_text())
    return found


def test_built_pages_are_those_of_the_sources(build: dict[str, Any]) -> None:
    assert build["sources"] == hash_of_sources(UI), "ui/src changed, static was not built: run `make ui`"


def test_files_are_as_they_were_built(build: dict[str, Any]) -> None:
    found = {file.name: sha256(file.read_bytes()) for file in STATIC.iterdir() if file.name != "build.json"}
    assert found == {name: entry["sha256"] for name, entry in build["outputs"].items()}, "run `make ui`"
    lines = "".join(f"{name} {entry['sha256']}\n" for name, entry in build["outputs"].items())
    assert build["build"] == sha256(lines.encode())[:12]


def test_sizes_are_within_budget(build: dict[str, Any]) -> None:
    sizes = {name: len(gzip.compress((STATIC / name).read_bytes(), 9)) for name in build["outputs"]}
    # The same pages as one script, for exports: no browser loads it beside the others.
    scripts = [name for name in sizes if name.endswith(".js") and name != "snapshot.js"]
    assert {"app.js", "base.js", "home.js"} <= set(build["first"])
    assert sum(sizes[name] for name in build["first"]) <= FIRST_PAGE
    assert sum(sizes[name] for name in scripts) <= ALL_SCRIPTS
    assert sizes["app.css"] <= STYLES
    assert sizes["snapshot.js"] <= ALL_SCRIPTS
    assert "snapshot.js" not in build["first"]


def test_page_needs_no_inline_script_or_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\bstyle=|\bon\w+=", page) == []
    addresses = re.findall(r'\b(?:src|href)="([^"]*)"', page)
    assert all(address.startswith("/ui/assets/__BUILD__/") for address in addresses)
    assert all((STATIC / address.rpartition("/")[2]).exists() for address in addresses)


def test_sources_write_no_markup_from_text() -> None:
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(")
    sources = [file for file in (UI / "src").rglob("*.ts*") if forbidden.search(file.read_text())]
    assert sources == []


def test_lock_file_has_no_addresses() -> None:
    lock = json.loads((UI / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert [name for name, entry in packages.items() if "integrity" not in entry] == []


def test_licences_of_bundled_packages_are_named(build: dict[str, Any]) -> None:
    lock = json.loads((UI / "package-lock.json").read_text())["packages"]
    bundled = {name.removeprefix("node_modules/") for name, entry in lock.items() if name and not entry.get("dev")}
    assert {each["name"] for each in build["licences"]} == bundled
    assert all(each["text"] for each in build["licences"])


def test_types_are_those_of_the_api() -> None:
    environment = {**os.environ, "PYTHONPATH": str(TREE / "src")}
    check = subprocess.run([sys.executable, TREE / "scripts" / "ui_types.py", "--check"], env=environment, check=False)
    assert check.returncode == 0, "the API changed: run `make ui-types`"


def test_a_changed_source_is_noticed(tmp_path: Path) -> None:
    for name in ("package-lock.json", "build.mjs"):
        (tmp_path / name).write_text("1")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.ts").write_text("1")
    before = hash_of_sources(tmp_path)
    (tmp_path / "src" / "a.ts").write_text("2")
    assert hash_of_sources(tmp_path) != before


def hash_of_sources(folder: Path) -> str:
    """As ui/build.mjs computes it."""
    sources = [*(file for file in (folder / "src").rglob("*") if file.is_file())]
    sources += [folder / "package-lock.json", folder / "build.mjs"]
    named = sorted((file.relative_to(folder).as_posix(), file) for file in sources)
    return sha256("".join(f"{name}\0{sha256(file.read_bytes())}\n" for name, file in named).encode())


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
