"""Rows to nouns and back. Column orders are those of the named blocks in `queries/`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

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
from ork.model.workflow import Catchup, Schedule, Trigger, WorkflowEntry
from ork.state.sqlite.connection import Row

NO_INDEX = -1

_TASK_STATUS = {status.value: status for status in TaskStatus}
_ATTEMPT_STATUS = {status.value: status for status in AttemptStatus}


def time_text(moment: datetime | None) -> str | None:
    """UTC, always 27 characters: text order is time order."""
    return None if moment is None else _utc_text(moment)


@lru_cache(maxsize=1024)  # the rows of one commit share a few moments
def _utc_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def time_of(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def moment_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


def free_text(text: str | None) -> str | None:
    """Words from outside may hold lone surrogates, which SQLite cannot keep."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def json_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


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
    known = json.loads(text)
    return Failure(FailureKind(known["kind"]), known["message"], known["detail"])


def schedule_text(schedule: Schedule | None) -> str | None:
    if schedule is None:
        return None
    return json_text([schedule.cron, schedule.timezone, schedule.catchup.value, schedule.enabled])


def schedule_of(text: str | None) -> Schedule | None:
    if text is None:
        return None
    cron, timezone, catchup, enabled = json.loads(text)
    return Schedule(cron, timezone, Catchup(catchup), enabled)


def workflow_of(row: Row) -> WorkflowEntry:
    name, version, enabled, deployed_at, origin, schedule = row
    return WorkflowEntry(name, VersionId(version), bool(enabled), moment_of(deployed_at), origin, schedule_of(schedule))


def run_of(row: Row) -> Run:
    (id, workflow, version, status, trigger, params, created_at, scheduled_for, started_at, finished_at, error,
     round, priority, cancel_requested_at, note, fresh, parent, _epoch, _changed) = row  # fmt: skip
    return Run(
        RunId(id), workflow, VersionId(version), RunStatus(status), Trigger(trigger), json.loads(params),
        moment_of(created_at), time_of(scheduled_for), time_of(started_at), time_of(finished_at), error, round,
        priority, time_of(cancel_requested_at), note, bool(fresh), parent,
    )  # fmt: skip


def run_values(run: Run) -> dict[str, Any]:
    """What may change about a run once it exists."""
    return {
        "id": run.id,
        "status": run.status.value,
        "started_at": time_text(run.started_at),
        "finished_at": time_text(run.finished_at),
        "error": free_text(run.error),
        "round": run.round,
        "priority": run.priority,
        "cancel_requested_at": time_text(run.cancel_requested_at),
        "note": free_text(run.note),
    }


def command_of(row: Row) -> RunCommand:
    id, run, kind, by, task, everything, comment = row
    return RunCommand(RunId(run), CommandKind(kind), by, task, bool(everything), comment, id)


def task_row(run: RunId, ordinal: int, changed: int, task: Task) -> Row:
    name, index = task.key
    cause, output = task.cause, task.output
    # `_value_` rather than the enum itself: sqlite3 looks for an adapter for every subclass of str.
    return (
        run, ordinal, NO_INDEX if index is None else index, name, task.status._value_, task.executor, task.attempt,
        task.earlier_attempts, free_text(task.reason), None if cause is None else cause.name,
        None if cause is None else index_number(cause.index), failure_text(task.failure), task.exit_code,
        time_text(task.dispatched_at), time_text(task.started_at), time_text(task.finished_at),
        time_text(task.retry_at), *_output_columns(output), task.instances, task.item, task.cache_key, changed,
    )  # fmt: skip


def task_of(row: Row) -> Task:
    (name, idx, status, executor, attempt, earlier_attempts, reason, cause_name, cause_idx, failure, exit_code,
     dispatched_at, started_at, finished_at, retry_at, output_key, output_size, output, instances, item,
     cache_key) = row  # fmt: skip
    return Task(
        TaskKey(name, index_of(idx)), _TASK_STATUS[status], executor, attempt, earlier_attempts, reason,
        None if cause_name is None else TaskKey(cause_name, index_of(cause_idx)), failure_of(failure), exit_code,
        time_of(dispatched_at), time_of(started_at), time_of(finished_at), time_of(retry_at),
        output_of(output_key, output_size, output), instances, item, cache_key,
    )  # fmt: skip


def attempt_row(ordinal: int, attempt: Attempt) -> Row:
    run, (name, index), number = attempt.key
    closing = attempt.closing
    return (
        run, ordinal, NO_INDEX if index is None else index, number, name, attempt.status._value_, attempt.executor,
        attempt.pool, attempt.external_name, attempt.token_hash, time_text(attempt.dispatched_at),
        time_text(attempt.started_at), time_text(attempt.finished_at), attempt.exit_code,
        failure_text(attempt.failure), None if closing is None else closing._value_,
        time_text(attempt.closing_since), attempt.seq, time_text(attempt.seen_at), attempt.waits_for,
        int(attempt.waits_for is not None),
    )  # fmt: skip


def attempt_of(row: Row) -> Attempt:
    (run, name, idx, number, status, executor, pool, external_name, token_hash, dispatched_at, started_at,
     finished_at, exit_code, failure, closing, closing_since, seq, seen_at, waits_for) = row  # fmt: skip
    return Attempt(
        attempt_key((run, name, idx, number)), _ATTEMPT_STATUS[status], executor, external_name, token_hash,
        moment_of(dispatched_at), pool, time_of(started_at), time_of(finished_at), exit_code, failure_of(failure),
        None if closing is None else GiveUp(closing), time_of(closing_since), seq, time_of(seen_at),
        waits_for,
    )  # fmt: skip


def attempt_key(row: Row) -> AttemptKey:
    run, name, idx, number = row
    return AttemptKey(RunId(run), TaskKey(name, index_of(idx)), number)


def _output_columns(output: Output | None) -> tuple[str | None, int | None, str | None]:
    if output is None:
        return None, None, None
    if isinstance(output, InlineOutput):
        return None, None, output.json
    return output.key, output.size, None


def output_of(key: str | None, size: int | None, text: str | None) -> Output | None:
    if key is not None:
        return StoredOutput(key, size or 0)
    return None if text is None else InlineOutput(text)
