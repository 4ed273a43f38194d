"""What a pod says about its attempt, in a few fields: a large installation keeps thousands of them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.executors.kubernetes.making import BEGIN, BRING, MAIN, UPLOAD

if TYPE_CHECKING:
    from lightkube.models.core_v1 import ContainerState, ContainerStatus, PodCondition
    from lightkube.resources.core_v1 import Pod

JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")
INDEX_LABELS = ("batch.kubernetes.io/job-completion-index",)
_LONGEST_WORDS = 400
# Reasons of a waiting container that are no news: it is on its way.
_ON_ITS_WAY = ("ContainerCreating", "PodInitializing")


class PodState(StrEnum):
    PENDING = "pending"  # its program has not started
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (PodState.SUCCEEDED, PodState.FAILED)


class ContainerEnd(NamedTuple):
    """How a container ended."""

    name: str
    exit_code: int
    reason: str
    message: str
    started_at: str | None
    finished_at: str | None


class PodSeen(NamedTuple):
    """A pod as it was last seen. `reason` and `message` are the platform's own words: why it waits, or why it failed."""

    name: str
    job: str
    position: int  # in an indexed Job
    state: PodState
    reason: str = ""
    message: str = ""
    end: ContainerEnd | None = None  # of the program; of an init container if that failed
    started_at: str | None = None  # of the program
    deleted_at: float | None = None  # when it is to be gone, by the wall clock: somebody deleted it
    disruption: str = ""  # why the platform took it down: the reason of the condition DisruptionTarget
    is_gone: bool = False  # the API server has it no more
    has_node: bool = False

    @property
    def is_over(self) -> bool:
        return self.is_gone or self.state.is_over

    def words(self) -> str:
        """Reason and message, without saying the same twice."""
        if not self.message:
            return self.reason
        return self.message if not self.reason or self.reason in self.message else f"{self.reason}: {self.message}"


def seen(pod: Pod) -> PodSeen | None:
    """None for a pod that belongs to no Job."""
    meta, status = pod.metadata, pod.status
    labels = (meta.labels if meta else None) or {}
    job = next((labels[name] for name in JOB_LABELS if name in labels), None)
    if meta is None or status is None or job is None:
        return None
    index = next((int(labels[name]) for name in INDEX_LABELS if name in labels), None)
    if index is None:
        index = int((meta.annotations or {}).get(INDEX_LABELS[0], 0))
    main = _named(status.containerStatuses, MAIN)
    state = _state(status.phase or "Pending", main)
    end = _end(main) or _failed_init(status.initContainerStatuses)
    reason, message = _words(pod, state, end)
    disruption = _condition(status.conditions, "DisruptionTarget")
    if disruption is not None and state is PodState.FAILED:
        message = disruption.message or message
    return PodSeen(
        str(meta.name),
        intern(str(job)),
        index,
        state,
        intern(reason),
        message[:_LONGEST_WORDS],
        end,
        _started(main),
        _timestamp(meta.deletionTimestamp),
        intern(disruption.reason or "") if disruption is not None and disruption.status == "True" else "",
        has_node=bool(pod.spec and pod.spec.nodeName),
    )


def gone(last: PodSeen) -> PodSeen:
    """The same pod after the API server has removed it."""
    return last._replace(is_gone=True)


def _state(phase: str, main: ContainerStatus | None) -> PodState:
    if phase == "Succeeded":
        return PodState.SUCCEEDED
    if phase == "Failed":
        return PodState.FAILED
    state = main.state if main is not None else None
    has_begun = state is not None and (state.running is not None or state.terminated is not None)
    return PodState.RUNNING if has_begun else PodState.PENDING


def _words(pod: Pod, state: PodState, end: ContainerEnd | None) -> tuple[str, str]:
    status = pod.status
    assert status is not None
    if state is PodState.FAILED:
        if status.reason:
            return status.reason, status.message or ""
        return (end.reason, end.message) if end is not None else ("", status.message or "")
    if state is not PodState.PENDING:
        return "", ""
    scheduled = _condition(status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return scheduled.reason or "", scheduled.message or ""
    for container in (*(status.initContainerStatuses or ()), *(status.containerStatuses or ())):
        waiting = container.state.waiting if container.state is not None else None
        if waiting is not None and waiting.reason and waiting.reason not in _ON_ITS_WAY:
            return waiting.reason, waiting.message or ""
    return "", ""


def _end(container: ContainerStatus | None) -> ContainerEnd | None:
    ended = container.state.terminated if container is not None and container.state is not None else None
    if container is None or ended is None:
        return None
    return ContainerEnd(
        intern(container.name),
        ended.exitCode,
        intern(ended.reason or ""),
        (ended.message or "")[:_LONGEST_WORDS],
        _text(ended.startedAt),
        _text(ended.finishedAt),
    )


def _failed_init(containers: list[ContainerStatus] | None) -> ContainerEnd | None:
    """The first container of ours that failed before the program."""
    ends = [_end(each) for each in containers or () if each.name in (BRING, BEGIN, UPLOAD)]
    return next((end for end in ends if end is not None and end.exit_code != 0), None)


def _started(container: ContainerStatus | None) -> str | None:
    state: ContainerState | None = container.state if container is not None else None
    if state is None:
        return None
    if state.running is not None:
        return _text(state.running.startedAt)
    return _text(state.terminated.startedAt) if state.terminated is not None else None


def _named(containers: list[ContainerStatus] | None, name: str) -> ContainerStatus | None:
    return next((each for each in containers or () if each.name == name), None)


def _condition(conditions: list[PodCondition] | None, type: str) -> PodCondition | None:
    return next((each for each in conditions or () if each.type == type), None)


def _timestamp(value: Any) -> float | None:
    return None if value is None else _aware(value).timestamp()


def _text(value: Any) -> str | None:
    return None if value is None else _aware(value).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _aware(value: Any) -> datetime:
    time: datetime = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
