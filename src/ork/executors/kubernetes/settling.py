"""Writes the last status of an attempt whose pods have ended, where nothing in them did."""

from __future__ import annotations

from typing import Any

from ork.executors.docker import endings
from ork.executors.docker.container_documents import ContainerDocuments
from ork.executors.docker.outcome import finish
from ork.executors.docker.retrying import retrying, retrying_call
from ork.executors.kubernetes import pod_endings
from ork.executors.kubernetes.api import ClusterApi
from ork.executors.kubernetes.logs import NOTE, try_to_copy
from ork.executors.kubernetes.making import MAIN, is_plain
from ork.executors.kubernetes.pods import PodSeen
from ork.executors.kubernetes.units import Member, Unit
from ork.objects.attempt_documents import AttemptDocuments

_TAIL_LINES = 20
POD = "pod"  # entry of a gate: the pod that won it


async def settle(
    unit: Unit, member: Member, documents: ContainerDocuments, api: ClusterApi, objects: AttemptDocuments
) -> bool:
    """The attempt's last status is written, or there is nothing to write. False if the pod that won its gate is alive."""
    if await retrying_call(documents, documents.is_over):
        return True
    spec = unit.spec if not unit.is_group else None
    if spec is None:
        spec = await retrying_call(documents, documents.spec)
    if spec is None:
        return True
    gate = await retrying_call(documents, documents.gate)
    pods = unit.pods_of(member)
    if gate is None:
        await _never_began(unit, pods, documents, api)
        return True
    if gate.get("state") != "started":
        return True
    pod = next((each for each in pods if each.name == gate.get(POD)), None)
    if pod is None and gate.get(POD):
        pod = await api.pod(str(gate[POD]))  # nobody looked while it existed, or the watch is late
        if pod is not None and not pod.is_over:
            unit.note(pod)
            return False
    if pod is None:
        await finish(documents, pod_endings.vanished(with_job=unit.is_missing))
        return True
    if is_plain(spec):
        ending = await _plain_ending(pod, member, spec, documents, api, objects)
    else:
        tail = await documents.calls.call(documents.log_tail)
        memory = spec["container"]["memory"]
        ending = pod_endings.worker_ending(pod, tail, memory, is_stopping=member.is_stopping)
    await finish(documents, ending, pod.started_at)
    return True


async def give_up_waiting(pod: PodSeen, documents: ContainerDocuments) -> None:
    """End an attempt whose pod waits in vain."""
    if await retrying_call(documents, lambda: documents.win_gate({POD: pod.name})):
        await finish(documents, endings.failed("start", f"Kubernetes: {pod.words()}"))


async def _never_began(unit: Unit, pods: list[PodSeen], documents: ContainerDocuments, api: ClusterApi) -> None:
    """Nobody won the gate: whoever wins it now ends the attempt. Nothing to do if no Job is left: it is started again."""
    ended = [pod for pod in pods if pod.is_over]
    if not ended and (unit.is_missing or unit.is_group):
        return
    if ended:
        pod = ended[-1]
        tail = (
            await api.log_tail(pod.name, pod.end.name, _TAIL_LINES) if pod.end is not None and not pod.is_gone else []
        )
        ending = pod_endings.never_began(pod, tail)
    else:
        words = f" ({unit.seen.message})" if unit.seen is not None and unit.seen.message else ""
        ending = endings.failed("lost", f"Kubernetes: its pod was deleted before it began{words}")
    name = ended[-1].name if ended else ""
    if await retrying_call(documents, lambda: documents.win_gate({POD: name})):
        await finish(documents, ending)


async def _plain_ending(
    pod: PodSeen,
    member: Member,
    spec: dict[str, Any],
    documents: ContainerDocuments,
    api: ClusterApi,
    objects: AttemptDocuments,
) -> dict[str, Any]:
    if pod.end is not None and pod.end.name == MAIN:
        why = "its pod was deleted" if pod.is_gone else None
        if why is None:
            name = str(member.attempt.key)
            why = await retrying(lambda: try_to_copy(api, pod.name, name, documents, objects))
        if why is not None and not await documents.calls.call(documents.log_size):
            await retrying_call(documents, lambda: documents.note(f"{NOTE}its log was not copied: {why}"))
    tail = await documents.calls.call(documents.log_tail)
    memory, timeout = spec["container"]["memory"], spec["timeout"]
    ending = pod_endings.plain_ending(pod, tail, memory, timeout, is_stopping=member.is_stopping)
    if ending is not None:
        return ending
    at = {"finished_at": pod.end.finished_at} if pod.end is not None and pod.end.finished_at else {}
    if spec["from_file"] is None:
        return {**endings.success(None), **at}
    status = await retrying_call(documents, documents.status)
    left = (status or {}).get("left") or {}
    if left.get("problem"):
        return {**endings.failed("output", str(left["problem"]), exit_code=0), **at}
    return {**(endings.success(left["output"]) if left.get("output") else pod_endings.not_uploaded(pod)), **at}
