"""Sums up what was played: by schedule, by limit, and the worst moments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from statistics import median
from typing import Any

from ork.core.cron import jitter_of, moved_times, repeated_times
from ork.model.json_fields import time_json
from ork.model.record import Record, replaced
from ork.model.run import RunStatus
from ork.model.workflow import Trigger
from ork.state.records import ScheduleEntry
from ork.time_machine.cost import ScheduleCost, schedule_costs
from ork.time_machine.plan import SimulationPlan
from ork.time_machine.play import Played
from ork.time_machine.project import ProjectCopy
from ork.time_machine.recorder import NOTICED, PlayedRun, Recorder, Waited

MOMENTS = 10


class ScheduleReport(Record):
    """The runs of one schedule, also of those that have not started when a week after the end is over. A run is late if its first task starts a second or more after the time it is for, plus the
    jitter of the schedule; it was queued if `max_active_runs` delayed it; it overlaps if an earlier run was active when it
    started."""

    workflow: str
    cron: str
    timezone: str
    enabled: bool
    runs: int
    success: int
    failed: int
    cancelled: int
    unfinished: int
    missed: int
    late: int
    latest_seconds: float
    queued: int
    longest_queued_seconds: float
    overlapping: int
    most_at_once: int
    median_seconds: float | None  # of a run, from its start to its end
    longest_seconds: float | None
    usd: float  # the known part of what its runs and their sub-workflows cost, by estimate
    unknown_attempts: int  # whose cost is not in it


class LimitReport(Record):
    """A limit, how many runs or attempts waited for it, and for how long. `slots`, `peak` and `mean` (slots in use) are None
    for a rate and for `max_active_runs`."""

    name: str
    slots: int | None
    peak: int | None
    mean: float | None
    waited: int
    total_seconds: float
    longest_seconds: float


class ClockChange(Record):
    """A local time that a clock change skips or repeats, and when the schedule fires for it."""

    workflow: str
    local: datetime
    kind: str  # "skipped" or "repeated"
    fires: tuple[datetime, ...]


class BusyMoment(Record):
    """A period in which a limit made somebody wait, or times of a schedule that got no run. `alike` counts the other moments
    of the same limit and workflows, which were no worse."""

    start: datetime
    end: datetime
    what: str  # the limit, or "missed"
    workflows: tuple[str, ...]
    count: int  # runs and attempts that waited, or times missed
    seconds: float  # the longest wait
    why: str | None = None
    alike: int = 0


class Report(Record):
    start: datetime
    end: datetime
    seed: int | None
    schedules: tuple[ScheduleReport, ...]
    limits: tuple[LimitReport, ...]
    clock_changes: tuple[ClockChange, ...]
    moments: tuple[BusyMoment, ...]
    assumed: tuple[str, ...]  # tasks whose duration is assumed: WORKFLOW.TASK
    problems: tuple[tuple[str, int], ...]  # failures that come from the workflow itself, and their number
    notes: tuple[str, ...]
    attempts: int
    task_seconds: float  # of all attempts, from their starts to their ends
    runs: tuple[PlayedRun, ...]  # of schedules, in the order of their starts


def make_report(project: ProjectCopy, plan: SimulationPlan, played: Played) -> Report:
    recorder = played.recorder
    runs = [run for run in recorder.runs.values() if run.row.trigger is Trigger.SCHEDULE]
    runs.sort(key=lambda run: (run.dispatched_at or plan.end, run.row.created_at))
    by_workflow: dict[str, list[PlayedRun]] = {entry.workflow: [] for entry in project.schedules}
    for run in runs:
        by_workflow[run.row.workflow].append(run)
    known = project.rules.options.prices
    prices = None if known is None else known()
    costs = {} if prices is None else schedule_costs(project, recorder, prices, plan.end)
    seconds = [_seconds(each.started_at, each.finished_at) for each in recorder.attempts]
    return Report(
        plan.start,
        plan.end,
        plan.seed,
        tuple(
            _schedule(entry, by_workflow[entry.workflow], recorder, costs.get(entry.workflow, ScheduleCost()))
            for entry in project.schedules
        ),
        tuple(_limits(recorder, (plan.end - plan.start).total_seconds())),
        tuple(change for entry in project.schedules if entry.enabled for change in _clock_changes(entry, plan)),
        tuple(_moments(recorder)[:MOMENTS]),
        tuple(f"{workflow}.{task}" for workflow, task in played.assumed),
        tuple(recorder.problems.items()),
        tuple(project.notes),
        len(recorder.attempts),
        sum(seconds),
        tuple(runs),
    )


def _schedule(
    entry: ScheduleEntry, runs: Sequence[PlayedRun], recorder: Recorder, cost: ScheduleCost
) -> ScheduleReport:
    jitter = jitter_of(entry.schedule, entry.workflow)
    late = [
        (run.dispatched_at - run.row.scheduled_for - jitter).total_seconds()
        for run in runs
        if run.dispatched_at is not None and run.row.scheduled_for is not None
    ]
    late = [seconds for seconds in late if seconds >= NOTICED.total_seconds()]
    queued = [each.seconds for each in recorder.waited if each.workflow == entry.workflow and each.task is None]
    took = [_seconds(run.row.started_at, run.row.finished_at) for run in runs if run.row.status.is_final]
    statuses = [run.row.status for run in runs]
    pending = sum(recorder.workflow_of[run] == entry.workflow for run in recorder.pending)
    return ScheduleReport(
        entry.workflow,
        entry.schedule.cron,
        entry.schedule.timezone,
        entry.enabled,
        runs=len(runs) + pending,
        success=statuses.count(RunStatus.SUCCESS),
        failed=statuses.count(RunStatus.FAILED),
        cancelled=statuses.count(RunStatus.CANCELLED),
        unfinished=sum(not status.is_final for status in statuses) + pending,
        missed=sum(each.count for each in recorder.missed if each.workflow == entry.workflow),
        late=len(late),
        latest_seconds=max(late, default=0.0),
        queued=len(queued),
        longest_queued_seconds=max(queued, default=0.0),
        overlapping=sum(run.others > 0 for run in runs),
        most_at_once=max((run.others + 1 for run in runs), default=0),
        median_seconds=median(took) if took else None,
        longest_seconds=max(took, default=None),
        usd=cost.usd,
        unknown_attempts=cost.unknown,
    )


def _limits(recorder: Recorder, length: float) -> list[LimitReport]:
    """Limits that somebody waited for, and all pools; the longest total wait first."""
    waits: dict[str, list[float]] = {name: [] for name in recorder.limits}
    for each in recorder.waited:
        waits.setdefault(each.limit, []).append(each.seconds)
    found = []
    for name, seconds in waits.items():
        limit = recorder.limits.get(name)
        slots, peak, mean = (
            (None, None, None) if limit is None else (limit.slots, limit.peak, limit.busy_seconds / length)
        )
        found.append(LimitReport(name, slots, peak, mean, len(seconds), sum(seconds), max(seconds, default=0.0)))
    return sorted(found, key=lambda each: -each.total_seconds)


def _clock_changes(entry: ScheduleEntry, plan: SimulationPlan) -> list[ClockChange]:
    moved = moved_times(entry.schedule, plan.start, plan.end)
    repeated = repeated_times(entry.schedule, plan.start, plan.end)
    return [
        *(
            ClockChange(entry.workflow, each.local, "skipped", (each.instead,) if each.instead else ())
            for each in moved
        ),
        *(ClockChange(entry.workflow, each.local, "repeated", each.fires) for each in repeated),
    ]


def _moments(recorder: Recorder) -> list[BusyMoment]:
    """Missed times, the most first; then waits, the longest first. Waits for one limit that overlap are one moment, and of
    moments of the same limit and workflows only the worst is kept."""
    found = [
        BusyMoment(each.first, each.first, "missed", (each.workflow,), each.count, 0.0, each.why)
        for each in recorder.missed
    ]
    by_limit: dict[str, list[Waited]] = {}
    for each in sorted(recorder.waited, key=lambda waited: waited.since):
        by_limit.setdefault(each.limit, []).append(each)
    found += [_merged(group) for waited in by_limit.values() for group in _overlapping(waited)]
    found.sort(key=lambda each: (each.what != "missed", -each.seconds, -each.count, each.start))
    worst: dict[tuple[str, tuple[str, ...]], BusyMoment] = {}
    for moment in found:
        kind = moment.what, moment.workflows
        worst[kind] = moment if kind not in worst else replaced(worst[kind], alike=worst[kind].alike + 1)
    return list(worst.values())


def _overlapping(waited: Sequence[Waited]) -> list[list[Waited]]:
    groups: list[list[Waited]] = []
    end: datetime | None = None
    for each in waited:
        if end is not None and each.since <= end:
            groups[-1].append(each)
            end = max(end, each.until)
        else:
            groups.append([each])
            end = each.until
    return groups


def _merged(group: Sequence[Waited]) -> BusyMoment:
    workflows = tuple(sorted({each.workflow for each in group}))
    longest = max(each.seconds for each in group)
    return BusyMoment(group[0].since, max(each.until for each in group), group[0].limit, workflows, len(group), longest)


def _seconds(start: datetime | None, end: datetime | None) -> float:
    return 0.0 if start is None or end is None else (end - start).total_seconds()


# ── as JSON ──────────────────────────────────────────────────────────────────────────────────────


def report_json(report: Report, *, with_runs: bool) -> dict[str, Any]:
    """Times as RFC 3339 text, seconds with three digits. The runs only on request: there may be many."""
    shown = {name: _json(getattr(report, name)) for name in Report._fields if name != "runs"}
    shown["problems"] = [{"message": message, "count": count} for message, count in report.problems]
    if with_runs:
        shown["runs"] = [_run_json(run) for run in report.runs]
    return shown


def _run_json(run: PlayedRun) -> dict[str, Any]:
    row = run.row
    times = {"scheduled_for": row.scheduled_for, "started_at": row.started_at, "first_task_at": run.dispatched_at}
    return {
        "workflow": row.workflow,
        "status": str(row.status),
        **{name: _json(time) for name, time in {**times, "finished_at": row.finished_at}.items()},
    }


def _json(value: Any) -> Any:
    match value:
        case datetime(tzinfo=None):
            return value.isoformat()
        case datetime():
            return time_json(value)
        case float():
            return round(value, 3)
        case Record():
            return {name: _json(getattr(value, name)) for name in type(value)._fields}
        case tuple():
            return [_json(each) for each in value]
        case _:
            return value
