"""Plays a project's schedules on virtual time: the real scheduler, machine and SQLite statements, in memory."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from ork.core.cron import first_fire
from ork.core.liveness import LivenessTimeouts
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey
from ork.model.record import Record, replaced
from ork.model.run import CommandKind, RunCommand
from ork.objects.memory import MemoryObjects
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.step import Scheduler
from ork.scheduler.subworkflow import WorkflowExecutor
from ork.state.sqlite.store import SqliteStore
from ork.state.store import StateStore
from ork.time_machine.executor import PlayedExecutor, PlayedWaits, Stage
from ork.time_machine.plan import SimulationPlan
from ork.time_machine.project import ProjectCopy
from ork.time_machine.recorder import Recorder, WatchedStore
from ork.time_machine.script import AttemptScript, Scripts
from ork.virtual_time.clock import FakeClock
from ork.virtual_time.kernel import Kernel, Signal
from ork.virtual_time.resting import rest

FOR_EVER = 1e9  # seconds; nothing here is silent, dead or slow
BEFORE = timedelta(milliseconds=1)
DRAIN = timedelta(days=7)  # how long unfinished runs are played after the end
PERSON = "time machine"


class Played(Record):
    """What happened. `assumed` has the tasks (workflow and name) whose duration is an assumption."""

    recorder: Recorder
    assumed: tuple[tuple[str, str], ...]
    steps: int


def play(project: ProjectCopy, plan: SimulationPlan) -> Played:
    """Play all runs of the range to their end, at most a week longer."""
    return _Play(project, plan).run()


class _Play:
    def __init__(self, project: ProjectCopy, plan: SimulationPlan) -> None:
        self._project = project
        self._plan = plan
        self._kernel = Kernel(plan.seed or 0)
        self._clock = FakeClock(plan.start - BEFORE, elapsed=self._kernel.now)
        self._wakeup = Signal(self._kernel)
        self._steps = 0
        self._recorder = Recorder(project)
        self._scripts = Scripts(project, plan)
        own = SqliteStore(":memory:", inline=True, clock=lambda: ("virtual", self._kernel.time), lease_seconds=FOR_EVER)
        self._store = cast(StateStore, WatchedStore(own, self._recorder))
        objects = MemoryObjects()
        stage = Stage(self._kernel, self._clock, self._store, objects, self._script_of)
        waits = PlayedWaits(stage, self._wake)
        names = {spec.executor for workflow in project.workflows.values() for spec in workflow.tasks}
        child_runs = WorkflowExecutor(self._store, objects, self._wake, self._clock.now)
        self._scheduler = Scheduler(
            id=SchedulerId("time-machine"),
            identity="time-machine",
            kind="scheduler",
            store=self._store,
            objects=objects,
            executors={
                **{name: PlayedExecutor(name, stage) for name in names},
                waits.name: waits,
                child_runs.name: child_runs,
            },
            options=_options(project),
            monotonic=self._clock.monotonic,
        )
        self._scheduler.set_wake_callback(self._wakeup.set)
        self._recorder.on_end = waits.run_ended
        self._recorder.on_approval = self._plan_approval

    def run(self) -> Played:
        kernel, length = self._kernel, (self._plan.end - self._plan.start).total_seconds()
        try:
            kernel.spawn("prepare", self._prepare())
            kernel.run(0.0)
            kernel.spawn("scheduler", self._live())
            kernel.run(length)  # the clock is a millisecond behind: a time at the very end does not fire
            kernel.spawn("close", self._disable_all())
            kernel.run(length + DRAIN.total_seconds(), lambda: not self._recorder.unfinished)
            self._recorder.finish(self._clock.now())
        finally:
            kernel.close()
        return Played(self._recorder, tuple(self._scripts.assumed), self._steps)

    async def _prepare(self) -> None:
        """Copy the workflows and limits into the store."""
        project, now = self._project, self._clock.now()
        await self._store.set_limits(project.rules.limits, project.rules.rates)
        enabled = {entry.workflow for entry in project.schedules if entry.enabled}
        for name, version in project.versions.items():
            played = replaced(version, workflow=project.workflows[name])
            next_fire = first_fire(version.workflow.schedule, name, now)
            await self._store.save_version(played, origin=None, now=now, next_fire=next_fire)
            if name not in enabled:
                await self._store.set_enabled(name, False)

    async def _disable_all(self) -> None:
        for entry in self._project.schedules:
            await self._store.set_enabled(entry.workflow, False)
        self._wake()

    async def _live(self) -> None:
        """A step, then a wait for an event or the next due time. Attempts go on while the scheduler is down."""
        while True:
            while (until := self._plan.down_until(self._clock.now())) is not None:
                await self._kernel.pause((until - self._clock.now()).total_seconds())
                self._wake()
            self._steps += 1
            due = await self._scheduler.step(self._clock.now())
            await rest(self._kernel, self._wakeup, self._clock, due)

    def _wake(self) -> None:
        self._scheduler.wake()
        self._wakeup.set()

    def _script_of(self, attempt: AttemptKey) -> AttemptScript:
        return self._scripts.of(self._recorder.workflow_of[attempt.run], attempt)

    def _plan_approval(self, run: RunId, task: str) -> None:
        """Somebody approves it, after as long as people took before."""
        seconds = self._script_of(AttemptKey(run, TaskKey(task), 1)).seconds
        self._kernel.spawn(f"approve {run} {task}", self._approve(run, task), seconds)

    async def _approve(self, run: RunId, task: str) -> None:
        command = RunCommand(run, CommandKind.APPROVE, by=PERSON, task=task)
        await self._store.submit_command(command, self._clock.now())
        self._wake()


def _options(project: ProjectCopy) -> SchedulerOptions:
    """Those of the project, without heartbeats, leases and secrets: nothing dies here, and nothing is told to user code."""
    return replaced(
        project.rules.options,
        lease_seconds=FOR_EVER,
        renew_seconds=FOR_EVER / 2,
        liveness=LivenessTimeouts(FOR_EVER, FOR_EVER),
        monitor_seconds=FOR_EVER,
        fires_schedules=True,
        secrets=lambda _name, _workflow: "",
        secrets_ready=SchedulerOptions().secrets_ready,
        placed=lambda workflow: workflow,  # it already is
    )
