"""Tasks that wait for approval, in one run with its sub-workflows or in the whole store."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ork.model.ids import RunId, TaskKey
from ork.model.run import RunStatus
from ork.model.task import Task, TaskStatus
from ork.model.workflow import Approval, NotBy, SubWorkflow
from ork.state.reading import StateReader
from ork.state.records import RunFilter, TaskFilter
from ork.status.run_view import RunView, is_group, open_view, version_of
from ork.status.shapes import time_json
from ork.status.why_task import waits_for_approval

MOST_RUNS = 1000
_UNFINISHED = frozenset(status for status in RunStatus if not status.is_final)
# Only these can wait, and a run may have very many others.
_RUNNING = TaskFilter(statuses=frozenset({TaskStatus.RUNNING}))


class PendingApproval(NamedTuple):
    """A task that waits for approval. It fails at `due` if nobody decides. `not_by` must not approve it."""

    run: RunId
    short: str
    workflow: str
    task: TaskKey
    message: str
    since: datetime | None
    due: datetime | None
    whom: str = "anyone"
    not_by: str | None = None


async def only_pending_approvals(store: StateReader, view: RunView) -> list[PendingApproval]:
    """The pending approvals if the run can only continue after one of them; none if another task can proceed."""
    if not may_wait_for_approval(view) or view.count(TaskStatus.DISPATCHED):
        return []
    pending: list[PendingApproval] = []
    for task in view.by_status[TaskStatus.RUNNING].values():
        waits = waits_for_approval(view, task)
        found = [await _pending_approval(store, view, task)] if waits else await _pending_below(store, view, task)
        if not found and not is_group(task):
            return []
        pending += found
    if not pending or any(_can_start(view, task) for task in view.by_status[TaskStatus.PENDING].values()):
        return []
    if await store.pending_commands(view.run.id):
        return []
    # The view may be outdated: if tasks have changed since, the caller refreshes it first.
    update = await store.run_updates(view.run.id, view.mark)
    return pending if update is not None and not update.tasks else []


def may_wait_for_approval(view: RunView) -> bool:
    """A quick check that excludes most runs."""
    if view.run.status is not RunStatus.RUNNING or view.run.cancel_requested_at is not None:
        return False
    return any(isinstance(spec.action, Approval | SubWorkflow) for spec in view.specs.values())


async def list_pending_approvals(store: StateReader) -> list[PendingApproval]:
    """All pending approvals, those of the newest runs first."""
    pending: list[PendingApproval] = []
    page = await store.list_runs(RunFilter(statuses=_UNFINISHED, limit=MOST_RUNS))
    for run in page.runs:
        version = await version_of(store, run)
        if not any(isinstance(spec.action, Approval) for spec in version.workflow.tasks):
            continue
        view, tasks = await open_view(store, run.id, _RUNNING)
        pending += [await _pending_approval(store, view, task) for task in tasks if waits_for_approval(view, task)]
    return pending


def approval_json(approval: PendingApproval) -> dict[str, Any]:
    return {
        "run": approval.run,
        "workflow": approval.workflow,
        "task": str(approval.task),
        "message": approval.message,
        "for": approval.whom,
        "not_by": approval.not_by,
        "since": time_json(approval.since),
        "due": time_json(approval.due),
    }


async def _pending_approval(store: StateReader, view: RunView, task: Task) -> PendingApproval:
    spec = view.specs[task.key.name]
    assert isinstance(spec.action, Approval)
    due = None
    if spec.timeout is not None and task.started_at is not None:
        due = task.started_at + timedelta(seconds=spec.timeout)
    whom, starter = "anyone", None
    if spec.action.not_by is NotBy.STARTER:
        starter = await store.get_starter(view.run.id)
        whom = f"anyone but {starter or 'its starter'}"
    run, message = view.run, spec.action.message
    return PendingApproval(run.id, view.short, run.workflow, task.key, message, task.started_at, due, whom, starter)


def _can_start(view: RunView, task: Task) -> bool:
    """Whether the task can start now, or later as a scheduled retry."""
    if task.retry_at is not None:
        return True
    above = [view.whole(name) for name in view.specs[task.key.name].depends_on]
    return all(each is not None and each.status.is_final for each in above)


async def _pending_below(store: StateReader, view: RunView, task: Task) -> list[PendingApproval]:
    """The pending approvals of the task's sub-workflow, if it waits for nothing else."""
    if not isinstance(view.specs[task.key.name].action, SubWorkflow) or task.status is not TaskStatus.RUNNING:
        return []
    attempts = await store.list_attempts(view.run.id, task.key)
    jobs = json.loads(attempts[-1].waits_for or "[]") if attempts else []
    if not jobs or await store.get_run(jobs[0].get("run", "")) is None:
        return []
    below, _ = await open_view(store, RunId(jobs[0]["run"]))
    return await only_pending_approvals(store, below)
