"""A dbt project is read from its manifest while that is fresh, else dbt is asked, once per content."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ork.compile.dbt import ImportFailedError
from ork.definition.nodes import Kind, Node
from ork.definition.workflow_file import ParsedImport
from ork.locations.dbt import DbtProjects

NODE = Node(Kind.MAP, (), 0, 0, 0)

# Stands for dbt: writes the manifest where it is told to, lists what is selected, and keeps a ledger of its calls.
FAKE = """#!/bin/sh
echo "$@" >> "{root}/ledger"
while [ $# -gt 0 ]; do [ "$1" = --target-path ] && place="$2"; shift; done
[ -f "{root}/broken" ] && echo "Compilation Error" && exit 2
cp "{root}/answer.json" "$place/manifest.json"
echo 'some chatter'
echo '{{"unique_id": "model.shop.a"}}'
"""


def manifest(*names: str) -> str:
    nodes: dict[str, Any] = {
        f"model.shop.{name}": {
            "unique_id": f"model.shop.{name}",
            "resource_type": "model",
            "name": name,
            "package_name": "shop",
            "fqn": ["shop", name],
        }
        for name in names
    }
    return json.dumps({"nodes": nodes})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop/models").mkdir(parents=True)
    (tmp_path / "shop/dbt_project.yml").write_text("name: shop\n")
    (tmp_path / "shop/models/a.sql").write_text("select 1")
    (tmp_path / "answer.json").write_text(manifest("a", "b"))
    program = tmp_path / ".venv/bin/dbt"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE.format(root=tmp_path))
    program.chmod(0o755)
    return tmp_path


def read(root: Path, **options: Any) -> dict[str, bool]:
    nodes = DbtProjects(str(root), str(root / "cache"))(ParsedImport("shop", NODE, **options))
    return {node.name: node.is_built for node in nodes}


def calls(root: Path) -> int:
    ledger = root / "ledger"
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


def test_a_fresh_manifest_is_read_without_dbt(project: Path) -> None:
    (project / "shop/target").mkdir()
    (project / "shop/target/manifest.json").write_text(manifest("c"))
    assert read(project) == {"c": True}
    assert calls(project) == 0


def test_a_manifest_older_than_the_project_is_not_used(project: Path) -> None:
    (project / "shop/target").mkdir()
    (project / "shop/target/manifest.json").write_text(manifest("c"))
    os.utime(project / "shop/target/manifest.json", (1, 1))
    assert read(project) == {"a": True, "b": True}


def test_dbt_is_asked_once_per_content(project: Path) -> None:
    for _ in range(3):
        assert read(project) == {"a": True, "b": True}
    assert calls(project) == 1
    (project / "shop/models/a.sql").write_text("select 2")
    read(project)
    assert calls(project) == 2


def test_only_what_dbt_selects_is_built(project: Path) -> None:
    for _ in range(2):
        assert read(project, select=("a",), target="prod") == {"a": True, "b": False}
    assert calls(project) == 1
    assert (project / "ledger").read_text().strip().endswith("--target prod --select a")


def test_the_output_of_dbt_is_the_hint(project: Path) -> None:
    (project / "broken").touch()
    with pytest.raises(ImportFailedError) as caught:
        read(project)
    assert "Compilation Error" in str(caught.value.hint)


def test_a_folder_without_a_project_is_told_at_once(project: Path) -> None:
    (project / "shop/dbt_project.yml").unlink()
    with pytest.raises(ImportFailedError, match="no dbt project"):
        read(project)


def test_a_missing_dbt_is_reported_with_a_hint(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".venv/bin/dbt").unlink()
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(ImportFailedError) as caught:
        read(project)
    assert "dbt parse" in str(caught.value.hint)
