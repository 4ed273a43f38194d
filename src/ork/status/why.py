"""Explains from a snapshot why a run or task is (not) running, and what happens next and when."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

from ork.core.limits import EVERYTHING
from ork.model.quarantine import SET_ASIDE
from ork.model.run import RunCommand, RunStatus
from ork.model.task import FailureKind, Task, TaskStatus
from ork.model.workflow import Approval, NotBy, OnExceed
from ork.state.records import LimitUse
from ork.status.attempt_text import failure_notes
from ork.status.formatting import ago, argument, between, clock_time, count, duration
from ork.status.jobs import job_names
from ork.status.run_view import Instances, RunView, is_group
from ork.status.schedulers import NO_SCHEDULER
from ork.status.snapshot import Snapshot
from ork.status.unreachable import closing_text, heartbeat_text

MAX_TASKS = 10
EXPLAINED_STATUSES = (TaskStatus.FAILED, TaskStatus.RUNNING, TaskStatus.DISPATCHED, TaskStatus.PENDING)  # in this order
MAX_NAMES = 3
FULL_DISK = "the disk of the object store is full: results of tasks cannot be written; free some space to continue"


def why_run(snap: Snapshot) -> list[str]:
    """One or more sentences about the run, then one line for each failed or unfinished task."""
    view, run = snap.view, snap.view.run
    match run.status:
        case RunStatus.PENDING:
            lines = [_why_pending(snap)]
        case RunStatus.RUNNING:
            lines = [
                f"running for {between(run.started_at, snap.now)}: {view.done:,} of {view.total:,} tasks have ended"
            ]
        case RunStatus.PAUSED if run.note and run.note.startswith(SET_ASIDE):
            lines = [run.note]
        case RunStatus.PAUSED:
            lines = [f"{run.note or 'paused'}: nothing new starts until `ork resume {view.short}`"]
        case RunStatus.SUCCESS:
            lines = [f"succeeded {ago(run.finished_at, snap.now)} in {between(run.started_at, run.finished_at)}"]
        case RunStatus.FAILED:
            lines = [f"failed {ago(run.finished_at, snap.now)}: {run.error or 'a task failed'}"]
        case RunStatus.CANCELLED:
            lines = [f"{run.note or 'cancelled'}, {ago(run.finished_at, snap.now)}"]
    if run.unreadable is not None and run.unreadable not in (run.note or ""):
        lines.append(f"parts of it are damaged: {run.unreadable}")
    lines += _about_budget(snap) + _about_requests(snap)
    # A finished run needs a scheduler only for pending commands.
    needs_scheduler = run.status is not RunStatus.PENDING if not run.status.is_final else bool(snap.commands)
    if needs_scheduler and not snap.schedulers and snap.without_scheduler is not None:
        lines.append(snap.without_scheduler)
    if snap.is_disk_full and not run.status.is_final:
        lines.append(FULL_DISK)
    return lines + _task_lines(snap)


def why_not_started(snap: Snapshot) -> list[str]:
    """The answer for a task of a run that has no task rows yet."""
    if snap.view.run.status is RunStatus.PENDING:
        return ["its run has not started", _why_pending(snap), *_about_requests(snap)]
    return ["its run has not started", *why_run(snap)]


def why_task(snap: Snapshot, task: Task) -> list[str]:
    """Why the task has its status, and what happens next."""
    lines = [_why(snap, task)]
    if not task.status.is_final:
        if snap.view.run.cancel_requested_at is not None:
            lines.append(_being_cancelled(snap))
        if not snap.schedulers and snap.without_scheduler is not None:
            lines.append(snap.without_scheduler)
        if snap.is_disk_full:
            lines.append(FULL_DISK)
    return lines


def why_instances(snap: Snapshot, name: str) -> list[str]:
    """A few instances of a fan-out: those that failed, will be retried, or are running."""
    instances = snap.view.instances.get(name)
    if instances is None:
        return []
    running = (task for key, task in snap.view.by_status[TaskStatus.RUNNING].items() if key.name == name)
    lines = []
    for group in (instances.failed.values(), instances.retrying.values(), running):
        lines += [f"  {task.key}: {_why(snap, task)}" for task in islice(group, MAX_TASKS)]
    return lines + [f"  {group}" for group in snap.groups if group.task == name]


def _why(snap: Snapshot, task: Task) -> str:
    view = snap.view
    this, most = view.attempt_numbers(task)
    match task.status:
        case TaskStatus.PENDING:
            return _why_waiting(snap, task)
        case TaskStatus.DISPATCHED:
            return _why_dispatched(snap, task)
        case TaskStatus.RUNNING:
            return _why_running(snap, task)
        case TaskStatus.SUCCESS:
            return _why_done(snap, task)
        case TaskStatus.FAILED if task.attempt == 0:
            return f"failed: {_failure(task)}"
        case TaskStatus.FAILED:
            end = failure_notes(view.specs.get(task.key.name), task)
            text = f"failed on attempt {this} of {most}: {_failure(task)}" + (f"; {end}" if end else "")
            return f"{text} (`ork logs {view.short} {argument(task.key)}`)"
        case TaskStatus.SKIPPED:
            return _why_skipped(task, view)
        case TaskStatus.CANCELLED:
            return task.reason or view.run.note or "cancelled with its run"


def _why_waiting(snap: Snapshot, task: Task) -> str:
    view = snap.view
    if task.retry_at is not None:
        this, most = view.attempt_numbers(task)
        when = f"at {clock_time(task.retry_at, snap.now)} ({ago(task.retry_at, snap.now)})"
        return f"retry: attempt {this + 1} of {most} {when}, after {_failure(task)}"
    upstream = _open_upstream(view, task) if task.key.index is None else ""
    if upstream:
        return f"waiting for {upstream}"
    if view.run.status is RunStatus.PAUSED:
        return f"ready, but the run is paused ({view.run.note or 'by a person'}): `ork resume {view.short}`"
    if task.key.index is not None and _is_held_back(view, task):
        return f"queued: {queue_reason(view, task.key.name)}"
    limit = _full_limit(snap, task)
    if limit is not None:
        return f"queued: {_limit_text(limit)}, held by {_holders(snap, limit)}"
    rate = view.specs[task.key.name].rate if task.key.name in view.specs else None
    if rate is not None:
        return f"queued: rate {rate}"
    return "ready: it starts with the scheduler's next step"


def _is_held_back(view: RunView, instance: Task) -> bool:
    """Whether the fan-out's concurrency limit is reached."""
    spec, instances = view.specs.get(instance.key.name), view.instances.get(instance.key.name)
    return bool(spec and instances and spec.concurrency is not None and instances.active >= spec.concurrency)


def queue_reason(view: RunView, name: str) -> str:
    """Why instances of a fan-out are queued."""
    spec = view.specs.get(name)
    if spec is not None and spec.concurrency is not None:
        return f"concurrency {spec.concurrency}"
    if spec is not None and spec.rate is not None:
        return f"rate {spec.rate}"
    return f"pool {spec.pool}" if spec is not None and spec.pool is not None else "all workers are busy"


def _open_upstream(view: RunView, task: Task) -> str:
    spec = view.specs.get(task.key.name)
    names = spec.depends_on if spec else ()
    parts = [part for name in names if (part := _upstream_state(view, name))]
    shown = ", ".join(parts[:MAX_NAMES])
    if len(parts) > MAX_NAMES:
        shown += f" and {len(parts) - MAX_NAMES} more"
    return f"{len(parts)} of {len(names)} upstream tasks: {shown}" if parts and len(names) > 1 else shown


def _upstream_state(view: RunView, name: str) -> str | None:
    """The task and its status; a fan-out shows how many instances run. None if the task has ended."""
    task = view.whole(name)
    if task is None or task.status.is_final:
        return None
    if is_group(task) and name in view.instances:
        return f"`{name}` ({view.instances[name].active} of {task.instances} instances running)"
    return f"`{name}` ({'waits for a person' if waits_for_approval(view, task) else task.status.value})"


def _full_limit(snap: Snapshot, task: Task) -> LimitUse | None:
    spec = snap.view.specs.get(task.key.name)
    names = {EVERYTHING, f"executor:{_executor_of(snap, task)}"}
    if spec is not None and spec.pool is not None:
        names.add(f"pool:{spec.pool}")
    return next((use for use in snap.limits if use.name in names and use.used >= use.slots), None)


def _limit_text(limit: LimitUse) -> str:
    kind, _, name = limit.name.partition(":")
    if limit.name == EVERYTHING:
        workers = "the only worker is" if limit.slots == 1 else f"all {limit.slots} workers are"
        return f"{workers} busy (max_workers)"
    return f"{kind} `{name}` has {limit.used} of {limit.slots} slots taken"


def _holders(snap: Snapshot, limit: LimitUse) -> str:
    names = [f"{snap.short(key.run)}/{key.task}" for key in limit.holders[:MAX_NAMES]]
    rest = limit.used - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest > 0 else "")


def _why_dispatched(snap: Snapshot, task: Task) -> str:
    closing = closing_text(snap, task)
    if closing:
        return closing
    attempt = snap.attempts.get(task.key)
    if attempt is not None and attempt.group is not None:
        group = next((group for group in snap.groups if group.id == attempt.group.id), None)
        if group is not None:
            return f"{group.place}, for {between(task.dispatched_at, snap.now)}"
    since = ago(task.dispatched_at, snap.now)
    limit = f"given up and retried after {snap.start_limit_seconds:g} s"
    note = snap.platform_notes.get(task.key)
    words = f"; {note}" if note is not None else ""
    return f"handed to executor `{_executor_of(snap, task)}` {since}, not started yet ({limit}){words}"


def _executor_of(snap: Snapshot, task: Task) -> str:
    """The executor of its current attempt, which the worker config may have chosen."""
    attempt = snap.attempts.get(task.key)
    return attempt.executor if attempt is not None else task.executor


def _why_done(snap: Snapshot, task: Task) -> str:
    text = f"succeeded {ago(task.finished_at, snap.now)} after {between(task.started_at, task.finished_at)}"
    if is_group(task):
        text += f", {count(task.instances or 0, 'instance')}"
    return f"{text}; {task.reason}" if task.reason else text


def _why_running(snap: Snapshot, task: Task) -> str:
    closing = closing_text(snap, task)
    if closing:
        return closing
    if is_group(task):
        return _why_fanned_out(snap.view, task)
    if waits_for_approval(snap.view, task):
        return _why_undecided(snap, task)
    attempt = snap.attempts.get(task.key)
    if attempt is not None and attempt.waits_for is not None:
        names = job_names(attempt.waits_for)
        shown = ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")
        return f"waiting for {count(len(names), 'external job')} for {between(task.started_at, snap.now)}: {shown}"
    this, most = snap.view.attempt_numbers(task)
    if task.reason is not None:
        return f"{task.reason} for {between(task.started_at, snap.now)}, attempt {this} of {most}; its timeout has not started"
    text = f"running for {between(task.started_at, snap.now)}, attempt {this} of {most}"
    beat = snap.beats.get(task.key)
    if beat is not None:
        text += heartbeat_text(snap, (snap.now - beat).total_seconds())
    spec = snap.view.specs.get(task.key.name)
    return text + (f"; stopped after {duration(spec.timeout)}" if spec and spec.timeout else "")


def _why_fanned_out(view: RunView, task: Task) -> str:
    instances = view.instances.get(task.key.name) or Instances()
    parts = [f"{instances.done:,} of {task.instances:,} instances have ended", f"{instances.active:,} running"]
    if instances.failed:
        parts.append(f"{len(instances.failed):,} failed")
    if instances.retrying:
        parts.append(f"{len(instances.retrying):,} to be retried")
    if instances.queued > 0:
        parts.append(f"{instances.queued:,} queued: {queue_reason(view, task.key.name)}")
    return ", ".join(parts)


def _why_undecided(snap: Snapshot, task: Task) -> str:
    view, spec = snap.view, snap.view.specs[task.key.name]
    assert isinstance(spec.action, Approval)
    text = f"waiting for a person for {between(task.started_at, snap.now)}: {spec.action.message}"
    if spec.timeout is not None and task.started_at is not None:
        late = task.started_at + timedelta(seconds=spec.timeout)
        text += f" (fails {ago(late, snap.now)})"
    text += f": `ork approve {view.short} {task.key}` or `ork reject {view.short} {task.key}`"
    return text + _who_may_not_approve(spec.action, snap.starter)


def _who_may_not_approve(approval: Approval, starter: str | None) -> str:
    if approval.not_by is not NotBy.STARTER:
        return ""
    if starter is None:
        return "; anyone may approve it, because no person is recorded as the run's starter (`not_by: starter`)"
    return f"; {starter} started the run and may not approve it (`not_by: starter`)"


def _why_skipped(task: Task, view: RunView) -> str:
    text = f"skipped: {task.reason or 'not needed'}"
    cause = view.tasks.get(task.cause) if task.cause else None
    if cause is None or cause.failure is None:
        return text
    return f"{text}; the root cause is `{cause.key}`: {_failure(cause)}"


def _failure(task: Task) -> str:
    if task.failure is None:
        return "it failed"
    message = task.failure.message.partition("\n")[0]
    return f"it was lost: {message}" if task.failure.kind is FailureKind.LOST else message


def _why_pending(snap: Snapshot) -> str:
    if not snap.schedulers:
        return NO_SCHEDULER
    most = snap.view.version.workflow.max_active_runs
    if most is not None and len(snap.active_runs) >= most:
        others = ", ".join(map(snap.short, snap.active_runs[:MAX_NAMES]))
        return f"queued: `{snap.view.run.workflow}` has {len(snap.active_runs)} of {most} active runs: {others}"
    return f"waiting for a scheduler to claim it ({count(len(snap.schedulers), 'scheduler')} running)"


def _about_budget(snap: Snapshot) -> list[str]:
    """A run that was cancelled by its budget says so itself, in its note."""
    budget = snap.view.version.workflow.budget
    if budget is None or budget.on_exceed is OnExceed.CANCEL or snap.over_budget_at is None:
        return []
    from ork.model.prices import dollars

    short = snap.view.short
    return [f"exceeded its budget of {dollars(budget.usd)} {ago(snap.over_budget_at, snap.now)} (`ork cost {short}`)"]


def _about_requests(snap: Snapshot) -> list[str]:
    waits_for = "the run's owner" if snap.schedulers else "a scheduler"
    lines = [
        f"`{command.kind.value}`{_asked_of(command)} requested by {command.by} waits for {waits_for}"
        for command in snap.commands
    ]
    if snap.view.run.cancel_requested_at is not None and not snap.view.run.status.is_final:
        lines.append(_being_cancelled(snap))
    return lines


def _asked_of(command: RunCommand) -> str:
    if command.everything:
        return " of everything"
    return f" of `{command.task}`" if command.task else ""


def _being_cancelled(snap: Snapshot) -> str:
    run = snap.view.run
    return f"being cancelled since {ago(run.cancel_requested_at, snap.now)}" + (f" ({run.note})" if run.note else "")


def waits_for_approval(view: RunView, task: Task) -> bool:
    spec = view.specs.get(task.key.name)
    return task.status is TaskStatus.RUNNING and spec is not None and isinstance(spec.action, Approval)


def _task_lines(snap: Snapshot) -> list[str]:
    """One line for each failed task, then for active ones, then for waiting ones."""
    # A fan-out is one line here; `ork why RUN TASK` shows its instances.
    whole = [task for name in snap.view.specs if (task := snap.view.whole(name)) is not None]
    tasks = [task for status in EXPLAINED_STATUSES for task in whole if task.status is status]
    lines = [f"  {task.key}: {_why(snap, task)}" for task in tasks[:MAX_TASKS]]
    if len(tasks) > MAX_TASKS:
        lines.append(f"  … and {len(tasks) - MAX_TASKS:,} more tasks")
    return lines
