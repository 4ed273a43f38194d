"""Ticks of `ork serve --on-request`: they share the API's connections until one fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ork.app.http_api import _Shared
from ork.errors import StoreUnavailableError
from ork.scheduler.service import TickReport
from ork.telemetry import Telemetry

REPORT = TickReport(1, 0, 0, None)


class Installation:
    """Its ticks succeed, unless `fails`."""

    def __init__(self) -> None:
        self.ticks = self.closed = 0
        self.fails = False

    async def tick(self, _telemetry: Telemetry, *, seconds: float | None, on_commit: Any) -> TickReport:
        self.ticks += 1
        on_commit(())
        if self.fails:
            raise StoreUnavailableError("the connection is dead")
        return REPORT

    async def close_scheduler(self) -> None:
        self.closed += 1


class Hub:
    notified = 0

    def notify(self) -> None:
        self.notified += 1


def test_after_an_error_ticks_open_everything_anew() -> None:
    installation, hub, opened = Installation(), Hub(), []

    async def open_anew(_telemetry: Telemetry, _seconds: float | None) -> TickReport:
        opened.append(1)
        return REPORT

    ticks = _Shared(installation, hub, open_anew)  # type: ignore[arg-type]

    async def go() -> None:
        assert await ticks(Telemetry(), 1.0) == REPORT
        installation.fails = True
        with pytest.raises(StoreUnavailableError):
            await ticks(Telemetry(), 1.0)
        assert await ticks(Telemetry(), 1.0) == REPORT

    asyncio.run(go())
    assert (installation.ticks, installation.closed, hub.notified, len(opened)) == (2, 2, 2, 1)
