"""The input of commands without input: `{}`, in memory, shared by all commands.

It is sealed, so a task can read but not change it.
"""

from __future__ import annotations

import os

from ork.system import system
from ork.worker.supervise import process

TEXT = b"{}"
_MODE = 0o400
_kept: tuple[int, int, str] | None = None  # the process that opened it, its descriptor there and its path


def opened() -> tuple[int, str]:
    """A descriptor that stays open, at the beginning, and a path at which any process can read the same. OSError if the
    system has no such memory."""
    global _kept
    if _kept is None or _kept[0] != os.getpid():
        _kept = _made()
    _, descriptor, path = _kept
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.fchmod(descriptor, _MODE)  # seals do not protect the mode
    return descriptor, path


def _made() -> tuple[int, int, str]:
    descriptor, path = system.sealed_file("input.json", TEXT)
    process.private.add(descriptor)
    return os.getpid(), descriptor, path
