"""The wheel, installed into an environment of its own: what is promised for the package works without the repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_into(tmp_path_factory.mktemp("wheel"))


def built_into(folder: Path) -> Path:
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(build, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"the wheel cannot be built here: {done.stderr[-300:]}")
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def ork(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in a fresh environment."""
    place = tmp_path_factory.mktemp("fresh")
    venv.create(place, with_pip=True)
    install = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"the wheel's dependencies cannot be installed here: {done.stderr[-300:]}")
    return place / "bin" / "ork"


def answer_of(ork: Path, folder: Path, *words: str) -> dict[str, object]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ORK_", "PYTHON"))}
    done = subprocess.run(
        [str(ork), *words, "--json"], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_second_build_has_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert built_into(tmp_path).read_bytes() == wheel.read_bytes()


def test_ork_bench_measures_beside_its_floor(ork: Path, tmp_path: Path) -> None:
    result = answer_of(ork, tmp_path, "bench", "chain")
    assert result["scenario"] == "chain"
    assert result["ratio"] is not None
    assert result["floor"]


def test_ork_sim_plays_every_part(ork: Path, tmp_path: Path) -> None:
    report = answer_of(ork, tmp_path, "sim", "--seeds", "2")
    assert report["seeds"] == 2
    assert report["violations"] == []


def test_the_wheel_holds_no_mutants_and_nothing_of_tests_and_perf(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "mutant" in name or "mutation" in name]
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"ork"}
