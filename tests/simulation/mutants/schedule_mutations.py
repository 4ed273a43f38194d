"""Firing of schedules, broken on purpose (see `tests.simulation.mutants.mutations`)."""

from __future__ import annotations

from typing import Any

from ork.core.cron import due_times
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.workflow import Trigger
from ork.scheduler import fire
from ork.state.sqlite import schedules
from ork.state.sqlite.requests import add_runs
from ork.state.sqlite.rows import time_text
from ork.state.sqlite.store import SqliteStore
from tests.simulation.mutants.mutations import Mutant


def _advance_first(_original: Any) -> Any:
    async def try_to_fire(self: Any, entry: Any, now: Any) -> fire.Fired:
        if entry.next_fire is None:
            return fire.Fired()
        due = due_times(entry.schedule, entry.next_fire, now, self._grace)
        runs, _ = await self._runs_for(entry, due)
        if not await self._store.fire(entry.workflow, entry.next_fire, (), due.next, now):
            return fire.Fired()
        await self._store.create_runs(runs, now)
        return fire.Fired(len(runs))

    return try_to_fire


def _expect_nothing(_original: Any) -> Any:
    def fire_anyway(db: Any, workflow: str, _expected: Any, *rest: Any, **kwargs: Any) -> Any:
        found = next(entry for entry in schedules.list_schedules(db) if entry.workflow == workflow)
        return schedules.fire(db, workflow, found.next_fire, *rest, **kwargs)

    return _verb(fire_anyway)


def _verb(function: Any) -> Any:
    async def fire_by(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._do(function, *args, **kwargs)

    return fire_by


def _look_once(_original: Any) -> Any:
    def fire_unchecked(db: Any, workflow: str, expected: Any, runs: Any, next_fire: Any, now: Any, **_: Any) -> bool:
        if not db.connection.rows("is_expected_fire", {"workflow": workflow, "expected": time_text(expected)}):
            return False
        with db.changing() as changed:
            add_runs(db, runs, now, changed)
            db.connection.run("move_next_fire", {"workflow": workflow, "next_fire": time_text(next_fire)})
        return True

    return _verb(fire_unchecked)


def _not_by_slot(original: Any) -> Any:
    numbers = iter(range(10**6))

    def scheduled_run(*args: Any) -> Any:
        return replaced(original(*args), id=RunId(f"again{next(numbers):07d}"), trigger=Trigger.EVENT)

    return scheduled_run


SCHEDULE_MUTANTS = (
    Mutant(
        "slot-advanced-outside-the-transaction",
        "the next time is written before the run is",
        ((fire.Firing, "_try_to_fire", _advance_first),),
    ),
    Mutant(
        "slot-not-rechecked",
        "whether a time is still due is not looked at again once the write lock is held",
        ((SqliteStore, "fire", _look_once),),
    ),
    Mutant(
        "slot-not-compared",
        "whoever found a time due moves the schedule on, whatever others have done meanwhile",
        ((SqliteStore, "fire", _expect_nothing),),
    ),
    Mutant(
        "slot-without-identity", "a time's run has an id of its own each time", ((fire, "scheduled_run", _not_by_slot),)
    ),
    Mutant(
        "fired-twice",
        "whoever finds a time due fires it, and a time may have two runs",
        ((SqliteStore, "fire", _expect_nothing), (fire, "scheduled_run", _not_by_slot)),
    ),
)
