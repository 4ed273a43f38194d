"""Small workflows, runs, tasks and attempts for tests of state stores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from ork.core.effects import LaunchRequest
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey, VersionId
from ork.model.record import replaced
from ork.model.run import CommandKind, NewRun, Run, RunCommand, RunStatus
from ork.model.task import Attempt, AttemptStatus, GroupPlace, Task, TaskStatus
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec, Version
from ork.state.records import ClaimedRun, RunChanges
from ork.state.store import StateStore

NOW = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
ANN, BEN = SchedulerId("ann"), SchedulerId("ben")
_numbers = count(1)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def version(name: str = "flow", tasks: tuple[str, ...] = ("extract", "load"), **options: Any) -> Version:
    specs = tuple(TaskSpec(task, "process", Command((Const("true"),))) for task in tasks)
    id = options.pop("id", f"version-of-{name}")
    return Version(VersionId(id), CompiledWorkflow(name, specs, **options), "/project", "flow.yaml")


def new_run(of: Version, id: str | None = None, **options: Any) -> NewRun:
    return NewRun(RunId(id or f"run{next(_numbers):05d}"), of.workflow.name, of.id, **options)


async def deploy(store: StateStore, name: str = "flow", **options: Any) -> Version:
    deployed = version(name, **options)
    await store.save_version(deployed, origin=None, now=NOW)
    return deployed


async def start_runs(store: StateStore, number: int = 1, of: Version | None = None, **options: Any) -> list[Run]:
    of = of or await deploy(store)
    return [*await store.create_runs([new_run(of, **options) for _ in range(number)], NOW)]


async def register(store: StateStore, *schedulers: SchedulerId) -> None:
    for scheduler in schedulers:
        await store.register(scheduler, f"identity of {scheduler}", "scheduler", NOW)


async def claim(store: StateStore, scheduler: SchedulerId = ANN, room: int = 100) -> list[ClaimedRun]:
    return [*(await store.claim_runs(scheduler, room, NOW)).runs]


async def owned_run(store: StateStore, scheduler: SchedulerId = ANN, **options: Any) -> ClaimedRun:
    """A new run, claimed and running with both its tasks pending."""
    await start_runs(store, **options)
    if not any(entry.id == scheduler for entry in await store.list_schedulers()):
        await register(store, scheduler)
    (claimed,) = await claim(store, scheduler)
    run = replaced(claimed.run, status=RunStatus.RUNNING, started_at=NOW)
    tasks = tuple(task(spec.name) for spec in claimed.version.workflow.tasks)
    await store.commit(scheduler, [RunChanges(run.id, claimed.epoch, run, tasks)], NOW)
    return replaced(claimed, run=run, tasks=tasks)


def task(name: str, status: TaskStatus = TaskStatus.PENDING, index: int | None = None, **options: Any) -> Task:
    return Task(TaskKey(name, index), status, options.pop("executor", "process"), **options)


def attempt(run: RunId, name: str, number: int = 1, **options: Any) -> Attempt:
    key = AttemptKey(run, TaskKey(name, options.pop("index", None)), number)
    status = options.pop("status", AttemptStatus.DISPATCHED)
    return Attempt(key, status, options.pop("executor", "process"), f"name of {key}", "hash", NOW, **options)


def launch_request(run: RunId, name: str, priority: int = 0, number: int = 1, **options: Any) -> LaunchRequest:
    wanted = attempt(run, name, number, **options)
    row = Task(wanted.key.task, TaskStatus.DISPATCHED, wanted.executor, attempt=number, dispatched_at=NOW)
    return LaunchRequest(row, wanted, priority)


def changes(claimed: ClaimedRun, **what: Any) -> RunChanges:
    return RunChanges(claimed.run.id, claimed.epoch, **what)


def ended(claimed: ClaimedRun, status: RunStatus = RunStatus.SUCCESS, **what: Any) -> RunChanges:
    return changes(
        claimed, run=replaced(claimed.run, status=status, finished_at=NOW), **{"release_ownership": True, **what}
    )


def command(run: RunId, kind: CommandKind = CommandKind.CANCEL, **options: Any) -> RunCommand:
    return RunCommand(run, kind, by="eve", **options)


def group_requests(run: RunId, size: int, parallelism: int, **options: Any) -> tuple[LaunchRequest, ...]:
    """Launches of instances of `extract` as one group."""
    requests = [launch_request(run, "extract", index=index, **options) for index in range(size)]
    id = str(requests[0].attempt.key)
    return tuple(
        replaced(request, attempt=replaced(request.attempt, group=GroupPlace(id, index, parallelism)))
        for index, request in enumerate(requests)
    )
