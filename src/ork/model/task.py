"""Tasks and instances of a run, their attempts, the status that an attempt reports, and how they end."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import Record


class TaskStatus(StrEnum):
    PENDING = "pending"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    is_final: bool  # a plain attribute: read several times for every event

    @property
    def is_active(self) -> bool:
        """An attempt may be alive."""
        return self is TaskStatus.DISPATCHED or self is TaskStatus.RUNNING


class AttemptStatus(StrEnum):
    DISPATCHED = "dispatched"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    LOST = "lost"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"

    is_final: bool


for _task_status in TaskStatus:
    _task_status.is_final = _task_status not in (TaskStatus.PENDING, TaskStatus.DISPATCHED, TaskStatus.RUNNING)
for _attempt_status in AttemptStatus:
    _attempt_status.is_final = _attempt_status not in (AttemptStatus.DISPATCHED, AttemptStatus.RUNNING)


class FailureKind(StrEnum):
    EXIT = "exit"  # a non-zero exit code or a signal
    EXCEPTION = "exception"  # the user's function raised
    OUTPUT = "output"  # its output cannot be stored
    INPUT = "input"  # its inputs could not be resolved
    START = "start"  # it could not be started
    LOST = "lost"  # its worker is gone or silent
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    REJECTED = "rejected"  # a person rejected it
    INTERNAL = "internal"  # a fault of Ork


class Failure(Record):
    """Why an attempt or task failed: a sentence, and for exceptions the user's frames as data.

    `detail` for EXCEPTION: {"type", "message", "frames": [{"file", "line", "function", "source", "caret"}…], "inputs"}
    where `source` is the line's text and `caret` is [start, end) columns in it or None; for EXIT: {"tail": [last
    lines]}.
    """

    kind: FailureKind
    message: str
    detail: dict[str, Any] | None = None


class InlineOutput(Record):
    """JSON text small enough for the state store."""

    json: str


class StoredOutput(Record):
    """JSON text too large for the state store: object key and size in bytes."""

    key: str
    size: int


Output: TypeAlias = InlineOutput | StoredOutput


class GiveUp(StrEnum):
    """Why the scheduler ends an attempt."""

    STALE = "stale"  # no new heartbeat
    NOT_STARTED = "not_started"  # dispatched, but no status since
    VANISHED = "vanished"  # its process is gone and left no result
    TIMEOUT = "timeout"
    CANCEL = "cancel"
    DECLARED_DEAD = "declared_dead"  # by a person, while its machine did not answer


class Task(Record):
    """A task's row. `attempt` is the number of the current or last attempt (0 before the first).

    `earlier_attempts` counts those before the current round, so that a manual retry starts with a fresh budget while
    attempt numbers continue. An approval, or a task that has fanned out, is running without an attempt.
    """

    key: TaskKey
    status: TaskStatus
    executor: str
    attempt: int = 0
    earlier_attempts: int = 0
    reason: str | None = None  # why it was skipped or cancelled
    cause: TaskKey | None = None  # the failed task that caused a skip
    failure: Failure | None = None
    exit_code: int | None = None
    dispatched_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_at: datetime | None = None
    output: Output | None = None
    instances: int | None = None  # number of instances, if it has fanned out; such a row has no attempts of its own
    item: str | None = None  # of an instance: its item as JSON
    cache_key: str | None = None  # equal for equal work; set if the task uses the cache


class GroupPlace(Record):
    """An attempt's place in its launch group: attempts of one task that a platform starts as one unit.

    `id` is the name of the group's first attempt. `parallelism` is how many of the group's attempts run at the same
    time, which is how many slots the group holds while so many are active.
    """

    id: str
    index: int
    parallelism: int


class Attempt(Record):
    """An attempt's row. `closing` is set while the scheduler ends it (see docs/protocol.md).

    `seq` and `seen_at` are the last heartbeat seen and when the scheduler saw it, for display. They are saved only
    together with other changes. Liveness is judged by `SeenHeartbeat`.
    """

    key: AttemptKey
    status: AttemptStatus
    executor: str
    external_name: str
    token_hash: str
    dispatched_at: datetime
    pool: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    closing: GiveUp | None = None
    closing_since: datetime | None = None
    seq: int = 0
    seen_at: datetime | None = None
    waits_for: str | None = None  # JSON: external jobs it was deferred to; it takes no slot while it waits
    group: GroupPlace | None = None  # None: it was started alone
    # Not columns: read from the attempt's documents on demand (see `ork.status.facts`).
    metrics: dict[str, float] | None = None  # numbers logged by the task
    ran_in: dict[str, Any] | None = None  # `host` and `pid`, or `container`, `image` and `digest`

    @property
    def run(self) -> RunId:
        return self.key.run


class Heartbeat(Record):
    """The newest heartbeat of an attempt that a scheduler has seen: its number, and how many seconds ago it was first
    seen. Number 0: the worker won the gate and has written nothing yet. A negative number is the fingerprint of a
    status that was signed but cannot be decoded."""

    attempt: AttemptKey
    seq: int
    age: float


ENDS = frozenset({"success", "failed", "timed_out", "stopped"})
UNFINISHED_STATES = frozenset({"running", "deferred"})


MAX_METRICS = 1000
_MAX_NAME = 200


def read_metrics(given: Any) -> dict[str, float] | None:
    """The finite numbers in a metrics document, by name; other entries are dropped."""
    if not isinstance(given, dict):
        return None
    kept = {name: value for name, value in list(given.items())[:MAX_METRICS] if _is_metric(name, value)}
    return kept or None


def _is_metric(name: Any, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(name, str) and 0 < len(name) <= _MAX_NAME and is_number and value - value == 0


class Status(Record):
    """A verified status document, or its equivalent where an attempt has no worker."""

    seq: int
    state: str
    started_at: datetime
    at: datetime
    finished_at: datetime | None
    exit_code: int | None
    failure: Failure | None
    output: Output | None
    is_preparing: bool = False  # its environment is being built; the timeout has not started
    jobs: str | None = None  # JSON: external jobs it waits for without a worker
    metrics: dict[str, float] | None = None  # numbers logged by the task

    @property
    def is_final(self) -> bool:
        return self.state in ENDS
