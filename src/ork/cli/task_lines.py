"""Renders a task as one line, and the reason if it failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from ork.cli.failure import INDENT, MAX_TEXT, explanation, headline, whole_message
from ork.cli.paint import NAME, REST, Line, Span, glyph, line, shorten, visible
from ork.model.task import Attempt, InlineOutput, StoredOutput, Task, TaskStatus
from ork.model.value_reference import IN_TEXT, shortened
from ork.model.workflow import Approval
from ork.status.attempt_text import earlier_attempts_text, failure_notes
from ork.status.formatting import argument, between, count, duration, metrics_text, ran_in_text
from ork.status.run_view import Instances, RunView, is_group
from ork.status.secret_masking import mask_text
from ork.status.why_task import queue_reason, waits_for_approval

MIN_NAME = 9
MAX_NAME = 40
NAME_GAP = 4
MAX_OUTPUT = 60
SPACED_UP_TO = 2000
GROUP_BAR = 16
MAX_INSTANCES = 5


def name_width(view: RunView) -> int:
    return min(max(view.longest_name, MIN_NAME), MAX_NAME) + NAME_GAP


def header(view: RunView) -> Line:
    """Workflow, run, and the number of tasks; instances are counted separately."""
    tasks = count(len(view.specs), "task")
    if view.instances:
        tasks += f", {count(view.total, 'instance')}"
    return line(Span(view.run.workflow, "bold"), f" · run {view.short} · {tasks}")


def ended_lines(view: RunView, task: Task, *, full: bool = False) -> list[Line]:
    """The permanent lines of a task that has ended; a fan-out is one line."""
    if is_group(task):
        return [group_line(view, task)]
    start = line("  ", glyph(task.status), " ", name_span(view, task))
    match task.status:
        case TaskStatus.SUCCESS:
            why = Span(f"   {visible(task.reason)}" if task.reason else "", "dim")
            return [start + line(_took(task), Span(_output(task), REST), why)]
        case TaskStatus.FAILED:
            this, most = view.attempt_numbers(task)
            tries = Span(f"   attempt {this} of {most}", "dim") if this > 0 else Span("")
            first = start + line(_took(task), "   ", Span(headline(task.failure), "bad"), tries)
            end = failure_notes(view.specs.get(task.key.name), task)
            why_final = [line(INDENT, Span(visible(end), "dim"))] if end else []
            return [first, *whole_message(task.failure), *explanation(task.failure, full=full), *why_final]
        case TaskStatus.SKIPPED:
            return [start + line(Span(f"skipped: {visible(task.reason or 'not needed')}", "dim"))]
        case _:
            return [start + line(Span(visible(task.reason or task.status), "wait"))]


def any_lines(view: RunView, task: Task, now: datetime, *, full: bool = False) -> list[Line]:
    """The lines of a task in any status."""
    if task.status.is_final:
        return ended_lines(view, task, full=full)
    if task.retry_at is not None and task.status is TaskStatus.PENDING:
        return retry_lines(view, task, now)
    if is_group(task):
        return [group_line(view, task, now)]
    if waits_for_approval(view, task):
        return [decision_line(view, task, now)]
    start = line("  ", glyph(task.status), " ", name_span(view, task))
    if task.status is TaskStatus.RUNNING and task.started_at is not None:
        note = Span(f"   {task.reason}" if task.reason else "", "wait")
        return [start + line(duration((now - task.started_at).total_seconds()), note)]
    return [start + line(Span("starting" if task.status is TaskStatus.DISPATCHED else "waiting", "dim"))]


def retry_lines(view: RunView, task: Task, now: datetime) -> list[Line]:
    """An attempt that failed and will be retried."""
    this, most = view.attempt_numbers(task)
    wait = (task.retry_at - now).total_seconds() if task.retry_at else 0
    when = f"retry in {duration(wait)}" if wait > 0 else "retry now"
    return [
        line("  ", Span("✗", "wait"), " ", name_span(view, task), f"attempt {this} of {most}, {when}   ")
        + line(Span(headline(task.failure), "bad"))
    ]


def past_attempt_line(view: RunView, task: Task, attempt: Attempt) -> Line:
    """An attempt that failed and was already retried."""
    most = view.attempt_numbers(task)[1]
    tries = f"attempt {attempt.key.number - task.earlier_attempts} of {most}, retried   "
    return line("  ", Span("✗", "wait"), " ", name_span(view, task), tries, Span(headline(attempt.failure), "bad"))


def earlier_lines(task: Task, attempts: Sequence[Attempt]) -> list[Line]:
    """One line about the attempts before the last one, if there were any."""
    text = earlier_attempts_text(task, attempts)
    return [line(INDENT, Span(shorten(visible(text), MAX_TEXT), "dim"))] if text else []


def fact_lines(attempts: Sequence[Attempt], *, full: bool) -> list[Line]:
    """The metrics of the last attempt; with `full`, where each attempt ran."""
    lines = []
    metrics = metrics_text(attempts[-1]) if attempts else ""
    if metrics:
        lines.append(line(INDENT, Span(shorten(visible(metrics), MAX_TEXT), "dim")))
    for attempt in attempts if full else ():
        where = f"attempt {attempt.key.number}: {ran_in_text(attempt)}"
        lines.append(line(INDENT, Span(visible(where), "dim")))
    return lines


def group_line(view: RunView, task: Task, now: datetime | None = None) -> Line:
    """All instances of a task: a bar, and the number in each status."""
    instances = view.instances.get(task.key.name) or Instances()
    total = task.instances or 0
    cancelled = instances.counts[TaskStatus.CANCELLED]
    done = min(instances.done, total) - cancelled
    filled = GROUP_BAR * done // max(total, 1)
    bar = Span("█" * filled, "bad" if instances.failed else "good"), Span("░" * (GROUP_BAR - filled), "dim")
    parts = [f"{done:,} of {total:,}"]
    parts += [f"{len(instances.failed):,} failed"] if instances.failed else []
    parts += [f"{cancelled:,} cancelled"] if cancelled else []
    parts += [f"{instances.active:,} running"] if instances.active else []
    parts += [f"{len(instances.retrying):,} to be retried"] if instances.retrying else []
    if instances.queued > 0 and not task.status.is_final:
        parts.append(f"{instances.queued:,} queued: {queue_reason(view, task.key.name)}")
    end = task.finished_at or now
    took = duration((end - task.started_at).total_seconds()) if task.started_at and end else ""
    return line("  ", glyph(task.status), " ", name_span(view, task), f"{took:<8}", *bar, "  ", ", ".join(parts))


def instance_lines(view: RunView, name: str, now: datetime, *, full: bool = False) -> list[Line]:
    """A few failed instances and a few that will be retried; shown even if instances are folded."""
    instances = view.instances.get(name)
    if instances is None:
        return []
    lines: list[Line] = []
    for chosen, words in ((instances.failed, "failed"), (instances.retrying, "to be retried")):
        for task in islice(chosen.values(), MAX_INSTANCES):
            lines += any_lines(view, task, now, full=full)
        if len(chosen) > MAX_INSTANCES:
            lines.append(line(Span(f"      … {len(chosen) - MAX_INSTANCES:,} more instances of {name} {words}", "dim")))
    return lines


def decision_line(view: RunView, task: Task, now: datetime) -> Line:
    """A task that waits for approval, with the command that approves it."""
    spec = view.specs[task.key.name]
    question = spec.action.message if isinstance(spec.action, Approval) else ""
    waited = duration((now - task.started_at).total_seconds()) if task.started_at else ""
    command = f"ork approve {view.short} {task.key}"
    return line(
        "  ",
        glyph("paused"),
        " ",
        name_span(view, task),
        waited,
        "   ",
        Span(_shown(question), "wait"),
        f"   {command}",
    )


def _shown(text: str) -> str:
    return shorten(visible(" ".join(text.split())), MAX_OUTPUT)


def started_line(view: RunView, task: Task) -> Line:
    this, most = view.attempt_numbers(task)
    if waits_for_approval(view, task):
        return decision_line(view, task, task.started_at or view.run.created_at)
    tries = f"attempt {this} of {most}" if most > 1 else "started"
    return line("  ", glyph(TaskStatus.RUNNING), " ", name_span(view, task), tries)


def summary(view: RunView) -> Line:
    """`✓ success in 0.5s · 3 succeeded`, and `14 instances succeeded` where tasks have fanned out."""
    run = view.run
    took = f" in {between(run.started_at, run.finished_at)}" if run.started_at and run.finished_at else ""
    words = [f"{view.count(status):,} {word}" for status, word in _COUNTED if view.count(status)]
    if view.instances and words:
        words[0] = words[0].replace(" ", " instance " if words[0].startswith("1 ") else " instances ", 1)
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
    """The commands that make sense next; `shown` omits `ork show`."""
    short = view.short
    failed = next(iter(view.by_status[TaskStatus.FAILED]), None)
    if failed is not None:
        name = argument(failed)
        steps = [("full log", f"ork logs {short} {name}"), ("fix, continue", f"ork retry {short}")]
        if view.by_status[TaskStatus.FAILED][failed].attempt:
            steps.append(("debug", f"ork debug {short} {name}"))
        return [line(Span(f"  {label:<15}", "dim"), command) for label, command in steps]
    if view.run.status != "success":
        return [line(Span("  retry          ", "dim"), f"ork retry {short}")]
    return [line(f"  ork logs {short}" + ("" if shown else f"   ork show {short}"))]


def name_span(view: RunView, task: Task) -> Span:
    return Span(shorten(str(task.key), MAX_NAME).ljust(name_width(view)), NAME)


def _took(task: Task) -> str:
    start = task.started_at or task.dispatched_at
    return duration((task.finished_at - start).total_seconds()) if start and task.finished_at else ""


def _output(task: Task) -> str:
    match task.output:
        case InlineOutput(text) if text != "null":
            return "   " + shorten(visible(_spaced(mask_text(text))), MAX_OUTPUT)
        case StoredOutput(_, size):
            return f"   {size / 1024:,.0f} KiB of output"
        case _:
            return ""


def _spaced(text: str) -> str:
    """Compact JSON with blanks after commas and colons, unless it is too long to be shown; of values that are not JSON, what they
    are."""
    has_values = IN_TEXT in text
    if len(text) > SPACED_UP_TO and not has_values:
        return text
    import json

    value = json.loads(text)
    return json.dumps(shortened(value) if has_values else value, ensure_ascii=False)
