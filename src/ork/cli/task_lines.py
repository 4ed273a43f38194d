"""One task in one line (and, when it failed, why): what stays on the screen when the run is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from ork.cli.failure import INDENT, MAX_TEXT, explanation, headline, whole_message
from ork.cli.looks import glyph
from ork.cli.paint import NAME, REST, Line, Span, line
from ork.cli.visible import shorten, visible
from ork.model.task import Attempt, InlineOutput, StoredOutput, Task, TaskStatus
from ork.model.workflow import Approval
from ork.status.follow import RunView
from ork.status.instances import Instances, is_group
from ork.status.shown import shown_text
from ork.status.tries import about_the_end, earlier_tries
from ork.status.why import queue_in_words, waits_for_a_person
from ork.status.words import argument, between, count, duration, metrics_text, place_text

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
    """A task counts once, however many instances it has; those are named beside it."""
    tasks = count(len(view.specs), "task")
    if view.instances:
        tasks += f", {count(view.total, 'instance')}"
    return line(Span(view.run.workflow, "bold"), f" · run {view.short} · {tasks}")


def ended_lines(view: RunView, task: Task, *, full: bool = False) -> list[Line]:
    """The lasting lines of a task that has ended; a fan-out is told in one, its failed instances in theirs."""
    if is_group(task):
        return [group_line(view, task)]
    start = line("  ", glyph(task.status), " ", name_span(view, task))
    match task.status:
        case TaskStatus.SUCCESS:
            why = Span(f"   {visible(task.reason)}" if task.reason else "", "dim")
            return [start + line(_took(task), Span(_output(task), REST), why)]
        case TaskStatus.FAILED:
            this, most = view.tries(task)
            tries = Span(f"   attempt {this} of {most}", "dim") if this > 0 else Span("")
            first = start + line(_took(task), "   ", Span(headline(task.failure), "bad"), tries)
            end = about_the_end(view.specs.get(task.key.name), task)
            why_final = [line(INDENT, Span(visible(end), "dim"))] if end else []
            return [first, *whole_message(task.failure), *explanation(task.failure, full=full), *why_final]
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
    if is_group(task):
        return [group_line(view, task, now)]
    if waits_for_a_person(view, task):
        return [decision_line(view, task, now)]
    start = line("  ", glyph(task.status), " ", name_span(view, task))
    if task.status is TaskStatus.RUNNING and task.started_at is not None:
        note = Span(f"   {task.reason}" if task.reason else "", "wait")
        return [start + line(duration((now - task.started_at).total_seconds()), note)]
    return [start + line(Span("starting" if task.status is TaskStatus.DISPATCHED else "waiting", "dim"))]


def retry_lines(view: RunView, task: Task, now: datetime) -> list[Line]:
    """A try that failed and will be repeated."""
    this, most = view.tries(task)
    wait = (task.retry_at - now).total_seconds() if task.retry_at else 0
    when = f"retry in {duration(wait)}" if wait > 0 else "retry now"
    return [
        line("  ", Span("✗", "wait"), " ", name_span(view, task), f"attempt {this} of {most}, {when}   ")
        + line(Span(headline(task.failure), "bad"))
    ]


def past_try_line(view: RunView, task: Task, attempt: Attempt) -> Line:
    """A try that failed and has been repeated already."""
    most = view.tries(task)[1]
    tries = f"attempt {attempt.key.number - task.earlier_attempts} of {most}, tried again   "
    return line("  ", Span("✗", "wait"), " ", name_span(view, task), tries, Span(headline(attempt.failure), "bad"))


def earlier_lines(task: Task, attempts: Sequence[Attempt]) -> list[Line]:
    """How the tries before the last one went, in one line if there were any."""
    said = earlier_tries(task, attempts)
    return [line(INDENT, Span(shorten(visible(said), MAX_TEXT), "dim"))] if said else []


def fact_lines(attempts: Sequence[Attempt], *, full: bool) -> list[Line]:
    """The metrics of the last attempt; with `full`, where each attempt ran."""
    lines = []
    said = metrics_text(attempts[-1]) if attempts else ""
    if said:
        lines.append(line(INDENT, Span(shorten(visible(said), MAX_TEXT), "dim")))
    for attempt in attempts if full else ():
        where = f"attempt {attempt.key.number}: {place_text(attempt)}"
        lines.append(line(INDENT, Span(visible(where), "dim")))
    return lines


def group_line(view: RunView, task: Task, now: datetime | None = None) -> Line:
    """All instances of a task: a bar, and how many are in which state."""
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
        parts.append(f"{instances.queued:,} queued: {queue_in_words(view, task.key.name)}")
    end = task.finished_at or now
    took = duration((end - task.started_at).total_seconds()) if task.started_at and end else ""
    return line("  ", glyph(task.status), " ", name_span(view, task), f"{took:<8}", *bar, "  ", ", ".join(parts))


def instance_lines(view: RunView, name: str, now: datetime, *, full: bool = False) -> list[Line]:
    """The instances a person wants to see even when they are folded: failed ones and those to be retried, a few each."""
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
    """A task that waits for a person, with what that person can do."""
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
    this, most = view.tries(task)
    if waits_for_a_person(view, task):
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
    """What one may do now, in commands that can be pasted; `shown` when `ork show` is what is being answered."""
    short = view.short
    failed = next(iter(view.by_status[TaskStatus.FAILED]), None)
    if failed is not None:
        name = argument(failed)
        steps = [("all of it", f"ork logs {short} {name}"), ("fix, continue", f"ork retry {short}")]
        if view.by_status[TaskStatus.FAILED][failed].attempt:
            steps.append(("look inside", f"ork debug {short} {name}"))
        return [line(Span(f"  {label:<15}", "dim"), command) for label, command in steps]
    if view.run.status != "success":
        return [line(Span("  again          ", "dim"), f"ork retry {short}")]
    return [line(f"  ork logs {short}" + ("" if shown else f"   ork show {short}"))]


def name_span(view: RunView, task: Task) -> Span:
    return Span(shorten(str(task.key), MAX_NAME).ljust(name_width(view)), NAME)


def _took(task: Task) -> str:
    start = task.started_at or task.dispatched_at
    return duration((task.finished_at - start).total_seconds()) if start and task.finished_at else ""


def _output(task: Task) -> str:
    match task.output:
        case InlineOutput(text) if text != "null":
            return "   " + shorten(visible(_spaced(shown_text(text))), MAX_OUTPUT)
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
