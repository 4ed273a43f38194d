"""Notifies handles in other processes of commits, and waits for theirs, at almost no cost.

Each listener binds a socket in the folder `wake` next to the database; a commit sends one byte to each of them. Because
datagrams can be lost, the modification time and size of the write-ahead log are compared every few seconds (no statement, no
lock). Only if a datagram arrived or they differ is the counter in the database read; it alone decides whether something has
changed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ork.system import system

if TYPE_CHECKING:
    import socket
    from asyncio import AbstractEventLoop


_LONGEST_ADDRESS = 100  # a socket's path may have 107 bytes
_GONE = (errno.ECONNREFUSED, errno.ENOENT)  # the listener's process is gone, or has just closed it


class Waker:
    """Wakes all listeners of one database except its own."""

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
        """Send a datagram to each listener. Never fails or waits: a listener that is not reached finds the change
        later."""
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
            # A full buffer is fine, because its listener is about to wake. The socket of a dead listener is removed.
            if error.errno in _GONE:
                _remove(os.path.join(self.folder, name))


def drain(listener: socket.socket) -> bool:
    """Read all datagrams; return whether there were any."""
    arrived = False
    with suppress(BlockingIOError):
        while listener.recv(16):
            arrived = True
    return arrived


def _new_socket() -> socket.socket:
    import socket  # imported only if there is a listener: it adds two milliseconds to a cold start

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _with_address(folder: str, name: str, use: Callable[[str], object]) -> None:
    path = os.path.join(folder, name)
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        use(path)
        return
    system.with_short_path(folder, lambda short: use(f"{short}/{name}"))


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


LOOK_SECONDS = 5.0
_CLOCK_GRAIN_NS = 1_000_000_000

Look = Callable[[], Awaitable[bool]]


class ChangeListener:
    """The listener of one handle, created when it first waits. Only one caller may wait at a time."""

    def __init__(self, path: str, waker: Waker, look: Look) -> None:
        self._log_file = f"{path}-wal"
        self._look = look
        self._socket = waker.listen()
        self._log: tuple[int, int] | None = None
        self._next_look = 0.0  # the first wait looks for earlier changes

    async def wait(self, timeout: float | None) -> bool:
        from asyncio import get_running_loop  # late: a short command never waits

        loop = get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            if self._should_look(loop.time()) and await self._look():
                return True
            now = loop.time()
            if deadline is not None and now >= deadline:
                return False
            until = self._next_look if deadline is None else min(self._next_look, deadline)
            await _readable(loop, self._socket, until - now)

    def close(self) -> None:
        self._socket.close()

    def _should_look(self, now: float) -> bool:
        """True if there is a reason to read the counter."""
        arrived = drain(self._socket)
        if now < self._next_look:
            return arrived
        self._next_look = now + LOOK_SECONDS
        return self._log_moved() or arrived

    def _log_moved(self) -> bool:
        before, self._log = self._log, self._log_state()
        return before is None or before != self._log

    def _log_state(self) -> tuple[int, int] | None:
        """Modification time and size of the log. None if the last write is too recent: within the resolution of the
        file's clock a second write would not be seen."""
        try:
            found = os.stat(self._log_file)
        except OSError:
            return 0, 0
        if time.time_ns() - found.st_mtime_ns < _CLOCK_GRAIN_NS:
            return None
        return found.st_mtime_ns, found.st_size


async def _readable(loop: AbstractEventLoop, listener: socket.socket, seconds: float) -> None:
    """Return when a datagram has arrived or the time has passed."""
    waiter = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = loop.call_later(seconds, wake)
    loop.add_reader(listener, wake)
    try:
        await waiter
    finally:
        timer.cancel()
        loop.remove_reader(listener)
