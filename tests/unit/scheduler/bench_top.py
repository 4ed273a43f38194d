"""A scheduler on a bench top: memory store, memory objects, and an executor whose workers do what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ork.compile.content import make_version
from ork.executors.executor import DEFERRED, Executor, ExecutorTraits, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey, RunId, SchedulerId
from ork.model.run import NewRun, Run
from ork.model.task import Attempt, Task
from ork.model.workflow import CompiledWorkflow
from ork.objects import documents, layout
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.step import Scheduler
from ork.state.memory import MemoryStore
from ork.testing.clock import FakeClock
from ork.testing.objects import MemoryObjects


class HandExecutor(Executor):
    """Starts nothing by itself: remembers what it was asked, and the test plays the worker."""

    name = "process"

    def __init__(self) -> None:
        self.started: list[LaunchOrder] = []
        self.stopped: list[AttemptKey] = []
        self.watched: list[AttemptKey] = []
        self.alive: set[AttemptKey] = set()
        self.refusals: list[NotStarted] = []
        self.is_reachable = True
        self.traits = ExecutorTraits(fences_itself=True)
        self.before_start: Callable[[Sequence[LaunchOrder]], Awaitable[None]] | None = None

    def name_for(self, attempt: AttemptKey) -> str:
        return f"hand:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], news: StatusCallback) -> Sequence[NotStarted]:
        if self.before_start is not None:
            await self.before_start(orders)
        refused, self.refusals = self.refusals, []
        self.started += orders
        self.alive |= {order.attempt.key for order in orders} - {refusal.attempt for refusal in refused}
        return refused

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        if not self.is_reachable:
            return [Presence.UNKNOWN] * len(attempts)
        return [Presence.RUNNING if attempt.key in self.alive else Presence.GONE for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], news: StatusCallback) -> None:
        self.watched += [attempt.key for attempt in attempts]

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        self.stopped += [attempt.key for attempt in attempts]

    async def close(self) -> None:
        pass


class BenchTop:
    def __init__(self, *flows: CompiledWorkflow, store: Any = None, **options: Any) -> None:
        self.clock = FakeClock()
        self.store: Any = store or MemoryStore(clock=self.clock.monotonic)
        self.objects = MemoryObjects()
        self.executor = HandExecutor()
        self.waiting = HandExecutor()
        self.options = SchedulerOptions(**options)
        self.scheduler = self.new_scheduler("ann")
        self.versions = {flow.name: make_version(flow, "/project") for flow in flows}
        self._runs = 0
        for version in self.versions.values():
            self.do(self.store.save_version(version, origin=None, now=self.clock.now()))

    def new_scheduler(self, id: str) -> Scheduler:
        return Scheduler(
            id=SchedulerId(id),
            identity=id,
            kind="scheduler",
            store=self.store if id == "ann" else self.store.sibling(),
            objects=self.objects,
            executors={"process": self.executor, DEFERRED: self.waiting},
            options=self.options,
            monotonic=self.clock.monotonic,
        )

    def do(self, work: Any) -> Any:
        return asyncio.run(_await(work))

    def create(self, name: str = "flow", priority: int = 0) -> RunId:
        self._runs += 1
        new = NewRun(RunId(f"run{self._runs}"), name, self.versions[name].id, priority=priority)
        self.do(self.store.create_runs([new], self.clock.now()))
        self.scheduler.wake()
        return new.id

    def step(self, times: int = 1) -> Any:
        due = None
        for _ in range(times):
            due = self.do(self.scheduler.step(self.clock.now()))
        return due

    def run(self, id: RunId) -> Run:
        found: Run | None = self.do(self.store.get_run(id))
        assert found is not None
        return found

    def statuses(self, id: RunId) -> dict[str, str]:
        return {str(task.key): str(task.status) for task in self.do(self.store.run_updates(id)).tasks}

    # ── playing the worker ───────────────────────────────────────────────────────────────────────

    def task(self, name: str) -> Task:
        """The row of the task of that name, in the run it was launched for last."""
        update = self.do(self.store.run_updates(self.order(name).attempt.key.run))
        found: Task = next(task for task in update.tasks if task.key.name == name)
        return found

    def order(self, task: str) -> LaunchOrder:
        return next(order for order in reversed(self.executor.started) if order.attempt.key.task.name == task)

    def win_gate(self, task: str) -> bool:
        order = self.order(task)
        gate = {"v": 1, "attempt": str(order.attempt.key), "state": "started"}
        signed = documents.sign(gate, order.attempt.token_hash)
        return self.objects.put_if_absent(layout.gate_key(layout.attempt_stem(order.attempt.key)), signed)

    def say(self, task: str, state: str, seq: int, **fields: Any) -> None:
        """Writes a status as the worker of the task's last attempt would, and brings the news."""
        attempt = self.order(task).attempt
        at = self.clock.now().isoformat()
        status = {"v": 1, "attempt": str(attempt.key), "seq": seq, "state": state, "at": at, "started_at": at}
        signed = documents.sign(status | {"finished_at": at} | fields, attempt.token_hash)
        self.objects.put(layout.status_key(layout.attempt_stem(attempt.key)), signed)
        self.scheduler.on_status(attempt.key)

    def die(self, task: str) -> None:
        key = self.order(task).attempt.key
        self.executor.alive.discard(key)
        self.scheduler.on_status(key)

    def succeed(self, task: str) -> None:
        self.win_gate(task)
        self.say(task, "success", 9, exit_code=0)
        self.die(task)


async def _await(work: Awaitable[Any]) -> Any:
    return await work
