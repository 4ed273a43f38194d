"""A world with a clock on the wall: a schedule fires while schedulers crash, stall, and disagree about the time."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

from ork.compile.content import make_version
from ork.core.cron import due_times, first_fire
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.workflow import Catchup, Command, CompiledWorkflow, Const, Schedule, TaskSpec, Trigger
from ork.scheduler import fire
from ork.state.sqlite import schedules
from ork.state.store import RunFilter
from ork.testing.clock import EPOCH
from ork.testing.mutations import Mutant
from ork.testing.workload import EXECUTOR
from ork.testing.world import World

EVERY = timedelta(seconds=20)
NAME = "clock"
_TASK = TaskSpec("a", EXECUTOR, Command((Const("true"),)))
_SCHEDULE = Schedule("*/20 * * * * *", catchup=Catchup.ALL, catchup_limit=1000)


class ScheduleWorld(World):
    """Times without a run are looked for when all is over; two runs of one time at once."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, plain=True)
        self.clock = make_version(CompiledWorkflow(NAME, (_TASK,), schedule=_SCHEDULE), "/project")

    def _live(self) -> None:
        super()._live()
        if not self.judge.violations:
            self.kernel.spawn("slots", self._check_slots())
            self.kernel.run(self.kernel.time)

    async def _prepare(self) -> None:
        await super()._prepare()
        self.judge.workflows[NAME] = self.clock.workflow
        next_fire = first_fire(_SCHEDULE, NAME, EPOCH)
        await self.store.save_version(self.clock, origin=None, now=EPOCH, next_fire=next_fire)
        self.kernel.spawn("curfew", self._curfew())

    async def _curfew(self) -> None:
        """So that there is an end to wait for."""
        await self.kernel.pause(max(0.0, self.length - self.kernel.time))
        await self.store.set_enabled(NAME, False)

    async def _check_slots(self) -> None:
        runs = (await self.store.list_runs(RunFilter(NAME, limit=100_000))).runs
        slots = sorted(run.scheduled_for for run in runs if run.scheduled_for is not None)
        if slots and slots[0] > EPOCH + EVERY:  # a clock that is behind may see an earlier one
            self.judge.violate("no-slot-lost", f"the first time with a run is {slots[0]}")
        for before, after in pairwise(slots):
            if after == before:
                self.judge.violate("one-run-per-slot", f"{after} has two")
            elif after - before != EVERY:
                self.judge.violate("no-slot-lost", f"between {before} and {after}")


# ── what it must notice ──────────────────────────────────────────────────────────────────────────


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


def _expect_nothing(original: Any) -> Any:
    def fire_anyway(db: Any, workflow: str, _expected: Any, *rest: Any) -> Any:
        found = next(entry for entry in schedules.list_schedules(db) if entry.workflow == workflow)
        return original(db, workflow, found.next_fire, *rest)

    return fire_anyway


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
    # Either half alone is harmless: the other one stands behind it.
    Mutant(
        "fired-twice",
        "whoever finds a time due fires it, and a time may have two runs",
        ((schedules, "fire", _expect_nothing), (fire, "scheduled_run", _not_by_slot)),
    ),
)
