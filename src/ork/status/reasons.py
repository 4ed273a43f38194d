"""One reason of an answer to `why`: a code for programs, a sentence for people, and what it refers to."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from ork.model.ids import RunId, TaskKey
from ork.model.record import Record
from ork.status.shapes import time_json


class ReasonCode(StrEnum):
    """What a reason says. Codes may be added, and never change their meaning."""

    ACTIVE_RUNS = "active_runs"  # the workflow has as many active runs as it may have
    APPROVAL = "approval"  # a person has to decide
    BEING_CANCELLED = "being_cancelled"
    CANCELLED = "cancelled"
    CLAIM = "claim"  # a scheduler will claim the run
    COMMAND = "command"  # a command has not been applied yet
    CONCURRENCY = "concurrency"  # the fan-out's own limit
    CONTROL = "control"  # a scheduler, a host or the installation is paused or draining
    DAMAGED = "damaged"
    DISK_FULL = "disk_full"
    DISPATCHED = "dispatched"  # handed to an executor, not started
    EXTERNAL_JOB = "external_job"
    FAILED = "failed"
    GIVEN_UP = "given_up"  # the attempt is being ended
    GROUP = "group"  # waits in a launch group
    INSTANCES = "instances"  # the state of a fan-out
    LIMIT = "limit"  # a limit or pool is full; `refs` are some that hold a slot
    MORE = "more"  # other tasks are not listed
    NOT_STARTED = "not_started"  # the task's run has not started
    NO_SCHEDULER = "no_scheduler"
    OVER_BUDGET = "over_budget"
    PAUSED = "paused"  # the run is paused
    RATE = "rate"  # a rate allows no more starts now
    READY = "ready"
    RETRY = "retry"  # `until`: when it is tried again
    RUNNING = "running"
    SET_ASIDE = "set_aside"  # the run cannot be processed
    SKIPPED = "skipped"  # `refs`: the root cause
    SUCCESS = "success"
    UNKNOWN = "unknown"  # from a server that returns no codes
    UPSTREAM = "upstream"  # waits for the tasks in `refs`


class ReasonRef(NamedTuple):
    """A run, or a task of a run."""

    run: RunId
    task: TaskKey | None = None


class Reason(Record):
    """`until`: when it ends at the latest, or what happens next. `task`: the task that a line of a longer answer is about; it
    is shown indented, as is every reason with `is_detail`."""

    code: ReasonCode
    text: str
    until: datetime | None = None
    refs: tuple[ReasonRef, ...] = ()
    task: TaskKey | None = None
    is_detail: bool = False

    @property
    def sentence(self) -> str:
        indent = "  " if self.is_detail or self.task is not None else ""
        return f"{indent}{self.text}"


def sentences(reasons: Iterable[Reason]) -> list[str]:
    return [reason.sentence for reason in reasons]


def reason_json(reason: Reason) -> dict[str, Any]:
    key = reason.task
    return {
        "code": reason.code.value,
        "text": reason.text,
        "until": time_json(reason.until),
        "task": None if key is None else key.name,
        "index": None if key is None else key.index,
        "refs": [
            {
                "run": ref.run,
                "task": None if ref.task is None else ref.task.name,
                "index": None if ref.task is None else ref.task.index,
            }
            for ref in reason.refs
        ],
    }


def read_reason(row: dict[str, Any]) -> Reason:
    """The reason that `reason_json` wrote. A code of a newer server is unknown here."""
    code = ReasonCode(row["code"]) if row["code"] in set(ReasonCode) else ReasonCode.UNKNOWN
    refs = tuple(
        ReasonRef(RunId(ref["run"]), ref["task"] and TaskKey(ref["task"], ref["index"])) for ref in row["refs"]
    )
    until = None if row["until"] is None else datetime.fromisoformat(row["until"])
    task = None if row["task"] is None else TaskKey(row["task"], row["index"])
    return Reason(code, row["text"], until, refs, task)
