"""One execution of a version, and the commands it accepts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from ork.model.ids import RunId, SchedulerId, VersionId
from ork.model.record import Record, made
from ork.model.workflow import Trigger


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"

    is_final: bool  # a plain attribute, as for tasks


for _run_status in RunStatus:
    _run_status.is_final = _run_status not in (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.PAUSED)


class NewRun(Record):
    """A run to create. The same idempotency key with the same content returns the existing run."""

    id: RunId
    workflow: str
    version: VersionId
    params: dict[str, Any] = made(default_factory=dict)
    trigger: Trigger = Trigger.MANUAL
    scheduled_for: datetime | None = None
    key: str | None = None
    priority: int = 0
    fresh: bool = False
    parent: str | None = None
    started_by: str | None = None  # the person or token; None for a schedule


class Run(Record):
    """A run's row. `round` is incremented by each manual retry of the run."""

    id: RunId
    workflow: str
    version: VersionId
    status: RunStatus
    trigger: Trigger
    params: dict[str, Any]
    created_at: datetime
    scheduled_for: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str | None = None
    round: int = 1
    priority: int = 0
    cancel_requested_at: datetime | None = None
    note: str | None = None  # why it is paused or being cancelled, and by whom
    fresh: bool = False  # ignore the cache
    parent: str | None = None  # the attempt it is a sub-workflow of, or the run it is a rerun of
    unreadable: str | None = None  # why parts of its row cannot be decoded; those have neutral values


class CommandKind(StrEnum):
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    APPROVE = "approve"
    REJECT = "reject"
    DECLARE_DEAD = "declare-dead"


class RunCommand(Record):
    """A command of a person, applied by the run's owner. `task` is for RETRY, APPROVE, REJECT and DECLARE_DEAD,
    `everything` for RETRY, `comment` for APPROVE and REJECT."""

    run: RunId
    kind: CommandKind
    by: str = "someone"
    task: str | None = None
    everything: bool = False
    comment: str | None = None
    id: str = ""  # assigned by the store; commands of a run are applied in this order


class Ownership(Record):
    """The owner of a run, and how often it has changed."""

    owner: SchedulerId | None
    epoch: int


SchedulerKind: TypeAlias = Literal["scheduler", "run", "tick", "ork store copy"]
"""A service, a command that ends with its own run, one pass by `ork tick`, or a copy from another store."""


class SchedulerEntry(Record):
    """A registered scheduler. `identity` lets processes on the same machine check whether it is alive."""

    id: SchedulerId
    identity: str
    kind: str  # a SchedulerKind; another release of Ork may have more
    started_at: datetime
    lease_seconds_left: float  # by the store's clock; negative if expired
    active_runs: int = 0
    notes: tuple[str, ...] = ()  # fallbacks in use that make it slower, and why
