"""What can happen to a run, in the past tense. The machine is fed nothing else.

Events about an attempt carry its number: one that speaks of an older attempt, or repeats what is known,
is answered with *ignored* and changes nothing. Named tuples where there is something in them: they take a quarter of
the time to load that a dataclass does, and every `ork run` loads them.
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
    """The run has been claimed for the first time: its tasks are to be created."""


class Commanded(NamedTuple):
    """A person asked for something."""

    command: RunCommand


class Started(NamedTuple):
    """The worker won the gate and said so; `at` is its own time, for people only. `is_preparing`: what the task runs in is
    being built first."""

    key: TaskKey
    attempt: int
    seq: int
    at: datetime
    is_preparing: bool = False


class Beat(NamedTuple):
    """The worker's heartbeat moved on."""

    key: TaskKey
    attempt: int
    seq: int
    is_preparing: bool = False


class Deferred(NamedTuple):
    """The worker handed over to external jobs (as JSON) and ended; the attempt goes on without it."""

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
    """The attempt ended by itself and not well. The failure's kind decides whether it is worth another try."""

    key: TaskKey
    attempt: int
    seq: int
    failure: Failure
    started_at: datetime | None
    finished_at: datetime
    exit_code: int | None = None


class GivenUp(NamedTuple):
    """The attempt has to be ended by us: silent, vanished, overdue or impossible to start. `failure` says why."""

    key: TaskKey
    attempt: int
    reason: GiveUp
    failure: Failure


class Closed(NamedTuple):
    """An attempt that is being given up is over: its gate is shut or its processes are gone.

    Fed only after the status was read once more (a late success arrives as Succeeded instead). `unconfirmed` says why
    it counts as over although nobody could see that nothing of it is alive.
    """

    key: TaskKey
    attempt: int
    ever_started: bool
    unconfirmed: str | None = None


class TimerDue(Record):
    """The moment the machine asked for has come."""


class Answered(NamedTuple):
    """A question of the machine's has an answer: a value, Nowhere, a CacheAnswer, or Unanswerable."""

    question: Question
    answer: Any


class CacheAnswer(NamedTuple):
    """`key` is equal for equal work; `output` is what came of it before, in run `source`, or there is no `source`."""

    key: str
    source: str | None = None
    output: Output | None = None


StatusEvent: TypeAlias = Started | Beat | Deferred | Succeeded | Failed
AttemptEvent: TypeAlias = StatusEvent | GivenUp | Closed
Event: TypeAlias = Created | Commanded | Answered | AttemptEvent | TimerDue
