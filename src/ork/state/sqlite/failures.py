"""Translates SQLite's errors to store errors with a hint. No exception of sqlite3 leaves this package."""

from __future__ import annotations

import errno
import os
import sqlite3

from ork.errors import StoreError, StoreUnavailableError

_PRIMARY = 0xFF  # the low byte of an extended result code
_LITTLE_SPACE = 64 * 1024  # less than a commit may need
_NO_SPACE = ("has no space left on its disk", "Free some space; work then continues automatically.")
# Errors of a full disk when a file has to be created or extended.
_MAY_MEAN_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)

_FOR_NOW = {
    sqlite3.SQLITE_BUSY: ("is locked by another process", "Another process holds the write lock; try again."),
    sqlite3.SQLITE_LOCKED: ("is locked", "Try again."),
    sqlite3.SQLITE_NOMEM: ("ran out of memory", "Free some memory and try again."),
    sqlite3.SQLITE_INTERRUPT: ("was interrupted", "Try again."),
    sqlite3.SQLITE_IOERR: ("cannot be read or written", "Check the disk, then try again."),
    sqlite3.SQLITE_FULL: _NO_SPACE,
    sqlite3.SQLITE_PROTOCOL: ("is locked by another process", "Try again."),
}

_FOR_GOOD = {
    sqlite3.SQLITE_PERM: ("may not be opened", "Check who owns the file and its folder."),
    sqlite3.SQLITE_AUTH: ("may not be opened", "Check who owns the file and its folder."),
    sqlite3.SQLITE_READONLY: ("may only be read", "Check the permissions of the file and its folder."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Check that its folder exists and may be written to."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "Restore it from a backup, or move it away to begin afresh."),
    sqlite3.SQLITE_NOTADB: ("is not a SQLite database", "Choose another file with --store."),
}


def store_error(error: sqlite3.Error, path: str) -> StoreError:
    code = _code(error)
    if code in _MAY_MEAN_FULL and _is_full(path):
        code = sqlite3.SQLITE_FULL
    if code in _FOR_NOW:
        what, hint = _FOR_NOW[code]
        return StoreUnavailableError(f"The store {path} {what} ({error}).", hint=hint)
    what, hint = _FOR_GOOD.get(code, ("did not understand a request", "This is a fault in Ork; please report it."))
    return StoreError(f"The store {path} {what} ({error}).", hint=hint)


def is_locked(error: StoreError) -> bool:
    """True if another process holds a lock on the file, so that waiting helps."""
    return isinstance(error.__cause__, sqlite3.Error) and _code(error.__cause__) in _LOCKED


def file_error(error: OSError, path: str) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailableError(f"The store {path} {_NO_SPACE[0]} ({error.strerror}).", hint=_NO_SPACE[1])
    return StoreError(
        f"The store {path} cannot be opened ({error.strerror or error}).",
        hint="Check that its folder exists and may be written to, or choose another with --store.",
    )


def _code(error: sqlite3.Error) -> int:
    # Errors raised by the sqlite3 module itself have no code.
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & _PRIMARY


def _is_full(path: str) -> bool:
    try:
        disk = os.statvfs(os.path.dirname(os.path.abspath(path)))
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _LITTLE_SPACE
