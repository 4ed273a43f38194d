"""`ork status`: what goes on in this store right now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from ork.cli.session import json_option, look, now, palette, print_json, store_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ork.app import Installation
    from ork.cli.paint import Line
    from ork.model.ids import RunId
    from ork.model.quarantine import Quarantined
    from ork.state.schedules import UnsentAlert
    from ork.status.pulse import Moment, Pulse


MAX_SET_ASIDE = 5


@click.command(name="status")
@json_option
@store_options
def status_command(as_json: bool) -> None:
    """Schedulers and their leases, runs that have not ended, limits in use, and what waits or runs longest.

    \b
    Example:  ork status --json
    """
    found = look(_gather)
    if as_json:
        from ork.status.pulse import pulse_json

        about = {"store": found.store, "is_disk_full": found.is_disk_full, "schedules": found.schedules}
        print_json({**about, "is_served": found.is_served, **pulse_json(found.pulse, now())})
    else:
        on = palette(sys.stdout)
        facts, rows = _lines(found)
        on.write(sys.stdout, [*(each for fact in facts for each in on.hang(fact)), *rows])


class Found(NamedTuple):
    store: str
    pulse: Pulse
    short: dict[RunId, str]
    is_disk_full: bool
    schedules: int  # that are on
    is_served: bool


async def _gather(installation: Installation) -> Found:
    from ork.status.ids import short_ids
    from ork.status.pulse import take_pulse
    from ork.status.serving import fires_schedules

    store = installation.store
    pulse = await take_pulse(store)
    short = await short_ids(store, [run.id for run in pulse.runs])
    schedules = sum(entry.enabled for entry in await store.list_schedules())
    is_full = installation.objects.is_full()
    return Found(installation.address, pulse, short, is_full, schedules, await fires_schedules(store))


def _lines(found: Found) -> tuple[list[Line], list[Line]]:
    """The facts, which may be long, and the table below them."""
    from ork.cli.looks import run_word
    from ork.cli.paint import line
    from ork.cli.tables import table
    from ork.model.installation import host_of
    from ork.model.run import RunStatus
    from ork.status.controls import control_words
    from ork.status.serving import NOTHING_FIRES, NOTHING_STARTS, Liveness, liveness, unverified_words
    from ork.status.why import FULL_DISK
    from ork.status.words import ago, count

    moment, pulse = now(), found.pulse
    lines = [_fact("store", found.store)]
    for entry in pulse.schedulers:
        lease = f", lease {entry.lease_seconds_left:.0f}s" if entry.active_runs else ""
        if liveness(entry) is Liveness.UNVERIFIED:
            lines.append(_fact("scheduler", f"on {host_of(entry.identity)}: {unverified_words(entry)}"))
            continue
        what = f"{entry.kind}, started {ago(entry.started_at, moment)}, {count(entry.active_runs, 'run')}{lease}"
        lines.append(_fact("scheduler", what))
        lines += [_fact("", f"slower than it should be: {note}") for note in entry.notes]
    if not pulse.schedulers:
        lines.append(_fact("scheduler", "none is running"))
    if found.schedules and not found.is_served:
        lines.append(_fact("schedules", f"{count(found.schedules, 'schedule')}: {NOTHING_FIRES}"))
    if pulse.counts.get(RunStatus.PENDING) and not found.is_served:
        lines.append(_fact("waiting", f"{count(pulse.counts[RunStatus.PENDING], 'run')}: {NOTHING_STARTS}"))
    lines += [_fact(control.mode, control_words(control, moment)) for control in pulse.controls]
    if found.is_disk_full:
        lines.append(_fact("disk", FULL_DISK))
    lines += [_fact("limit", f"{use.name}: {use.used} of {use.slots}") for use in pulse.limits]
    if pulse.oldest_waiting:
        oldest = _since(found, pulse.oldest_waiting)
        lines.append(_fact("waiting", f"{count(pulse.waiting, 'task')}, the oldest {oldest}"))
    if pulse.slowest:
        lines.append(_fact("slowest", _since(found, pulse.slowest)))
    if pulse.unsent:
        lines.append(_fact("alerts", _about_unsent(pulse.unsent, moment)))
    lines += _about_quarantined(pulse.quarantined)
    unfinished = [f"{number:,} {status}" for status, number in pulse.counts.items() if number]
    lines.append(_fact("runs", ", ".join(unfinished) or "all have ended"))
    if not pulse.runs:
        return lines, []
    rows = [(found.short[r.id], r.workflow, run_word(r), ago(r.created_at, moment)) for r in pulse.runs]
    return lines, [line(""), *table(("run", "workflow", "status", "created"), rows)]


def _about_quarantined(items: Sequence[Quarantined]) -> list[Line]:
    from ork.cli.visible import visible

    shown = [_fact("set aside", visible(f"{item.kind} {item.id}: {item.reason}")) for item in items[:MAX_SET_ASIDE]]
    more = len(items) - len(shown)
    return [*shown, _fact("set aside", f"and {more} more, see ork doctor")] if more else shown


def _about_unsent(unsent: Sequence[UnsentAlert], moment: datetime) -> str:
    from ork.alerts.text import title
    from ork.status.pulse import MAX_UNSENT
    from ork.status.words import ago

    last = unsent[0]
    number = f"{MAX_UNSENT} or more" if len(unsent) == MAX_UNSENT else str(len(unsent))
    tried = "tried once" if last.notice.tries == 1 else f"tried {last.notice.tries} times"
    then = "given up" if last.retry_at is None else f"due again {ago(last.retry_at, moment)}"
    return f"{number} could not be sent; the last is “{title(last.notice)}” ({tried}, {then}: {last.error})"


def _fact(label: str, words: str) -> Line:
    from ork.cli.paint import Span, line

    return line(Span(f"{label:<12}", "dim"), words)


def _since(found: Found, moment: Moment) -> str:
    from ork.status.words import duration

    return f"{found.short[moment.run]}/{moment.task} for {duration((now() - moment.since).total_seconds())}"
