"""Explains from a snapshot why a task is (not) running, and what happens next and when."""

from __future__ import annotations

from datetime import timedelta

from ork.core.limits import EVERYTHING
from ork.model.ids import TaskKey
from ork.model.run import RunStatus
from ork.model.task import FailureKind, Task, TaskStatus
from ork.model.workflow import Approval, NotBy
from ork.state.records import LimitUse
from ork.status.attempt_text import failure_notes
from ork.status.formatting import ago, argument, between, clock_time, count, duration
from ork.status.jobs import job_names
from ork.status.reasons import Reason, ReasonCode, ReasonRef
from ork.status.run_view import Instances, RunView, is_group
from ork.status.snapshot import Snapshot
from ork.status.unreachable import closing_end, closing_text, heartbeat_text

MAX_NAMES = 3
MAX_REFS = 10


def reason_of(snap: Snapshot, task: Task) -> Reason:
    """Why the task has its status."""
    view = snap.view
    match task.status:
        case TaskStatus.PENDING:
            return _why_waiting(snap, task)
        case TaskStatus.DISPATCHED:
            return _why_dispatched(snap, task)
        case TaskStatus.RUNNING:
            return _why_running(snap, task)
        case TaskStatus.SUCCESS:
            return Reason(ReasonCode.SUCCESS, _why_done(snap, task))
        case TaskStatus.FAILED:
            return Reason(ReasonCode.FAILED, _why_failed(view, task))
        case TaskStatus.SKIPPED:
            return _why_skipped(task, view)
        case TaskStatus.CANCELLED:
            return Reason(ReasonCode.CANCELLED, task.reason or view.run.note or "cancelled with its run")


def _why_failed(view: RunView, task: Task) -> str:
    if task.attempt == 0:
        return f"failed: {_failure(task)}"
    this, most = view.attempt_numbers(task)
    end = failure_notes(view.specs.get(task.key.name), task)
    text = f"failed on attempt {this} of {most}: {_failure(task)}" + (f"; {end}" if end else "")
    return f"{text} (`ork logs {view.short} {argument(task.key)}`)"


def _why_waiting(snap: Snapshot, task: Task) -> Reason:
    view = snap.view
    if task.retry_at is not None:
        this, most = view.attempt_numbers(task)
        when = f"at {clock_time(task.retry_at, snap.now)} ({ago(task.retry_at, snap.now)})"
        text = f"retry: attempt {this + 1} of {most} {when}, after {_failure(task)}"
        return Reason(ReasonCode.RETRY, text, task.retry_at)
    upstream = _open_upstream(view, task) if task.key.index is None else None
    if upstream is not None:
        return upstream
    if view.run.status is RunStatus.PAUSED:
        text = f"ready, but the run is paused ({view.run.note or 'by a person'}): `ork resume {view.short}`"
        return Reason(ReasonCode.PAUSED, text)
    return _why_queued(snap, task)


def _why_queued(snap: Snapshot, task: Task) -> Reason:
    """The limit, concurrency or rate that keeps a ready task from starting."""
    view = snap.view
    if task.key.index is not None and _is_held_back(view, task):
        return Reason(ReasonCode.CONCURRENCY, f"queued: {queue_reason(view, task.key.name)}")
    limit = _full_limit(snap, task)
    if limit is not None:
        refs = tuple(ReasonRef(key.run, key.task) for key in limit.holders[:MAX_REFS])
        text = f"queued: {_limit_text(limit)}, held by {_holders(snap, limit)}"
        return Reason(ReasonCode.LIMIT, text, refs=refs)
    rate = view.specs[task.key.name].rate if task.key.name in view.specs else None
    if rate is not None:
        return Reason(ReasonCode.RATE, f"queued: rate {rate}")
    return Reason(ReasonCode.READY, "ready: it starts with the scheduler's next step")


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


def _open_upstream(view: RunView, task: Task) -> Reason | None:
    spec = view.specs.get(task.key.name)
    names = spec.depends_on if spec else ()
    states = {name: state for name in names if (state := _upstream_state(view, name))}
    if not states:
        return None
    parts = list(states.values())
    shown = ", ".join(parts[:MAX_NAMES])
    if len(parts) > MAX_NAMES:
        shown += f" and {len(parts) - MAX_NAMES} more"
    if len(names) > 1:
        shown = f"{len(parts)} of {len(names)} upstream tasks: {shown}"
    refs = tuple(ReasonRef(view.run.id, TaskKey(name)) for name in list(states)[:MAX_REFS])
    return Reason(ReasonCode.UPSTREAM, f"waiting for {shown}", refs=refs)


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


def _why_dispatched(snap: Snapshot, task: Task) -> Reason:
    closing = closing_text(snap, task)
    if closing:
        return Reason(ReasonCode.GIVEN_UP, closing, closing_end(snap, task))
    attempt = snap.attempts.get(task.key)
    if attempt is not None and attempt.group is not None:
        group = next((group for group in snap.groups if group.id == attempt.group.id), None)
        if group is not None:
            return Reason(ReasonCode.GROUP, f"{group.place}, for {between(task.dispatched_at, snap.now)}")
    since = ago(task.dispatched_at, snap.now)
    limit = f"given up and retried after {snap.start_limit_seconds:g} s"
    note = snap.platform_notes.get(task.key)
    words = f"; {note}" if note is not None else ""
    text = f"handed to executor `{_executor_of(snap, task)}` {since}, not started yet ({limit}){words}"
    until = task.dispatched_at and task.dispatched_at + timedelta(seconds=snap.start_limit_seconds)
    return Reason(ReasonCode.DISPATCHED, text, until)


def _executor_of(snap: Snapshot, task: Task) -> str:
    """The executor of its current attempt, which the worker config may have chosen."""
    attempt = snap.attempts.get(task.key)
    return attempt.executor if attempt is not None else task.executor


def _why_done(snap: Snapshot, task: Task) -> str:
    text = f"succeeded {ago(task.finished_at, snap.now)} after {between(task.started_at, task.finished_at)}"
    if is_group(task):
        text += f", {count(task.instances or 0, 'instance')}"
    return f"{text}; {task.reason}" if task.reason else text


def _why_running(snap: Snapshot, task: Task) -> Reason:
    closing = closing_text(snap, task)
    if closing:
        return Reason(ReasonCode.GIVEN_UP, closing, closing_end(snap, task))
    if is_group(task):
        return Reason(ReasonCode.INSTANCES, _why_fanned_out(snap.view, task))
    if waits_for_approval(snap.view, task):
        return _why_undecided(snap, task)
    attempt = snap.attempts.get(task.key)
    if attempt is not None and attempt.waits_for is not None:
        return Reason(ReasonCode.EXTERNAL_JOB, _jobs_text(snap, task, job_names(attempt.waits_for)))
    this, most = snap.view.attempt_numbers(task)
    numbers = f"{between(task.started_at, snap.now)}, attempt {this} of {most}"
    if task.reason is not None:
        return Reason(ReasonCode.RUNNING, f"{task.reason} for {numbers}; its timeout has not started")
    text = f"running for {numbers}"
    beat = snap.beats.get(task.key)
    if beat is not None:
        text += heartbeat_text(snap, (snap.now - beat).total_seconds())
    spec = snap.view.specs.get(task.key.name)
    if spec is None or not spec.timeout:
        return Reason(ReasonCode.RUNNING, text)
    until = task.started_at and task.started_at + timedelta(seconds=spec.timeout)
    return Reason(ReasonCode.RUNNING, f"{text}; stopped after {duration(spec.timeout)}", until)


def _jobs_text(snap: Snapshot, task: Task, names: list[str]) -> str:
    shown = ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")
    return f"waiting for {count(len(names), 'external job')} for {between(task.started_at, snap.now)}: {shown}"


def _why_fanned_out(view: RunView, task: Task) -> str:
    instances = view.instances.get(task.key.name) or Instances()
    parts = [f"{instances.done:,} of {task.instances:,} instances have ended", f"{instances.active:,} running"]
    if instances.counts[TaskStatus.FAILED]:
        parts.append(f"{instances.counts[TaskStatus.FAILED]:,} failed")
    if instances.retrying:
        parts.append(f"{len(instances.retrying):,} to be retried")
    if instances.queued > 0:
        parts.append(f"{instances.queued:,} queued: {queue_reason(view, task.key.name)}")
    return ", ".join(parts)


def _why_undecided(snap: Snapshot, task: Task) -> Reason:
    view, spec = snap.view, snap.view.specs[task.key.name]
    assert isinstance(spec.action, Approval)
    text = f"waiting for a person for {between(task.started_at, snap.now)}: {spec.action.message}"
    late = None
    if spec.timeout is not None and task.started_at is not None:
        late = task.started_at + timedelta(seconds=spec.timeout)
        text += f" (fails {ago(late, snap.now)})"
    text += f": `ork approve {view.short} {task.key}` or `ork reject {view.short} {task.key}`"
    return Reason(ReasonCode.APPROVAL, text + _who_may_not_approve(spec.action, snap.starter), late)


def _who_may_not_approve(approval: Approval, starter: str | None) -> str:
    if approval.not_by is not NotBy.STARTER:
        return ""
    if starter is None:
        return "; anyone may approve it, because no person is recorded as the run's starter (`not_by: starter`)"
    return f"; {starter} started the run and may not approve it (`not_by: starter`)"


def _why_skipped(task: Task, view: RunView) -> Reason:
    text = f"skipped: {task.reason or 'not needed'}"
    refs = (ReasonRef(view.run.id, task.cause),) if task.cause else ()
    cause = view.tasks.get(task.cause) if task.cause else None
    if cause is not None and cause.failure is not None:
        text += f"; the root cause is `{cause.key}`: {_failure(cause)}"
    return Reason(ReasonCode.SKIPPED, text, refs=refs)


def _failure(task: Task) -> str:
    if task.failure is None:
        return "it failed"
    message = task.failure.message.partition("\n")[0]
    return f"it was lost: {message}" if task.failure.kind is FailureKind.LOST else message


def waits_for_approval(view: RunView, task: Task) -> bool:
    spec = view.specs.get(task.key.name)
    return task.status is TaskStatus.RUNNING and spec is not None and isinstance(spec.action, Approval)
