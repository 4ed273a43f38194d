"""The context of the HTTP API: the store, and how requests start or wake a scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ork.api.context import Api
from ork.api.events import Hub
from ork.app.installation import Installation, open_installation, timeouts_of
from ork.app.pricing import pricing_on_demand
from ork.errors import OrkError
from ork.telemetry import Telemetry, TelemetryEvent

if TYPE_CHECKING:
    from ork.errors import AlarmError
    from ork.scheduler.service import SchedulerService, TickReport
    from ork.settings import Settings


def http_api(
    installation: Installation,
    service: SchedulerService | None,
    *,
    request_seconds: float | None = None,
    has_mcp: bool = False,
) -> Api:
    """The context of the HTTP API. With `request_seconds`, a tick ends soon after that time; with `has_mcp` it offers tools of
    the Model Context Protocol.

    The API has its own store handle, so that its writes wake the scheduler in this process too. Without a scheduler in
    this process they set the alarm, if there is one.
    """
    settings, clock = installation.settings, installation.clock if service is None else None
    telemetry = service.telemetry if service is not None else Telemetry()

    def note(error: AlarmError) -> None:
        telemetry.emit(TelemetryEvent.ALARM_FAILED, why=error.message)

    if clock is not None:
        clock.on_failure = note
    store = installation.store if service is None else installation.own_store
    hub = Hub(store)
    opened = _Opened(settings, note)
    ticks = _Ticks(
        _Shared(installation, hub, opened) if service is None else opened,
        telemetry,
        request_seconds,
        installation.publish,
    )
    return Api(
        store=store,
        objects=installation.objects,
        hub=hub,
        tick=ticks.tick,
        wake=service.wake if service is not None else None,
        set_alarm=clock.wake if clock is not None else None,
        root=settings.root,
        store_kind=settings.store.partition(":")[0],
        has_mcp=has_mcp,
        project=settings.project_with_secrets,
        secret=settings.hook_secret,
        pricing=pricing_on_demand(settings),
        same_code=installation.same_code_version,
        timeouts=timeouts_of(settings),
        telemetry=telemetry,
    )


class _Shared:
    """Ticks in the API's own installation: its connections are open, and what does not change is read once.

    After an error the ticks of this process open everything anew: a connection may be dead without a sign since the platform
    froze the process, or the installation's shared settings may have been replaced.
    """

    def __init__(self, installation: Installation, hub: Hub, opened: _Opened) -> None:
        self._installation = installation
        self._hub = hub
        self._opened = opened
        self._has_failed = False

    async def __call__(self, telemetry: Telemetry, seconds: float | None) -> TickReport:
        if self._has_failed:
            return await self._opened(telemetry, seconds)
        try:
            # The store reports changes only to other handles.
            return await self._installation.tick(telemetry, seconds=seconds, on_commit=lambda _runs: self._hub.notify())
        except OrkError:
            self._has_failed = True
            raise
        finally:
            await self._installation.close_scheduler()


class _Opened:
    """Ticks beside a scheduler in this process: each has a store handle of its own, so that its writes wake the scheduler."""

    def __init__(self, settings: Settings, on_alarm_failure: Callable[[AlarmError], None]) -> None:
        self._settings = settings
        self._on_alarm_failure = on_alarm_failure

    async def __call__(self, telemetry: Telemetry, seconds: float | None) -> TickReport:
        installation = await open_installation(self._settings)
        if installation.clock is not None:
            installation.clock.on_failure = self._on_alarm_failure
        try:
            return await installation.tick(telemetry, seconds=seconds)
        finally:
            await installation.close()


class _Ticks:
    """Runs one tick at a time. All requests that arrive during a tick share the next one, which begins after them."""

    def __init__(
        self,
        tick: _Shared | _Opened,
        telemetry: Telemetry,
        seconds: float | None,
        publish: Callable[[float | None], Coroutine[Any, Any, None]],
    ) -> None:
        self._run = tick
        self._publish = publish
        self._publishing: asyncio.Task[None] | None = None
        self._telemetry = telemetry
        self._seconds = seconds
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[TickReport] | None = None

    async def tick(self) -> TickReport:
        if self._next is None:
            self._next = asyncio.create_task(self._tick())
        report = await asyncio.shield(self._next)
        await self._publish_after()
        return report

    async def _publish_after(self) -> None:
        """Not under the lock: the next tick need not wait. Where a process has CPU only inside requests, this one stays."""
        if self._publishing is None or self._publishing.done():
            self._publishing = asyncio.create_task(self._publish(self._seconds))
        if self._seconds is not None:
            await asyncio.shield(self._publishing)

    async def _tick(self) -> TickReport:
        async with self._lock:
            self._next = None
            return await self._run(self._telemetry, self._seconds)
