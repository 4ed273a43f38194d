"""Rows to nouns and back, for every store that keeps rows.

Column orders are those of the named blocks in each store's `queries/`. How a moment and free text are kept differs from
store to store, so a store makes a `RowCodec` of its own; the rest is the same for all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import (
    Attempt,
    AttemptStatus,
    Failure,
    FailureKind,
    GiveUp,
    InlineOutput,
    Output,
    StoredOutput,
    Task,
    TaskStatus,
)
from ork.model.workflow import Catchup, Rate, Schedule, Trigger, WorkflowEntry
from ork.state.marks import text_of

Row: TypeAlias = Sequence[Any]
Columns: TypeAlias = tuple[Any, ...]

NO_INDEX = -1

_TASK_STATUS = {status.value: status for status in TaskStatus}
_COMMANDS = {kind.value for kind in CommandKind}
_ATTEMPT_STATUS = {status.value: status for status in AttemptStatus}


def json_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def notes_of(text: str) -> tuple[str, ...]:
    """The sentences about a scheduler. Only people read them: what cannot be read says so."""
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
    # Later fields are added at the end and left out while they have their defaults: an unchanged schedule is equal.
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
    """False: of a kind that this Ork does not know."""
    return row[2] in _COMMANDS


def command_of(row: Row) -> RunCommand:
    id, run, kind, by, task, everything, comment = row
    return RunCommand(RunId(run), CommandKind(kind), by, task, bool(everything), comment, text_of(id))


def attempt_key(row: Row) -> AttemptKey:
    run, name, idx, number = row
    return AttemptKey(RunId(run), TaskKey(name, index_of(idx)), number)


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
    """`kept` and `moment` turn a moment into what its column holds and back (None stays None); `text` makes words from
    outside fit for a text column."""

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
        """What may change about a run once it exists."""
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
        """Nothing is called for a field that is empty, as most are: every change of a task comes through here."""
        name, index = task.key
        reason, cause, failure, retry_at = task.reason, task.cause, task.failure, task.retry_at
        dispatched_at, started_at, finished_at = task.dispatched_at, task.started_at, task.finished_at
        output_key, output_size, output = _NO_OUTPUT if task.output is None else _output_columns(task.output)
        # `_value_` rather than the enum itself: sqlite3 looks for an adapter for every subclass of str.
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
         finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for) = row  # fmt: skip
        return Attempt(
            attempt_key((run, name, idx, number)), _ATTEMPT_STATUS[status], executor, external_name, token_hash,
            self._moment(dispatched_at), pool, self._moment(started_at), self._moment(finished_at), exit_code, failure_of(failure),
            None if closing is None else GiveUp(closing), self._moment(closing_since), seq, self._moment(seen_at),
            waits_for,
        )  # fmt: skip


def limit_rows(limits: Mapping[str, int], rates: Mapping[str, Rate]) -> list[tuple[str, int, float | None]]:
    """As the query `limits_and_rates` gives them, in order."""
    rows = [(name, slots, None) for name, slots in limits.items()]
    return sorted([*rows, *((f"rate of {name}", rate.count, rate.seconds) for name, rate in rates.items())])
