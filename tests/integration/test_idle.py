"""A scheduler with nothing to do asks the store nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ork.app.installation import open_installation
from ork.cli.definitions import read_versions
from ork.model.workflow import Schedule
from ork.scheduler.service import TickReport
from ork.settings import load_settings
from ork.state.sqlite import wake
from ork.telemetry import TelemetryEvent
from tests.conformance.state_samples import new_run, version
from tests.postgres import server_or_skip

MOST_STATEMENTS_OF_AN_IDLE_TICK = 8


@pytest.mark.parametrize("schedules", [0, 50])
def test_an_idle_scheduler_runs_no_statement_however_often_it_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedules: int
) -> None:
    """The look that makes up for a lost wake-up comes every few seconds; here it comes often."""
    monkeypatch.setattr(wake, "LOOK_SECONDS", 0.05)
    monkeypatch.chdir(tmp_path)
    looks: list[int] = []
    log_state = wake.ChangeListener._log_state

    def counted(self: wake.ChangeListener) -> tuple[int, int] | None:
        looks.append(1)
        return log_state(self)

    monkeypatch.setattr(wake.ChangeListener, "_log_state", counted)

    async def idle() -> tuple[int, int, int]:
        installation = await open_installation(load_settings(store=None, objects=None))
        for number in range(schedules):
            of = version(f"flow{number}", schedule=Schedule("0 0 1 1 *"))
            await installation.store.save_version(of, origin=None, now=datetime.now(UTC))
        service = await installation.scheduler("scheduler")
        ready = asyncio.Event()
        service.telemetry.listen(lambda what, _: ready.set() if what is TelemetryEvent.READY else None)
        work = asyncio.create_task(service.run())
        try:
            await ready.wait()
            await asyncio.sleep(1.5)  # older than the grain of the log's clock
            before, seen = installation.store.statements, len(looks)
            await asyncio.sleep(1.0)
            return before, installation.store.statements, len(looks) - seen
        finally:
            service.request_stop()
            await work
            await installation.close()

    before, after, seen = asyncio.run(idle())
    assert seen > 5
    assert before > 0
    assert after == before


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/ork.db"
    server = server_or_skip()
    return server.url(server.new_database())


async def _tick(store: str) -> tuple[TickReport, int, bool]:
    """What it reports, how many statements it ran, and whether it changed anything."""
    installation = await open_installation(load_settings(store=store))
    try:
        mark = (await installation.store.changes_since(None)).mark
        before = installation.store.statements
        report = await installation.tick()
        statements = installation.store.statements - before
        return report, statements, (await installation.store.changes_since(None)).mark != mark
    finally:
        await installation.close()


@pytest.mark.parametrize("schedules", [0, 50])
def test_an_idle_tick_takes_few_statements_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: str, schedules: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ork.yaml").write_text("pools: {api: 3, paced: {slots: 2, rate: 5/s}}\nmax_workers: 4\n")
    (tmp_path / "flows").mkdir()
    (tmp_path / "locations.yaml").write_text('- {name: mine, path: flows, refresh: "0 0 1 1 *"}\n')

    async def ticks() -> list[tuple[TickReport, int, bool]]:
        installation = await open_installation(load_settings(store=store_url))
        for number in range(schedules):
            of = version(f"flow{number}", schedule=Schedule("0 0 1 1 *"))
            await installation.store.save_version(of, origin=None, now=datetime.now(UTC))
        await installation.close()
        return [await _tick(store_url) for _ in range(3)]

    _, *idle = asyncio.run(ticks())  # the first one plans schedules and looks into the location
    for report, statements, has_changed in idle:
        # Opening the store takes a few more: its schema, the last change, the shared settings.
        assert statements <= MOST_STATEMENTS_OF_AN_IDLE_TICK - 3
        assert (report.steps, report.launched, has_changed) == (0, 0, False)
        assert report.next_wake is not None


def test_a_tick_that_finds_a_run_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: str) -> None:
    monkeypatch.chdir(tmp_path)

    async def triggered() -> TickReport:
        installation = await open_installation(load_settings(store=store_url))
        flow = version("flow", tasks=("only",))
        await installation.store.save_version(flow, origin=None, now=datetime.now(UTC))
        await installation.store.create_runs([new_run(flow)], datetime.now(UTC))
        await installation.close()
        return (await _tick(store_url))[0]

    assert asyncio.run(triggered()).launched == 1


@pytest.mark.parametrize("calls", [True, False])
def test_a_running_task_that_calls_when_it_ends_is_looked_at_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: str, calls: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if calls:
        monkeypatch.setenv("ORK_WAKE_URL", "http://127.0.0.1:9/wake")
    (tmp_path / "workflow.yaml").write_text(
        "name: flow\ntasks:\n  only: {command: [sh, -c, 'while [ ! -e go ]; do sleep 0.05; done']}\n"
    )

    async def seconds_to_next_wake() -> float:
        (flow,) = read_versions("workflow.yaml", load_settings(store=store_url))
        installation = await open_installation(load_settings(store=store_url))
        await installation.store.save_version(flow, origin=None, now=datetime.now(UTC))
        await installation.store.create_runs([new_run(flow)], datetime.now(UTC))
        await installation.close()
        while True:  # until it has begun
            report = (await _tick(store_url))[0]
            assert report.next_wake is not None
            seconds = (report.next_wake - datetime.now(UTC)).total_seconds()
            if not calls or seconds > 30:
                return seconds

    try:
        seconds = asyncio.run(seconds_to_next_wake())
    finally:
        (tmp_path / "go").touch()
    assert (50 < seconds <= 61) if calls else seconds <= 11
