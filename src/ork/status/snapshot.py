"""The state of a run at one time. Answers to `why` are computed from it alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ork.model.ids import RunId, SchedulerId, TaskKey
from ork.model.record import Record, made
from ork.model.run import RunCommand, SchedulerEntry
from ork.model.task import Attempt
from ork.state.records import LimitUse
from ork.status.launch_groups import GroupStarts
from ork.status.run_view import RunView
from ork.status.schedulers import NO_SCHEDULER


class Snapshot(Record):
    """All data that an answer needs. `attempts` holds the current attempt of each active task that it may mention."""

    view: RunView
    now: datetime
    schedulers: tuple[SchedulerEntry, ...] = ()  # those that are or may be alive
    owner: SchedulerId | None = None
    starter: str | None = None  # who started the run; None for schedules and for runs of an older schema
    attempts: Mapping[TaskKey, Attempt] = made(default_factory=dict)
    beats: Mapping[TaskKey, datetime] = made(default_factory=dict)
    groups: tuple[GroupStarts, ...] = ()  # launch groups of which not all attempts have started
    machines: Mapping[TaskKey, str] = made(default_factory=dict)
    platform_notes: Mapping[TaskKey, str] = made(default_factory=dict)  # why an attempt has not begun on its platform
    limits: tuple[LimitUse, ...] = ()
    commands: tuple[RunCommand, ...] = ()
    active_runs: tuple[RunId, ...] = ()  # other runs of the same workflow
    short_ids: Mapping[RunId, str] = made(default_factory=dict)
    heartbeat_seconds: float = 10.0
    stale_seconds: float = 60.0
    start_limit_seconds: float = 300.0
    fence_seconds: float = 45.0
    over_budget_at: datetime | None = None  # when people were alerted that the run had exceeded its budget
    is_disk_full: bool = False  # the disk of the object store
    without_scheduler: str | None = NO_SCHEDULER  # what to say if there is none; None if the run needs none

    def short(self, run: RunId) -> str:
        return self.short_ids.get(run, run)
