"""A scheduler at work in the measured process."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

from ork.bench.instant import InstantExecutor
from ork.errors import OrkError
from ork.model.ids import SchedulerId
from ork.objects.memory import MemoryObjects
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.service import SchedulerService
from ork.scheduler.step import Scheduler
from ork.state.store import StateStore
from ork.telemetry import TelemetryEvent


class SchedulerWatcher:
    """Runs a scheduler in the background and lets callers wait for its events."""

    def __init__(self, service: SchedulerService) -> None:
        self.service = service
        self._ready = asyncio.Event()
        self._finished = asyncio.Event()
        service.telemetry.listen(self._notice, TelemetryEvent.READY, TelemetryEvent.RUN_FINISHED)
        self._work = asyncio.create_task(service.run())

    async def ready(self) -> None:
        await self._wait_for(self._ready)

    async def finished(self) -> None:
        """Wait until a run has ended since the last call."""
        await self._wait_for(self._finished)
        self._finished.clear()

    async def stop(self) -> None:
        self.service.request_stop()
        await self._work

    async def _wait_for(self, event: asyncio.Event) -> None:
        waiting = asyncio.create_task(event.wait())
        await asyncio.wait({waiting, self._work}, return_when=asyncio.FIRST_COMPLETED)
        if self._work.done():
            self._work.result()
            raise OrkError("the scheduler ended before its work was done")

    def _notice(self, event: TelemetryEvent, _fields: dict[str, Any]) -> None:
        if event is TelemetryEvent.READY:
            self._ready.set()
        elif event is TelemetryEvent.RUN_FINISHED:
            self._finished.set()


def instant_service(store: StateStore) -> SchedulerService:
    return SchedulerService(instant_scheduler(store), store)


def instant_scheduler(store: StateStore) -> Scheduler:
    """A scheduler whose attempts end as soon as they are seen running."""
    executor = InstantExecutor()
    return Scheduler(
        id=SchedulerId("bench"),
        identity="bench",
        kind="run",
        store=store,
        objects=MemoryObjects(),
        executors={"process": executor},
        options=SchedulerOptions(),
        monotonic=perf_counter,
        on_commit=executor.committed,
    )
