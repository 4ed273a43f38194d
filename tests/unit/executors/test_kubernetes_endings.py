"""Every way in which a pod can end, or not begin, and the sentence for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ork.executors.executor import Presence
from ork.model.record import replaced
from ork.model.task import GiveUp
from ork.worker.supervise.stand_in import StandIn
from tests.unit.executors.kubernetes_subject import KubernetesShop, pod_document
from tests.unit.executors.scripted_cluster import container, disrupted, ended, running, unschedulable, waiting

LOW = "The node was low on resource: memory."
EVICTED = {**ended(137), "reason": "Evicted", "message": LOW}
LATE = {**ended(143), "reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the deadline"}
SHUTDOWN = {
    **ended(137),
    "reason": "Terminated",
    "message": "Pod was terminated in response to imminent node shutdown.",
}
TOO_SMALL = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
STARTLESS = ended(128, "StartError")
STARTLESS["containerStatuses"][0]["state"]["terminated"]["message"] = 'exec: "etl": executable file not found in $PATH'
INIT = {
    "phase": "Failed",
    "initContainerStatuses": [container("ork-begin", terminated={"exitCode": 3, "reason": "Error"})],
    "containerStatuses": [container(waiting={"reason": "PodInitializing"})],
}
DELETED = {**ended(143), "deletionTimestamp": "2026-11-18T09:00:05Z"}


def run(work: Callable[[KubernetesShop], Awaitable[None]], folder: Path, **options: Any) -> None:
    async def main() -> None:
        shop = KubernetesShop(folder, **options)
        try:
            await work(shop)
        finally:
            await shop.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "state", "kind", "code", "words"),
    [
        (ended(7), "failed", "exit", 7, "exit code 7"),
        (ended(137), "failed", "exit", 137, "exit code 137, killed by SIGKILL"),
        (ended(137, "OOMKilled"), "failed", "exit", 137, "out of memory, more than 64Mi: exit code 137"),
        (EVICTED, "failed", "lost", 137, f"Kubernetes: its node evicted its pod ({LOW})"),
        (
            disrupted("PreemptionByScheduler", "preempted by high"), "failed", "lost", 137,
            "Kubernetes: its pod was preempted for a more important one (preempted by high)",
        ),
        (
            disrupted("DeletionByTaintManager", "taint"), "failed", "lost", 137,
            "Kubernetes: its pod was removed from a node that is lost or must not be used (taint)",
        ),
        (
            disrupted("DeletionByPodGC", "PodGC: node no longer exists"), "failed", "lost", 137,
            "Kubernetes: its node is gone, and its pod with it (PodGC: node no longer exists)",
        ),
        (disrupted("EvictionByEvictionAPI", "drained"), "failed", "lost", 137, "Kubernetes: its pod was evicted (drained)"),
        (SHUTDOWN, "failed", "lost", 137, f"Kubernetes: its node was shut down ({SHUTDOWN['message']})"),
        (
            TOO_SMALL, "failed", "lost", None,
            "Kubernetes: its node has too little left for its pod (Node didn't have enough resource: cpu)",
        ),
        (LATE, "timed_out", "timeout", None, "timed out after 30s"),
        (
            STARTLESS, "failed", "start", 128,
            'Kubernetes: exit code 128 (StartError): exec: "etl": executable file not found in $PATH',
        ),
        (DELETED, "failed", "lost", 143, "Kubernetes: its pod was deleted"),
        (ended(0), "success", None, 0, None),
    ],
)  # fmt: skip
def test_the_end_of_a_plain_pod_has_its_sentence(
    status: dict[str, Any], state: str, kind: str | None, code: int | None, words: str | None, tmp_path: Path
) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.plain(timeout=30.0, container=pod_document(memory=64 << 20))
        job = await shop.started(order)
        pod = shop.cluster.pod(job, **running())
        shop.win_gate(order.attempt, pod)
        shop.cluster.logs[pod] = "hello\n"
        shop.cluster.pod(job, **status)
        found = await shop.ended(order.attempt)
        assert (found["state"], found.get("exit_code")) == (state, code)
        if kind is not None:
            assert (found["failure"]["kind"], found["failure"]["message"]) == (kind, words)
        await shop.until(lambda: order.attempt.key in shop.reported)
        assert await shop.presence(order.attempt) is Presence.GONE

    run(work, tmp_path)


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (ended(1), "lost", "Kubernetes: its worker ended: exit code 1"),
        (ended(137, "OOMKilled"), "exit", "out of memory: exit code 137"),
        (EVICTED, "lost", f"Kubernetes: its node evicted its pod ({LOW})"),
        (LATE, "lost", "Kubernetes: DeadlineExceeded: Pod was active on the node longer than the deadline"),
        (DELETED, "lost", "Kubernetes: its pod was deleted"),
    ],
)
def test_a_worker_that_left_no_result_is_explained_by_its_pod(
    status: dict[str, Any], kind: str, words: str, tmp_path: Path
) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.win_gate(order.attempt, shop.cluster.pod(job, **running()))
        shop.cluster.pod(job, **status)
        found = await shop.ended(order.attempt)
        assert (found["failure"]["kind"], found["failure"]["message"]) == (kind, words)

    run(work, tmp_path)


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (ended(3), "start", "Kubernetes: its worker did not start: exit code 3"),
        (INIT, "start", "Kubernetes: its worker did not start: preparing its pod failed: exit code 3"),
        (STARTLESS, "start", "executable file not found"),
        (EVICTED, "lost", "Kubernetes: its node evicted its pod"),
        (DELETED, "lost", "Kubernetes: its pod was deleted"),
    ],
)
def test_a_pod_that_ends_before_the_gate_is_won_fails_the_attempt_once(
    status: dict[str, Any], kind: str, words: str, tmp_path: Path
) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.cluster.pod(job, **status)
        found = await shop.ended(order.attempt)
        assert found["failure"]["kind"] == kind
        assert words in found["failure"]["message"]

    run(work, tmp_path)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (unschedulable("0/3 nodes are available: 3 Insufficient cpu."), "0/3 nodes are available: 3 Insufficient cpu."),
        (waiting("ImagePullBackOff", 'Back-off pulling image "x"'), 'ImagePullBackOff: Back-off pulling image "x"'),
        (waiting("CreateContainerConfigError", 'secret "login" not found'), 'secret "login" not found'),
    ],
)
def test_why_a_pod_waits_is_said_in_the_platforms_words(status: dict[str, Any], words: str, tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.cluster.pod(job, **status)
        await shop.until(lambda: bool(shop.reported))
        assert await shop.presence(order.attempt) is Presence.RUNNING
        assert words in (shop.executor.why_waiting(order.attempt.key) or "")
        await shop.until(lambda: words.encode() in shop.shop.log(order.attempt))
        assert shop.shop.log(order.attempt).startswith(b"ork: Kubernetes: ")

    run(work, tmp_path, waits=True)


def test_an_image_that_can_never_be_had_ends_the_attempt_at_once(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        pod = shop.cluster.pod(job, **waiting("InvalidImageName", "couldn't parse image reference"))
        found = await shop.ended(order.attempt)
        assert found["failure"]["kind"] == "start"
        assert "InvalidImageName: couldn't parse image reference" in found["failure"]["message"]
        await shop.until(lambda: pod in [name for name, _ in shop.cluster.deleted])

    run(work, tmp_path)


def test_a_quota_that_refuses_pods_is_said_and_so_is_one_that_refuses_the_job(tmp_path: Path) -> None:
    quota = 'pods "x" is forbidden: exceeded quota: compute, requested: cpu=2'

    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.cluster.events = [
            {
                "metadata": {"name": "e", "namespace": "ns"}, "involvedObject": {"name": job}, "type": "Warning",
                "reason": "FailedCreate", "message": f"Error creating: {quota}", "lastTimestamp": "2026-11-18T09:00:00Z",
            }
        ]  # fmt: skip
        shop.executor._units[str(order.attempt.key)].looked_at = float("-inf")
        await shop.until(lambda: bool(shop.cluster.jobs))
        assert await shop.presence(order.attempt) is Presence.RUNNING
        assert quota in (shop.executor.why_waiting(order.attempt.key) or "")

    run(work, tmp_path, waits=True)


@pytest.mark.parametrize("with_job", [True, False])
def test_what_was_deleted_while_nobody_looked_is_lost(with_job: bool, tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        pod = shop.cluster.pod(job, **running())
        shop.win_gate(order.attempt, pod)
        await shop.executor.close()
        shop.cluster.remove_pod(pod)
        if with_job:
            del shop.cluster.jobs[job]
        else:
            shop.cluster.end_job(job)
        shop.executor = shop.another()
        await shop.executor.watch([order.attempt], shop.on_status)
        found = await shop.ended(order.attempt)
        what = "Job" if with_job else "pod"
        assert found["failure"]["message"] == f"Kubernetes: its {what} was deleted"
        await shop.until(lambda: order.attempt.key in shop.reported)
        assert await shop.presence(order.attempt) is Presence.GONE

    run(work, tmp_path)


def test_a_job_that_is_deleted_before_it_has_a_pod_is_gone_and_can_be_started_again(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        del shop.cluster.jobs[job]
        shop.executor._units[str(order.attempt.key)].looked_at = float("-inf")
        await shop.until(lambda: True)
        assert await shop.presence(order.attempt) in (Presence.RUNNING, Presence.GONE)
        await shop.until(
            lambda: bool(shop.executor._units[str(order.attempt.key)].members[order.attempt.key].is_settled)
        )
        assert await shop.presence(order.attempt) is Presence.GONE
        assert await shop.start(order) == []
        await shop.until(lambda: job in shop.cluster.jobs)

    run(work, tmp_path)


def test_a_pod_of_a_node_that_does_not_answer_is_unknown(tmp_path: Path) -> None:
    """It is being deleted for long, and nobody confirms it: what runs there may go on."""

    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.win_gate(order.attempt, shop.cluster.pod(job, **running()))
        shop.cluster.pod(job, deletionTimestamp="2026-11-18T08:00:00Z", **running())
        await shop.until(lambda: any(pod.deleted_at for pod in shop.executor._watch.pods_of(job)))
        assert await shop.presence(order.attempt) is Presence.UNKNOWN

    run(work, tmp_path)


def test_output_counts_only_after_its_upload(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        files = {"to_file": "/data/in.json", "from_file": "/data/out.json"}
        for task, left, state, words in (
            ("good", {"output": {"inline": "7"}}, "success", None),
            ("bad", {"problem": "it left no output: there is no file /data/out.json"}, "failed", "there is no file"),
            ("none", None, "failed", "Kubernetes: its output was not uploaded"),
        ):
            order = shop.plain(task, **files)
            await shop.start(order)
            job = shop.executor._launching.job_of(str(order.attempt.key))
            await shop.until(lambda job=job: job in shop.cluster.jobs)  # type: ignore[misc]
            pod = shop.cluster.pod(job, **running())
            shop.win_gate(order.attempt, pod)
            if left is not None:
                StandIn(shop.shop.objects, order.attempt).leave(left)
            shop.cluster.pod(job, **ended(0))
            found = await shop.ended(order.attempt)
            assert found["state"] == state
            if words is None:
                assert found["output"] == {"inline": "7"}
            else:
                assert (found["failure"]["kind"], words in found["failure"]["message"]) == ("output", True)

    run(work, tmp_path)


def test_an_attempt_that_is_stopped_is_stopped_and_not_lost(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.plain()
        job = await shop.started(order)
        pod = shop.cluster.pod(job, **running())
        shop.win_gate(order.attempt, pod)
        await shop.until(lambda: bool(shop.executor._watch.pods_of(job)))
        closing = replaced(order.attempt, closing=GiveUp.CANCEL)
        await shop.executor.stop([closing], at_once=False)
        await shop.until(lambda: bool(shop.cluster.deleted))
        assert shop.cluster.deleted[0][0] == pod
        shop.cluster.pod(job, **DELETED)
        found = await shop.ended(order.attempt)
        assert (found["state"], found["exit_code"]) == ("stopped", 143)

    run(work, tmp_path)
