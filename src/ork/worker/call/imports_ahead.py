"""Imports done while a task process waits for its order, learned from earlier attempts.

Only in the waiting process itself; only modules that are not the project's own; and not again after an import was seen to start
a thread or to open a socket.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

WORTH_SECONDS = 0.005
MOST_MODULES = 5000


class Ahead:
    """Modules that functions of a project import, and the files whose change makes that out of date."""

    __slots__ = ("files", "names", "paths", "root")

    def __init__(self, root: str, paths: list[str], names: list[str], files: dict[str, int | None]) -> None:
        self.root = root
        self.paths = paths  # more folders of the project to import from
        self.names = names
        self.files = files


def imported(folders: Sequence[str], known: int) -> dict[str, Any] | None:
    """What was imported after the first so many modules, for others to do so ahead; None if it is not worth it. Not what
    is in the project's own `folders`."""
    names, files, own = [], {}, tuple(folder + "/" for folder in folders)
    for name, module in list(sys.modules.items())[known:]:
        file = getattr(module, "__file__", None)
        if file is None or getattr(module, "__spec__", None) is None or file.startswith(own):
            continue
        names.append(name)
        # What is installed is known to have changed by other traces.
        if not file.startswith((sys.prefix + "/", sys.base_prefix + "/")):
            files[file] = time_of(file)
    return {"names": names, "files": files} if 0 < len(names) <= MOST_MODULES else None


def import_ahead(names: list[str]) -> bool:
    """True if that left this process with one thread and no new socket. What cannot be imported is left to the function,
    which will say why."""
    from importlib import import_module

    before = _sockets()
    for name in names:
        if name not in sys.modules:
            try:
                import_module(name)
            except BaseException:
                break
    try:
        return len(os.listdir("/proc/self/task")) == 1 and _sockets() == before
    except OSError:
        return False


def _sockets() -> set[str]:
    """Empty where the system does not tell."""
    try:
        return {name for name in os.listdir("/proc/self/fd") if _is_socket(name)}
    except OSError:
        return set()


def _is_socket(descriptor: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
    except OSError:
        return False


def time_of(file: str) -> int | None:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return None
