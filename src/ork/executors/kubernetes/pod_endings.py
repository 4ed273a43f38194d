"""How an attempt ended, from its pod, in the platform's words. Pure."""

from __future__ import annotations

from typing import Any

from ork.executors.docker import endings
from ork.executors.kubernetes.making import BEGIN, BRING, MAIN, UPLOAD
from ork.executors.kubernetes.pods import ContainerEnd, PodSeen, PodState

OOM_KILLED, DEADLINE = "OOMKilled", "DeadlineExceeded"
_START_ERRORS = ("StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError")
# Reasons of the condition DisruptionTarget, and of pods that the kubelet failed.
_TAKEN_DOWN = {
    "PreemptionByScheduler": "its pod was preempted for a more important one",
    "DeletionByTaintManager": "its pod was removed from a node that is lost or must not be used",
    "DeletionByPodGC": "its node is gone, and its pod with it",
    "EvictionByEvictionAPI": "its pod was evicted",
    "TerminationByKubelet": "its node ended its pod",
    "Evicted": "its node evicted its pod",
    "Preempting": "its node preempted its pod for a more important one",
    "NodeLost": "its node is lost",
    "NodeShutdown": "its node was shut down",
    "Shutdown": "its node was shut down",
    "Terminated": "its node was shut down",
    "NodeAffinity": "its node does not accept its pod any more",
    "UnexpectedAdmissionError": "its node did not accept its pod",
}
_WHAT = {
    BRING: "bringing the worker into its pod",
    BEGIN: "preparing its pod",
    UPLOAD: "uploading its output",
}
# Waiting for these is in vain: no event but a new definition changes them.
HOPELESS = ("InvalidImageName", "ErrImageNeverPull")


def never_began(pod: PodSeen, tail: list[str]) -> dict[str, Any]:
    """The end of a pod in which nobody won the gate."""
    taken = taken_down(pod)
    if taken is not None:
        return endings.failed("lost", taken, tail=tail or None)
    if pod.is_gone and pod.end is None:
        return endings.failed("lost", "Kubernetes: its pod was deleted before it began")
    words = _container_words(pod)
    return endings.failed("start", f"Kubernetes: its worker did not start: {words}", tail=tail or None)


def worker_ending(pod: PodSeen, tail: list[str], memory: float | None, *, is_stopping: bool) -> dict[str, Any]:
    """The end of a pod whose worker had begun and left no result."""
    if is_stopping:
        return endings.stopped("Kubernetes: its pod was deleted")
    end = pod.end
    if end is not None and end.reason == OOM_KILLED:
        return _out_of_memory(end, memory, tail)
    if pod.reason == DEADLINE:
        return endings.failed("lost", f"Kubernetes: {pod.words()}", tail=tail)
    taken = taken_down(pod)
    if taken is not None:
        return endings.failed("lost", taken, tail=tail)
    if pod.state is PodState.SUCCEEDED:
        return endings.failed("lost", "Kubernetes: its worker ended without leaving a result", tail=tail)
    return endings.failed("lost", f"Kubernetes: its worker ended: {_container_words(pod)}", tail=tail)


def plain_ending(
    pod: PodSeen, tail: list[str], memory: float | None, timeout: float | None, *, is_stopping: bool
) -> dict[str, Any] | None:
    """The end of a program that knows nothing of Ork; None if it succeeded, so that its output decides."""
    end = pod.end
    at = {"finished_at": end.finished_at} if end is not None and end.finished_at else {}
    code = end.exit_code if end is not None and end.name == MAIN else None
    if is_stopping:
        return {**endings.stopped("Kubernetes: its pod was deleted"), "exit_code": code, **at}
    if pod.reason == DEADLINE and timeout is not None:
        return {**endings.timed_out(timeout), **at}
    if end is not None and end.reason == OOM_KILLED:
        return {**_out_of_memory(end, memory, tail), **at}
    taken = taken_down(pod)
    if taken is not None and code != 0:
        return {**endings.failed("lost", taken, exit_code=code, tail=tail), **at}
    if end is not None and end.name == MAIN and end.exit_code == 0:
        return None
    if end is not None and (end.name != MAIN or end.reason in _START_ERRORS):
        return {**endings.failed("start", f"Kubernetes: {_container_words(pod)}", exit_code=code, tail=tail), **at}
    if end is None:
        return endings.failed("lost", f"Kubernetes: {pod.words() or 'its pod was deleted'}", tail=tail)
    return {**endings.failed("exit", endings.exit_words(end.exit_code), exit_code=end.exit_code, tail=tail), **at}


def not_uploaded(pod: PodSeen) -> dict[str, Any]:
    """The end of a program whose output was not stored, although it succeeded."""
    words = pod.words()
    why = f": {words}" if words else ""
    return endings.failed("output", f"Kubernetes: its output was not uploaded{why}", exit_code=0)


def vanished(*, with_job: bool) -> dict[str, Any]:
    """The end of an attempt that had begun in a pod that is not there any more."""
    return endings.failed("lost", f"Kubernetes: its {'Job' if with_job else 'pod'} was deleted")


def taken_down(pod: PodSeen) -> str | None:
    """Why the platform, or a person, ended the pod; None if its program ended by itself."""
    for reason in (pod.disruption, pod.reason):
        if reason in _TAKEN_DOWN or reason.startswith("OutOf"):
            words = _TAKEN_DOWN.get(reason, "its node has too little left for its pod")
            return f"Kubernetes: {words}" + (f" ({pod.message})" if pod.message else "")
    if pod.deleted_at is not None or (pod.is_gone and not pod.state.is_over):
        return "Kubernetes: its pod was deleted"
    return None


def _container_words(pod: PodSeen) -> str:
    end = pod.end
    if end is None:
        return pod.words() or "its pod ended"
    what = f"{_WHAT[end.name]} failed: " if end.name in _WHAT else ""
    words = f": {end.message}" if end.message else ""
    reason = f" ({end.reason})" if end.reason not in ("", "Error", "Completed") else ""
    return f"{what}{endings.exit_words(end.exit_code)}{reason}{words}"


def _out_of_memory(end: ContainerEnd, memory: float | None, tail: list[str]) -> dict[str, Any]:
    words = endings.exit_words(end.exit_code, is_out_of_memory=True, memory=memory)
    return endings.failed("exit", words, exit_code=end.exit_code, tail=tail)
