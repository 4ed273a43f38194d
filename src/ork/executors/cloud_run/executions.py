"""What an execution of Cloud Run says about its attempt. Judged by its own conditions, never by the operation. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ork.executors.worker_variables import ATTEMPT_VARIABLE, GROUP_VARIABLE, MEMBERS_VARIABLE
from ork.model.record import Record

if TYPE_CHECKING:
    from google.cloud import run_v2

_SUCCEEDED, _FAILED = "CONDITION_SUCCEEDED", "CONDITION_FAILED"
_CANCELLED = ("CANCELLED", "CANCELLING", "DELETED")
_MEMORY_WORDS = ("memory limit", "out of memory", "oom")
_TIMEOUT_WORDS = ("timeout", "deadline exceeded", "maximum timeout")


class ExecutionState(StrEnum):
    PENDING = "pending"  # nothing of it has started
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        return self not in (ExecutionState.PENDING, ExecutionState.RUNNING)


class Seen(Record):
    """An execution as it was last seen. `message` has the platform's own words."""

    name: str
    attempt: str | None
    state: ExecutionState
    message: str
    started_at: str | None = None
    finished_at: str | None = None
    log_uri: str = ""
    group: str | None = None  # the launch group that it starts
    members: str = ""  # the attempts of the group, as `ork.objects.group_members` writes them
    running: int = 0  # tasks
    ended: int = 0
    failed: int = 0

    @property
    def is_out_of_memory(self) -> bool:
        return any(word in self.message.lower() for word in _MEMORY_WORDS)

    @property
    def is_timed_out(self) -> bool:
        return any(word in self.message.lower() for word in _TIMEOUT_WORDS)


def seen(execution: run_v2.Execution) -> Seen:
    conditions = {condition.type_: condition for condition in execution.conditions}
    completed = conditions.get("Completed")
    state, message = _state(execution, completed), _message(execution, completed)
    return Seen(
        execution.name,
        _variable(execution, ATTEMPT_VARIABLE),
        state,
        message,
        _time(execution.start_time or execution.create_time),
        _time(execution.completion_time),
        str(execution.log_uri),
        _variable(execution, GROUP_VARIABLE),
        _variable(execution, MEMBERS_VARIABLE) or "",
        int(execution.running_count),
        int(execution.succeeded_count + execution.failed_count + execution.cancelled_count),
        int(execution.failed_count + execution.cancelled_count),
    )


def _state(execution: run_v2.Execution, completed: run_v2.Condition | None) -> ExecutionState:
    if completed is not None and completed.state.name == _SUCCEEDED:
        return ExecutionState.SUCCEEDED
    if completed is not None and completed.state.name == _FAILED and not execution.running_count:
        is_cancelled = completed.execution_reason.name in _CANCELLED or bool(execution.cancelled_count)
        return ExecutionState.CANCELLED if is_cancelled else ExecutionState.FAILED
    return ExecutionState.RUNNING if execution.running_count else ExecutionState.PENDING


def _message(execution: run_v2.Execution, completed: run_v2.Condition | None) -> str:
    """The message of the end, else of the first condition that is not fulfilled yet."""
    if completed is not None and completed.state.name in (_SUCCEEDED, _FAILED):
        return str(completed.message)
    open_ones = [each.message for each in execution.conditions if each.state.name != _SUCCEEDED and each.message]
    return str(open_ones[-1]) if open_ones else ""


def _variable(execution: run_v2.Execution, name: str) -> str | None:
    for container in execution.template.containers:
        for variable in container.env:
            if variable.name == name:
                return str(variable.value)
    return None


def _time(value: Any) -> str | None:
    return None if not value else str(value.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
