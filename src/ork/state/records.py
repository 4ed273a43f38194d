"""Arguments and results of the state store.

Marks, and ids of commands, notices and audit entries, are opaque text that sorts in the order of creation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ork.core.effects import Alert, LaunchRequest
from ork.core.launch_groups import NO_GROUPS
from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.notice import Notice
from ork.model.quarantine import QuarantinedRun
from ork.model.record import Record
from ork.model.run import Run, RunCommand, RunStatus
from ork.model.task import Attempt, AttemptStatus, Heartbeat, Output, Task, TaskStatus
from ork.model.workflow import Rate, Schedule, Version

NO_RATES: Mapping[str, Rate] = {}

# ── claims and commits ───────────────────────────────────────────────────────────────────────────


class ClaimedRun(Record):
    """Everything a new owner needs to continue a run: `attempts` has the current attempt of each active task,
    `heartbeats` their last heartbeats, with ages by the store's clock."""

    run: Run
    epoch: int
    version: Version
    tasks: tuple[Task, ...]
    attempts: tuple[Attempt, ...]
    heartbeats: tuple[Heartbeat, ...] = ()


class Claim(Record):
    """The runs that a scheduler owns from now on, the open commands of all runs it owns, and the runs that were
    quarantined because they cannot be decoded. `nothing_waits`: no run was left that waits for an owner, however many places there are; a
    store that does not know says False."""

    runs: tuple[ClaimedRun, ...] = ()
    commands: tuple[RunCommand, ...] = ()
    set_aside: tuple[QuarantinedRun, ...] = ()
    nothing_waits: bool = False


class RunChanges(Record):
    """The changes of one run in a commit: whole rows to write, launches to admit, commands to finish. An attempt's
    names, token and group never change once written. The launches of one group are consecutive.

    With `release_ownership` the run has no owner after the commit, because it needs none until a person submits a
    command (it is final, or paused without active attempts).
    """

    run_id: RunId
    epoch: int
    run: Run | None = None
    tasks: tuple[Task, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    launches: tuple[LaunchRequest, ...] = ()
    commands_done: tuple[str, ...] = ()
    alerts: tuple[Alert, ...] = ()
    release_ownership: bool = False

    @property
    def only_launches(self) -> bool:
        """True if there is nothing to write unless a launch is admitted."""
        written = self.run or self.tasks or self.attempts or self.commands_done or self.alerts
        return not (written or self.release_ownership)


class Committed(Record):
    """The result of a commit. Nothing at all was written for runs in `fenced` or `overruled`.

    `full` has the limits that rejected a launch. It may also have limits that this commit filled, which saves the
    scheduler a commit that would be rejected; a store may omit those if finding them costs a read.
    """

    fenced: frozenset[RunId] = frozenset()  # the epoch is stale: another scheduler owns the run
    overruled: frozenset[RunId] = frozenset()  # it would have finished, but an unread cancel request exists
    admitted: frozenset[AttemptKey] = frozenset()
    full: frozenset[str] = frozenset()  # see above; for rates, only those that rejected a launch
    again_in: float | None = None  # seconds until a rate that rejected a launch admits it
    parallelism: Mapping[str, int] = NO_GROUPS  # by group id, the parallelism written for each admitted group


# ── requests of people ───────────────────────────────────────────────────────────────────────────


class Accepted(NamedTuple):
    """The command is durable, and the owner of the run has been woken."""

    run: Run
    command_id: str


class TooLate(NamedTuple):
    """The status of the run does not allow the command; `run` has the status."""

    run: Run


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


class RunFilter(Record):
    workflow: str | None = None
    statuses: frozenset[RunStatus] = frozenset()
    limit: int = 20
    cursor: str | None = None  # the cursor of the previous page
    created_after: datetime | None = None  # at this time or later
    created_before: datetime | None = None


class RunPage(NamedTuple):
    runs: tuple[Run, ...]
    cursor: str | None  # None on the last page


class TaskFilter(Record):
    """Selects tasks of a run: at most `limit`, and only those after `after` in workflow order; without instances, only the
    tasks' own rows. `is_retrying`: only those that have a time of their retry."""

    name: str | None = None
    statuses: frozenset[TaskStatus] = frozenset()
    after: TaskKey | None = None
    limit: int | None = None
    with_instances: bool = True
    is_retrying: bool = False


ALL_TASKS = TaskFilter()


class RunUpdate(NamedTuple):
    """The run and those of its tasks that changed after `since`; `mark` is the next `since`."""

    run: Run
    tasks: tuple[Task, ...]
    mark: str


class TaskCount(NamedTuple):
    """How many rows of a task have a status: its own row, or with `is_instance` those of its instances."""

    name: str
    is_instance: bool
    status: TaskStatus
    number: int


class TaskTimes(NamedTuple):
    """The state of a task, or how an earlier attempt of it ended. Times are milliseconds since 1970; None if it has not
    come to that, or if the stored time cannot be decoded."""

    name: str
    instance: int | None
    status: TaskStatus | AttemptStatus
    attempt: int
    dispatched: int | None
    started: int | None
    finished: int | None


class TimeColumns(NamedTuple):
    """The fields of TaskTimes for many tasks, each as one sequence: a run may have a hundred thousand tasks."""

    name: Sequence[str] = ()
    instance: Sequence[int | None] = ()
    status: Sequence[TaskStatus | AttemptStatus] = ()
    attempt: Sequence[int] = ()
    dispatched: Sequence[int | None] = ()
    started: Sequence[int | None] = ()
    finished: Sequence[int | None] = ()

    @property
    def rows(self) -> Iterator[TaskTimes]:
        """One by one, for callers that read a few."""
        return map(TaskTimes._make, zip(*self, strict=True))


class TimesPage(NamedTuple):
    """Tasks in workflow order, the earlier attempts of these tasks, and the last task; None on the last page."""

    tasks: TimeColumns
    earlier: TimeColumns
    last: TaskKey | None


NO_TIMES = TimesPage(TimeColumns(), TimeColumns(), None)

EARLIER_ATTEMPTS = 20
"""How many earlier attempts of a task a page of times has at most: the latest."""


class Changes(Record):
    """The current rows of runs that changed, and the mark after the last of these changes."""

    runs: tuple[Run, ...]
    mark: str


class Cached(NamedTuple):
    """The earlier result of equal work, and the run it comes from."""

    run: RunId
    output: Output | None


class LimitUse(NamedTuple):
    """The use of a limit, with a few of its holders."""

    name: str
    slots: int
    used: int
    holders: tuple[AttemptKey, ...] = ()


# ── schedules and notices ────────────────────────────────────────────────────────────────────────


class ScheduleEntry(Record):
    """A workflow's schedule. `next_fire` is the next time it fires; None if it is disabled or not planned yet."""

    workflow: str
    version: VersionId
    schedule: Schedule
    enabled: bool  # workflow and schedule are both enabled
    next_fire: datetime | None
    unreadable: str | None = None  # why it cannot be decoded: it does not fire, and `schedule` has no meaning


class LookAhead(Record):
    """What a tick needs to know first: whether runs are waiting, and what is due when."""

    runs_wait: bool  # a run needs an owner, or has one
    schedules: tuple[ScheduleEntry, ...]  # all enabled ones, by name
    next_alert: datetime | None  # when the next notice is due
    next_location: datetime | None  # when the next of the given locations is due


class UnsentAlert(Record):
    """A notice that could not be sent to every target: the error, and when it is tried again (None: never)."""

    notice: Notice
    error: str
    retry_at: datetime | None
