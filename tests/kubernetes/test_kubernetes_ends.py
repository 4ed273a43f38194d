"""Ends that a real platform brings about, and pods that wait: what the attempt's documents say then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ork.executors.executor import LaunchOrder, Presence
from ork.executors.kubernetes.executor import KubernetesExecutor
from ork.model.record import replaced
from tests.integration.workshop import Workshop
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.subject import container_on, executor_on, pods_of

pytestmark = [pytest.mark.slow, pytest.mark.kubernetes]


def heard(_key: object, _status: object = None, /) -> None:
    return


async def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end
        await asyncio.sleep(0.1)


def order_of(shop: Workshop, executor: KubernetesExecutor, task: str, container: dict[str, Any]) -> LaunchOrder:
    attempt = shop.attempt(task)
    attempt = replaced(attempt, executor="kubernetes", external_name=executor.name_for(attempt.key))
    return shop.order(attempt, argv=["sh", "-c", f"touch {task}; exec sleep 600"], news=None, container=container)


def test_evicted_deleted_and_waiting_pods_are_explained_in_the_platforms_words(
    tmp_path: Path, cluster: Cluster, namespace: str
) -> None:
    async def work() -> None:
        shop = Workshop(tmp_path)
        executor = executor_on(cluster.kubeconfig, namespace, shop.objects)
        container = container_on(cluster.images.ork, tmp_path)
        orders = {task: order_of(shop, executor, task, container) for task in ("evicted", "deleted", "waiting")}
        await executor.start([orders["evicted"], orders["deleted"]], heard)
        await until(lambda: all((shop.root / task).exists() for task in ("evicted", "deleted")))

        pods = {
            pod["metadata"]["labels"]["ork.dev/task"]: pod["metadata"]["name"] for pod in pods_of(cluster, namespace)
        }
        await asyncio.to_thread(cluster.node.evict, namespace, pods["evicted"])
        path = f"/api/v1/namespaces/{namespace}/pods/{pods['deleted']}?gracePeriodSeconds=1"
        await asyncio.to_thread(cluster.request, "DELETE", path)
        for task, words in (("evicted", "low on resource: memory"), ("deleted", "its pod was deleted")):
            attempt = orders[task].attempt
            await until(lambda attempt=attempt: (shop.status(attempt) or {}).get("failure"))  # type: ignore[misc]
            # The worker itself says only that it was told to stop; the scheduler adds the platform's words.
            await until(lambda attempt=attempt, words=words: words in (executor.why_waiting(attempt.key) or ""))  # type: ignore[misc]

        await asyncio.to_thread(cluster.node.hold, lambda pod: pod["metadata"]["namespace"] == namespace)
        try:
            waiting = orders["waiting"]
            await executor.start([waiting], heard)
            await until(lambda: "Insufficient cpu" in (executor.why_waiting(waiting.attempt.key) or ""))
            await until(lambda: b"ork: Kubernetes: " in shop.log(waiting.attempt))
            assert await executor.find([waiting.attempt]) == [Presence.RUNNING]
        finally:
            await asyncio.to_thread(cluster.node.release)
        await until(lambda: (shop.root / "waiting").exists())
        await executor.stop([waiting.attempt], at_once=True)
        executor.release([order.attempt for order in orders.values()])
        await executor.close()

    asyncio.run(work())
