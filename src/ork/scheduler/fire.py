"""Creates runs for schedules: exactly one per scheduled time, with any number of schedulers and clock changes.

Nothing is polled. The store returns when the earliest schedule is due; a change in the store may move that time.
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
from ork.scheduler.idle import needs_firing_at
from ork.scheduler.options import SchedulerOptions
from ork.state.records import ScheduleEntry
from ork.state.schedules import ScheduleFiring
from ork.telemetry import Telemetry, TelemetryEvent

# Smaller steps back are normal clock synchronisation.
CLOCK_SLACK_SECONDS = 5.0


class Fired(NamedTuple):
    runs: int = 0
    notices: int = 0  # notices of missed times


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
        self.must_check = self._is_on
        self._clock_offset: float | None = None  # wall clock minus monotonic clock when the plans were last valid
        self.next_at: datetime | None = None
        self._failures: dict[str, str] = {}  # the last reported error of each workflow's schedule

    def check_again(self) -> None:
        """Read the schedules again: one may be new, or fired by another scheduler."""
        self.must_check = self._is_on and not self._is_held

    def use(self, schedules: Sequence[ScheduleEntry], now: datetime) -> None:
        """These are all enabled schedules, just read. If none of them is due or has to be planned, nothing is read again."""
        if not self._is_on:
            return
        if any(entry.unreadable is not None or needs_firing_at(entry, now) <= now for entry in schedules):
            return
        self.must_check, self._clock_offset = False, self._offset(now)
        self.next_at = min((entry.next_fire for entry in schedules if entry.next_fire is not None), default=None)

    def hold(self, is_held: bool) -> None:
        """Stop or resume firing. Times that become due while held are handled by `catchup` afterwards."""
        if is_held != self._is_held:
            self._is_held, self.next_at = is_held, None
            self.check_again()

    def is_due(self, now: datetime) -> bool:
        """True if a schedule is due, according to the last read of the store."""
        return self.next_at is not None and (now >= self.next_at or self._was_set_back(now))

    async def fire(self, now: datetime) -> Fired:
        """Fire every schedule that is due at `now`."""
        self.must_check = False
        if self._clock_offset is None or self._was_set_back(now):
            await self._replan(now)
        self._clock_offset = self._offset(now)
        fired = Fired()
        for entry in await self._store.due_schedules(now):
            result = await self._fire_one(entry, now)
            fired = Fired(fired.runs + result.runs, fired.notices + result.notices)
        self.next_at = await self._store.next_fire_at(now)
        return fired

    async def _fire_one(self, entry: ScheduleEntry, now: datetime) -> Fired:
        """Fire one schedule. If it cannot be used (not decodable, unknown time zone), report that once and go on with the
        others."""
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

    def _failed(self, workflow: str, reason: str) -> Fired:
        if self._failures.get(workflow) != reason:
            self._failures[workflow] = reason
            self._telemetry.emit(TelemetryEvent.SCHEDULE_FAILED, workflow=workflow, why=reason)
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
        missed = _missed_message(entry.schedule, due) if due.missed else None
        if not due.times:
            return (), missed
        version = await self._store.get_version(entry.version)
        if version is None:
            raise NotFoundError(f"version {entry.version} of {entry.workflow} is missing from the store")
        try:
            return [scheduled_run(version, time) for time in due.times], missed
        except UsageError as problem:
            return (), f"no run could be created for {_text(due.times[-1])}: {problem.message}"

    async def _replan(self, now: datetime) -> None:
        """Plan again after the clock was set back: the planned time may be too far in the future now.

        Times that already have a run get no second one: the store keeps one run per scheduled time.
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
    """A new run of the workflow for this scheduled time, with these params or the defaults.

    Its id is derived from workflow and time, so that creating it can be repeated.
    """
    from ork.compile.params import check_params

    name = version.workflow.name
    digest = sha256(f"{name}\n{_text(time)}".encode()).digest()
    id = RunId("".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in digest[:RUN_ID_LENGTH]))
    values = check_params(version.workflow, {}) if params is None else params
    return NewRun(id, name, version.id, values, trigger, scheduled_for=time)


def _missed_message(schedule: Schedule, due: Due) -> str:
    many = f"{due.missed} times" if due.missed > 1 else "1 time"
    more = "more than " if due.missed == MAX_MISSED_COUNTED else ""
    return f"{more}{many} of the schedule went by without a run, the first at {_text(due.first_missed)} (catchup: {schedule.catchup})"


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")
