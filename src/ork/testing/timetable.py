"""A workflow with a schedule, for a world: it fires while schedulers crash, pause, and disagree about the time."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from random import Random

from ork.compile.content import make_version
from ork.core.cron import first_fire
from ork.model.workflow import Catchup, Command, CompiledWorkflow, Const, Schedule, TaskSpec
from ork.state.records import RunFilter
from ork.state.store import StateStore
from ork.testing.clock import EPOCH
from ork.testing.invariants import Judge
from ork.testing.workload import EXECUTOR

EVERY = timedelta(seconds=20)
NAME = "clock"
_TASK = TaskSpec("a", EXECUTOR, Command((Const("true"),)))
_SCHEDULE = Schedule("*/20 * * * * *", catchup=Catchup.ALL, catchup_limit=1000)


class Timetable:
    """Due every 20 seconds. Two runs for one time are detected when they are created, times without a run at the end."""

    def __init__(self, random: Random) -> None:
        self.version = make_version(CompiledWorkflow(NAME, (_TASK,), schedule=_SCHEDULE), "/project")
        # Otherwise the schedulers determine the first time themselves.
        self._is_planned = random.random() < 0.5

    async def prepare(self, store: StateStore, judge: Judge) -> None:
        judge.workflows[NAME] = self.version.workflow
        next_fire = first_fire(_SCHEDULE, NAME, EPOCH) if self._is_planned else None
        judge.next_fire[NAME] = next_fire
        await store.save_version(self.version, origin=None, now=EPOCH, next_fire=next_fire)

    async def close(self, store: StateStore) -> None:
        """No further runs are created, so that the world can end."""
        await store.set_enabled(NAME, False)

    async def check(self, store: StateStore, judge: Judge) -> None:
        runs = (await store.list_runs(RunFilter(NAME, limit=100_000))).runs
        slots = sorted(run.scheduled_for for run in runs if run.scheduled_for is not None)
        if self._is_planned and slots and slots[0] > EPOCH + EVERY:  # a slow clock may have an earlier one
            judge.violate("no-slot-lost", f"the first time with a run is {slots[0]}")
        following = judge.next_fire[NAME]
        for before, after in pairwise(slots):
            if after == before:
                judge.violate("one-run-per-slot", f"{after} has two")
            elif following is not None and before + EVERY >= following:
                return  # a fast clock fired later ones; this one is not due yet
            elif after - before != EVERY:
                judge.violate("no-slot-lost", f"between {before} and {after}")
