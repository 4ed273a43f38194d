"""What a requirement that is a path points at is part of what an environment is built from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.worker.build.local_requirements import content_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package = tmp_path / "my pack"
    (package / "src/mine").mkdir(parents=True)
    (package / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    (package / "src/mine/__init__.py").write_text("A = 1\n")
    (tmp_path / "pack").symlink_to(package)
    (tmp_path / "one.whl").write_bytes(b"1")
    return tmp_path


def content(project: Path, line: str) -> list[str | bytes]:
    return list(content_of([line], [str(project)]))


@pytest.mark.parametrize(
    "line",
    ["./pack", "./pack[extra]", "mine @ file://{root}/my%20pack", "file://{root}/pack", "./pack ; python_version>'3'"],
)
def test_a_changed_file_changes_the_content_and_a_compiled_one_does_not(project: Path, line: str) -> None:
    line = line.format(root=project)
    first = content(project, line)
    assert first
    (project / "pack/src/mine/__pycache__").mkdir()
    (project / "pack/src/mine/__pycache__/x.pyc").write_bytes(b"x")
    assert content(project, line) == first
    (project / "pack/src/mine/__init__.py").write_text("A = 2\n")
    second = content(project, line)
    assert second != first
    (project / "pack/src/mine/more.py").write_text("")
    assert content(project, line) != second


def test_what_is_installed_in_place_counts_by_its_build_files_alone(project: Path) -> None:
    first = content(project, "-e ./pack")
    (project / "pack/src/mine/__init__.py").write_text("A = 2\n")
    assert content(project, "-e ./pack") == first
    (project / "pack/pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert content(project, "--editable=./pack") != first


def test_a_wheel_counts_by_its_bytes(project: Path) -> None:
    first = content(project, "one.whl")
    (project / "one.whl").write_bytes(b"2")
    assert content(project, "./one.whl") != first


@pytest.mark.parametrize(
    "line",
    [
        "pandas>=2",
        "pandas[all]",
        "git+https://x/y",
        "-r more.txt",
        "--index-url https://x/y",
        "./missing",
        "x @ https://y/z.whl",
    ],
)
def test_what_is_no_path_has_no_content_of_its_own(project: Path, line: str) -> None:
    assert content(project, line) == []
