"""Renders the live region: tasks to be retried, running and waiting tasks, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import islice

from ork.cli.paint import Line, Span, fit, glyph, line
from ork.cli.task_lines import any_lines, name_span, retry_lines
from ork.model.run import RunStatus
from ork.model.task import Task, TaskStatus
from ork.model.workflow import Approval
from ork.status.formatting import duration, rough
from ork.status.history import History
from ork.status.run_view import RunView
from ork.status.why_task import waits_for_approval

MAX_LINES = 14
BAR_WIDTH = 28
MAX_RETRIES = 4
MAX_GROUPS = 4
MAX_WAITING = 3


def render(view: RunView, now: datetime, width: int, history: History | None = None) -> list[Line]:
    """At most 14 lines: retries, then fan-outs and approvals, running tasks, waiting tasks, and a progress bar."""
    lines = _folded(
        list(view.retrying.values()), MAX_RETRIES, "more to be retried", lambda task: retry_lines(view, task, now)[0]
    )
    lines += _folded(_whole(view), MAX_GROUPS, "more fan-outs", lambda task: any_lines(view, task, now)[0])
    waits = _waiting(view)
    space = MAX_LINES - len(lines) - len(waits) - 1
    lines += _folded(_active(view), space, "more running", lambda task: _running(view, task, now, history))
    lines += waits
    lines.append(_progress(view, now, history))
    return [fit(spans, max(width - 1, 20)) for spans in lines[-MAX_LINES:]]


def _active(view: RunView) -> list[Task]:
    """Active tasks without instances, the longest running first."""
    running = sorted(view.by_status[TaskStatus.RUNNING].values(), key=_start_order)
    active = [*running, *view.by_status[TaskStatus.DISPATCHED].values()]
    return [task for task in active if task.key.index is None and not waits_for_approval(view, task)]


def _whole(view: RunView) -> list[Task]:
    """Running tasks without an attempt of their own: fan-outs and approvals."""
    names = (name for name, spec in view.specs.items() if spec.fans_out or isinstance(spec.action, Approval))
    tasks = (task for name in names if (task := view.whole(name)) is not None)
    return [task for task in tasks if task.status is TaskStatus.RUNNING]


def _start_order(task: Task) -> float:
    return task.started_at.timestamp() if task.started_at else float("inf")


def _folded(tasks: list[Task], space: int, words: str, show: Callable[[Task], Line]) -> list[Line]:
    if len(tasks) <= space:
        return [show(task) for task in tasks]
    shown = max(space - 1, 0)
    rest = line("  ", glyph(tasks[0].status), Span(f" … {len(tasks) - shown:,} {words}", "dim"))
    return [show(task) for task in islice(tasks, shown)] + [rest]


def _running(view: RunView, task: Task, now: datetime, history: History | None) -> Line:
    name = name_span(view, task)
    if task.status is TaskStatus.DISPATCHED or task.started_at is None:
        return line("  ", glyph(TaskStatus.DISPATCHED), " ", name, Span("starting", "dim"))
    seconds = (now - task.started_at).total_seconds()
    this, most = view.attempt_numbers(task)
    tries = f"   attempt {this} of {most}" if this > 1 else ""
    slow = history.slower_than(task.key.name, seconds) if history else None
    note = task.reason or slow
    return line(
        "  ", glyph(task.status), " ", name, duration(seconds), tries, Span(f"   {note}" if note else "", "wait")
    )


def _waiting(view: RunView) -> list[Line]:
    """A few waiting tasks are listed with their dependencies; many are only counted."""
    waiting = len(view.waiting)
    if view.run.status is RunStatus.PAUSED:
        return [line("  ", glyph("paused"), Span(f" paused: {waiting:,} waiting", "wait"))]
    if waiting > MAX_WAITING:
        return [line("  ", glyph("pending"), Span(f" {waiting:,} waiting", "dim"))]
    return [_waits_for(view, task) for task in view.waiting.values()]


def _waits_for(view: RunView, task: Task) -> Line:
    spec = view.specs.get(task.key.name)
    open_ups = [up for up in (spec.depends_on if spec else ()) if not _has_ended(view, up)]
    text = f"waiting for {', '.join(open_ups[:3])}" if open_ups else "queued"
    return line("  ", glyph(task.status), " ", name_span(view, task), Span(text, "dim"))


def _has_ended(view: RunView, name: str) -> bool:
    task = view.whole(name)
    return task is None or task.status.is_final


def _progress(view: RunView, now: datetime, history: History | None) -> Line:
    done, total = view.done, max(view.total, 1)
    filled = BAR_WIDTH * done // total
    started = view.run.started_at
    if started is None:
        return line("  ", Span("░" * BAR_WIDTH, "dim"), "  waiting to be started")
    elapsed = (now - started).total_seconds()
    left = history.seconds_left(elapsed) if history else None
    about = f" · about {rough(left)} left" if left is not None else ""
    bar = Span("█" * filled, "good"), Span("░" * (BAR_WIDTH - filled), "dim")
    return line("  ", *bar, f"  {done:,} of {total:,} · {duration(elapsed)}{about}")
