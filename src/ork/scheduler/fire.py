"""Schedules become runs: exactly one for each time, whoever fires it and whatever the clock does meanwhile.

Nothing here polls. The store says when the earliest schedule is due; a change in the store may have moved that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ork.core.cron import MAX_MISSED_COUNTED, Due, due_times, first_fire, jitter_of
from ork.errors import NotFoundError, OrkError, StoreError, UsageError
from ork.model.digest import sha256
from ork.model.ids import ID_ALPHABET, RUN_ID_LENGTH, RunId
from ork.model.run import NewRun
from ork.model.workflow import Schedule, Trigger, Version
from ork.scheduler.options import SchedulerOptions
from ork.state.records import ScheduleEntry
from ork.state.schedules import ScheduleFiring
from ork.telemetry import Telemetry, TelemetryEvent

# A clock that is set back by less is only being kept right.
CLOCK_SLACK_SECONDS = 5.0


class Fired(NamedTuple):
    runs: int = 0
    told: int = 0  # notices of missed times


class Firing:
    def __init__(
        self, store: ScheduleFiring, options: SchedulerOptions, monotonic: Callable[[], float], telemetry: Telemetry
    ) -> None:
        self._store = store
        self._is_on = options.fires_schedules
        self._is_held = False
        self._grace = timedelta(seconds=options.schedule_grace_seconds)
        self._monotonic = monotonic
        self._telemetry = telemetry
        self.must_look = self._is_on
        self._clock_offset: float | None = None  # of the wall clock, when plans were last known to fit it
        self.next_at: datetime | None = None
        self._failures: dict[str, str] = {}  # what was last said of a workflow's schedule

    def look_again(self) -> None:
        """Something changed in the store: a schedule may be new, or fired by somebody else."""
        self.must_look = self._is_on and not self._is_held

    def hold(self, is_held: bool) -> None:
        """While held, nothing is fired. What became due meanwhile is late then, and its `catchup` decides."""
        if is_held != self._is_held:
            self._is_held, self.next_at = is_held, None
            self.look_again()

    def is_due(self, now: datetime) -> bool:
        """By the clock, as far as we know."""
        return self.next_at is not None and (now >= self.next_at or self._was_set_back(now))

    async def fire(self, now: datetime) -> Fired:
        """Everything that is due at `now`."""
        self.must_look = False
        if self._clock_offset is None or self._was_set_back(now):
            await self._plan_anew(now)
        self._clock_offset = self._offset(now)
        fired = Fired()
        for entry in await self._store.due_schedules(now):
            more = await self._fire_one(entry, now)
            fired = Fired(fired.runs + more.runs, fired.told + more.told)
        self.next_at = await self._store.next_fire_at(now)
        return fired

    async def _fire_one(self, entry: ScheduleEntry, now: datetime) -> Fired:
        """A schedule that cannot be used (it cannot be decoded, its zone is unknown here) is reported once and stops nobody
        else."""
        if entry.unreadable is not None:
            return self._failed(entry.workflow, entry.unreadable)
        try:
            fired = await self._try_to_fire(entry, now)
        except StoreError:
            raise
        except OrkError as problem:
            return self._failed(entry.workflow, problem.message)
        except Exception as problem:
            return self._failed(entry.workflow, repr(problem))
        self._failures.pop(entry.workflow, None)
        return fired

    def _failed(self, workflow: str, why: str) -> Fired:
        if self._failures.get(workflow) != why:
            self._failures[workflow] = why
            self._telemetry.emit(TelemetryEvent.SCHEDULE_FAILED, workflow=workflow, why=why)
        return Fired()

    async def _try_to_fire(self, entry: ScheduleEntry, now: datetime) -> Fired:
        schedule, name = entry.schedule, entry.workflow
        if entry.next_fire is None:
            first = first_fire(schedule, name, now)
            if first is not None:
                await self._store.fire(name, None, (), first, now)
            return Fired()
        jitter = jitter_of(schedule, name)
        due = due_times(schedule, entry.next_fire - jitter, now - jitter, self._grace)
        runs, missed = await self._runs_for(entry, due)
        following = None if due.next is None else due.next + jitter
        if not await self._store.fire(name, entry.next_fire, runs, following, now, missed=missed):
            return Fired()
        for run in runs:
            self._telemetry.emit(TelemetryEvent.SCHEDULE_FIRED, workflow=name, scheduled_for=_text(run.scheduled_for))
        if missed is not None:
            self._telemetry.emit(TelemetryEvent.SCHEDULE_MISSED, workflow=name, why=missed)
        return Fired(len(runs), int(missed is not None))

    async def _runs_for(self, entry: ScheduleEntry, due: Due) -> tuple[Sequence[NewRun], str | None]:
        missed = _missed_words(entry.schedule, due) if due.missed else None
        if not due.times:
            return (), missed
        version = await self._store.get_version(entry.version)
        if version is None:
            raise NotFoundError(f"version {entry.version} of {entry.workflow} is missing from the store")
        try:
            return [scheduled_run(version, time) for time in due.times], missed
        except UsageError as problem:
            return (), f"no run could be created for {_text(due.times[-1])}: {problem.message}"

    async def _plan_anew(self, now: datetime) -> None:
        """After the clock was set back, a schedule planned by the clock as it was might sleep until it is there again.

        Times that have their run already get no second one: the store has one run per time, for ever.
        """
        for entry in await self._store.list_schedules():
            if not entry.enabled or entry.unreadable or entry.next_fire is None or entry.next_fire <= now:
                continue
            try:
                first = first_fire(entry.schedule, entry.workflow, now)
            except Exception:
                continue  # reported when it is due
            if first is not None and first < entry.next_fire:
                await self._store.fire(entry.workflow, entry.next_fire, (), first, now)

    def _was_set_back(self, now: datetime) -> bool:
        offset = self._clock_offset
        return offset is not None and self._offset(now) < offset - CLOCK_SLACK_SECONDS

    def _offset(self, now: datetime) -> float:
        return now.timestamp() - self._monotonic()


def scheduled_run(
    version: Version, time: datetime, trigger: Trigger = Trigger.SCHEDULE, params: dict[str, Any] | None = None
) -> NewRun:
    """The run of a workflow for a time of its schedule, with these params or the defaults.

    Its id follows from both, so that a call whose answer was lost can be repeated.
    """
    from ork.compile.params import check_params

    name = version.workflow.name
    digest = sha256(f"{name}\n{_text(time)}".encode()).digest()
    id = RunId("".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in digest[:RUN_ID_LENGTH]))
    values = check_params(version.workflow, {}) if params is None else params
    return NewRun(id, name, version.id, values, trigger, scheduled_for=time)


def _missed_words(schedule: Schedule, due: Due) -> str:
    many = f"{due.missed} times" if due.missed > 1 else "1 time"
    more = "more than " if due.missed == MAX_MISSED_COUNTED else ""
    return f"{more}{many} of the schedule went by without a run, the first at {_text(due.first_missed)} (catchup: {schedule.catchup})"


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")
