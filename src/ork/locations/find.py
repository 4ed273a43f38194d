"""Finds the files of a folder that define workflows, by name and content, without running them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from ork.definition.yaml_tree import MAX_BYTES
from ork.locations.files import PYTHON, YAML
from ork.source_code.rules import ORK_FILES, SKIPPED_FOLDERS

MAX_FILES = 50_000
# Folders of the system, in an image without a working directory.
_SYSTEM_FOLDERS = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "media", "mnt", "proc", "run", "sbin", "sys", "usr", "var"}
)
_NAME_LINE = re.compile(rb"^[\"']?name[\"']?\s*:", re.MULTILINE)
_TASKS_LINE = re.compile(rb"^[\"']?tasks[\"']?\s*:", re.MULTILINE)
_IMPORTS_ORK = re.compile(rb"^(?:import\s+ork\b|from\s+ork(?:\.\w+)*\s+import\b)", re.MULTILINE)
_MAKES_WORKFLOW = re.compile(rb"\bWorkflow\s*\(")


class TooManyFilesError(Exception):
    """The folder contains too many files for a project."""


def definition_files(folder: str) -> list[str]:
    """Sorted paths relative to the folder: YAML files with `name` and `tasks` at the top level, and Python files that
    import Ork and create a `Workflow`. Tests, hidden folders and installed packages are skipped."""
    return sorted(path for path in files_below(folder) if _defines(folder, path))


def files_below(folder: str) -> Iterator[str]:
    """Yield all files of a project, relative to its folder. Raises TooManyFilesError. Links to folders are not
    followed."""
    seen = 0
    for source, folders, names in os.walk(folder):
        out = SKIPPED_FOLDERS | _SYSTEM_FOLDERS if os.path.abspath(source) == "/" else SKIPPED_FOLDERS
        folders[:] = sorted(name for name in folders if name not in out and not name.startswith("."))
        seen += len(names)
        if seen > MAX_FILES:
            raise TooManyFilesError(f"{folder} has more than {MAX_FILES:,} files")
        yield from (os.path.relpath(os.path.join(source, name), folder) for name in names if not name.startswith("."))


def _defines(folder: str, path: str) -> bool:
    name = os.path.basename(path)
    if path.endswith(YAML):
        return path not in ORK_FILES and _has(folder, path, _NAME_LINE, _TASKS_LINE)
    is_test = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    return path.endswith(PYTHON) and not is_test and _has(folder, path, _IMPORTS_ORK, _MAKES_WORKFLOW)


def _has(folder: str, path: str, *marks: re.Pattern[bytes]) -> bool:
    """False for a file that cannot be read."""
    full = os.path.join(folder, path)
    try:
        if not os.path.isfile(full):
            return False
        with open(full, "rb") as file:
            text = file.read(MAX_BYTES)
    except OSError:
        return False
    return all(mark.search(text) for mark in marks)
