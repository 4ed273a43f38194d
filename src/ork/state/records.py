"""What callers hand to the state store, and what it answers.

Marks, and the ids of commands, notices and audit entries, are opaque text that sorts in the order it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from ork.core.effects import Alert, LaunchRequest
from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.notice import Notice
from ork.model.quarantine import QuarantinedRun
from ork.model.record import Record
from ork.model.run import Run, RunCommand, RunStatus
from ork.model.task import Attempt, Heartbeat, Output, Task, TaskStatus
from ork.model.workflow import Rate, Schedule, Version

NO_RATES: Mapping[str, Rate] = {}

# ── claims and commits ───────────────────────────────────────────────────────────────────────────


class ClaimedRun(Record):
    """All a new owner needs to go on with a run: `attempts` holds the current attempt of each active task, `heartbeats`
    what was noted of them, with ages by the store's clock."""

    run: Run
    epoch: int
    version: Version
    tasks: tuple[Task, ...]
    attempts: tuple[Attempt, ...]
    heartbeats: tuple[Heartbeat, ...] = ()


class Claim(Record):
    """The runs a scheduler may work on from now on, the open commands of all runs it owns, and runs that it would have
    got but that cannot be decoded."""

    runs: tuple[ClaimedRun, ...] = ()
    commands: tuple[RunCommand, ...] = ()
    set_aside: tuple[QuarantinedRun, ...] = ()


class RunChanges(Record):
    """One run's share of a commit: whole rows to write, launches to admit, commands that are done. An attempt's names and
    token do not change once they are written.

    With `release_ownership` the run has no owner after the commit: it needs none until a person asks for something (it
    is final, or paused with nothing running).
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
        """If none of its launches is admitted, there is nothing to write."""
        written = self.run or self.tasks or self.attempts or self.commands_done or self.alerts
        return not (written or self.release_ownership)


class Committed(Record):
    """What came of a commit. Runs named in `fenced` or `overruled` had nothing written at all.

    `full` names the limits that turned a launch away. That it also names those that this commit filled is a hint, which
    saves the scheduler a commit that would be turned away: a store may leave them out where knowing them costs a read.
    """

    fenced: frozenset[RunId] = frozenset()  # the epoch is stale: another scheduler owns the run
    overruled: frozenset[RunId] = frozenset()  # it would have finished, but an unread cancel request exists
    admitted: frozenset[AttemptKey] = frozenset()
    full: frozenset[str] = frozenset()  # see above; of rates, those that turned a launch away
    again_in: float | None = None  # seconds until a rate that turned one away would let it pass


# ── requests of people ───────────────────────────────────────────────────────────────────────────


class Accepted(NamedTuple):
    """The command is durable and its owner has been woken."""

    run: Run
    command_id: str


class TooLate(NamedTuple):
    """The run is in a state in which this command means nothing; `run` shows it."""

    run: Run


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


class RunFilter(Record):
    workflow: str | None = None
    statuses: frozenset[RunStatus] = frozenset()
    limit: int = 20
    cursor: str | None = None  # as given by the previous page


class RunPage(NamedTuple):
    runs: tuple[Run, ...]
    cursor: str | None  # None on the last page


class TaskFilter(Record):
    """Which of a run's tasks: at most `limit`, and only those behind `after` in the workflow's order."""

    name: str | None = None
    statuses: frozenset[TaskStatus] = frozenset()
    after: TaskKey | None = None
    limit: int | None = None


ALL_TASKS = TaskFilter()


class RunUpdate(NamedTuple):
    """The run and those of its tasks that changed after `since`; `mark` is the next `since`."""

    run: Run
    tasks: tuple[Task, ...]
    mark: str


class Changes(Record):
    """Runs that changed, as they are now, and the mark behind the last of those changes."""

    runs: tuple[Run, ...]
    mark: str


class Cached(NamedTuple):
    """What came of equal work before, and in which run."""

    run: RunId
    output: Output | None


class LimitUse(NamedTuple):
    """How full a limit is, and who holds it (a few)."""

    name: str
    slots: int
    used: int
    holders: tuple[AttemptKey, ...] = ()


# ── schedules and notices ────────────────────────────────────────────────────────────────────────


class ScheduleEntry(Record):
    """A workflow's schedule. `next_fire` is when it fires next; None while it is off or nobody has planned it yet."""

    workflow: str
    version: VersionId
    schedule: Schedule
    enabled: bool  # the workflow and its schedule both are
    next_fire: datetime | None
    unreadable: str | None = None  # why it cannot be decoded: it does not fire, and `schedule` says nothing


class LookAhead(Record):
    """What a tick has to know before it does anything: whether runs wait, and what is due when."""

    runs_wait: bool  # a run needs an owner, or has one
    schedules: tuple[ScheduleEntry, ...]  # all that are on, by name
    next_alert: datetime | None  # when the next notice is due
    next_location: datetime | None  # when the next of the given locations is due


class UnsentAlert(Record):
    """A notice that did not reach everybody it is for: why not, and when it is tried again; None: it was given up."""

    notice: Notice
    error: str
    retry_at: datetime | None
