"""Live updates: one wait on the store is shared by all listeners; without listeners there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from ork.errors import StoreError
from ork.state.reading import StateReader

ERROR_PAUSE_SECONDS = 1.0


class Hub:
    """Notifies listeners of possible changes. Each listener reads the changes after its own mark from the store."""

    def __init__(self, store: StateReader) -> None:
        self._store = store
        self._listeners: set[asyncio.Event] = set()
        self._watch: asyncio.Task[None] | None = None
        self.is_closed = False
        self.generation = 0  # the number of notifications: what was read in an earlier one may be outdated

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set when something may have changed. The first listener starts the watch."""
        changed = asyncio.Event()
        self._listeners.add(changed)
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_store())
        try:
            yield changed
        finally:
            self._listeners.discard(changed)
            if not self._listeners:
                self._stop_watch()

    def notify(self) -> None:
        """Wakes all listeners. Also called for changes of this process, which the store reports only to others."""
        self.generation += 1
        for changed in self._listeners:
            changed.set()

    def close(self) -> None:
        """Ends every stream. Clients reconnect and continue after their mark."""
        self.is_closed = True
        self._stop_watch()
        self.notify()

    def _stop_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _watch_store(self) -> None:
        while True:
            try:
                await self._store.wait_for_change(None)
            except StoreError:
                await asyncio.sleep(ERROR_PAUSE_SECONDS)
            self.notify()


async def wait_for_event(changed: asyncio.Event, seconds: float) -> bool:
    """Whether the event was set within the time. Clears it for the next wait."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await changed.wait()
    was_set = changed.is_set()
    changed.clear()
    return was_set


def sse(data: str, *, event: str, id: str | None = None) -> bytes:
    """One server-sent event. The data is JSON without line breaks."""
    mark = f"id: {id}\n" if id is not None else ""
    return f"{mark}event: {event}\ndata: {data}\n\n".encode()


KEEP_ALIVE = b": still here\n\n"
STREAM = "text/event-stream"
# For the OpenAPI document: each event of the stream.
EVENT_SCHEMA = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "id": {"type": "string"}, "data": {"type": "string"}},
    "required": ["event", "data"],
}
