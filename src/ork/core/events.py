"""The events a run machine handles. Names are in the past tense.

Events about an attempt carry its number. An event about an older attempt, or one that repeats a known status, is
counted as ignored and changes nothing. Events with fields are named tuples: they load in a quarter of the time of a
dataclass, and every `ork run` loads them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from ork.core.prepare import Question
from ork.model.ids import TaskKey
from ork.model.record import Record
from ork.model.run import RunCommand
from ork.model.task import Failure, GiveUp, Output


class Created(Record):
    """The run was claimed for the first time; its tasks have to be created."""


class Commanded(NamedTuple):
    """A person submitted a command."""

    command: RunCommand


class Started(NamedTuple):
    """The worker created the gate and reported it. `at` is the worker's clock, for display only. `is_preparing`: the
    environment of the task is being built first."""

    key: TaskKey
    attempt: int
    seq: int
    at: datetime
    is_preparing: bool = False


class HeartbeatReceived(NamedTuple):
    """The worker wrote a heartbeat."""

    key: TaskKey
    attempt: int
    seq: int
    is_preparing: bool = False


class AttemptDeferred(NamedTuple):
    """The worker handed over to external jobs (as JSON) and exited; the attempt continues without it."""

    key: TaskKey
    attempt: int
    seq: int
    jobs: str


class Succeeded(NamedTuple):
    key: TaskKey
    attempt: int
    seq: int
    output: Output | None
    started_at: datetime
    finished_at: datetime
    exit_code: int | None = None


class Failed(NamedTuple):
    """The attempt ended without success and was not stopped. The kind of failure decides whether it is retried."""

    key: TaskKey
    attempt: int
    seq: int
    failure: Failure
    started_at: datetime | None
    finished_at: datetime
    exit_code: int | None = None


class GivenUp(NamedTuple):
    """The scheduler has to end the attempt: it is silent, gone, overdue or cannot be started. `failure` says why."""

    key: TaskKey
    attempt: int
    reason: GiveUp
    failure: Failure


class Closed(NamedTuple):
    """An attempt that was being ended is over: its gate is closed, or its processes are gone.

    Fed only after the status was read once more; a late success is fed as Succeeded instead. `unconfirmed` says why the
    attempt counts as over although its end could not be observed.
    """

    key: TaskKey
    attempt: int
    ever_started: bool
    unconfirmed: str | None = None


class TimerDue(Record):
    """The time that `next_timer` returned has come."""


class Answered(NamedTuple):
    """The answer to a question of the machine: a value, NoSuchPath, CacheAnswer or Unanswerable."""

    question: Question
    answer: Any


class CacheAnswer(NamedTuple):
    """`key` identifies equal work. `output` is its earlier result, from run `source`; no `source` means a cache miss."""

    key: str
    source: str | None = None
    output: Output | None = None


StatusEvent: TypeAlias = Started | HeartbeatReceived | AttemptDeferred | Succeeded | Failed
AttemptEvent: TypeAlias = StatusEvent | GivenUp | Closed
Event: TypeAlias = Created | Commanded | Answered | AttemptEvent | TimerDue
