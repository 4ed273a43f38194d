"""A scheduler and an API that live and die together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ork.telemetry import TelemetryEvent

if TYPE_CHECKING:
    from ork.api.events import Hub
    from ork.api.server import ApiServer
    from ork.app.installation import Installation
    from ork.cli.service_log import ServiceLog
    from ork.scheduler.service import SchedulerService


class Watcher(Protocol):
    """Whatever else is to run beside them."""

    async def run(self) -> None: ...

    def stop(self) -> None: ...


@dataclass
class Parts:
    """What runs in this process; either may be missing."""

    service: SchedulerService | None
    server: ApiServer | None = None
    hub: Hub | None = None
    watcher: Watcher | None = None
    api_installation: Installation | None = None
    token_file: str | None = None
    drains: bool = False
    _pressed: int = field(default=0)

    def heed_signal(self) -> None:
        """The first one stops, or drains if that is wished; the second one stops in any case."""
        self._pressed += 1
        if self.service is not None and self.drains and self._pressed == 1:
            self.service.request_drain()  # the API goes on answering meanwhile
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


async def work_together(parts: Parts, log: ServiceLog) -> None:
    """Until a signal; when one part ends or fails, the other one ends as well."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, parts.heed_signal)
    ready = _readiness(parts)
    work = [
        asyncio.create_task(part.run()) for part in (parts.service, parts.server, parts.watcher) if part is not None
    ]
    telling = asyncio.create_task(_tell_when_ready(parts, ready, log))
    try:
        await asyncio.wait([*work, telling], return_when=asyncio.FIRST_COMPLETED)
        if telling.done() and telling.exception() is None:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        parts.stop()
        telling.cancel()
        ended = await asyncio.gather(*work, telling, return_exceptions=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    for problem in ended:
        if isinstance(problem, Exception):
            raise problem


def _readiness(parts: Parts) -> asyncio.Event:
    """Set when the scheduler has made its first step; at once where there is none."""
    ready = asyncio.Event()
    if parts.service is None:
        ready.set()
        return ready

    def heed(_happening: TelemetryEvent, _fields: dict[str, object]) -> None:
        ready.set()

    parts.service.telemetry.listen(heed, TelemetryEvent.READY)
    return ready


async def _tell_when_ready(parts: Parts, ready: asyncio.Event, log: ServiceLog) -> None:
    """Not before our own health check has passed."""
    await ready.wait()
    where: dict[str, object] = {}
    if parts.server is not None:
        await parts.server.check_health()
        where["url"] = parts.server.url
    if parts.token_file is not None:
        where["token"] = os.path.relpath(parts.token_file)
    with contextlib.suppress(BrokenPipeError):
        log.tell("ready", where)
