"""Waits for changes on a server: a task reads its event stream and wakes the caller of `wait`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx2

from ork.outbound.clients import async_client, proxy_for, transport_to

if TYPE_CHECKING:
    from ork.api.client.connection import Server

# The server sends a comment every fifteen seconds.
SILENCE_SECONDS = 45.0
RETRY_SECONDS = 1.0


class EventStream:
    """Wakes on every event, and when the stream starts or breaks, because changes may have been missed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._changed = asyncio.Event()
        self._last_id: str | None = None
        self._reading = asyncio.create_task(self._read())

    async def wait(self, timeout: float | None) -> bool:
        """Waits for a change; True if something may have changed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        has_changed = self._changed.is_set()
        self._changed.clear()
        return has_changed

    async def close(self) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading

    async def _read(self) -> None:
        while True:
            with suppress(httpx2.HTTPError):
                await self._read_stream()
            self._changed.set()
            await asyncio.sleep(RETRY_SECONDS)

    async def _read_stream(self) -> None:
        url = self._server.url_of(("events",), {})
        headers = self._server.headers() | ({"Last-Event-ID": self._last_id} if self._last_id else {})
        client = async_client(transport_to(url, proxy=proxy_for(url)), seconds=SILENCE_SECONDS)
        async with client, client.stream("GET", url, headers=headers) as response:
            if response.status_code != 200:
                return
            async for line in response.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    self._last_id = value
                    self._changed.set()
