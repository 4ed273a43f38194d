"""Small workflows and a driver that plays the store's part, for tests of the pure core."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ork.core import events as ev
from ork.core.budget import BudgetMeter, BudgetState
from ork.core.commands import parse_key
from ork.core.cost import PriceList
from ork.core.effects import Alert, Effect
from ork.core.launch_groups import granted
from ork.core.limits import Capacity
from ork.core.machine import RunMachine
from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import Attempt, Failure, FailureKind, GiveUp, InlineOutput, Task
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec, Trigger

START = datetime(2026, 1, 1, tzinfo=UTC)
RUN = RunId("run1")


def spec(name: str, *above: str, **fields: object) -> TaskSpec:
    return TaskSpec(name, "process", Command((Const("true"),)), depends_on=above, **fields)  # type: ignore[arg-type]


def workflow(*tasks: TaskSpec, **fields: object) -> CompiledWorkflow:
    return CompiledWorkflow("flow", tasks, **fields)  # type: ignore[arg-type]


def exited(code: int = 1) -> Failure:
    return Failure(FailureKind.EXIT, f"exit code {code}")


@dataclass
class Play:
    """A machine with rows kept beside it as a store would, so that it can be rebuilt at any time."""

    flow: CompiledWorkflow
    now: datetime = START
    effects: list[Effect] = field(default_factory=list)
    group_size: int = 0  # the largest launch group; 0: each instance is launched alone
    slots: int = 1000  # what a launch group gets at most
    prices: PriceList | None = None

    def __post_init__(self) -> None:
        self.run = Run(RUN, "flow", VersionId("v"), RunStatus.PENDING, Trigger.MANUAL, {}, START)
        self.rows: dict[TaskKey, Task] = {}
        self.attempts: dict[AttemptKey, Attempt] = {}
        self.alerted_at: datetime | None = None  # when it last exceeded its budget
        self.machine = RunMachine(self.flow, self.run, group_size=self._group_size, meter=self._meter())
        self.feed(ev.Created())

    def feed(self, *events: ev.Event) -> None:
        for event in events:
            self.machine.handle(event, self.now)
        self._store()

    def _store(self) -> None:
        decided = self.machine.take()
        self.run = decided.run or self.run
        self.rows |= {task.key: task for task in decided.tasks}
        self.attempts |= {attempt.key: attempt for attempt in decided.attempts}
        self.effects += decided.effects
        if any(isinstance(effect, Alert) and effect.is_over_budget for effect in decided.effects):
            self.alerted_at = self.now

    def rebuild(self) -> RunMachine:
        active = [a for a in self.attempts.values() if not a.status.is_final]
        self.machine = RunMachine(self.flow, self.run, self.rows.values(), active, self._group_size, self._meter())
        return self.machine

    def _meter(self) -> BudgetMeter | None:
        if self.flow.budget is None or self.prices is None:
            return None
        state = BudgetState(tuple(self.attempts.values()), self.alerted_at)
        return BudgetMeter(self.flow.budget, self.flow, self.run, self.prices, state)

    def _group_size(self, _spec: TaskSpec) -> int:
        return self.group_size

    def launch(self, limit: int = 1000, full: tuple[str, ...] = ()) -> list[str]:
        """Admits everything the machine offers; the names launched, in order."""
        capacity = Capacity()
        capacity.exhaust(full)
        launches = self.machine.offer(limit, lambda key, _spec, _group: (f"ext:{key}", "hash"), self.now, capacity)
        admitted = frozenset(request.attempt.key for request in launches)
        groups = {request.attempt.group for request in launches if request.attempt.group is not None}
        parallelism = {group.id: min(self.slots, group.parallelism) for group in groups}
        for request in launches:
            self.rows[request.task.key] = request.task
            self.attempts[request.attempt.key] = granted(request.attempt, parallelism)
        self.machine.settle(admitted, parallelism)
        return [str(request.task.key) for request in launches]

    def start(self, name: str) -> None:
        key, number = parse_key(name), self.machine.tasks[parse_key(name)].attempt
        self.feed(ev.Started(key, number, 1, self.now))

    def succeed(self, name: str, output: str | None = None) -> None:
        key, number = parse_key(name), self.machine.tasks[parse_key(name)].attempt
        value = None if output is None else InlineOutput(output)
        self.feed(ev.Succeeded(key, number, 5, value, self.now, self.now))

    def fail(self, name: str, failure: Failure | None = None) -> None:
        key, number = parse_key(name), self.machine.tasks[parse_key(name)].attempt
        self.feed(ev.Failed(key, number, 5, failure or exited(), self.now, self.now))

    def give_up(self, name: str, reason: GiveUp, failure: Failure) -> None:
        key, number = parse_key(name), self.machine.tasks[parse_key(name)].attempt
        self.feed(ev.GivenUp(key, number, reason, failure))

    def close(self, name: str) -> None:
        key, number = parse_key(name), self.machine.tasks[parse_key(name)].attempt
        self.feed(ev.Closed(key, number, ever_started=True))

    def command(self, kind: CommandKind, **fields: object) -> None:
        self.feed(ev.Commanded(RunCommand(RUN, kind, by="ann", **fields)))  # type: ignore[arg-type]

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.feed(ev.TimerDue())

    def status(self, name: str) -> str:
        return str(self.rows[parse_key(name)].status)

    def statuses(self) -> dict[str, str]:
        return {str(key): str(task.status) for key, task in self.rows.items()}
