"""`ork store copy`: nobody is locked in a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ork.app.copying import COPIER, copy_store
from ork.errors import RefusedError
from ork.model.ids import RunId
from ork.model.installation import ALL_SCHEDULERS
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import AttemptStatus, TaskStatus
from ork.model.workflow import Schedule
from ork.state.memory import MemoryStore
from ork.state.records import RunFilter
from ork.state.sqlite import SqliteStore
from tests.conformance.state_samples import (
    ANN,
    NOW,
    attempt,
    changes,
    claim,
    command,
    deploy,
    ended,
    later,
    new_run,
    register,
    start_runs,
    task,
    version,
)
from tests.firestore import emulator_or_skip
from tests.postgres import fresh_database


def _sqlite(folder: Path) -> Any:
    return SqliteStore(folder / "ork.db")


def _postgres(folder: Path) -> Any:
    raise AssertionError("opened where its database is made")


def _firestore(folder: Path) -> Any:
    emulator = emulator_or_skip()
    from ork.state.firestore import FirestoreStore

    return FirestoreStore(emulator.new_database(), emulator=emulator.host)


def _now() -> Any:
    return later(9999)


async def fill(store: Any) -> None:
    """Three runs of two versions: a failure, then a success, one cancelled; a schedule; a workflow that is off and one that is gone."""
    scheduled = version("flow", schedule=Schedule("0 2 * * *"))
    await store.save_version(version("flow", id="older"), origin=None, now=NOW)
    await store.save_version(scheduled, origin="flow.yaml", now=later(1), next_fire=later(500))
    off, gone = await deploy(store, "off", id="off"), await deploy(store, "gone", id="gone")
    await store.set_enabled("off", False)
    await register(store, ANN)
    statuses = (RunStatus.FAILED, RunStatus.SUCCESS, RunStatus.CANCELLED)
    for number, (status, of) in enumerate(zip(statuses, (scheduled, scheduled, gone), strict=True)):
        await store.create_runs(
            [new_run(of, f"run{number}", params={"n": [number, "ö"]}, started_by="eve", key=f"key {number}")],
            later(10 + number),
        )
        (claimed,) = await claim(store)
        row = replaced(
            claimed.run,
            status=status,
            started_at=later(20),
            finished_at=later(30 + number),
            error="no" if number == 0 else None,
        )
        rows = tuple(task(spec.name, TaskStatus.SUCCESS, attempt=1) for spec in claimed.version.workflow.tasks)
        attempts = tuple(
            attempt(row.id, each.key.name, status=AttemptStatus.SUCCESS, finished_at=later(25)) for each in rows
        )
        await store.commit(
            ANN, [changes(claimed, run=row, tasks=rows, attempts=attempts, release_ownership=True)], later(30)
        )
    await store.delete_workflow("gone")
    await store.release(ANN, exits=True)
    assert off


async def contents(store: Any) -> dict[str, Any]:
    runs = (await store.list_runs(RunFilter(limit=100))).runs
    return {
        "runs": [await store.get_run(run.id) for run in runs],
        "tasks": [(await store.run_updates(run.id)).tasks for run in runs],
        "attempts": [await store.list_attempts(run.id) for run in runs],
        "starters": [await store.get_starter(run.id) for run in runs],
        "keys": [await store.get_key(run.id) for run in runs],
        "owners": [await store.get_owner(run.id) for run in runs],
        "workflows": await store.list_workflows(),
        "schedules": await store.list_schedules(),
        "versions": [[each.id for each in await store.list_versions(name)] for name in ("flow", "off", "gone")],
        "schedulers": await store.list_schedulers(),
        "controls": await store.list_controls(),
    }


PAIRS = [
    (_sqlite, _firestore), (_firestore, _sqlite), (_postgres, _firestore), (_firestore, _postgres), (_sqlite, _postgres),
    (_postgres, _sqlite),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda opener: opener.__name__[1:])
def test_a_copy_is_equal_between_all_stores_and_repeating_it_changes_nothing(
    one: Callable[[Path], Any], other: Callable[[Path], Any], tmp_path: Path
) -> None:
    if _postgres in (one, other):
        with fresh_database() as url:
            asyncio.run(_copy_and_compare(*(_opened(opener, tmp_path, url) for opener in (one, other))))
    else:
        asyncio.run(_copy_and_compare(one(tmp_path), other(tmp_path)))


def _opened(opener: Callable[[Path], Any], folder: Path, url: str) -> Any:
    if opener is not _postgres:
        return opener(folder)
    from ork.state.postgres import PostgresStore

    return PostgresStore(url)


async def _copy_and_compare(source: Any, target: Any) -> None:
    await fill(source)
    told = await copy_store(source, target, _now, dry_run=True)
    assert (await target.list_runs(RunFilter())).runs == ()
    copied = await copy_store(source, target, _now)
    assert copied == told
    assert (copied.runs, copied.kept, copied.active) == (3, 0, ())
    assert await contents(target) == await contents(source)
    assert await target.next_alert_at() is None  # nobody is told again
    again = await copy_store(source, target, _now)
    assert (again.versions, again.workflows, again.runs, again.kept) == (0, 0, 0, 3)
    await source.close()
    await target.close()


async def _both() -> tuple[Any, Any]:
    source, target = MemoryStore(), MemoryStore()
    await fill(source)
    return source, target


def test_runs_that_have_not_ended_are_refused_unless_they_are_to_be_left() -> None:
    async def go() -> None:
        source, target = await _both()
        (run,) = await start_runs(source)
        with pytest.raises(RefusedError, match="1 run has not ended"):
            await copy_store(source, target, _now)
        copied = await copy_store(source, target, _now, leave_active=True)
        assert (copied.runs, copied.active) == (3, (run.id,))
        assert await target.get_run(run.id) is None

    asyncio.run(go())


def test_a_target_with_a_scheduler_at_work_is_refused() -> None:
    async def go() -> None:
        source, target = await _both()
        await register(target, ANN)
        with pytest.raises(RefusedError, match="ann is at work"):
            await copy_store(source, target, _now)
        assert (await target.list_runs(RunFilter())).runs == ()

    asyncio.run(go())


class _KilledError(Exception):
    pass


class _Dies:
    """The target of a copy that is killed at its Nth call."""

    def __init__(self, store: Any, calls: int) -> None:
        self._store, self._left = store, calls

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise _KilledError
            return await getattr(self._store, name)(*args, **options)

        return call


def test_a_copy_that_is_killed_at_any_step_leaves_the_target_paused_and_is_completed_by_the_next() -> None:
    async def go() -> int:
        for calls in range(1000):
            source, target = await _both()
            try:
                await copy_store(source, _Dies(target.sibling(), calls), _now)
            except _KilledError:
                unwritten = [run for run in (await target.list_runs(RunFilter())).runs if not run.status.is_final]
                paused = [control.by for control in await target.list_controls() if control.target == ALL_SCHEDULERS]
                assert paused == [COPIER] or not unwritten
                await copy_store(source, target, _now)
                assert await contents(target) == await contents(source)
            else:
                return calls
        raise AssertionError("the copy has no end")

    assert asyncio.run(go()) > 20


async def _retry(store: Any, run: str) -> None:
    """Somebody retries the run, and now it succeeds."""
    await register(store, ANN)
    await store.submit_command(command(RunId(run), CommandKind.RETRY), later(60))
    (claimed,) = await claim(store)
    row = replaced(claimed.run, status=RunStatus.SUCCESS, round=2, finished_at=later(70), error=None)
    done = changes(claimed, run=row, commands_done=await _pending(store, run), release_ownership=True)
    await store.commit(ANN, [done], later(70))
    await store.release(ANN, exits=True)


async def _pending(store: Any, run: str) -> tuple[str, ...]:
    return tuple(each.id for each in await store.pending_commands(RunId(run)))


@pytest.mark.parametrize("where", ["source", "target"])
def test_copying_again_leaves_a_run_that_was_retried_since_and_says_so(where: str) -> None:
    async def go() -> None:
        source, target = await _both()
        await copy_store(source, target, _now)
        await _retry({"source": source, "target": target}[where], "run0")
        before = await target.get_run(RunId("run0"))
        again = await copy_store(source, target, _now)
        assert (again.runs, again.kept, again.differs) == (0, 3, ("run0",))
        assert await target.get_run(RunId("run0")) == before

    asyncio.run(go())


def test_a_key_that_the_target_uses_for_another_run_stays_there() -> None:
    async def go() -> None:
        source, target = await _both()
        flow = version("flow", schedule=Schedule("0 2 * * *"))
        await target.save_version(flow, origin=None, now=NOW)
        await target.create_runs([new_run(flow, "other", params={"n": 9}, key="key 0")], NOW)
        await register(target, ANN)
        await target.commit(ANN, [ended(each) for each in await claim(target)], NOW)
        await target.release(ANN, exits=True)
        await copy_store(source, target, _now)
        assert await target.get_key(RunId("other")) == "key 0"
        assert await target.get_key(RunId("run0")) is None
        assert (await target.get_run(RunId("run0"))).status is RunStatus.FAILED

    asyncio.run(go())
