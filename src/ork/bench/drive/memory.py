"""Measures the memory of the scheduler for each task of a large run and for each running attempt."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from datetime import timedelta
from typing import Any

from ork.app.installation import open_installation
from ork.bench.drive.runs import LOOK_SECONDS, RUN, measured, read_version, utc_now, wide_tasks
from ork.core import events as ev
from ork.core.machine import RunMachine
from ork.errors import OrkError
from ork.model.ids import VersionId
from ork.model.run import CommandKind, NewRun, Run, RunCommand, RunStatus
from ork.model.task import TaskStatus
from ork.model.workflow import CompiledWorkflow, Trigger
from ork.settings import load_settings
from ork.state.store import StateStore

PATIENCE = timedelta(minutes=2)


async def drive_machine(count: int) -> dict[str, Any]:
    """Allocated bytes of a run machine after it has created all its tasks and its decisions were taken."""
    workflow = CompiledWorkflow("wide", wide_tasks(count))
    return measured(0.0, 0, []) | {"bytes": machine_bytes(workflow)}


def machine_bytes(workflow: CompiledWorkflow) -> int:
    now = utc_now()
    run = Run(RUN, workflow.name, VersionId("v"), RunStatus.PENDING, Trigger.MANUAL, {}, now)
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        machine = RunMachine(workflow, run)
        machine.handle(ev.Created(), now)
        machine.take()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
        assert machine.has_ready()
        return kept
    finally:
        tracemalloc.stop()


async def drive_attempts(file: str, count: int) -> dict[str, Any]:
    """Start a run of the file's workflow on the scheduler in another process and return when `count` tasks are
    running."""
    store = (await open_installation(load_settings())).store
    version = read_version(file)
    await store.save_version(version, origin=version.source, now=utc_now())
    await store.create_runs([NewRun(RUN, version.workflow.name, version.id)], utc_now())
    await until(store, count)
    await store.close()
    return measured(0.0, 0, [])


async def drive_cancel() -> dict[str, Any]:
    """Cancel that run."""
    store = (await open_installation(load_settings())).store
    await store.submit_command(RunCommand(RUN, CommandKind.CANCEL, "bench"), utc_now())
    await until(store, 0)
    await store.close()
    return measured(0.0, 0, [])


async def until(store: StateStore, count: int) -> None:
    """Wait until exactly that many instances are running."""
    give_up_at = utc_now() + PATIENCE
    while True:
        update = await store.run_updates(RUN)
        tasks = update.tasks if update else ()
        running = sum(task.status is TaskStatus.RUNNING and task.key.index is not None for task in tasks)
        if running == count:
            return
        if utc_now() > give_up_at:
            raise OrkError(f"{running} tasks run, not {count}")
        await store.wait_for_change(LOOK_SECONDS)
        await asyncio.sleep(LOOK_SECONDS / 10)
