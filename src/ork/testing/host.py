"""A machine that keeps one scheduler running: when the process dies, another one is started."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import datetime, timedelta

from ork.core.liveness import LivenessTimeouts
from ork.errors import StoreError
from ork.executors.executor import DEFERRED
from ork.model.ids import SchedulerId
from ork.model.installation import Control, Mode, SharedSettings, control_for
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.step import Scheduler
from ork.scheduler.subworkflow import WorkflowExecutor
from ork.state.store import StateStore
from ork.testing.budgets import PRICES
from ork.testing.clock import EPOCH
from ork.testing.cluster import Cluster, Machine
from ork.testing.controls import OBEYED_AFTER_STEPS
from ork.testing.executor import ScriptedExecutor
from ork.testing.faults import LONGEST_LAG, Faults, SimulatedProcess
from ork.testing.invariants import Judge
from ork.testing.kernel import Crashed, Kernel
from ork.testing.objects import FlakyObjects
from ork.testing.poller import ScriptedPoller
from ork.testing.workload import EXECUTOR
from ork.virtual_time.resting import rest

SHARED = SharedSettings("simulated", 10.0, LivenessTimeouts().stale_seconds, "memory:", "simulated", EPOCH)
OPTIONS = SchedulerOptions(liveness=LivenessTimeouts(), close_grace_seconds=LONGEST_LAG + 1.0, prices=lambda: PRICES)
SOON = timedelta(seconds=OPTIONS.close_grace_seconds + 1)  # a tick waits for attempts that it is ending
MOST_STEPS = 20_000


class SchedulerHost:
    """Drives the real scheduler as its service does: a step, then a wait for an event or the next due time.

    With `tick_seconds` it works like a periodic tick instead: it works until nothing is due, and releases its runs.
    """

    def __init__(
        self,
        number: int,
        kernel: Kernel,
        faults: Faults,
        cluster: Cluster,
        machine: Machine,
        view: Callable[[SimulatedProcess], StateStore],
        judge: Judge,
        options: SchedulerOptions = OPTIONS,
        tick_seconds: float | None = None,
    ) -> None:
        self.process: SimulatedProcess | None = None
        self.scheduler: Scheduler | None = None
        self.stop_requested = False
        self.steps = 0
        self._number = number
        self._incarnation = 0
        self._first_here = 1  # number of the first process on the current machine
        self._kernel = kernel
        self._faults = faults
        self._cluster = cluster
        self._machine = machine
        self._view = view
        self._judge = judge
        self._options = options
        self._tick_seconds = tick_seconds
        self._told: dict[Control, int] = {}  # the step in which it was woken after a control was set

    async def live(self) -> None:
        while True:
            try:
                await self._serve()
            except Crashed:
                self._judge.trace("crashed", self.id)
            self._end_process()
            await self._kernel.pause(self._restart_seconds())

    def _restart_seconds(self) -> float:
        random = self._faults.random
        if self._tick_seconds is not None:
            return random.uniform(0.5, self._tick_seconds)
        return 0.1 if self._faults.healed else random.choice((0.1, 3.0, random.uniform(0, 100)))

    def move_to(self, machine: Machine) -> None:
        """Its machine is gone: the scheduler dies, and another one starts on the new machine."""
        self._machine, self._first_here = machine, self._incarnation + 1
        if self.process is not None:
            self.process.is_dead = True
            self.process.wakeup.set()

    @property
    def machine(self) -> Machine:
        return self._machine

    def request_stop(self) -> None:
        self.stop_requested = True
        if self.process is not None:
            self.process.wakeup.set()

    def wake(self) -> None:
        if self.scheduler is not None and self.process is not None:
            self._note_controls(self.steps)
            self.scheduler.wake()
            self.process.wakeup.set()

    async def _serve(self) -> None:
        scheduler, process, poller = self._start_process()
        while not self.stop_requested:
            due = await self._step(scheduler, process)
            process.check_alive()
            if scheduler.is_drained:
                break
            if self._tick_seconds is not None and (due is None or due > process.clock.now() + SOON):
                if await poller.settle():
                    continue
                break
            await rest(self._kernel, process.wakeup, process.clock, due)
        self.stop_requested = False
        try:
            await scheduler.stop()
        except StoreError:
            return  # its lease expires instead
        self._judge.stopped_cleanly(self.id)

    async def _step(self, scheduler: Scheduler, process: SimulatedProcess) -> datetime | None:
        self._count_step()
        self._check_trust(scheduler)
        try:
            due = await scheduler.step(process.clock.now())
            self._check_trust(scheduler)
            return due
        except Exception as problem:
            self._judge.violate("loop-lives", f"{self.id}: {problem!r} at {_place(problem)}")
            raise Crashed from problem

    def trusts_its_lease(self, scheduler: SchedulerId) -> bool:
        return scheduler == self.id and self.scheduler is not None and self.scheduler.lease.is_trusted

    def _check_trust(self, scheduler: Scheduler) -> None:
        """Check the lease of a scheduler that owns runs. One without runs may be wrong until it claims."""
        if scheduler.owned_runs:
            self._judge.leases.check(self.id)

    @property
    def id(self) -> SchedulerId:
        return SchedulerId(f"s{self._number}.{self._incarnation}")

    @property
    def _identity(self) -> str:
        """The identity in the format of real schedulers: host, boot, namespace, process, start."""
        return f"{self._machine.name}/{self._machine.boot}/simulated/{self.id}/0"

    def must_obey(self) -> Mode | None:
        """The mode set by a control that this scheduler has had time to read."""
        known = [c for c in self._judge.controls.standing.values() if self._has_read(c)]
        control = control_for(known, self.id, self._identity)
        return None if control is None else control.mode

    def _has_read(self, control: Control) -> bool:
        return control in self._told and self.steps >= self._told[control] + OBEYED_AFTER_STEPS

    def _note_controls(self, at_step: int) -> None:
        for control in self._judge.controls.standing.values():
            self._told.setdefault(control, at_step)

    def _start_process(self) -> tuple[Scheduler, SimulatedProcess, ScriptedPoller]:
        self._incarnation += 1
        self._told = {}
        self._note_controls(self.steps - OBEYED_AFTER_STEPS)  # a new process reads them first
        machine = self._machine
        process = SimulatedProcess(self.id, self._kernel, self._faults, lambda: self._cluster.stands_still(machine))
        self._judge.alive.add(self.id)
        store = self._view(process)
        objects = FlakyObjects(self._cluster.objects, process)
        poller = ScriptedPoller(self._cluster, process, store, self.wake)
        workers = ScriptedExecutor(EXECUTOR, self._cluster, self._machine, process)
        scheduler = Scheduler(
            id=self.id,
            identity=self._identity,
            kind="scheduler",
            store=store,
            objects=objects,
            executors={
                EXECUTOR: workers,
                DEFERRED: poller,
                "workflow": WorkflowExecutor(store, objects, self.wake, process.clock.now),
            },
            options=self._options,
            monotonic=process.clock.monotonic,
            is_provably_dead=self._is_provably_dead,
            terms=SHARED.terms,
        )
        scheduler.set_wake_callback(process.wakeup.set)
        self.process, self.scheduler = process, scheduler
        return scheduler, process, poller

    def _end_process(self) -> None:
        if self.process is not None:
            self.process.is_dead = True
        self._judge.alive.discard(self.id)
        self.process = self.scheduler = None

    def _is_provably_dead(self, identity: str) -> bool:
        """True only for processes of this machine that are certainly dead."""
        id = identity.split("/")[3]
        number, _, incarnation = id.partition(".")
        was_here = number == f"s{self._number}" and int(incarnation) >= self._first_here
        return was_here and id not in self._judge.alive

    def _count_step(self) -> None:
        self.steps += 1
        if self.steps == MOST_STEPS:
            self._judge.violate("loop-lives", f"{self.id} went round {MOST_STEPS} times: it no longer waits")
            self._kernel.stopped = True


def _place(problem: Exception) -> str:
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{frame.filename.rpartition('/')[2]}:{frame.lineno} in {frame.name}"
