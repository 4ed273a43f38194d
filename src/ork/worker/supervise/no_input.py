"""The input of commands without input: `{}`, in memory, shared by all commands.

It is sealed, so a task can read but not change it.
"""

from __future__ import annotations

import os

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
    try:
        from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE, fcntl

        descriptor = os.memfd_create("input.json", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (ImportError, AttributeError) as error:
        raise OSError(str(error)) from None
    try:
        os.write(descriptor, TEXT)
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
    except OSError:
        os.close(descriptor)
        raise
    process.private.add(descriptor)
    return os.getpid(), descriptor, f"/proc/{os.getpid()}/fd/{descriptor}"
