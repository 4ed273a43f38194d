"""The Python interpreter of local workers."""

from __future__ import annotations

import os
import sys

from ork.executors.executor import LaunchOrder

OLDEST = (3, 11)
BOOTSTRAP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "worker", "bootstrap.py")


class InterpreterError(Exception):
    """No interpreter can be used, and a retry does not help. The message is a sentence."""


def interpreter_for(order: LaunchOrder, uses_project_python: bool) -> str:
    """The order's interpreter, else that of the project's `.venv` if wanted and present, else the current one."""
    if order.interpreter is not None:
        if not os.access(order.interpreter, os.X_OK):
            raise InterpreterError(f"there is no Python at {order.interpreter}")
        return order.interpreter
    return project_python(order.root, *order.paths) if uses_project_python else sys.executable


class Pythons:
    """Caches `interpreter_for` until `look_again`."""

    def __init__(self, uses_project_python: bool) -> None:
        self._uses_project_python = uses_project_python
        self._known: dict[tuple[str, tuple[str, ...], str | None], str] = {}

    def of(self, order: LaunchOrder) -> str:
        key = order.root, order.paths, order.interpreter
        if key not in self._known:
            self._known[key] = interpreter_for(order, self._uses_project_python)
        return self._known[key]

    def of_project(self, root: str) -> str:
        return project_python(root) if self._uses_project_python else sys.executable

    def look_again(self) -> None:
        self._known.clear()


def project_python(*folders: str) -> str:
    """The Python of the `.venv` in one of these folders, else the current interpreter."""
    root = next((each for each in folders if os.access(os.path.join(each, ".venv/bin/python"), os.X_OK)), None)
    if root is None:
        return sys.executable
    own = os.path.join(root, ".venv", "bin", "python")
    version = _version(os.path.join(root, ".venv", "pyvenv.cfg"))
    if version is not None and version < OLDEST:
        shown = ".".join(map(str, version))
        raise InterpreterError(f"{root}/.venv has Python {shown}; tasks need 3.11 or later")
    return own


def _version(config: str) -> tuple[int, int] | None:
    """Read from `version` (venv) or `version_info` (virtualenv, uv); None if there is neither."""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition("=")
                if name.strip() in ("version", "version_info"):
                    major, minor = value.strip().split(".")[:2]
                    return int(major), int(minor)
    except (OSError, ValueError):
        pass
    return None
