"""A process that was set up with packages is outdated when packages change, and only then."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ork.worker.call.packages import PackageFingerprint


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    (folder / "whole").mkdir(parents=True)
    (folder / "whole" / "__init__.py").write_text("")
    (folder / "whole-1.0.dist-info").mkdir()
    (folder / "single.py").write_text("")
    (folder / "paths.pth").write_text("/elsewhere\n")
    for path in (*folder.iterdir(), folder):
        os.utime(path, ns=(0, 0))
    monkeypatch.setattr(sys, "path", [str(folder), str(tmp_path / "missing")])
    return folder


def _write_caches(folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "single.cpython-311.pyc").write_bytes(b"")
    (folder / "whole" / "__pycache__").mkdir()


def test_bytecode_of_a_first_import_outdates_nothing(packages: Path) -> None:
    fingerprint = PackageFingerprint()
    assert fingerprint.is_current()
    _write_caches(packages)
    assert fingerprint.is_current()
    assert fingerprint.is_current()


CHANGES: dict[str, Callable[[Path], object]] = {
    "a module is added": lambda folder: (folder / "more.py").write_text(""),
    "a module is removed": lambda folder: (folder / "single.py").unlink(),
    "a module is replaced": lambda folder: os.replace(_new_file(folder), folder / "single.py"),
    "a package is installed again": lambda folder: _reinstall(folder),
    "a path file is changed": lambda folder: (folder / "paths.pth").write_text("/another\n"),
    "the folder is gone": lambda folder: folder.rename(folder.with_name("moved")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_packages_outdates_the_process(packages: Path, change: str) -> None:
    fingerprint = PackageFingerprint()
    CHANGES[change](packages)
    assert not fingerprint.is_current()
    assert not fingerprint.is_current()


def test_a_change_is_noticed_beside_new_bytecode(packages: Path) -> None:
    fingerprint = PackageFingerprint()
    _write_caches(packages)
    (packages / "more.py").write_text("")
    assert not fingerprint.is_current()


def _new_file(folder: Path) -> Path:
    (folder / "new.tmp").write_text("VALUE = 2")
    return folder / "new.tmp"


def _reinstall(folder: Path) -> None:
    """As pip does: the files of the old one are removed, those of the new one are written."""
    (folder / "whole-1.0.dist-info").rmdir()
    (folder / "whole-1.0.dist-info").mkdir()
