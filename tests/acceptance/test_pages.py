"""Pages of the documentation that can be followed from top to bottom are followed; blocks of all others are checked."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.pages import Block, blocks, follow

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
FOLLOWED = {"backfills.md": 5, "tutorial.md": 12, "secrets.md": 4, "ci.md": 3}
"""Pages that a reader can follow in an empty folder, with the least number of commands on them."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOLLOWED))
def test_the_page_can_be_followed(name: str, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LANG": "C.UTF-8", "COLUMNS": "160", "HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    assert follow(ROOT / "docs" / name, tmp_path / "project", environment) >= FOLLOWED[name]


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=lambda page: page.name)
def test_every_block_can_be_read(page: Path) -> None:
    wrong = [f"{page.name}:{block.line}: {problem}" for block in blocks(page) if (problem := mistake(block))]
    assert wrong == []


def mistake(block: Block) -> str | None:
    """What is wrong with the block in its language; None if nothing is, or if the language is not known."""
    text = textwrap.dedent(block.text)
    try:
        if block.kind in ("yaml", "yml"):
            list(yaml.safe_load_all(text))
        elif block.kind == "python":
            ast.parse(text)
        elif block.kind == "json" and "…" not in text:
            json.loads(text)
        elif block.kind == "toml":
            tomllib.loads(text)
    except (ValueError, SyntaxError, yaml.YAMLError) as error:
        return str(error)
    return None


@pytest.mark.slow
def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zensical")
    site = importlib.import_module("scripts.docs_site")
    monkeypatch.setattr(site, "SOURCE", tmp_path / "docs")
    site.prepare()
    built = subprocess.run(
        [Path(sys.executable).parent / "zensical", "build", "--strict", "--config-file", "mkdocs.yml"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    page = (tmp_path / "site/tutorial.html").read_text()
    assert "<h1" in page
    assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://[^"]+', page) == []
    names = {
        row["location"].partition("#")[0] for row in json.loads((tmp_path / "site/search.json").read_text())["items"]
    }
    assert {"tutorial.html", "language.html", "source/examples/etl/index.html"} <= names
