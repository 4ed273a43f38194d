"""Something people are to be told, kept until it has been."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ork.model.ids import RunId, TaskKey
from ork.model.record import Record
from ork.model.task import Failure


class NoticeKind(StrEnum):
    TASK = "task"  # a task failed for good
    RUN = "run"  # a run failed
    RECOVERY = "recovery"  # a run succeeded where the one before it had failed
    MISSED = "missed"  # a schedule's times went by without a run
    APPROVAL = "approval"  # a task waits for a person
    TEST = "test"  # somebody wants to know whether a target can be reached; kept nowhere


KINDS = frozenset(NoticeKind) - {NoticeKind.TEST}


class Notice(Record):
    """`sent` names those who have been told already; `tries` counts how often it was taken to be sent."""

    id: int
    kind: NoticeKind
    workflow: str
    raised_at: datetime
    run: RunId | None = None
    task: TaskKey | None = None
    failure: Failure | None = None
    detail: str | None = None
    tries: int = 0
    sent: tuple[str, ...] = ()
