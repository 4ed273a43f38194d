"""The two state machines, one table each. A transition that is not in the table is an error.

The diagrams in docs/protocol.md are generated from these tables (`python -m ork.core.transitions` prints them).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ork.errors import IllegalTransitionError
from ork.model.run import RunStatus
from ork.model.task import TaskStatus


class TaskStep(StrEnum):
    LAUNCH = "launch"
    BEGIN = "begin"  # runs without an attempt of its own: fans out, or waits for approval
    START = "start"
    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"  # the attempt failed and another follows
    SKIP = "skip"
    CANCEL = "cancel"
    REVIVE = "revive"  # a person retried the run


class RunStep(StrEnum):
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"
    REVIVE = "revive"


TASK_TABLE: Mapping[TaskStatus, Mapping[TaskStep, TaskStatus]] = {
    TaskStatus.PENDING: {
        TaskStep.LAUNCH: TaskStatus.DISPATCHED,
        TaskStep.BEGIN: TaskStatus.RUNNING,
        TaskStep.SUCCEED: TaskStatus.SUCCESS,  # an equal result was cached, or there were no items
        TaskStep.FAIL: TaskStatus.FAILED,  # its inputs could not be resolved
        TaskStep.SKIP: TaskStatus.SKIPPED,
        TaskStep.CANCEL: TaskStatus.CANCELLED,
    },
    TaskStatus.DISPATCHED: {
        TaskStep.START: TaskStatus.RUNNING,
        TaskStep.SUCCEED: TaskStatus.SUCCESS,
        TaskStep.FAIL: TaskStatus.FAILED,
        TaskStep.RETRY: TaskStatus.PENDING,
        TaskStep.CANCEL: TaskStatus.CANCELLED,
    },
    TaskStatus.RUNNING: {
        TaskStep.SUCCEED: TaskStatus.SUCCESS,
        TaskStep.FAIL: TaskStatus.FAILED,
        TaskStep.RETRY: TaskStatus.PENDING,
        TaskStep.CANCEL: TaskStatus.CANCELLED,
    },
    TaskStatus.SUCCESS: {TaskStep.REVIVE: TaskStatus.PENDING},
    TaskStatus.FAILED: {TaskStep.REVIVE: TaskStatus.PENDING},
    TaskStatus.SKIPPED: {TaskStep.REVIVE: TaskStatus.PENDING},
    TaskStatus.CANCELLED: {TaskStep.REVIVE: TaskStatus.PENDING},
}

RUN_TABLE: Mapping[RunStatus, Mapping[RunStep, RunStatus]] = {
    RunStatus.PENDING: {RunStep.START: RunStatus.RUNNING},
    RunStatus.RUNNING: {
        RunStep.PAUSE: RunStatus.PAUSED,
        RunStep.SUCCEED: RunStatus.SUCCESS,
        RunStep.FAIL: RunStatus.FAILED,
        RunStep.CANCEL: RunStatus.CANCELLED,
    },
    RunStatus.PAUSED: {
        RunStep.RESUME: RunStatus.RUNNING,
        RunStep.SUCCEED: RunStatus.SUCCESS,
        RunStep.FAIL: RunStatus.FAILED,
        RunStep.CANCEL: RunStatus.CANCELLED,
    },
    RunStatus.SUCCESS: {RunStep.REVIVE: RunStatus.RUNNING},
    RunStatus.FAILED: {RunStep.REVIVE: RunStatus.RUNNING},
    RunStatus.CANCELLED: {RunStep.REVIVE: RunStatus.RUNNING},
}


def next_task_status(subject: object, status: TaskStatus, step: TaskStep) -> TaskStatus:
    try:
        return TASK_TABLE[status][step]
    except KeyError:
        raise IllegalTransitionError(f"task {subject}", status, step) from None


def next_run_status(subject: object, status: RunStatus, step: RunStep) -> RunStatus:
    try:
        return RUN_TABLE[status][step]
    except KeyError:
        raise IllegalTransitionError(f"run {subject}", status, step) from None


def draw(
    table: Mapping[TaskStatus, Mapping[TaskStep, TaskStatus]] | Mapping[RunStatus, Mapping[RunStep, RunStatus]],
) -> str:
    """The table as a Mermaid state diagram."""
    lines = [f"    {state} --> {target}: {step}" for state, row in table.items() for step, target in row.items()]
    return "\n".join(["stateDiagram-v2", "    [*] --> pending", *lines])


if __name__ == "__main__":
    print(draw(TASK_TABLE), draw(RUN_TABLE), sep="\n\n")
