"""Finds the program of a command."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_REMEMBERED = 256
_candidates: dict[tuple[str, str, str], list[str]] = {}  # by name, PATH and root


class ProgramError(Exception):
    """A sentence saying why there is nothing to run."""


def find_program(
    argv: list[str],
    root: str,
    script_dir: str | None,
    path: str,
    python: str | None = None,
    paths: Sequence[str] = (),
) -> list[str]:
    """The argv to execute, its first word an absolute path. `python` runs Python scripts; the project's own if None, which
    may be in one of `paths`.

    A first word with a slash is a file (relative to the root); a bare one is searched in `script_dir`, then on PATH.
    """
    if not argv or not argv[0]:
        raise ProgramError("the command is empty")
    name, arguments = argv[0], argv[1:]
    if "/" in name:
        file = os.path.normpath(os.path.join(root, name))
        if not os.path.exists(file):
            raise ProgramError(f"no file `{name}` in {root}")
        return [*_runnable(file, python or project_python(root, *paths)), *arguments]
    if script_dir is not None:
        file = os.path.normpath(os.path.join(root, script_dir, name))
        if os.path.isfile(file):
            return [*_runnable(file, python or project_python(root, *paths)), *arguments]
    for file in _named_on(path, name, root):
        # In this order: most folders do not contain it, and this is the cheapest way to find out.
        if os.access(file, os.X_OK) and os.path.isfile(file):
            return [file, *arguments]
    place = f"in script_dir {script_dir.rstrip('/')}/ or " if script_dir is not None else ""
    raise ProgramError(f"no program `{name}` {place}on PATH")


def _named_on(path: str, name: str, root: str) -> list[str]:
    """The paths at which a program of this name could be, without duplicates. Whether it exists is checked for each task."""
    key = name, path, root
    files = _candidates.get(key)
    if files is None:
        if len(_candidates) >= _MOST_REMEMBERED:
            _candidates.clear()
        files = [os.path.join(root, folder or ".", name) for folder in path.split(os.pathsep)]
        files = _candidates[key] = list(dict.fromkeys(files))
    return files


def project_python(*folders: str) -> str:
    """The interpreter of the project's own virtual environment, or the one we run in."""
    for folder in folders:
        python = f"{folder}/.venv/bin/python"
        if os.access(python, os.X_OK):
            return python
    return sys.executable


def add_import_paths(env: dict[str, str], program: str, paths: Sequence[str]) -> None:
    """Let Python scripts import from the project's folders, as functions do. Other programs are not affected."""
    if paths and program.endswith(".py"):
        env["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [env.get("PYTHONPATH")])])


def _runnable(file: str, python: str) -> list[str]:
    if os.path.isdir(file):
        raise ProgramError(f"`{file}` is a folder")
    if os.access(file, os.X_OK):
        return [file]
    if file.endswith(".py"):
        return [python, file]
    if file.endswith(".sh"):
        return ["/bin/sh", file]
    raise ProgramError(f"`{file}` is not executable: chmod +x it")
