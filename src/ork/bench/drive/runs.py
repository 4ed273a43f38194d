"""Measures runs of workflows from their creation to their end."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, TypeAlias

from ork.app.installation import Installation, open_installation
from ork.bench.drive.watcher import SchedulerWatcher, instant_service
from ork.bench.services import SETTLE_SECONDS, rss_mb
from ork.compile.content import make_version
from ork.compile.load import load_workflow
from ork.errors import OrkError
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import Task
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec, Version
from ork.scheduler.service import SchedulerService
from ork.settings import load_settings
from ork.state.store import StateStore
from ork.state.verbs import statements_of

RUN = RunId("bench0000000")
FIRST_RUN = RunId("first0000000")
QUIET_SECONDS = 0.01  # after a run: its scheduler is idle by then
LOOK_SECONDS = 1.0
MAX_WARM_UPS = 40


async def drive_workflow(file: str, *, is_preloaded: bool = False) -> dict[str, Any]:
    """Measure one run of the file's workflow, by a scheduler that has already run a task, because a floor also starts
    with existing processes. The duration of that first task is reported separately. `is_preloaded`: the first task is
    repeated until it no longer imports its modules."""
    installation, version = await open_installation(load_settings()), read_version(file)
    task = version.workflow.tasks[0]
    # A process of its own shows whether the modules are preloaded: a shared one imports them only once anyway.
    alone = replaced(version.workflow, name="first", tasks=(replaced(task, isolation=None) if is_preloaded else task,))
    first = make_version(alone, version.root, file)
    warm_up = until_preloaded if is_preloaded else first_run
    return await timed_run(installation, await installation.scheduler("run"), version, first, warm_up)


async def drive_engine(shape: str, count: int) -> dict[str, Any]:
    """Measure tasks that end as soon as they are seen running. Only the launch batch limits them."""
    installation = await open_installation(load_settings())
    await installation.store.set_limits({})
    version = make_version(CompiledWorkflow("engine", SHAPES[shape](count)), os.getcwd())
    result = await timed_run(installation, instant_service(installation.store), version)
    return result | {"tasks": []}  # the executor's times are not real


def free_tasks(count: int) -> tuple[TaskSpec, ...]:
    return tuple(light_task(f"t{n}") for n in range(count))


def wide_tasks(count: int) -> tuple[TaskSpec, ...]:
    """One task with `count` instances, and one that waits for all of them."""
    return replaced(light_task("t"), parallel=count - 2), light_task("last", "t")


def deep_tasks(count: int) -> tuple[TaskSpec, ...]:
    return tuple(light_task(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(count))


def light_task(name: str, *upstream: str) -> TaskSpec:
    return TaskSpec(name, "process", Command((Const("true"),)), depends_on=upstream)


SHAPES = {"free": free_tasks, "wide": wide_tasks, "deep": deep_tasks}

WarmUp: TypeAlias = Callable[[StateStore, SchedulerWatcher, Version], Awaitable[float]]


async def timed_run(
    installation: Installation,
    service: SchedulerService,
    version: Version,
    first: Version | None = None,
    warm_up: WarmUp | None = None,
) -> dict[str, Any]:
    """Measure a run that is created while the scheduler is idle; before that, run the version `first` if there is
    one."""
    store, watcher = installation.store, SchedulerWatcher(service)
    await store.save_version(version, origin=version.source, now=utc_now())
    await watcher.ready()
    first_seconds = None if first is None or warm_up is None else await warm_up(store, watcher, first)
    statements, memory, cpu, loop = statements_of(store), rss_mb(os.getpid()), cpu_seconds(), parts_of(service)
    begin = perf_counter()
    await store.create_runs([NewRun(RUN, version.workflow.name, version.id)], utc_now())
    service.wake()
    await watcher.finished()
    seconds = perf_counter() - begin
    statements, cpu = statements_of(store) - statements, cpu_seconds() - cpu
    growth = rss_mb(os.getpid()) - memory
    tasks = await task_times(store)
    await watcher.stop()
    await installation.close()
    loop = {part: spent - loop.get(part, 0.0) for part, spent in parts_of(service).items()}
    more = {"cpu_s": cpu, "rss_growth_mb": growth, "loop": loop, "first_s": first_seconds}
    return measured(seconds, statements, tasks) | more


async def until_preloaded(store: StateStore, watcher: SchedulerWatcher, version: Version) -> float:
    """Repeat the run until it takes less than a third of the first time. Returns the seconds of the first run."""
    first = await first_run(store, watcher, version)
    for number in range(MAX_WARM_UPS):
        if await first_run(store, watcher, version, RunId(f"again{number:07}")) < first / 3:
            break
    return first


async def first_run(store: StateStore, watcher: SchedulerWatcher, version: Version, run: RunId = FIRST_RUN) -> float:
    """Run the version and return the seconds it took, once the scheduler is idle again."""
    await store.save_version(version, origin=version.source, now=utc_now())
    begin = perf_counter()
    await store.create_runs([NewRun(run, version.workflow.name, version.id)], utc_now())
    watcher.service.wake()
    await watcher.finished()
    seconds = perf_counter() - begin
    await asyncio.sleep(QUIET_SECONDS)
    return seconds


def parts_of(service: SchedulerService) -> dict[str, float]:
    """The seconds spent in each part of all steps so far."""
    return {part: spent.seconds for part, spent in service.telemetry.spent.items()}


async def drive_latency(file: str, count: int) -> dict[str, Any]:
    """Measure runs of the file's workflow, created one by one for an idle scheduler in another process."""
    store = (await open_installation(load_settings())).store
    version = read_version(file)
    await store.save_version(version, origin=version.source, now=utc_now())
    tasks, begin = [], perf_counter()
    for _ in range(count):
        await asyncio.sleep(QUIET_SECONDS)
        new = NewRun(RunId(f"bench{os.urandom(4).hex()}"), version.workflow.name, version.id)
        [run] = await store.create_runs([new], utc_now())
        while not run.status.is_final:
            await store.wait_for_change(LOOK_SECONDS)
            run = await store.get_run(run.id) or run
        tasks += await task_times(store, run.id)
    seconds, statements = perf_counter() - begin, statements_of(store)
    await store.close()
    return measured(seconds, statements, tasks)


async def drive_idle(seconds: float) -> dict[str, Any]:
    """Measure an idle scheduler, from shortly after its start."""
    installation = await open_installation(load_settings())
    watcher = SchedulerWatcher(await installation.scheduler("scheduler"))
    await watcher.ready()
    await asyncio.sleep(SETTLE_SECONDS)
    before = statements_of(installation.store)
    await asyncio.sleep(seconds)
    statements = statements_of(installation.store) - before
    await watcher.stop()
    await installation.close()
    return measured(seconds, statements, [])


def read_version(file: str) -> Version:
    root = os.path.dirname(os.path.abspath(file))
    loaded = load_workflow(read_file(file), file, read=lambda path: read_file(os.path.join(root, path)), root=root)
    return make_version(loaded.require(), root, file)


def read_file(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


async def task_times(store: StateStore, run: RunId = RUN) -> list[list[float]]:
    """The times of each task in seconds since the run was created. Raises an error unless the run succeeded."""
    update = await store.run_updates(run)
    if update is None or update.run.status is not RunStatus.SUCCESS:
        raise OrkError(f"the run did not succeed: {update and update.run.error}")
    return [moments(task, update.run.created_at) for task in update.tasks]


def moments(task: Task, created: datetime) -> list[float]:
    seen = (task.dispatched_at, task.started_at, task.finished_at)
    return [(moment - created).total_seconds() for moment in seen if moment is not None]


def measured(seconds: float, statements: int, tasks: list[list[float]]) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "statements": statements,
        "cpu_s": cpu_seconds(),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "tasks": tasks,
    }


def cpu_seconds() -> float:
    """CPU time of this process and of all workers and tasks that it waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def utc_now() -> datetime:
    return datetime.now(UTC)
