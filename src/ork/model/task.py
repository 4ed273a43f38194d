"""One node instance of a run, its tries, and how they end."""

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

    is_final: bool  # asked several times for every event, so it is known beforehand

    @property
    def is_active(self) -> bool:
        """An attempt of it may be alive somewhere."""
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
    OUTPUT = "output"  # what it returned cannot be stored
    INPUT = "input"  # its arguments could not be put together
    START = "start"  # it could not be started at all
    LOST = "lost"  # its worker vanished or fell silent
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    REJECTED = "rejected"  # a person said no
    INTERNAL = "internal"  # Ork's own fault


class Failure(Record):
    """Why an attempt (or task) failed: a sentence, and for exceptions the user's frames as data.

    `detail` for EXCEPTION: {"type", "message", "frames": [{"file", "line", "function", "source", "caret"}…], "inputs"}
    where `source` is the line's text and `caret` is [start, end) columns in it or None; for EXIT: {"tail": [last lines]}.
    """

    kind: FailureKind
    message: str
    detail: dict[str, Any] | None = None


class InlineOutput(Record):
    """JSON text, small enough to live in the state store."""

    json: str


class StoredOutput(Record):
    """JSON text too large for the state store: an object and its size in bytes."""

    key: str
    size: int


Output: TypeAlias = InlineOutput | StoredOutput


class GiveUp(StrEnum):
    """Why an attempt is being ended by us rather than by itself."""

    STALE = "stale"  # no new heartbeat
    NOT_STARTED = "not_started"  # dispatched, and nothing heard since
    VANISHED = "vanished"  # its process is gone and left no result
    TIMEOUT = "timeout"
    CANCEL = "cancel"
    DECLARED_DEAD = "declared_dead"  # by a person, while nobody could tell


class Task(Record):
    """A task's row. `attempt` is the current or last try (0 before the first).

    `earlier_attempts` counts those before the run's present round, so that a retry by a person
    begins with a fresh budget while attempt numbers go on growing. A task that waits for a person, or that has
    fanned out, is running without an attempt.
    """

    key: TaskKey
    status: TaskStatus
    executor: str
    attempt: int = 0
    earlier_attempts: int = 0
    reason: str | None = None  # why it is skipped or cancelled, in words
    cause: TaskKey | None = None  # the task whose failure is the root of a skip
    failure: Failure | None = None
    exit_code: int | None = None
    dispatched_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_at: datetime | None = None
    output: Output | None = None
    instances: int | None = None  # of a task that has fanned out: how many; such a row has no attempts of its own
    item: str | None = None  # of an instance: what it is for, as JSON
    cache_key: str | None = None  # equal for equal work; set where the task asks for caching


class Attempt(Record):
    """One try's row. `closing` is set while it is being given up (see docs/protocol.md).

    `seq` and `seen_at` are the last heartbeat we saw and when *we* saw it, for people; they are saved when
    something else about the attempt is, not with every beat. Silence is judged by `Heartbeat`.
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
    waits_for: str | None = None  # JSON: external jobs it handed over to; it takes no slot while it waits
    # Not columns: read from its documents when somebody asks (see `ork.status.facts`).
    metrics: dict[str, float] | None = None  # numbers that the task kept about itself
    ran_in: dict[str, Any] | None = None  # `host` and `pid`, or `container`, `image` and `digest`

    @property
    def run(self) -> RunId:
        return self.key.run


class Heartbeat(Record):
    """The newest heartbeat of an attempt that a scheduler has seen: its number, and how many seconds ago it was first
    seen. Number 0 stands for a gate that was found won by a worker that has written nothing yet. A negative number is the
    fingerprint of a status that the worker signed and that cannot be decoded."""

    attempt: AttemptKey
    seq: int
    age: float
