"""A scheduler with nothing to do asks the store nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ork.app import open_installation
from ork.model.workflow import Schedule
from ork.settings import load_settings
from ork.state.sqlite import waiting
from ork.telemetry import Happening
from tests.conformance.state_samples import version


@pytest.mark.parametrize("schedules", [0, 50])
def test_an_idle_scheduler_runs_no_statement_however_often_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedules: int
) -> None:
    """The look that makes up for a lost wake-up comes every few seconds; here it comes often."""
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.05)
    monkeypatch.chdir(tmp_path)
    looks: list[int] = []
    log_state = waiting.Listener._log_state

    def counted(self: waiting.Listener) -> tuple[int, int] | None:
        looks.append(1)
        return log_state(self)

    monkeypatch.setattr(waiting.Listener, "_log_state", counted)

    async def idle() -> tuple[int, int, int]:
        installation = await open_installation(load_settings(store=None, objects=None))
        for number in range(schedules):
            of = version(f"flow{number}", schedule=Schedule("0 0 1 1 *"))
            await installation.store.save_version(of, origin=None, now=datetime.now(UTC))
        service = await installation.scheduler("scheduler")
        ready = asyncio.Event()
        service.telemetry.listen(lambda what, _: ready.set() if what is Happening.READY else None)
        work = asyncio.create_task(service.run())
        try:
            await ready.wait()
            await asyncio.sleep(1.5)  # older than the grain of the log's clock
            before, seen = await installation.store.statement_count(), len(looks)
            await asyncio.sleep(1.0)
            return before, await installation.store.statement_count(), len(looks) - seen
        finally:
            service.request_stop()
            await work
            await installation.close()

    before, after, seen = asyncio.run(idle())
    assert seen > 5
    assert before > 0
    assert after == before
