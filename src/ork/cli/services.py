"""Runs a scheduler and an API in one process: when one ends, so does the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ork.telemetry import TelemetryEvent

if TYPE_CHECKING:
    from ork.api.events import Hub
    from ork.api.server import ApiServer
    from ork.app.installation import Installation
    from ork.cli.service_log import ServiceLog
    from ork.scheduler.service import SchedulerService


class BackgroundService(Protocol):
    """A further part of the process."""

    async def run(self) -> None: ...

    def stop(self) -> None: ...


@dataclass
class Services:
    """The parts that run in this process; each is optional."""

    service: SchedulerService | None
    server: ApiServer | None = None
    hub: Hub | None = None
    watcher: BackgroundService | None = None
    api_installation: Installation | None = None
    token_file: str | None = None
    drains: bool = False
    on_ready: Callable[[str], None] | None = None  # called with the server's URL, in a thread
    _pressed: int = field(default=0)

    def on_signal(self) -> None:
        """The first signal stops, or drains if `drains` is set; the second one always stops."""
        self._pressed += 1
        if self.service is not None and self.drains and self._pressed == 1:
            self.service.request_drain()  # the API stays available meanwhile
        else:
            self.stop()

    def stop(self) -> None:
        if self.service is not None:
            self.service.request_stop()
        if self.hub is not None:
            self.hub.close()
        if self.server is not None:
            self.server.stop()
        if self.watcher is not None:
            self.watcher.stop()


async def run_services(services: Services, log: ServiceLog) -> None:
    """Runs all parts until a signal, or until one of them ends or fails."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, services.on_signal)
    ready = _readiness(services)
    work = [
        asyncio.create_task(part.run())
        for part in (services.service, services.server, services.watcher)
        if part is not None
    ]
    readiness = asyncio.create_task(_log_when_ready(services, ready, log))
    try:
        await asyncio.wait([*work, readiness], return_when=asyncio.FIRST_COMPLETED)
        if readiness.done() and readiness.exception() is None:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        services.stop()
        readiness.cancel()
        ended = await asyncio.gather(*work, readiness, return_exceptions=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    for problem in ended:
        if isinstance(problem, Exception):
            raise problem


def _readiness(services: Services) -> asyncio.Event:
    """An event that is set after the scheduler's first step, or at once without a scheduler."""
    ready = asyncio.Event()
    if services.service is None:
        ready.set()
        return ready

    def on_ready(_event: TelemetryEvent, _fields: dict[str, object]) -> None:
        ready.set()

    services.service.telemetry.listen(on_ready, TelemetryEvent.READY)
    return ready


async def _log_when_ready(services: Services, ready: asyncio.Event, log: ServiceLog) -> None:
    """Logs `ready` after the scheduler's first step and a passed health check."""
    await ready.wait()
    where: dict[str, object] = {}
    if services.server is not None:
        await services.server.check_health()
        where["url"] = services.server.url
        where["ui"] = f"{services.server.url}/ui/"
    if services.token_file is not None:
        where["token"] = os.path.relpath(services.token_file)
    with contextlib.suppress(BrokenPipeError):
        log.write_event("ready", where)
    if services.on_ready is not None and services.server is not None:
        await asyncio.to_thread(services.on_ready, services.server.url)
