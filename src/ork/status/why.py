"""Explains from a snapshot why a run is (not) running, and what happens next and when. Tasks are in `why_task`."""

from __future__ import annotations

from itertools import islice

from ork.model.quarantine import SET_ASIDE
from ork.model.record import replaced
from ork.model.run import RunCommand, RunStatus
from ork.model.task import Task, TaskStatus
from ork.model.workflow import OnExceed
from ork.status.formatting import ago, between, count
from ork.status.reasons import Reason, ReasonCode, ReasonRef
from ork.status.schedulers import NO_SCHEDULER
from ork.status.snapshot import Snapshot
from ork.status.why_task import MAX_NAMES, reason_of

MAX_TASKS = 10
MAX_REFS = 10
EXPLAINED_STATUSES = (TaskStatus.FAILED, TaskStatus.RUNNING, TaskStatus.DISPATCHED, TaskStatus.PENDING)  # in this order
FULL_DISK = "the disk of the object store is full: results of tasks cannot be written; free some space to continue"


def why_run(snap: Snapshot) -> list[Reason]:
    """One or more reasons about the run, then one for each failed or unfinished task."""
    run = snap.view.run
    found = [_state(snap)]
    if run.unreadable is not None and run.unreadable not in (run.note or ""):
        found.append(Reason(ReasonCode.DAMAGED, f"parts of it are damaged: {run.unreadable}"))
    found += _about_budget(snap) + _about_requests(snap)
    # A finished run needs a scheduler only for pending commands.
    needs_scheduler = run.status is not RunStatus.PENDING if not run.status.is_final else bool(snap.commands)
    if needs_scheduler:
        found += _without_scheduler(snap)
    if snap.is_disk_full and not run.status.is_final:
        found.append(Reason(ReasonCode.DISK_FULL, FULL_DISK))
    return found + _about_tasks(snap)


def why_not_started(snap: Snapshot) -> list[Reason]:
    """The answer for a task of a run that has no task rows yet."""
    first = Reason(ReasonCode.NOT_STARTED, "its run has not started", refs=(ReasonRef(snap.view.run.id),))
    if snap.view.run.status is RunStatus.PENDING:
        return [first, _why_pending(snap), *_about_requests(snap)]
    return [first, *why_run(snap)]


def why_task(snap: Snapshot, task: Task) -> list[Reason]:
    """Why the task has its status, and what happens next."""
    found = [reason_of(snap, task)]
    if not task.status.is_final:
        if snap.view.run.cancel_requested_at is not None:
            found.append(_being_cancelled(snap))
        found += _without_scheduler(snap)
        if snap.is_disk_full:
            found.append(Reason(ReasonCode.DISK_FULL, FULL_DISK))
    return found


def why_instances(snap: Snapshot, name: str) -> list[Reason]:
    """A few instances of a fan-out: those that failed, will be retried, or are running."""
    instances = snap.view.instances.get(name)
    if instances is None:
        return []
    running = (task for key, task in snap.view.by_status[TaskStatus.RUNNING].items() if key.name == name)
    found = []
    for group in (instances.failed.values(), instances.retrying.values(), running):
        found += [_line(snap, task) for task in islice(group, MAX_TASKS)]
    groups = [group for group in snap.groups if group.task == name]
    return found + [Reason(ReasonCode.GROUP, str(group), is_detail=True) for group in groups]


def _state(snap: Snapshot) -> Reason:
    """The run's status in words."""
    view, run = snap.view, snap.view.run
    match run.status:
        case RunStatus.PENDING:
            return _why_pending(snap)
        case RunStatus.RUNNING:
            done = f"{view.done:,} of {view.total:,} tasks have ended"
            return Reason(ReasonCode.RUNNING, f"running for {between(run.started_at, snap.now)}: {done}")
        case RunStatus.PAUSED if run.note and run.note.startswith(SET_ASIDE):
            return Reason(ReasonCode.SET_ASIDE, run.note)
        case RunStatus.PAUSED:
            text = f"{run.note or 'paused'}: nothing new starts until `ork resume {view.short}`"
            return Reason(ReasonCode.PAUSED, text)
        case RunStatus.SUCCESS:
            took = between(run.started_at, run.finished_at)
            return Reason(ReasonCode.SUCCESS, f"succeeded {ago(run.finished_at, snap.now)} in {took}")
        case RunStatus.FAILED:
            text = f"failed {ago(run.finished_at, snap.now)}: {run.error or 'a task failed'}"
            return Reason(ReasonCode.FAILED, text)
        case RunStatus.CANCELLED:
            return Reason(ReasonCode.CANCELLED, f"{run.note or 'cancelled'}, {ago(run.finished_at, snap.now)}")


def _without_scheduler(snap: Snapshot) -> list[Reason]:
    if snap.schedulers or snap.without_scheduler is None:
        return []
    return [Reason(ReasonCode.NO_SCHEDULER, snap.without_scheduler)]


def _why_pending(snap: Snapshot) -> Reason:
    if not snap.schedulers:
        return Reason(ReasonCode.NO_SCHEDULER, NO_SCHEDULER)
    most = snap.view.version.workflow.max_active_runs
    if most is not None and len(snap.active_runs) >= most:
        others = ", ".join(map(snap.short, snap.active_runs[:MAX_NAMES]))
        text = f"queued: `{snap.view.run.workflow}` has {len(snap.active_runs)} of {most} active runs: {others}"
        return Reason(ReasonCode.ACTIVE_RUNS, text, refs=tuple(map(ReasonRef, snap.active_runs[:MAX_REFS])))
    text = f"waiting for a scheduler to claim it ({count(len(snap.schedulers), 'scheduler')} running)"
    return Reason(ReasonCode.CLAIM, text)


def _about_budget(snap: Snapshot) -> list[Reason]:
    """A run that was cancelled by its budget says so itself, in its note."""
    budget = snap.view.version.workflow.budget
    if budget is None or budget.on_exceed is OnExceed.CANCEL or snap.over_budget_at is None:
        return []
    from ork.model.prices import dollars

    when, cost = ago(snap.over_budget_at, snap.now), f"`ork cost {snap.view.short}`"
    return [Reason(ReasonCode.OVER_BUDGET, f"exceeded its budget of {dollars(budget.usd)} {when} ({cost})")]


def _about_requests(snap: Snapshot) -> list[Reason]:
    waits_for = "the run's owner" if snap.schedulers else "a scheduler"
    found = [
        Reason(
            ReasonCode.COMMAND,
            f"`{command.kind.value}`{_asked_of(command)} requested by {command.by} waits for {waits_for}",
        )
        for command in snap.commands
    ]
    if snap.view.run.cancel_requested_at is not None and not snap.view.run.status.is_final:
        found.append(_being_cancelled(snap))
    return found


def _asked_of(command: RunCommand) -> str:
    if command.everything:
        return " of everything"
    return f" of `{command.task}`" if command.task else ""


def _being_cancelled(snap: Snapshot) -> Reason:
    run = snap.view.run
    text = f"being cancelled since {ago(run.cancel_requested_at, snap.now)}" + (f" ({run.note})" if run.note else "")
    return Reason(ReasonCode.BEING_CANCELLED, text)


def _about_tasks(snap: Snapshot) -> list[Reason]:
    """One reason for each failed task, then for active ones, then for waiting ones."""
    # A fan-out is one line here; `ork why RUN TASK` shows its instances.
    whole = [task for name in snap.view.specs if (task := snap.view.whole(name)) is not None]
    tasks = [task for status in EXPLAINED_STATUSES for task in whole if task.status is status]
    found = [_line(snap, task) for task in tasks[:MAX_TASKS]]
    if len(tasks) > MAX_TASKS:
        found.append(Reason(ReasonCode.MORE, f"… and {len(tasks) - MAX_TASKS:,} more tasks", is_detail=True))
    return found


def _line(snap: Snapshot, task: Task) -> Reason:
    reason = reason_of(snap, task)
    return replaced(reason, text=f"{task.key}: {reason.text}", task=task.key)
