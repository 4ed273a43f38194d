"""The page: facts about the run, failures, graph, timeline, tasks and logs."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from ork import __version__
from ork.cli.failure import explanation, headline
from ork.cli.paint import shorten, state_text, style_of, visible
from ork.cli.report.timeline import TimeRange, chosen, draw_timeline
from ork.compile.drawing import draw_svg
from ork.model.ids import AttemptKey
from ork.model.prices import dollars
from ork.model.secret import redacted_params
from ork.model.task import Attempt, InlineOutput, StoredOutput, Task, TaskStatus
from ork.model.value_reference import IN_TEXT, shortened
from ork.status.cost import CostReport, notes, task_usd, total_line
from ork.status.formatting import argument, between, count, duration, metrics_text
from ork.status.run_view import RunView, is_group
from ork.status.secret_masking import mask_text

MOST_TASKS = 1000
MOST_LOGS = 300
LOGS_IN_ALL = 16 << 20
_GRAPH_TASKS = 300
_SHOWN_FAILURES = 50
_VALUE = 400


class Printed(NamedTuple):
    """The end of a log, and the number of bytes omitted before it."""

    text: str
    left_out: int


class RunReport(NamedTuple):
    view: RunView
    attempts: Sequence[Attempt]
    now: datetime
    read_log: Callable[[AttemptKey], Printed]
    cost: CostReport | None = None


def page(report: RunReport) -> Iterator[str]:
    """The document in parts."""
    view = report.view
    style = files("ork.cli.report").joinpath("style.css").read_text(encoding="utf-8")
    yield _head(f"{view.run.workflow} · run {view.short}", style)
    yield f"<h1>{_text(view.run.workflow)} {_state(view.run.status)}</h1>"
    yield _facts(report)
    yield from _failures(view)
    yield from _graph(view)
    yield from _timeline(report)
    yield from _tasks(report)
    yield from _cost(report)
    yield from _logs(report)
    yield f'<p class="note">Ork {__version__}</p></body></html>\n'


def _head(title: str, style: str) -> str:
    # The policy allows only this style, by its hash: anything injected into the page has no effect.
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer"><title>{_text(title)}</title>'
        f"<style>{style}</style></head><body>"
    )


def _params(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in params.items())


def _facts(report: RunReport) -> str:
    run, view = report.view.run, report.view
    totals = [f"{view.count(status):,} {status}" for status in TaskStatus if view.count(status)]
    facts = [
        ("run", run.id),
        ("tasks", ", ".join(totals) or "none yet"),
        ("took", between(run.started_at, run.finished_at or (None if run.status.is_final else report.now))),
        ("created", _time_text(run.created_at)),
        ("started", _time_text(run.started_at)),
        ("finished", _time_text(run.finished_at)),
        ("trigger", str(run.trigger)),
        ("scheduled for", _time_text(run.scheduled_for)),
        ("params", _params(redacted_params(run.params))),
        ("version", run.version),
        ("parent", run.parent),
        ("error", run.error),
    ]
    shown = "".join(f"<dt>{name}</dt><dd>{_text(shorten(text, _VALUE))}</dd>" for name, text in facts if text)
    return f"<dl>{shown}</dl>"


def _failures(view: RunView) -> Iterator[str]:
    failed = list(view.by_status[TaskStatus.FAILED].values())
    if not failed:
        return
    yield "<h2>What failed</h2>"
    for task in failed[:_SHOWN_FAILURES]:
        lines = ["".join(span.text for span in each) for each in explanation(task.failure, full=True)]
        more = f'<pre class="bad">{_lines(lines)}</pre>' if lines else ""
        yield f'<p><code>{_text(str(task.key))}</code> <span class="bad">{_text(headline(task.failure))}</span></p>{more}'
    yield _left_out(len(failed) - _SHOWN_FAILURES, "failed task", f"ork show {view.short}")


def _graph(view: RunView) -> Iterator[str]:
    if len(view.specs) > _GRAPH_TASKS:
        return
    states = {name: style_of(task.status) for name in view.specs if (task := view.whole(name)) is not None}
    yield f'<h2>Graph</h2><div class="scroll">{draw_svg(view.version.workflow, states=states)}</div>'


def _timeline(report: RunReport) -> Iterator[str]:
    if not report.attempts:
        return
    run = report.view.run
    ends = [run.finished_at or report.now, *(each.finished_at for each in report.attempts if each.finished_at)]
    span = TimeRange(min(each.dispatched_at for each in report.attempts), max(ends))
    shown = chosen(report.attempts)
    yield f'<h2>Timeline</h2><div class="scroll">{draw_timeline(shown, span)}</div>'
    yield _left_out(len(report.attempts) - len(shown), "attempt", f"ork show {report.view.short} --instances")


def _tasks(report: RunReport) -> Iterator[str]:
    view, last = report.view, {attempt.key.task: attempt for attempt in report.attempts}
    tasks = [task for task in view.tasks.values() if not is_group(task)]
    tasks = sorted(tasks, key=lambda task: task.status is not TaskStatus.FAILED) if len(tasks) > MOST_TASKS else tasks
    yield '<h2>Tasks</h2><div class="scroll"><table><tr><th>task</th><th></th><th>tries</th><th>took</th><th></th><th>metrics</th></tr>'
    for task in tasks[:MOST_TASKS]:
        yield (
            f"<tr><td><code>{_text(str(task.key))}</code></td><td>{_state(task.status)}</td><td>{task.attempt or '–'}</td>"
            f'<td>{between(task.started_at, task.finished_at)}</td><td class="text">{_text(shorten(_result(task), _VALUE))}</td>'
            f"<td>{_text(shorten(metrics_text(last.get(task.key)), _VALUE))}</td></tr>"
        )
    yield "</table></div>"
    yield _left_out(len(tasks) - MOST_TASKS, "task", f"ork show {view.short} --instances")


def _cost(report: RunReport) -> Iterator[str]:
    cost = report.cost
    if cost is None:
        return
    yield f"<h2>Cost</h2><p>{_text(total_line(cost))}</p>"
    yield '<div class="scroll"><table><tr><th>task</th><th>where</th><th>attempts</th><th>ran</th><th>vCPU s</th><th>GiB s</th><th>estimate</th></tr>'
    for task in cost.tasks[:MOST_TASKS]:
        cells = (str(task.attempts), duration(task.seconds), _amount(task.vcpu_seconds), _amount(task.gib_seconds))
        yield (
            f"<tr><td><code>{_text(task.name)}</code></td><td>{_text(', '.join(task.where))}</td>"
            + "".join(f"<td>{cell}</td>" for cell in (*cells, task_usd(task)))
            + "</tr>"
        )
    yield "</table></div>"
    if cost.operations:
        yield '<div class="scroll"><table><tr><th>operations</th><th>about</th><th>estimate</th></tr>'
        for each in cost.operations:
            usd = "unknown" if each.usd is None else dollars(each.usd)
            yield f"<tr><td><code>{_text(each.name)}</code></td><td>{each.count:,.0f}</td><td>{usd}</td></tr>"
        yield "</table></div>"
    yield "".join(f'<p class="note">{_text(note)}</p>' for note in notes([cost]))


def _amount(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:,.1f}"


def _result(task: Task) -> str:
    if task.status is TaskStatus.FAILED:
        return headline(task.failure)
    match task.output:
        case InlineOutput(text):
            return mask_text(json.dumps(shortened(json.loads(text))) if IN_TEXT in text else text)
        case StoredOutput(_, size):
            return f"{size:,} bytes"
        case None:
            return task.reason or ""


def _logs(report: RunReport) -> Iterator[str]:
    """The logs of unsuccessful attempts first, up to the limits of the page."""
    ranked = sorted(report.attempts, key=lambda each: each.status == "success")
    left, shown = LOGS_IN_ALL, 0
    yield "<h2>Logs</h2>"
    for attempt in ranked[:MOST_LOGS]:
        if left <= 0:
            break
        printed = report.read_log(attempt.key)
        left -= len(printed.text)
        shown += 1
        yield _log(report.view, attempt, printed)
    yield _left_out(len(ranked) - shown, "log", f"ork logs {report.view.short}")


def _log(view: RunView, attempt: Attempt, printed: Printed) -> str:
    name = f"<code>{_text(str(attempt.key.task))}</code> attempt {attempt.key.number} {_state(attempt.status)}"
    if not printed.text:
        return f'<p>{name} <span class="note">printed nothing</span></p>'
    command = f"ork logs {view.short} {argument(attempt.key.task)} --attempt {attempt.key.number}"
    before = _note(f"{printed.left_out:,} bytes before this are omitted: {command}") if printed.left_out else ""
    is_open = "" if attempt.status == "success" else " open"
    text = _lines(printed.text.split("\n"))
    return f"<details{is_open}><summary>{name}</summary>{before}<pre>{text}</pre></details>"


def _left_out(number: int, noun: str, command: str) -> str:
    return _note(f"{count(number, noun)} more: {command}") if number > 0 else ""


def _note(text: str) -> str:
    return f'<p class="note">{_text(text)}</p>'


def _state(status: str) -> str:
    return f'<span class="{style_of(status)}">{state_text(status)}</span>'


def _time_text(now: datetime | None) -> str | None:
    return None if now is None else f"{now:%Y-%m-%d %H:%M:%S} UTC"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(_text(line.removesuffix("\r")) for line in lines)


def _text(text: str) -> str:
    """Escapes untrusted text and makes control characters visible."""
    return escape(visible(text))
