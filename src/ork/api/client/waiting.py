"""Hearing of changes from a server: a thread reads its event stream and wakes whoever waits."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from http.client import HTTPException
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from ork.api.client.connection import Server

# The server says that it is still there every fifteen seconds.
SILENCE_SECONDS = 45.0
RETRY_SECONDS = 1.0


class Listener:
    """Its waiter is woken by every event, and after a broken connection as well: something may have been missed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()
        self._ended = threading.Event()
        self._connection: HTTPConnection | None = None
        self._mark: str | None = None
        threading.Thread(target=self._read, daemon=True, name="ork-events").start()

    async def wait(self, timeout: float | None) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._heard.wait()
        happened = self._heard.is_set()
        self._heard.clear()
        return happened

    def close(self) -> None:
        self._ended.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(2)

    def _read(self) -> None:
        while not self._ended.is_set():
            with suppress(OSError, HTTPException, ValueError):
                self._read_stream()
            self._tell()
            self._ended.wait(RETRY_SECONDS)

    def _read_stream(self) -> None:
        self._connection = connection = self._server.open(SILENCE_SECONDS)
        try:
            behind = {"Last-Event-ID": self._mark} if self._mark else {}
            connection.request(
                "GET", self._server.target(("events",), {}), headers={**self._server.headers(), **behind}
            )
            response = connection.getresponse()
            if response.status != 200:
                return
            while line := response.readline(1 << 24):
                self._take(line.decode("utf-8", "replace").rstrip("\n"))
        finally:
            connection.close()

    def _take(self, line: str) -> None:
        name, _, value = line.partition(": ")
        if name == "id":
            self._mark = value
            self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
            self._loop.call_soon_threadsafe(self._heard.set)
