"""The data of the memory store."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Protocol

from ork.core.effects import Alert
from ork.model.access import AuditEntry, Token
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey, VersionId
from ork.model.installation import Control, SharedSettings
from ork.model.notice import Notice, NoticeKind
from ork.model.quarantine import ItemKind, Quarantined
from ork.model.record import Record, made
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import Attempt, Heartbeat, Task
from ork.model.workflow import Rate, Version, WorkflowEntry
from ork.state.admission import ActiveAttempts, TokenBucket, slots_held
from ork.state.memory.locations import LocationRow
from ork.state.records import ClaimedRun
from ork.state.rows import text_of


class Handle(Protocol):
    def wake(self) -> None: ...


class SchedulerRow(Record, frozen=False):
    identity: str
    kind: str
    started_at: datetime
    lease_until: float
    notes: tuple[str, ...] = ()


class RunRow(Record, frozen=False):
    """A run with its tasks and attempts. `task_changed` has the number of the commit that last wrote each task."""

    run: Run
    key: str | None
    changed: int
    started_by: str | None = None
    owner: SchedulerId | None = None
    epoch: int = 0
    tasks: dict[TaskKey, Task] = made(default_factory=dict)
    task_changed: dict[TaskKey, int] = made(default_factory=dict)
    attempts: dict[tuple[TaskKey, int], Attempt] = made(default_factory=dict)
    alerts: list[Alert] = made(default_factory=list)
    heard: dict[AttemptKey, tuple[int, float]] = made(default_factory=dict)  # number and time of the last heartbeat

    def note(self, heartbeat: Heartbeat, now: float) -> None:
        key, attempt = heartbeat.attempt, self.attempts.get((heartbeat.attempt.task, heartbeat.attempt.number))
        if attempt is None or attempt.status.is_final:
            return
        noted = self.heard[key][0] if key in self.heard else None
        if noted is not None and (noted == heartbeat.seq or 0 <= heartbeat.seq < noted):
            return
        self.heard[key] = heartbeat.seq, now - heartbeat.age

    def heartbeats(self, now: float) -> tuple[Heartbeat, ...]:
        active = [each.key for each in self.attempts.values() if not each.status.is_final and each.key in self.heard]
        return tuple(Heartbeat(key, seq, max(0.0, now - at)) for key in active for seq, at in [self.heard[key]])

    @property
    def has_active(self) -> bool:
        return any(not attempt.status.is_final for attempt in self.attempts.values())


class NoticeRow(Record, frozen=False):
    notice: Notice
    due_at: datetime | None
    error: str | None = None


class Shared(Record, frozen=False):
    """The data of one store, shared by all its handles."""

    versions: dict[VersionId, Version] = made(default_factory=dict)
    workflows: dict[str, WorkflowEntry] = made(default_factory=dict)
    limits: dict[str, int] = made(default_factory=dict)
    rates: dict[str, Rate] = made(default_factory=dict)
    buckets: dict[str, tuple[float, float]] = made(default_factory=dict)  # tokens, and when they were counted
    runs: dict[RunId, RunRow] = made(default_factory=dict)
    schedulers: dict[SchedulerId, SchedulerRow] = made(default_factory=dict)
    commands: dict[str, RunCommand] = made(default_factory=dict)  # pending ones
    last_command: int = 0
    version_saved: dict[VersionId, tuple[int, datetime]] = made(default_factory=dict)  # number and time of the change
    tokens: dict[str, Token] = made(default_factory=dict)
    notes: dict[str, str] = made(default_factory=dict)
    used_keys: dict[str, datetime] = made(default_factory=dict)  # until when each is kept
    audit: list[AuditEntry] = made(default_factory=list)
    changed: int = 0
    key: bytes = made(default_factory=lambda: os.urandom(32))
    handles: list[Handle] = made(default_factory=list)
    leftovers: set[RunId] = made(default_factory=set)
    next_fires: dict[str, datetime | None] = made(default_factory=dict)  # of enabled schedules
    notices: list[NoticeRow] = made(default_factory=list)
    locations: dict[str, LocationRow] = made(default_factory=dict)
    settings: SharedSettings | None = None
    controls: dict[str, Control] = made(default_factory=dict)
    quarantine: dict[tuple[ItemKind, str], Quarantined] = made(default_factory=dict)

    def is_set_aside(self, run: RunId) -> bool:
        return (ItemKind.RUN, run) in self.quarantine

    def disown(self, schedulers: Iterable[SchedulerId]) -> None:
        gone = set(schedulers)
        for row in self.runs.values():
            if row.owner in gone:
                row.owner = None

    def commands_of(self, run: RunId) -> list[RunCommand]:
        return [command for _, command in sorted(self.commands.items()) if command.run == run]

    def cancel_waits(self, run: RunId) -> bool:
        return any(command.kind is CommandKind.CANCEL for command in self.commands_of(run))

    def active(self) -> list[ActiveAttempts]:
        return slots_held(self.active_attempts())

    def active_attempts(self) -> Iterable[Attempt]:
        """Attempts that hold slots: without those that wait for an external job, and without those of quarantined
        runs."""
        rows = (row for row in self.runs.values() if not self.is_set_aside(row.run.id))
        every = (attempt for row in rows for attempt in row.attempts.values())
        return (attempt for attempt in every if not attempt.status.is_final and attempt.waits_for is None)

    def open_bucket(self, name: str, rate: Rate, now: float) -> TokenBucket:
        tokens, at = self.buckets.get(name, (float(rate.count), now))
        return TokenBucket(rate, tokens, now - at)

    def place(self, row: RunRow, task: TaskKey) -> tuple[int, int]:
        """The position of the task in the workflow, and its index."""
        names = [spec.name for spec in self.versions[row.run.version].workflow.tasks]
        return names.index(task.name), -1 if task.index is None else task.index

    def tasks_in_order(self, row: RunRow, since: int = 0) -> tuple[Task, ...]:
        changed = [key for key, number in row.task_changed.items() if number > since]
        return tuple(row.tasks[key] for key in sorted(changed, key=lambda key: self.place(row, key)))

    def raise_notice(self, kind: NoticeKind, workflow: str, now: datetime, **about: Any) -> None:
        self.notices.append(NoticeRow(Notice(text_of(len(self.notices) + 1), kind, workflow, now, **about), now))

    def claimable(self, only: Collection[RunId] | None = None) -> list[RunRow]:
        """Runs that need an owner and have none, in the order in which they are claimed."""
        free = [row for row in self.runs.values() if row.owner is None and self._needs_owner(row)]
        free = free if only is None else [row for row in free if _is_one_of(row, only)]
        return sorted(free, key=lambda row: (-row.run.priority, row.run.created_at, row.run.id))

    def claimed(self, row: RunRow, now: float) -> ClaimedRun:
        tasks = self.tasks_in_order(row)
        active = [task for task in tasks if task.status.is_active and task.attempt]
        attempts = tuple(row.attempts[task.key, task.attempt] for task in active)
        return ClaimedRun(row.run, row.epoch, self.versions[row.run.version], tasks, attempts, row.heartbeats(now))

    def room_in_workflow(self, name: str) -> float:
        """How many more runs of the workflow may be active."""
        most = self.versions[self.workflows[name].version].workflow.max_active_runs
        if most is None:
            return float("inf")
        own = (row for id, row in self.runs.items() if row.run.workflow == name and not self.is_set_aside(id))
        return most - sum(map(_occupies, own))

    def _needs_owner(self, row: RunRow) -> bool:
        if self.is_set_aside(row.run.id):
            return False
        if row.run.status in (RunStatus.PENDING, RunStatus.RUNNING) or self.commands_of(row.run.id):
            return True
        return row.run.status is RunStatus.PAUSED and row.has_active


def _is_one_of(row: RunRow, only: Collection[RunId]) -> bool:
    above, is_nested, _ = (row.run.parent or "").partition("/")
    return row.run.id in only or bool(is_nested and above in only) or (row.epoch > 0 and row.has_active)


def _occupies(row: RunRow) -> bool:
    if row.run.status is RunStatus.PENDING:
        return row.owner is not None
    return not row.run.status.is_final
