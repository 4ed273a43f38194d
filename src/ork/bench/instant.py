"""An executor whose attempts are over as soon as they are started: what is left to measure is the engine."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable, Sequence

from ork.executors.executor import LaunchOrder, News, NotStarted, Presence
from ork.model.ids import AttemptKey
from ork.model.task import Attempt
from ork.objects import documents, layout

MOMENT = "2026-01-01T00:00:00.000000Z"


class MemoryObjects:
    """An object store without a disk, as far as one process needs it."""

    url = "memory:"

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._after_reading: dict[str, Callable[[], object]] = {}

    def call_after_reading(self, key: str, action: Callable[[], object]) -> None:
        """Once, as soon as somebody has read the object as it is now."""
        self._after_reading[key] = action

    def put(self, key: str, data: bytes) -> None:
        self._objects[key] = data

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._objects.setdefault(key, data) is data

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:  # noqa: ARG002 (nothing here is large)
        data = self._objects.get(key)
        if (action := self._after_reading.pop(key, None)) is not None:
            action()
        return data

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        return self._objects.get(key, b"")[start : None if size is None else start + size]

    def size(self, key: str) -> int | None:
        data = self._objects.get(key)
        return None if data is None else len(data)

    def list(self, prefix: str) -> builtins.list[str]:
        return sorted(key for key in self._objects if key.startswith(prefix))

    def delete(self, prefix: str) -> None:
        for key in self.list(prefix):
            del self._objects[key]


class InstantExecutor:
    """Leaves the documents of a worker that was quick and successful."""

    name = "process"

    def __init__(self, objects: MemoryObjects) -> None:
        self._objects = objects
        self._running: set[AttemptKey] = set()

    def name_for(self, attempt: AttemptKey) -> str:
        return f"instant:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], news: News) -> Sequence[NotStarted]:
        for order in orders:
            self._begin(order.attempt, layout.folder_of(order.spec_key), news)
        return ()

    def _begin(self, attempt: Attempt, folder: str, news: News) -> None:
        """Running until that has been seen, then over: the engine has to take every task through each state."""
        key = layout.status_key(folder)

        def finish() -> None:
            self._running.discard(attempt.key)
            self._objects.put(key, documents.sign(final_status(attempt.key), attempt.token_hash))
            news(attempt.key)

        # Not at once: the reader is in the middle of looking at this very attempt, and is to commit what it saw.
        loop = asyncio.get_running_loop()
        self._running.add(attempt.key)
        self._objects.put(key, documents.sign(running_status(attempt.key), attempt.token_hash))
        self._objects.call_after_reading(key, lambda: loop.call_soon(finish))
        news(attempt.key)

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return [Presence.RUNNING if attempt.key in self._running else Presence.GONE for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], news: News) -> None:
        for attempt in attempts:
            news(attempt.key)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """They have all ended by themselves."""

    async def close(self) -> None:
        """There is nothing to let go of."""


def running_status(key: AttemptKey) -> dict[str, object]:
    return final_status(key) | {"seq": 1, "state": "running", "finished_at": None, "exit_code": None, "output": None}


def final_status(key: AttemptKey) -> dict[str, object]:
    return {
        "v": 1,
        "attempt": str(key),
        "seq": 2,
        "state": "success",
        "at": MOMENT,
        "started_at": MOMENT,
        "finished_at": MOMENT,
        "exit_code": 0,
        "failure": None,
        "output": {"inline": "1"},
        "metrics": None,
    }
