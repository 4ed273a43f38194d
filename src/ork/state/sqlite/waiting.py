"""Waiting for what other handles commit, at next to no cost.

A datagram brings the news at once. Because datagrams can be lost, every few seconds the write-ahead log's time and
size are compared (no statement, no lock); only if they differ is the counter in the database read, which is the truth.
"""

from __future__ import annotations

import os
import time
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ork.state.sqlite.wake import Waker, drain

if TYPE_CHECKING:
    import socket

LOOK_SECONDS = 5.0
_CLOCK_GRAIN_NS = 1_000_000_000

Look = Callable[[], Awaitable[bool]]


class Listener:
    """One for a handle, made when it first waits. One caller waits at a time."""

    def __init__(self, path: str, waker: Waker, look: Look) -> None:
        self._log_file = f"{path}-wal"
        self._look = look
        self._socket = waker.listen()
        self._log: tuple[int, int] | None = None
        self._next_look = 0.0  # what happened before there was a listener is looked for first

    async def wait(self, timeout: float | None) -> bool:
        loop = get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            if self._is_stirred(loop.time()) and await self._look():
                return True
            now = loop.time()
            if deadline is not None and now >= deadline:
                return False
            until = self._next_look if deadline is None else min(self._next_look, deadline)
            await _readable(loop, self._socket, until - now)

    def close(self) -> None:
        self._socket.close()

    def _is_stirred(self, now: float) -> bool:
        """Whether there is a reason to read the counter."""
        arrived = drain(self._socket)
        if now < self._next_look:
            return arrived
        self._next_look = now + LOOK_SECONDS
        return self._log_moved() or arrived

    def _log_moved(self) -> bool:
        before, self._log = self._log, self._log_state()
        return before is None or before != self._log

    def _log_state(self) -> tuple[int, int] | None:
        """None while it says nothing: a second write within the grain of the file's clock would not show."""
        try:
            found = os.stat(self._log_file)
        except OSError:
            return 0, 0
        if time.time_ns() - found.st_mtime_ns < _CLOCK_GRAIN_NS:
            return None
        return found.st_mtime_ns, found.st_size


async def _readable(loop: AbstractEventLoop, listener: socket.socket, seconds: float) -> None:
    """Returns when something has arrived or the time has passed."""
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
