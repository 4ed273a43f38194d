"""How handles in different processes wake each other: a datagram after each commit.

Every listener binds a socket in the folder `wake` beside the database; who commits sends one byte to each. A lost
datagram costs seconds, never the news: the counter in the database is the truth (see `waiting.py`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

_LONGEST_ADDRESS = 100  # a socket's path may have 107 bytes
_NOBODY = (errno.ECONNREFUSED, errno.ENOENT)  # its process is gone, or it has just closed


class Waker:
    """Wakes all listeners beside one database but its own."""

    def __init__(self, database: str) -> None:
        self.folder = os.path.join(os.path.dirname(os.path.abspath(database)), "wake")
        self._own_name: str | None = None
        self._sender: socket.socket | None = None

    def listen(self) -> socket.socket:
        """A socket that becomes readable after each commit of another handle."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        listener = _new_socket()
        self._own_name = f"{os.getpid()}-{os.urandom(4).hex()}"
        try:
            _with_address(self.folder, self._own_name, listener.bind)
        except BaseException:
            listener.close()
            raise
        return listener

    def wake_others(self) -> None:
        """Never fails and never waits: who cannot be reached finds out by looking."""
        try:
            names = os.listdir(self.folder)
        except OSError:
            return
        for name in names:
            if name != self._own_name:
                self._send(name)

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()
        if self._own_name is not None:
            _remove(os.path.join(self.folder, self._own_name))

    def _send(self, name: str) -> None:
        try:
            sender = self._sender = self._sender or _new_socket()
            _with_address(self.folder, name, lambda address: sender.sendto(b"!", address))
        except OSError as error:
            # A full buffer needs no more: its listener is about to wake. A dead listener's name is taken away.
            if error.errno in _NOBODY:
                _remove(os.path.join(self.folder, name))


def drain(listener: socket.socket) -> bool:
    """Takes all that has arrived; was there anything?"""
    arrived = False
    with suppress(BlockingIOError):
        while listener.recv(16):
            arrived = True
    return arrived


def _new_socket() -> socket.socket:
    import socket  # only where there is somebody to wake: it costs a cold start two milliseconds

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _with_address(folder: str, name: str, use: Callable[[str], object]) -> None:
    path = os.path.join(folder, name)
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        use(path)
        return
    # A long path is named through an open folder, which is always short.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        use(f"/proc/self/fd/{handle}/{name}")
    finally:
        os.close(handle)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
