"""A release can be built again, and works with the versions of Python and of its dependencies that it names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PYTHONS = ("3.12", "3.13", "3.14", "3.15")


@pytest.mark.soak
def test_sdist_wheel_and_sbom_are_the_same_twice(tree: Path, tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py", reason="pip install '.[release]'")
    command = [sys.executable, "scripts/release.py", "--no-image", "-o", str(tmp_path)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.suffix for path in tmp_path.iterdir()} == {"", ".gz", ".json", ".whl"}
    (sbom,) = tmp_path.glob("*.cdx.json")
    components = json.loads(sbom.read_text())["components"]
    assert {"click", "fastapi", "asyncpg"} <= {each["name"] for each in components}


@pytest.mark.soak
@pytest.mark.parametrize("resolution", ["newest", "oldest"])
def test_the_newest_and_the_oldest_dependencies_work(tree: Path, resolution: str) -> None:
    tried(tree, sys.executable, resolution)


@pytest.mark.soak
@pytest.mark.parametrize("version", PYTHONS)
def test_other_versions_of_python_work(tree: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed here")
    tried(tree, python, "newest", "tests/unit", "tests/architecture", "tests/acceptance/test_examples.py")


def interpreter(version: str) -> str | None:
    """On the PATH, or among those of pyenv."""
    own = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    candidates = [str(path) for path in own] + [found for found in [shutil.which(f"python{version}")] if found]
    works = lambda path: subprocess.run([path, "-c", "import venv"], capture_output=True).returncode == 0  # noqa: E731
    return next((path for path in candidates if works(path)), None)


def tried(tree: Path, python: str, resolution: str, *tests: str) -> None:
    if shutil.which("uv", path=path_with_tools()) is None:
        pytest.skip("uv is not installed here: pip install '.[release]'")
    environment = {**os.environ, "PYTHON": python, "PATH": path_with_tools()}
    done = subprocess.run(
        ["scripts/canary.sh", resolution, *tests], cwd=tree, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def path_with_tools() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
