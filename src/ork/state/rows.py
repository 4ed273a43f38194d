"""Converts rows to records and back, for every store with rows.

Column orders are those of the named blocks in each store's `queries/`. Stores differ in how they store times and text,
so each makes its own `RowCodec`; everything else is the same.

Marks, and ids of commands, notices and audit entries, are opaque text that sorts in the order of creation. Stores that use
numbers write each one as digits of fixed width.

Where only progress has to be written, a store writes the changed columns alone. The functions at the end say for which rows
that is enough: fields set at dispatch (item, cache key, attempts of earlier rounds) do not change until that attempt has ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from ork.errors import UsageError
from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import (
    Attempt,
    AttemptStatus,
    Failure,
    FailureKind,
    GiveUp,
    GroupPlace,
    InlineOutput,
    Output,
    StoredOutput,
    Task,
    TaskStatus,
)
from ork.model.workflow import Catchup, Rate, Schedule, Trigger, WorkflowEntry
from ork.state.records import EARLIER_ATTEMPTS, TaskCount, TimeColumns, TimesPage

Row: TypeAlias = Sequence[Any]
Columns: TypeAlias = tuple[Any, ...]

NO_INDEX = -1

_TASK_STATUS = {status.value: status for status in TaskStatus}
_COMMANDS = {kind.value for kind in CommandKind}
_ATTEMPT_STATUS = {status.value: status for status in AttemptStatus}
_STATUS: dict[str, TaskStatus | AttemptStatus] = {**_ATTEMPT_STATUS, **_TASK_STATUS}
_WIDTH = 16  # digits of a number as text
_LARGEST = 2**62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def text_of(number: int) -> str:
    return f"{number:0{_WIDTH}d}"


def number_of(text: str) -> int:
    """The number of a mark or id; UsageError if it is invalid. Fewer digits are accepted, because servers of release
    0.1 returned marks as numbers."""
    if not (text.isascii() and text.isdecimal()) or (number := int(text[:40])) > _LARGEST:
        raise UsageError(
            f"{text[:40]!r} is not a mark or an id of this store.", hint="use one that the server returned"
        )
    return number


def json_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def notes_of(text: str) -> tuple[str, ...]:
    """The notes of a scheduler. Notes that cannot be decoded are replaced by a note that says so, because only people
    read them."""
    try:
        return tuple(str(note) for note in json.loads(text))
    except (TypeError, ValueError):
        return ("its notes cannot be read",)


def index_number(index: int | None) -> int:
    return NO_INDEX if index is None else index


def index_of(number: int) -> int | None:
    return None if number == NO_INDEX else number


def failure_text(failure: Failure | None) -> str | None:
    if failure is None:
        return None
    return json_text({"kind": failure.kind.value, "message": failure.message, "detail": failure.detail})


def failure_of(text: str | None) -> Failure | None:
    if text is None:
        return None
    known = json_object(text)
    return Failure(FailureKind(known["kind"]), known["message"], known["detail"])


def json_object(text: str) -> dict[str, Any]:
    known = json.loads(text)
    if not isinstance(known, dict):
        raise ValueError("not a JSON object")
    return known


def schedule_text(schedule: Schedule | None) -> str | None:
    if schedule is None:
        return None
    # New fields are added at the end and omitted while they have their defaults, so that an unchanged schedule stays
    # equal.
    later = [schedule.jitter, schedule.catchup_limit]
    written = [schedule.cron, schedule.timezone, schedule.catchup.value, schedule.enabled]
    return json_text(written if later == [0.0, 100] else written + later)


def schedule_of(text: str | None) -> Schedule | None:
    if text is None:
        return None
    cron, timezone, catchup, enabled, *later = json.loads(text)
    schedule = Schedule(cron, timezone, Catchup(catchup), enabled, *later)
    words, numbers = (cron, timezone), (schedule.jitter, schedule.catchup_limit)
    if not all(isinstance(word, str) for word in words) or not all(isinstance(n, int | float) for n in numbers):
        raise ValueError("a field is of the wrong type")
    return schedule


def is_command(row: Row) -> bool:
    """False if this Ork does not know the kind of command."""
    return row[2] in _COMMANDS


def command_of(row: Row) -> RunCommand:
    id, run, kind, by, task, everything, comment = row
    return RunCommand(RunId(run), CommandKind(kind), by, task, bool(everything), comment, text_of(id))


def attempt_key(row: Row) -> AttemptKey:
    run, name, idx, number = row
    return AttemptKey(RunId(run), TaskKey(name, index_of(idx)), number)


def task_count(row: Row) -> TaskCount:
    name, is_instance, status, number = row
    return TaskCount(name, bool(is_instance), _TASK_STATUS.get(status, TaskStatus.PENDING), number)


def count_in_order(rows: Iterable[TaskCount]) -> tuple[TaskCount, ...]:
    """The counts with those of equal status added: damaged statuses count as pending."""
    numbers: dict[tuple[str, bool, TaskStatus], int] = {}
    for row in rows:
        key = (row.name, row.is_instance, row.status)
        numbers[key] = numbers.get(key, 0) + row.number
    return tuple(TaskCount(*key, number) for key, number in numbers.items())


def times_page(rows: Sequence[Row], earlier: Sequence[Row], limit: int) -> TimesPage:
    """The first `limit` rows as a page. Columns: name, idx, status, attempt and three times in milliseconds."""
    shown = time_columns(zip(*(row[:7] for row in rows[:limit]), strict=True))
    return TimesPage(shown, time_columns(zip(*earlier, strict=True)), last_of(shown, len(rows) > limit))


def time_columns(columns: Iterable[Sequence[Any]]) -> TimeColumns:
    """From the columns of `times_page`; none at all if there are no rows."""
    found = tuple(columns)
    if not found:
        return TimeColumns()
    name, idx, status, attempt, *times = found
    instance = [None if number == NO_INDEX else number for number in idx]
    known = [_STATUS.get(text, TaskStatus.PENDING) for text in status]
    return TimeColumns(name, instance, known, attempt, *times)


def last_of(shown: TimeColumns, has_more: bool) -> TaskKey | None:
    return TaskKey(shown.name[-1], shown.instance[-1]) if has_more else None


def tried_tasks(rows: Iterable[Row]) -> list[tuple[int, int, int, int]]:
    """The tasks with earlier attempts: ordinal, idx, and the range of the numbers of these attempts. The rows have ordinal,
    idx, attempt, and whether the task is pending."""
    ranges = [(ordinal, idx, *_earlier_numbers(attempt, is_pending)) for ordinal, idx, attempt, is_pending in rows]
    return [each for each in ranges if each[2] < each[3]]


def _earlier_numbers(attempt: int, is_pending: bool) -> tuple[int, int]:
    """The range of the latest attempts of a task that ended before its current one. A pending task has no current one."""
    before = attempt + is_pending
    return max(1, before - EARLIER_ATTEMPTS), before


def times_of_records(tasks: Sequence[Task], attempts: Iterable[Attempt], limit: int | None) -> TimesPage:
    """The page of a store that keeps records: `tasks` are all after the page's start, `attempts` in their order."""
    rows = [_times_row(task.key, task, task.attempt) for task in tasks[: None if limit is None else limit + 1]]
    shown = tasks[:limit]
    ranges = {task.key: range(*_earlier_numbers(task.attempt, task.status is TaskStatus.PENDING)) for task in shown}
    earlier = [
        _times_row(each.key.task, each, each.key.number)
        for each in attempts
        if each.key.number in ranges.get(each.key.task, ())
    ]
    return times_page(rows, earlier, len(rows) if limit is None else limit)


def _times_row(key: TaskKey, of: Task | Attempt, attempt: int) -> Row:
    times = map(_millis, (of.dispatched_at, of.started_at, of.finished_at))
    return key.name, index_number(key.index), of.status, attempt, *times


def _millis(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MILLISECOND


def counts_of_records(tasks: Iterable[Task]) -> tuple[TaskCount, ...]:
    """The counts of tasks that are in workflow order."""
    kinds = Counter((task.key.name, task.key.index is not None, task.status) for task in tasks)
    places = {name: place for place, name in enumerate(dict.fromkeys(name for name, _, _ in kinds))}
    ordered = sorted(kinds, key=lambda kind: (places[kind[0]], *kind[1:]))
    return tuple(TaskCount(*kind, kinds[kind]) for kind in ordered)


_NO_OUTPUT = (None, None, None)


def _output_columns(output: Output) -> tuple[str | None, int | None, str | None]:
    if isinstance(output, InlineOutput):
        return None, None, output.json
    return output.key, output.size, None


def output_of(key: str | None, size: int | None, text: str | None) -> Output | None:
    if key is not None:
        return StoredOutput(key, size or 0)
    return None if text is None else InlineOutput(text)


class RowCodec:
    """`kept` encodes a time for its column and `moment` decodes it (None stays None); `text` escapes what a text column
    cannot store."""

    def __init__(
        self,
        kept: Callable[[datetime | None], Any],
        moment: Callable[[Any], Any],
        text: Callable[[str | None], str | None],
    ) -> None:
        self._kept = kept
        self._moment = moment
        self._text = text

    def workflow_of(self, row: Row) -> WorkflowEntry:
        name, version, enabled, deployed_at, origin, schedule = row
        return WorkflowEntry(
            name, VersionId(version), bool(enabled), self._moment(deployed_at), origin, schedule_of(schedule)
        )

    def run_of(self, row: Row) -> Run:
        (id, workflow, version, status, trigger, params, created_at, scheduled_for, started_at, finished_at, error,
         round, priority, cancel_requested_at, note, fresh, parent, _epoch, _changed) = row  # fmt: skip
        return Run(
            RunId(id), workflow, VersionId(version), RunStatus(status), Trigger(trigger), json_object(params),
            self._moment(created_at), self._moment(scheduled_for), self._moment(started_at), self._moment(finished_at), error, round,
            priority, self._moment(cancel_requested_at), note, bool(fresh), parent,
        )  # fmt: skip

    def run_values(self, run: Run) -> dict[str, Any]:
        """The columns of a run that can change."""
        return {
            "id": run.id,
            "status": run.status.value,
            "started_at": self._kept(run.started_at),
            "finished_at": self._kept(run.finished_at),
            "error": self._text(run.error),
            "round": run.round,
            "priority": run.priority,
            "cancel_requested_at": self._kept(run.cancel_requested_at),
            "note": self._text(run.note),
        }

    def task_row(self, run: RunId, ordinal: int, changed: int, task: Task) -> Columns:
        """The columns of a task. Avoids calls for empty fields, which most are: this runs for every change of a
        task."""
        name, index = task.key
        reason, cause, failure, retry_at = task.reason, task.cause, task.failure, task.retry_at
        dispatched_at, started_at, finished_at = task.dispatched_at, task.started_at, task.finished_at
        output_key, output_size, output = _NO_OUTPUT if task.output is None else _output_columns(task.output)
        # `_value_` instead of the enum: sqlite3 looks for an adapter for every subclass of str.
        return (
            run, ordinal, NO_INDEX if index is None else index, name, task.status._value_, task.executor, task.attempt,
            task.earlier_attempts, None if reason is None else self._text(reason),
            None if cause is None else cause.name, None if cause is None else index_number(cause.index),
            None if failure is None else failure_text(failure), task.exit_code,
            None if dispatched_at is None else self._kept(dispatched_at),
            None if started_at is None else self._kept(started_at),
            None if finished_at is None else self._kept(finished_at),
            None if retry_at is None else self._kept(retry_at),
            output_key, output_size, output, task.instances, task.item, task.cache_key, changed,
        )  # fmt: skip

    def task_of(self, row: Row) -> Task:
        (name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
         dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output, instances, item,
         cache_key) = row  # fmt: skip
        return Task(
            TaskKey(name, index_of(idx)), _TASK_STATUS[status], executor, attempt, earlier_attempts, reason,
            None if cause_name is None else TaskKey(cause_name, index_of(cause_idx)), failure_of(failure), exit_code,
            self._moment(dispatched_at), self._moment(started_at), self._moment(finished_at), self._moment(retry_at),
            output_of(output_key, output_size, output), instances, item, cache_key,
        )  # fmt: skip

    def attempt_row(self, ordinal: int, attempt: Attempt) -> Columns:
        """The columns of an attempt, except those of its group, which are written once with its launch."""
        run, (name, index), number = attempt.key
        failure, closing, waits_for = attempt.failure, attempt.closing, attempt.waits_for
        started_at, finished_at, seen_at = attempt.started_at, attempt.finished_at, attempt.seen_at
        return (
            run, ordinal, NO_INDEX if index is None else index, number, name, attempt.status._value_, attempt.executor,
            attempt.pool, attempt.external_name, attempt.token_hash, self._kept(attempt.dispatched_at),
            None if started_at is None else self._kept(started_at),
            None if finished_at is None else self._kept(finished_at),
            attempt.exit_code, None if failure is None else failure_text(failure),
            None if closing is None else closing._value_,
            None if closing is None else self._kept(attempt.closing_since),
            attempt.seq, None if seen_at is None else self._kept(seen_at), waits_for, waits_for is not None,
        )  # fmt: skip

    def attempt_of(self, row: Row) -> Attempt:
        (run, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
         finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for, group, index,
         parallelism) = row  # fmt: skip
        return Attempt(
            attempt_key((run, name, idx, number)), _ATTEMPT_STATUS[status], executor, external_name, token_hash,
            self._moment(dispatched_at), pool, self._moment(started_at), self._moment(finished_at), exit_code, failure_of(failure),
            None if closing is None else GiveUp(closing), self._moment(closing_since), seq, self._moment(seen_at),
            waits_for, None if group is None else GroupPlace(group, index, parallelism),
        )  # fmt: skip


def limit_rows(limits: Mapping[str, int], rates: Mapping[str, Rate]) -> list[tuple[str, int, float | None]]:
    """The columns of `limits_and_rates`, in order."""
    rows = [(name, slots, None) for name, slots in limits.items()]
    return sorted([*rows, *((f"rate of {name}", rate.count, rate.seconds) for name, rate in rates.items())])


def is_new(task: Task) -> bool:
    """True if nothing has happened to the task yet."""
    return (
        task.status is TaskStatus.PENDING
        and not task.attempt
        and not task.earlier_attempts
        and task.reason is None
        and task.cause is None
        and task.failure is None
        and task.exit_code is None
        and task.dispatched_at is None
        and task.started_at is None
        and task.finished_at is None
        and task.retry_at is None
        and task.output is None
        and task.instances is None
        and task.cache_key is None
    )


def is_plain_progress(task: Task) -> bool:
    """True if the task was dispatched in this round, is running or has succeeded, and no other column has changed."""
    if task.status is TaskStatus.RUNNING:
        is_plain = task.output is None and task.exit_code is None and task.finished_at is None
    else:
        is_plain = task.status is TaskStatus.SUCCESS and (task.output is None or isinstance(task.output, InlineOutput))
    return (
        is_plain
        and task.attempt > task.earlier_attempts
        and task.failure is None
        and task.reason is None
        and task.cause is None
        and task.retry_at is None
        and task.instances is None
    )


def is_plain_attempt(attempt: Attempt) -> bool:
    """True if the attempt is running or has succeeded, and no other column has changed."""
    if attempt.status is AttemptStatus.RUNNING:
        is_plain = attempt.exit_code is None and attempt.finished_at is None
    else:
        is_plain = attempt.status is AttemptStatus.SUCCESS
    return is_plain and attempt.failure is None and attempt.closing is None and attempt.waits_for is None
