"""`ork schedules simulate`: plays the project's schedules over months of virtual time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click

from ork.cli.arguments import complete_workflow
from ork.cli.session import json_option, local_settings, now, palette, print_json, run_short, store_options
from ork.errors import UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.paint import Line
    from ork.time_machine.plan import SimulationPlan
    from ork.time_machine.project import ProjectCopy
    from ork.time_machine.report import BusyMoment, ClockChange, LimitReport, Report, ScheduleReport

DEFAULT_RANGE = timedelta(days=30)
NAMES_SHOWN = 5
_SCHEDULE_TITLES = (
    "workflow", "schedule", "runs", "failed", "missed", "late", "queued", "overlaps", "typical", "longest",
    "cost",
)  # fmt: skip


@click.command(name="simulate")
@click.argument("workflows", nargs=-1, shell_complete=complete_workflow)
@click.option("--from", "start", metavar="DATE", help="The first time (default: now).")
@click.option("--to", "end", metavar="DATE", help="The end; a date means its start (default: 30 days after --from).")
@click.option(
    "--duration",
    "durations",
    multiple=True,
    metavar="TASK=TIME",
    help="How long a task takes: load=90s, nightly.load=2h.",
)
@click.option("--default-duration", metavar="TIME", default="1m", show_default=True, help="For tasks without history.")
@click.option("--seed", type=int, help="Draw durations and failures from the history instead of using the median.")
@click.option(
    "--fail-rate", type=click.FloatRange(0, 1), metavar="P", help="The share of attempts that fail, such as 0.05."
)
@click.option("--down", "outages", multiple=True, metavar="FROM/TO", help="No scheduler runs from FROM to TO.")
@click.option("--runs", "with_runs", is_flag=True, help="With --json: also list every run.")
@json_option
@store_options
def simulate_command(
    workflows: tuple[str, ...],
    start: str | None,
    end: str | None,
    durations: tuple[str, ...],
    default_duration: str,
    seed: int | None,
    fail_rate: float | None,
    outages: tuple[str, ...],
    with_runs: bool,
    as_json: bool,
) -> None:
    """Play the project's schedules in virtual time and show runs, overlaps, missed times, waits for limits and cost.

    Nothing is started and the store is only read. Tasks take the median time of their last runs. Workflows, schedules and
    their state are those in the store, limits those in ork.yaml. Without WORKFLOWS, all schedules are played.

    \b
    Example:  ork schedules simulate --from 2026-01-01 --to 2026-04-01
              ork schedules simulate nightly --duration load=2h --seed 1
    """
    from time import monotonic

    from ork.time_machine.plan import SimulationPlan
    from ork.time_machine.play import play
    from ork.time_machine.report import make_report, report_json

    first = now() if start is None else _time(start, "--from")
    last = first + DEFAULT_RANGE if end is None else _time(end, "--to")
    given = dict(_duration_of_task(text) for text in durations)
    seconds = _seconds(default_duration, "--default-duration")
    down = [_outage(text) for text in outages]
    plan = SimulationPlan(first, last, seed, seconds, given, fail_rate, workflows, down)
    plan.check()
    local_settings("schedules simulate")
    project = run_short(lambda installation: _copy(installation, plan))
    began = monotonic()
    report = make_report(project, plan, play(project, plan))
    if as_json:
        print_json(report_json(report, with_runs=with_runs))
    else:
        _print(report, monotonic() - began)


async def _copy(installation: Installation, plan: SimulationPlan) -> ProjectCopy:
    from ork.time_machine.project import copy_project, rules_of

    return await copy_project(installation.own_store, installation.objects, rules_of(installation.settings), plan)


def _time(text: str, option: str) -> datetime:
    from ork.cli.times import parse_time

    return parse_time(text, option)


def _outage(text: str) -> tuple[datetime, datetime]:
    since, sign, until = text.partition("/")
    if not sign:
        raise UsageError(f"--down {text} has no end", hint="write FROM/TO, such as 2026-03-07/2026-03-09")
    return _time(since, "--down"), _time(until, "--down")


def _duration_of_task(text: str) -> tuple[str, float]:
    task, sign, time = text.partition("=")
    if not sign or not task:
        raise UsageError(f"--duration {text} names no task", hint="write TASK=TIME, such as load=90s")
    return task, _seconds(time, f"--duration {task}")


def _seconds(text: str, option: str) -> float:
    from ork.definition.values import seconds_of

    seconds = seconds_of(text)
    if seconds is None:
        raise UsageError(f"{option}: {text} is not a duration", hint="such as 90s, 5m or 1h30m")
    return seconds


# ── as text ──────────────────────────────────────────────────────────────────────────────────────


def _print(report: Report, seconds: float) -> None:
    from ork.status.formatting import count, duration

    runs = sum(each.runs for each in report.schedules)
    what = f"{count(runs, 'run')}, {count(report.attempts, 'attempt')}, played in {duration(seconds)}"
    print(f"{_local(report.start)} to {_local(report.end)}: {what}")
    for lines in _tables(report):
        palette(sys.stdout).write(sys.stdout, [(), *lines])
    sys.stdout.flush()
    for message, times in report.problems:
        print(f"warning: {message} ({count(times, 'time')})", file=sys.stderr)
    if report.assumed:
        print(
            f"note: no history of {_some(report.assumed)}: --default-duration applies, --duration TASK=TIME changes it",
            file=sys.stderr,
        )
    for note in report.notes:
        print(f"note: {note}", file=sys.stderr)


def _tables(report: Report) -> Iterator[list[Line]]:
    from ork.cli.tables import table

    schedules = [_schedule_row(each) for each in report.schedules]
    yield table(_SCHEDULE_TITLES, schedules, less=(1, 8))
    limits = [_limit_row(each) for each in report.limits if each.slots is not None or each.waited]
    yield table(("limit", "slots", "peak", "mean", "waited", "longest", "total"), limits, less=(3,))
    if report.clock_changes:
        zones = {each.workflow: each.timezone for each in report.schedules}
        changes = [_clock_change_row(each, zones[each.workflow]) for each in report.clock_changes]
        yield table(("clock change", "workflow", ""), changes)
    if report.moments:
        moments = [_moment_row(each) for each in report.moments]
        yield table(("worst moments", "until", "limit", "waited", "longest", "workflows", "alike"), moments, less=(1,))


def _schedule_row(each: ScheduleReport) -> tuple[str, ...]:
    from ork.status.cost import usd_text
    from ork.status.formatting import duration

    return (
        each.workflow,
        f"{each.cron} {each.timezone}" + ("" if each.enabled else " (disabled)"),
        f"{each.runs:,}",
        ", ".join(_ends(each)),
        f"{each.missed:,}",
        _many(each.late, f"up to {duration(each.latest_seconds)}"),
        _many(each.queued, f"up to {duration(each.longest_queued_seconds)}"),
        _many(each.overlapping, f"{each.most_at_once} at once"),
        "–" if each.median_seconds is None else duration(each.median_seconds),
        "–" if each.longest_seconds is None else duration(each.longest_seconds),
        usd_text(each.usd, is_complete=not each.unknown_attempts),
    )


def _ends(each: ScheduleReport) -> Iterator[str]:
    yield f"{each.failed:,}"
    if each.cancelled:
        yield f"{each.cancelled:,} cancelled"
    if each.unfinished:
        yield f"{each.unfinished:,} unfinished"


def _limit_row(each: LimitReport) -> tuple[str, ...]:
    from ork.status.formatting import duration

    use = ("–", "–", "–") if each.mean is None else (f"{each.slots:,}", f"{each.peak:,}", f"{each.mean:.2f}")
    waits = (duration(each.longest_seconds), duration(each.total_seconds)) if each.waited else ("–", "–")
    return (_limit_name(each.name), *use, f"{each.waited:,}", *waits)


def _clock_change_row(each: ClockChange, timezone: str) -> tuple[str, ...]:
    zone = ZoneInfo(timezone)
    times = " and ".join(f"{time.astimezone(zone):%H:%M:%S %Z}" for time in each.fires)
    what = f"{each.local:%H:%M:%S} {'does not exist' if each.kind == 'skipped' else 'comes twice'}"
    return (
        f"{each.local:%Y-%m-%d} {timezone}",
        each.workflow,
        f"{what}; fires {f'at {times}' if times else 'not at all'}",
    )


def _moment_row(each: BusyMoment) -> tuple[str, ...]:
    from ork.status.formatting import duration

    alike = f"{each.alike:,} more" if each.alike else ""
    if each.what == "missed":
        return _local(each.start), "", "missed", f"{each.count:,}", "–", f"{each.workflows[0]}: {each.why}", alike
    return (
        _local(each.start),
        _local(each.end),
        _limit_name(each.what),
        f"{each.count:,}",
        duration(each.seconds),
        _some(each.workflows),
        alike,
    )


def _limit_name(name: str) -> str:
    from ork.core.limits import EVERYTHING

    return "max_workers" if name == EVERYTHING else name


def _many(number: int, more: str) -> str:
    return f"{number:,}, {more}" if number else "0"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN:,} more"


def _local(time: datetime) -> str:
    return f"{time.astimezone():%a %Y-%m-%d %H:%M}"
