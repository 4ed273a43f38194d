"""The lock files of the images fit the package, and name no addresses."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

LOCK = "deploy/requirements.lock"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.M)
FOR_DEVELOPERS = {"docs", "test", "dev", "release"}


def locked(tree: Path, extras: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "deploy/locked.py", "pyproject.toml", LOCK, extras]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def project(tree: Path) -> dict:
    return tomllib.loads((tree / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("file", [LOCK, "deploy/build.lock"])
def test_every_package_has_a_version_and_hashes_and_no_address(tree: Path, file: str) -> None:
    text = (tree / file).read_text()
    assert "://" not in text
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.M)[1:]
    assert blocks
    assert [block for block in blocks if not PINNED.match(block) or "--hash=sha256:" not in block] == []


def test_the_lock_has_what_the_package_and_its_extras_ask_for(tree: Path) -> None:
    found = project(tree)
    extras = [name for name in found["optional-dependencies"] if name not in FOR_DEVELOPERS]
    versions = dict(PINNED.findall((tree / LOCK).read_text()))
    lines = [*found["dependencies"], *(line for extra in extras for line in found["optional-dependencies"][extra])]
    wrong = [
        line
        for line in lines
        if (each := Requirement(line)).name != found["name"] and versions.get(each.name) not in each.specifier
    ]
    assert wrong == [], "run `make lock`"


def test_a_part_of_the_lock_is_that_of_the_extras(tree: Path) -> None:
    names = {extra: dict(PINNED.findall(locked(tree, extra).stdout)) for extra in ("", "postgres", "mcp")}
    assert set(names["postgres"]) - set(names[""]) == {"asyncpg"}
    assert {"click", "anyio", "httpcore2"} <= set(names[""]), "what dependencies need is there, too"
    assert {"mcp", "fastapi", "starlette"} <= set(names["mcp"]), "extras of the package itself are followed"


def test_an_unknown_extra_is_named(tree: Path) -> None:
    done = locked(tree, "servr")
    assert done.returncode == 1
    assert "servr" in done.stderr


def test_the_image_installs_nothing_without_a_hash(tree: Path) -> None:
    text = (tree / "deploy/Dockerfile").read_text()
    installs = re.findall(r"pip install[^\\]*", text)
    assert installs
    assert [each for each in installs if "--require-hashes" not in each and "--no-deps" not in each] == []
