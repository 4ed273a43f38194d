"""Decodes rows that may be damaged: returns the readable fields and the reason why others cannot be read.

Only for reads shown to people. Schedulers decode strictly: they quarantine runs that cannot be decoded. Each row is
decoded strictly first, and field by field only if that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from ork.model.access import Role, Token
from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.location import LocationEntry
from ork.model.notice import Notice, NoticeKind
from ork.model.record import replaced
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, GiveUp, Task, TaskStatus
from ork.model.workflow import Schedule, Trigger, WorkflowEntry
from ork.state.records import ScheduleEntry
from ork.state.rows import Row, RowCodec, failure_of, index_of, json_object, output_of, schedule_of, text_of

T = TypeVar("T")

UNREADABLE = "ORK813"
UNREADABLE_ROW = "unreadable: "
"""The prefix of the reason of a damaged task and of the failure of a damaged attempt."""
UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN_CHARACTERS = 60


def reason_of(field: str, value: object, problem: Exception) -> str:
    """A sentence about a field that cannot be decoded."""
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_CHARACTERS else shown[:_SHOWN_CHARACTERS] + "…"
    why = str(problem) or type(problem).__name__
    return f"{field} {shown} cannot be read ({why})"


def readable_params(text: Any) -> dict[str, Any]:
    """The params of a run; none if they are damaged."""
    return Fields().read("params", text, json_object, {})


class Fields:
    """Decodes one field after the other. A field that fails gets its default and is reported in `problems`."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def read(self, field: str, value: Any, decode: Callable[[Any], T], default: T) -> T:
        try:
            return decode(value)
        except Exception as problem:
            self.problems.append(reason_of(field, value, problem))
            return default

    @property
    def reason(self) -> str:
        return "; ".join(self.problems)


class LenientRows:
    """Decodes rows with the column orders of `RowCodec`; `moment` decodes a time column."""

    def __init__(self, codec: RowCodec, moment: Callable[[Any], datetime | None]) -> None:
        self._codec = codec
        self._moment = moment

    def run(self, row: Row) -> Run:
        """The run; `unreadable` describes damaged fields."""
        try:
            return self._codec.run_of(row)
        except Exception:
            return self._damaged_run(row)

    def _damaged_run(self, row: Row) -> Run:
        (id, workflow, version, status, trigger, params, created_at, scheduled_for, started_at, finished_at, error,
         round, priority, cancel_requested_at, note, fresh, parent, _epoch, _changed) = row  # fmt: skip
        read, fields = self._reader()
        shown = Run(
            RunId(id), workflow, VersionId(version), read("status", status, RunStatus, RunStatus.PAUSED),
            read("trigger", trigger, Trigger, Trigger.MANUAL), read("params", params, json_object, {}),
            read("created_at", created_at, self._moment, UNKNOWN_TIME) or UNKNOWN_TIME,
            read("scheduled_for", scheduled_for, self._moment, None), read("started_at", started_at, self._moment, None),
            read("finished_at", finished_at, self._moment, None), error, round, priority,
            read("cancel_requested_at", cancel_requested_at, self._moment, None), note, bool(fresh), parent,
        )  # fmt: skip
        return replaced(shown, unreadable=fields.reason or "its row cannot be decoded")

    def task(self, row: Row) -> Task:
        """The task; `reason` describes damaged fields."""
        try:
            return self._codec.task_of(row)
        except Exception:
            return self._damaged_task(row)[0]

    def _damaged_task(self, row: Row) -> tuple[Task, str]:
        (name, idx, status, executor, attempt, earlier_attempts, _reason, cause_name, cause_idx, failure, exit_code,
         dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output, instances, item,
         cache_key) = row  # fmt: skip
        read, fields = self._reader()
        key = TaskKey(name, index_of(idx))
        shown = Task(
            key, read("status", status, TaskStatus, TaskStatus.PENDING), executor, attempt, earlier_attempts, None,
            None if cause_name is None else TaskKey(cause_name, index_of(cause_idx)),
            read("failure", failure, failure_of, None), exit_code, read("dispatched_at", dispatched_at, self._moment, None),
            read("started_at", started_at, self._moment, None), read("finished_at", finished_at, self._moment, None),
            read("retry_at", retry_at, self._moment, None), output_of(output_key, output_size, output), instances, item,
            cache_key,
        )  # fmt: skip
        reason = fields.reason or "its row cannot be decoded"
        return replaced(shown, reason=f"{UNREADABLE_ROW}{reason}"), f"task {key}: {reason}"

    def attempt(self, row: Row) -> Attempt:
        """The attempt; `failure` describes damaged fields."""
        try:
            return self._codec.attempt_of(row)
        except Exception:
            return self._damaged_attempt(row)[0]

    def _damaged_attempt(self, row: Row) -> tuple[Attempt, str]:
        (run, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
         finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, *_later) = row  # fmt: skip
        read, fields = self._reader()
        key = AttemptKey(RunId(run), TaskKey(name, index_of(idx)), number)
        shown = Attempt(
            key, read("status", status, AttemptStatus, AttemptStatus.LOST), executor, external_name, token_hash,
            read("dispatched_at", dispatched_at, self._moment, UNKNOWN_TIME) or UNKNOWN_TIME, pool,
            read("started_at", started_at, self._moment, None), read("finished_at", finished_at, self._moment, None),
            exit_code, read("failure", failure, failure_of, None),
            read("closing", closing, lambda value: None if value is None else GiveUp(value), None),
            read("closing_since", closing_since, self._moment, None), seq, read("seen_at", seen_at, self._moment, None),
            waits_for,
        )  # fmt: skip
        reason = fields.reason or "its row cannot be decoded"
        damaged = Failure(FailureKind.INTERNAL, f"{UNREADABLE_ROW}{reason}")
        return replaced(shown, failure=damaged), f"attempt {key}: {reason}"

    def why_unreadable(self, run: Row, tasks: Iterable[Row] = (), attempts: Iterable[Row] = ()) -> str | None:
        """Why strict decoding of a run fails; the first reason found."""
        reason = self.run(run).unreadable
        if reason is not None:
            return reason
        for task in tasks:
            try:
                self._codec.task_of(task)
            except Exception:
                return self._damaged_task(task)[1]
        for attempt in attempts:
            try:
                self._codec.attempt_of(attempt)
            except Exception:
                return self._damaged_attempt(attempt)[1]
        return None

    def readable_attempts(self, rows: Iterable[Row]) -> tuple[Attempt, ...]:
        found = []
        for row in rows:
            try:
                found.append(self._codec.attempt_of(row))
            except Exception:
                continue
        return tuple(found)

    def workflow(self, row: Row) -> WorkflowEntry:
        """The workflow; with a damaged schedule it has none, and `unreadable` says why."""
        try:
            return self._codec.workflow_of(row)
        except Exception:
            name, version, enabled, deployed_at, origin, schedule = row
        read, fields = self._reader()
        deployed = read("deployed_at", deployed_at, self._moment, UNKNOWN_TIME) or UNKNOWN_TIME
        plan: Schedule | None = read("schedule", schedule, schedule_of, None)
        reason = fields.reason or "its row cannot be decoded"
        return WorkflowEntry(name, VersionId(version), bool(enabled), deployed, origin, plan, reason)

    def notice(self, row: Row, sent: Callable[[Any], tuple[str, ...]]) -> tuple[Notice, str | None]:
        """The notice, and why parts of it cannot be read."""
        id, kind, workflow, raised_at, run, task, idx, failure, detail, tries, sent_to = row
        read, fields = self._reader()
        notice = Notice(
            text_of(id), read("kind", kind, NoticeKind, NoticeKind.RUN), workflow,
            read("raised_at", raised_at, self._required, UNKNOWN_TIME), None if run is None else RunId(run),
            None if task is None else TaskKey(task, index_of(idx)), read("failure", failure, failure_of, None), detail,
            tries, read("sent", sent_to, sent, ()),
        )  # fmt: skip
        return notice, fields.reason or None

    def token(self, row: Row) -> Token:
        id, name, role, digest, created_at, revoked_at, expires_at, last_used_at = row
        read, fields = self._reader()
        known = read("role", role, Role, Role.VIEWER)
        created = read("created_at", created_at, self._required, UNKNOWN_TIME)
        revoked = read("revoked_at", revoked_at, self._moment, UNKNOWN_TIME)
        expires = read("expires_at", expires_at, self._moment, UNKNOWN_TIME)
        used = read("last_used_at", last_used_at, self._moment, None)
        return Token(id, name, known, digest, created, revoked, expires, used, fields.reason or None)

    def time(self, value: Any) -> datetime | None:
        """The time; None also if it cannot be decoded."""
        try:
            return self._moment(value)
        except Exception:
            return None

    def _required(self, value: Any) -> datetime:
        moment = self._moment(value)
        if moment is None:
            raise ValueError("missing")
        return moment

    def _reader(self) -> tuple[Callable[..., Any], Fields]:
        fields = Fields()
        return fields.read, fields


def shown_failure(text: str | None) -> Failure | None:
    try:
        return failure_of(text)
    except Exception as problem:
        return Failure(FailureKind.INTERNAL, UNREADABLE_ROW + reason_of("failure", text, problem))


NO_SCHEDULE = Schedule("unreadable", enabled=False)


def entries(rows: Iterable[Row], moment: Callable[[Any], datetime | None]) -> tuple[ScheduleEntry, ...]:
    """Schedules of workflows; `unreadable` of a damaged one says why."""
    found = []
    for name, version, text, fires, next_fire in rows:
        fields = Fields()
        planned = fields.read("next_fire", next_fire, moment, None)
        schedule: Schedule | None = NO_SCHEDULE
        schedule = fields.read("schedule", text, schedule_of, schedule)
        if schedule is not None:
            reason = fields.reason or None
            found.append(ScheduleEntry(name, VersionId(version), schedule, bool(fires), planned, reason))
    return tuple(found)


def damaged_or_not(entry: LocationEntry, moment: Callable[[Any], datetime | None]) -> LocationEntry:
    """The location with its times decoded; `entry` has them as stored. A damaged one gets the reason as the error of
    its last scan."""
    fields = Fields()
    columns = ("due_at", "held_until", "looked_at", "changed_at")
    times = {column: fields.read(column, getattr(entry, column), moment, None) for column in columns}
    damage = {"code": UNREADABLE, "error": fields.reason} if fields.problems else {}
    return replaced(entry, **{**times, "due_at": times["due_at"] or UNKNOWN_TIME, **damage})
