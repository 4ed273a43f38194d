"""Live updates: one wait on the store for all who listen, and none while nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from ork.errors import StoreError
from ork.state.reading import StateReader

ERROR_PAUSE_SECONDS = 1.0


class Hub:
    """Tells listeners that something may have changed; what it was they read from the store, each behind its own mark."""

    def __init__(self, store: StateReader) -> None:
        self._store = store
        self._listeners: set[asyncio.Event] = set()
        self._watch: asyncio.Task[None] | None = None
        self.is_closed = False

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever something may have changed. The first one to listen begins the watch."""
        heard = asyncio.Event()
        self._listeners.add(heard)
        if self._watch is None:
            self._watch = asyncio.create_task(self._keep_watch())
        try:
            yield heard
        finally:
            self._listeners.discard(heard)
            if not self._listeners:
                self._stop_watch()

    def poke(self) -> None:
        """This process changed something through the same handle, which tells only others."""
        for heard in self._listeners:
            heard.set()

    def close(self) -> None:
        """Every stream ends: whoever listened comes back and goes on behind its mark."""
        self.is_closed = True
        self._stop_watch()
        self.poke()

    def _stop_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _keep_watch(self) -> None:
        while True:
            try:
                await self._store.wait_for_change(None)
            except StoreError:
                await asyncio.sleep(ERROR_PAUSE_SECONDS)
            self.poke()


async def heard_within(heard: asyncio.Event, seconds: float) -> bool:
    """Whether something happened; the event is ready for the next wait."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await heard.wait()
    was_set = heard.is_set()
    heard.clear()
    return was_set


def sse(data: str, *, event: str, id: str | None = None) -> bytes:
    """One server-sent event. The data is JSON and so has no line breaks."""
    mark = f"id: {id}\n" if id is not None else ""
    return f"{mark}event: {event}\ndata: {data}\n\n".encode()


STILL_HERE = b": still here\n\n"
STREAM = "text/event-stream"
# For the OpenAPI document: each event of the stream.
EVENT_SCHEMA = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "id": {"type": "string"}, "data": {"type": "string"}},
    "required": ["event", "data"],
}
