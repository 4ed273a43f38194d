"""Opening files in places that users and their tasks can reach: only regular files are opened and read."""

from __future__ import annotations

import errno
import os
import stat

_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
_NO_FILES = {
    errno.ELOOP: "a link",
    errno.EISDIR: "a directory",
    errno.ENXIO: "a FIFO, a socket or a device",
    errno.ENODEV: "a device",
}


class NotRegularError(OSError):
    """The path exists, but is not a regular file."""


def open_regular(path: str, flags: int = os.O_RDONLY, *, follows_links: bool = False) -> int:
    """A descriptor of a regular file. Opening never blocks: a FIFO without a writer would, for ever."""
    more = os.O_CLOEXEC | os.O_NONBLOCK | (0 if follows_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags | more, 0o600)
    except OSError as error:
        if error.errno in _NO_FILES:
            raise _not_regular(path, _NO_FILES[error.errno]) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise _not_regular(path, next((words for is_kind, words in _KINDS if is_kind(mode)), "something else"))


def read_regular(path: str, limit: int) -> bytes:
    """The whole file, or the first `limit` bytes of it; links are followed."""
    with open(open_regular(path, follows_links=True), "rb") as file:
        return file.read(limit)


def _not_regular(path: str, what: str) -> NotRegularError:
    return NotRegularError(errno.EINVAL, f"it is {what}, not a regular file", path)
