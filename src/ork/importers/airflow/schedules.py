"""The schedule of a DAG as keys of Ork."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ork.importers.airflow.objects import Dag
from ork.importers.project import ImportedWorkflow, Level
from ork.importers.python.known_calls import zone_of
from ork.importers.python.values import ForeignCall, Unknown

PRESETS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@quarterly": "0 0 1 */3 *",
}
_DAY = 86_400


class DagSchedule:
    """The cron expression, the zone, and whether a run covers the interval before it."""

    def __init__(self, cron: str | None = None, timezone: str = "UTC", is_interval: bool = True) -> None:
        self.cron = cron
        self.timezone = timezone
        self.is_interval = is_interval


def schedule_of(dag: Dag, workflow: ImportedWorkflow) -> DagSchedule:
    """Sets the schedule's keys of the workflow and returns what templates need of it."""
    start = dag.keywords.get("start_date", dag.defaults.get("start_date"))
    zone = _zone_name(start)
    given: Any = None
    for name in ("schedule", "schedule_interval", "timetable"):
        given = dag.keywords.get(name, given)
    is_set = any(name in dag.keywords for name in ("schedule", "schedule_interval", "timetable"))
    if not is_set and "airflow.sdk" not in dag.module.text:
        given = timedelta(days=1)  # the default of Airflow 1 and 2
        workflow.note(Level.CHECK, "the DAG has no schedule; Airflow 2 runs such a DAG daily, Airflow 3 does not")
    found = _cron_of(given, start, zone, workflow)
    if found.cron is not None:
        workflow.keys["schedule"] = _keys(found, dag, workflow)
    end = dag.keywords.get("end_date", dag.defaults.get("end_date"))
    if end is not None:
        workflow.note(Level.CHECK, f"`end_date` {_shown(end)} is not kept: disable the workflow then")
    return found


def _keys(found: DagSchedule, dag: Dag, workflow: ImportedWorkflow) -> Any:
    keys: dict[str, Any] = {"cron": found.cron}
    if found.timezone != "UTC":
        keys["timezone"] = found.timezone
    catchup = dag.keywords.get("catchup")
    if catchup is True:
        keys["catchup"] = "all"
        workflow.note(Level.INFO, "`catchup=True` became `catchup: all`; times before the deploy: `ork backfill`")
    elif catchup is None:
        text = "`catchup` is not set; missed times get no run here (`catchup: none`), Airflow 2 catches up by default"
        workflow.note(Level.INFO, text)
    if dag.keywords.get("is_paused_upon_creation") is True:
        keys["enabled"] = False
    return keys if len(keys) > 1 else found.cron


def _cron_of(given: Any, start: Any, zone: str, workflow: ImportedWorkflow) -> DagSchedule:
    match given:
        case None:
            return DagSchedule()
        case str() if given in PRESETS:
            return DagSchedule(PRESETS[given], zone)
        case "@once" | "@continuous" | "None":
            workflow.note(Level.CHECK, f"the schedule `{given}` has none here: start it with `ork trigger`")
            return DagSchedule()
        case str() if "{{" in given:
            workflow.note(Level.PERSON, f"the schedule is known only when the file is run: `{given}`")
            return DagSchedule()
        case str():
            return _text_schedule(given, zone, workflow)
        case timedelta():
            return _interval(given, start, zone, workflow)
        case ForeignCall() if given.function.last in ("CronTriggerTimetable", "CronDataIntervalTimetable"):
            cron = given.args[0] if given.args else given.keywords.get("cron")
            named = given.keywords.get("timezone", given.args[1] if len(given.args) > 1 else None)
            if isinstance(cron, str):
                is_interval = given.function.last == "CronDataIntervalTimetable"
                own = named if isinstance(named, str) else getattr(zone_of(named), "key", zone)
                return DagSchedule(PRESETS.get(cron, cron), own, is_interval)
        case ForeignCall() if given.function.last == "DeltaDataIntervalTimetable" and given.args:
            return _cron_of(given.args[0], start, zone, workflow)
        case list() | tuple() | ForeignCall():
            text = "it runs when datasets change, which Ork has no schedule for: add a task `workflow:` to the one that writes them"
            workflow.note(Level.PERSON, text)
            return DagSchedule()
        case Unknown():
            pass
    workflow.note(Level.PERSON, "the schedule is known only when the file is run")
    return DagSchedule()


def _text_schedule(given: str, zone: str, workflow: ImportedWorkflow) -> DagSchedule:
    fields = given.split()
    if len(fields) == 6:  # Airflow has seconds last
        workflow.note(Level.CHECK, f"the schedule `{given}` has seconds; they were left out")
        fields = fields[:5]
    return DagSchedule(" ".join(fields), zone)


def _interval(delta: timedelta, start: Any, zone: str, workflow: ImportedWorkflow) -> DagSchedule:
    """A cron expression for an interval that divides an hour, a day or a week."""
    begin = start if isinstance(start, datetime) else datetime(2020, 1, 1)
    seconds = int(delta.total_seconds())
    minutes, hours = seconds // 60, seconds // 3600
    if seconds < 60:
        workflow.note(Level.PERSON, f"the schedule every {delta} is not translated")
        return DagSchedule()
    if seconds % 60 == 0 and minutes < 60 and 60 % minutes == 0:
        return DagSchedule(f"*/{minutes} * * * *" if minutes > 1 else "* * * * *", zone)
    if seconds == 3600:
        return DagSchedule(f"{begin.minute} * * * *", zone)
    if seconds % 3600 == 0 and hours < 24 and 24 % hours == 0:
        return DagSchedule(f"{begin.minute} */{hours} * * *", zone)
    if seconds == _DAY:
        return DagSchedule(f"{begin.minute} {begin.hour} * * *", zone)
    if seconds == 7 * _DAY:
        return DagSchedule(f"{begin.minute} {begin.hour} * * {begin.isoweekday() % 7}", zone)
    if seconds % _DAY == 0:
        days = seconds // _DAY
        if days in (28, 29, 30, 31):
            workflow.note(Level.CHECK, f"every {days} days became every month")
            return DagSchedule(f"{begin.minute} {begin.hour} {min(begin.day, 28)} * *", zone)
        workflow.note(Level.CHECK, f"every {days} days became `*/{days}` of each month: it begins anew with each month")
        return DagSchedule(f"{begin.minute} {begin.hour} */{min(days, 31)} * *", zone)
    workflow.note(Level.PERSON, f"the schedule every {delta} has no cron expression")
    return DagSchedule()


def _zone_name(start: Any) -> str:
    zone = getattr(start, "tzinfo", None)
    return getattr(zone, "key", None) or "UTC"


def _shown(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else "(computed)"
