"""One task in one line (and, when it failed, why): what stays on the screen when the run is over."""

from __future__ import annotations

from datetime import datetime

from ork.cli.failure import explanation, headline
from ork.cli.looks import glyph
from ork.cli.paint import Line, Span, line
from ork.cli.visible import shorten, visible
from ork.model.task import InlineOutput, StoredOutput, Task, TaskStatus
from ork.status.follow import RunView
from ork.status.words import between, count, duration

MIN_NAME = 9
MAX_NAME = 40
NAME_GAP = 4
MAX_OUTPUT = 60
SPACED_UP_TO = 2000


def name_width(view: RunView) -> int:
    return min(max(view.longest_name, MIN_NAME), MAX_NAME) + NAME_GAP


def header(view: RunView) -> Line:
    tasks = count(view.total, "task")
    return line(Span(view.run.workflow, "bold"), f" · run {view.short} · {tasks}")


def ended_lines(view: RunView, task: Task, *, full: bool = False) -> list[Line]:
    """The lasting lines of a task that has ended."""
    start = line("  ", glyph(task.status), " ", _name(view, task))
    match task.status:
        case TaskStatus.SUCCESS:
            return [start + line(_took(task), _output(task))]
        case TaskStatus.FAILED:
            this, most = view.tries(task)
            tries = Span(f"   attempt {this} of {most}", "dim") if this > 0 else Span("")
            first = start + line(_took(task), "   ", Span(headline(task.failure), "bad"), tries)
            return [first, *explanation(task.failure, full=full)]
        case TaskStatus.SKIPPED:
            return [start + line(Span(f"skipped: {visible(task.reason or 'not needed')}", "dim"))]
        case _:
            return [start + line(Span(visible(task.reason or task.status), "wait"))]


def any_lines(view: RunView, task: Task, now: datetime, *, full: bool = False) -> list[Line]:
    """A task in whatever state it is."""
    if task.status.is_final:
        return ended_lines(view, task, full=full)
    if task.retry_at is not None and task.status is TaskStatus.PENDING:
        return retry_lines(view, task, now)
    start = line("  ", glyph(task.status), " ", _name(view, task))
    if task.status is TaskStatus.RUNNING and task.started_at is not None:
        return [start + line(duration((now - task.started_at).total_seconds()))]
    return [start + line(Span("starting" if task.status is TaskStatus.DISPATCHED else "waiting", "dim"))]


def retry_lines(view: RunView, task: Task, now: datetime) -> list[Line]:
    """A try that failed and will be repeated."""
    this, most = view.tries(task)
    wait = (task.retry_at - now).total_seconds() if task.retry_at else 0
    when = f"retry in {duration(wait)}" if wait > 0 else "retry now"
    return [
        line("  ", Span("✗", "wait"), " ", _name(view, task), f"attempt {this} of {most}, {when}   ")
        + line(Span(headline(task.failure), "bad"))
    ]


def started_line(view: RunView, task: Task) -> Line:
    this, most = view.tries(task)
    tries = f"attempt {this} of {most}" if most > 1 else "started"
    return line("  ", glyph(TaskStatus.RUNNING), " ", _name(view, task), tries)


def summary(view: RunView) -> Line:
    """`✓ success in 0.5s · 3 succeeded`."""
    run = view.run
    took = f" in {between(run.started_at, run.finished_at)}" if run.started_at and run.finished_at else ""
    words = [f"{view.count(status):,} {word}" for status, word in _COUNTED if view.count(status)]
    style = {"success": "bold good", "failed": "bold bad"}.get(run.status, "wait")
    return line(glyph(run.status), " ", Span(run.status, style), f"{took} · {', '.join(words) or 'no tasks'}")


_COUNTED = (
    (TaskStatus.SUCCESS, "succeeded"),
    (TaskStatus.FAILED, "failed"),
    (TaskStatus.SKIPPED, "skipped"),
    (TaskStatus.CANCELLED, "cancelled"),
    (TaskStatus.RUNNING, "running"),
    (TaskStatus.DISPATCHED, "starting"),
    (TaskStatus.PENDING, "waiting"),
)


def next_steps(view: RunView, *, shown: bool = False) -> list[Line]:
    """What one may do now, in commands that can be pasted; `shown` when `ork show` is what is being answered."""
    short = view.short
    failed = next(iter(view.by_status[TaskStatus.FAILED]), None)
    if failed is not None:
        steps = [("all of it", f"ork logs {short} {failed}"), ("fix, continue", f"ork retry {short}")]
        steps += [] if shown else [("look again", f"ork show {short}")]
        return [line(Span(f"  {label:<15}", "dim"), command) for label, command in steps]
    if view.run.status != "success":
        return [line(Span("  again          ", "dim"), f"ork retry {short}")]
    return [line(f"  ork logs {short}" + ("" if shown else f"   ork show {short}"))]


def _name(view: RunView, task: Task) -> str:
    return shorten(str(task.key), MAX_NAME).ljust(name_width(view))


def _took(task: Task) -> str:
    start = task.started_at or task.dispatched_at
    return duration((task.finished_at - start).total_seconds()) if start and task.finished_at else ""


def _output(task: Task) -> str:
    match task.output:
        case InlineOutput(text) if text != "null":
            return "   " + shorten(visible(_spaced(text)), MAX_OUTPUT)
        case StoredOutput(_, size):
            return f"   {size / 1024:,.0f} KiB of output"
        case _:
            return ""


def _spaced(text: str) -> str:
    """Compact JSON with blanks after commas and colons; only as much of it as could be shown is worth the work."""
    if len(text) > SPACED_UP_TO:
        return text
    import json

    return json.dumps(json.loads(text), ensure_ascii=False)
