"""An alert to people, stored until it is sent."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ork.model.ids import RunId, TaskKey
from ork.model.record import Record
from ork.model.task import Failure


class NoticeKind(StrEnum):
    TASK = "task"  # a task failed, retries included
    RUN = "run"  # a run failed
    RECOVERY = "recovery"  # a run succeeded after the previous one had failed
    MISSED = "missed"  # scheduled times passed without a run
    APPROVAL = "approval"  # a task waits for approval
    BUDGET = "budget"  # a run exceeded its budget
    TEST = "test"  # checks whether a target can be reached; not stored


KINDS = frozenset(NoticeKind) - {NoticeKind.TEST}


class Notice(Record):
    """`sent` names the targets that have received it; `tries` counts the attempts to send it."""

    id: str
    kind: NoticeKind
    workflow: str
    raised_at: datetime
    run: RunId | None = None
    task: TaskKey | None = None
    failure: Failure | None = None
    detail: str | None = None
    tries: int = 0
    sent: tuple[str, ...] = ()
