"""`ork status`: shows schedulers, unfinished runs and limits in use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from ork.cli.session import json_option, now, palette, print_json, run_short, store_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ork.app.alarms import AlarmState
    from ork.app.installation import Installation
    from ork.cli.paint import Line
    from ork.model.ids import RunId
    from ork.model.publishing import PublishState
    from ork.model.quarantine import Quarantined
    from ork.state.records import UnsentAlert
    from ork.status.overview import StoreOverview, TaskSince


MAX_SET_ASIDE = 5


@click.command(name="status")
@json_option
@store_options
def status_command(as_json: bool) -> None:
    """Show schedulers and their leases, unfinished runs, limits in use, and the longest waiting and running tasks.

    \b
    Example:  ork status --json
    """
    found = run_short(_gather)
    if as_json:
        from ork.status.overview import overview_json
        from ork.status.publishing import published_json

        about = {"store": found.store, "is_disk_full": found.is_disk_full, "schedules": found.schedules}
        about = {**about, "is_served": found.is_served, "alarm": _alarm_json(found.alarm)}
        about["published"] = None if found.published is None else published_json(found.published)
        print_json({**about, **overview_json(found.overview, now())})
    else:
        on = palette(sys.stdout)
        facts, rows = _lines(found)
        on.write(sys.stdout, [*(each for fact in facts for each in on.hang(fact)), *rows])


class StatusReport(NamedTuple):
    store: str
    overview: StoreOverview
    short: dict[RunId, str]
    is_disk_full: bool
    schedules: int  # enabled ones
    is_served: bool
    alarm: AlarmState | None
    published: PublishState | None


async def _gather(installation: Installation) -> StatusReport:
    from ork.app.alarms import read_alarm_state
    from ork.status.ids import short_ids
    from ork.status.overview import read_overview
    from ork.status.schedulers import fires_schedules

    store = installation.store
    overview = await read_overview(store)
    short = await short_ids(store, [run.id for run in overview.runs])
    schedules = sum(entry.enabled for entry in await store.list_schedules())
    is_full = installation.objects.is_full()
    alarm = read_alarm_state(installation.settings) if installation.can_work else None
    is_served = await fires_schedules(store)
    publisher = installation.publisher() if installation.can_work else None
    published = None if publisher is None else await publisher.state()
    return StatusReport(installation.address, overview, short, is_full, schedules, is_served, alarm, published)


def _lines(found: StatusReport) -> tuple[list[Line], list[Line]]:
    """The facts, which may be long, and the table below them."""
    from ork.cli.paint import line, run_status_span
    from ork.cli.tables import table
    from ork.model.installation import host_of
    from ork.model.run import RunStatus
    from ork.status.controls import control_text
    from ork.status.formatting import ago, count
    from ork.status.publishing import published_text
    from ork.status.schedulers import NOTHING_FIRES, NOTHING_STARTS, Liveness, liveness, unverified_text
    from ork.status.why import FULL_DISK

    time, overview = now(), found.overview
    lines = [_fact("store", found.store)]
    for entry in overview.schedulers:
        lease = f", lease {entry.lease_seconds_left:.0f}s" if entry.active_runs else ""
        if liveness(entry) is Liveness.UNVERIFIED:
            lines.append(_fact("scheduler", f"on {host_of(entry.identity)}: {unverified_text(entry)}"))
            continue
        what = f"{entry.kind}, started {ago(entry.started_at, time)}, {count(entry.active_runs, 'run')}{lease}"
        lines.append(_fact("scheduler", what))
        lines += [_fact("", f"slower than it should be: {note}") for note in entry.notes]
    if not overview.schedulers:
        lines.append(_fact("scheduler", "none is running"))
    if found.alarm is not None:
        lines.append(_fact("alarm", _about_alarm(found.alarm, time)))
    if found.published is not None:
        lines.append(_fact("published", published_text(found.published, time)))
    is_woken = found.alarm is not None and found.alarm.problem is None
    if found.schedules and not found.is_served and not is_woken:
        lines.append(_fact("schedules", f"{count(found.schedules, 'schedule')}: {NOTHING_FIRES}"))
    if overview.counts.get(RunStatus.PENDING) and not found.is_served and not is_woken:
        lines.append(_fact("waiting", f"{count(overview.counts[RunStatus.PENDING], 'run')}: {NOTHING_STARTS}"))
    lines += [_fact(control.mode, control_text(control, time)) for control in overview.controls]
    if found.is_disk_full:
        lines.append(_fact("disk", FULL_DISK))
    lines += [_fact("limit", f"{use.name}: {use.used} of {use.slots}") for use in overview.limits]
    if overview.oldest_waiting:
        oldest = _since(found, overview.oldest_waiting)
        lines.append(_fact("waiting", f"{count(overview.waiting, 'task')}, the oldest {oldest}"))
    if overview.slowest:
        lines.append(_fact("slowest", _since(found, overview.slowest)))
    if overview.unsent:
        lines.append(_fact("alerts", _about_unsent(overview.unsent, time)))
    lines += _about_quarantined(overview.quarantined)
    unfinished = [f"{number:,} {status}" for status, number in overview.counts.items() if number]
    lines.append(_fact("runs", ", ".join(unfinished) or "all have ended"))
    if not overview.runs:
        return lines, []
    rows = [(found.short[r.id], r.workflow, run_status_span(r), ago(r.created_at, time)) for r in overview.runs]
    return lines, [line(""), *table(("run", "workflow", "status", "created"), rows)]


def _about_alarm(alarm: AlarmState, now: datetime) -> str:
    from ork.status.formatting import ago, count

    if alarm.problem is not None:
        return f"does not work: {alarm.problem.message}"
    when = "not set" if alarm.next is None else f"calls {ago(alarm.next, now)} ({alarm.next:%Y-%m-%d %H:%M:%S} UTC)"
    failing = f"; {count(alarm.failing, 'call')} without success so far" if alarm.failing else ""
    return f"{alarm.describes}: {when}{failing}"


def _alarm_json(alarm: AlarmState | None) -> dict[str, object] | None:
    from ork.status.shapes import time_json

    if alarm is None:
        return None
    problem = None if alarm.problem is None else alarm.problem.message
    return {
        "alarm": alarm.describes,
        "next_call": time_json(alarm.next),
        "failing_calls": alarm.failing,
        "problem": problem,
    }


def _about_quarantined(items: Sequence[Quarantined]) -> list[Line]:
    from ork.cli.paint import visible

    shown = [_fact("set aside", visible(f"{item.kind} {item.id}: {item.reason}")) for item in items[:MAX_SET_ASIDE]]
    more = len(items) - len(shown)
    return [*shown, _fact("set aside", f"and {more} more, see ork doctor")] if more else shown


def _about_unsent(unsent: Sequence[UnsentAlert], now: datetime) -> str:
    from ork.alerts.text import title
    from ork.status.formatting import ago
    from ork.status.overview import MAX_UNSENT

    last = unsent[0]
    number = f"{MAX_UNSENT} or more" if len(unsent) == MAX_UNSENT else str(len(unsent))
    tried = "tried once" if last.notice.tries == 1 else f"tried {last.notice.tries} times"
    then = "given up" if last.retry_at is None else f"due again {ago(last.retry_at, now)}"
    return f"{number} could not be sent; the last is “{title(last.notice)}” ({tried}, {then}: {last.error})"


def _fact(label: str, words: str) -> Line:
    from ork.cli.paint import Span, line

    return line(Span(f"{label:<12}", "dim"), words)


def _since(found: StatusReport, task: TaskSince) -> str:
    from ork.status.formatting import duration

    return f"{found.short[task.run]}/{task.task} for {duration((now() - task.since).total_seconds())}"
