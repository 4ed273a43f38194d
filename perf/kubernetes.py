"""Measures the executor for Kubernetes on a real API server and Job controller, with a node that only pretends to run pods.

    python -m perf.kubernetes                 all three, at full size: about five minutes on two processors
    python -m perf.kubernetes --size 0.1      a tenth of it

1. Ork's own time for a pod: CPU time of this process from the order to the deletion of the Job, a Job for each attempt.
2. A fan-out as one Job: from the order until all its pods run, beside the same Job created by one request and nobody watching,
   turn by turn in the same run.
3. Pods that run for long: memory of this process and requests, while one watch follows them. The server ends a watch whose client
   falls behind; it goes on where it was, and nothing is listed again.

Exit code 1 if one of the limits is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.docker import daemon_or_skip
from tests.integration.workshop import Workshop
from tests.kubernetes.cluster import Cluster, scheduler_name
from tests.kubernetes.programs import folder_or_skip
from tests.kubernetes.subject import executor_on, group_on, jobs_of
from tests.unit.executors.kubernetes_subject import pod_document

from ork.executors.executor import GroupOrder, LaunchOrder, Presence
from ork.executors.kubernetes.executor import KubernetesExecutor
from ork.executors.kubernetes.making import group_job
from ork.model.record import replaced
from perf.pretend_node import SCHEDULER, PretendNode

MOST_SECONDS, MOST_BYTES = 0.050, 20_000
SLOWER = 1.10  # than the Job controller alone: what two measurements of the same thing differ by
TEMPLATE = {"metadata": {}, "spec": {"schedulerName": SCHEDULER}}
PAGE = os.sysconf("SC_PAGE_SIZE")


class Bench:
    def __init__(self, cluster: Cluster, node: PretendNode, namespace: str) -> None:
        self.cluster, self.node, self.namespace = cluster, node, namespace
        self.kubeconfig = cluster.scheduler(namespace)
        self.container = pod_document("none", template=TEMPLATE)

    def shop(self) -> tuple[Workshop, KubernetesExecutor]:
        folder = Path(mkdtemp(prefix="ork-perf-"))
        shop = Workshop(folder)
        return shop, executor_on(self.kubeconfig, self.namespace, shop.objects)

    def orders(self, shop: Workshop, executor: KubernetesExecutor, count: int) -> list[LaunchOrder]:
        made = []
        for number in range(count):
            attempt = shop.attempt(f"t{number}")
            attempt = replaced(attempt, executor="kubernetes", external_name=executor.name_for(attempt.key))
            made.append(replaced(shop.order(attempt, argv=["true"], news=None, container=self.container), is_new=True))
        return made

    def group(self, shop: Workshop, executor: KubernetesExecutor, size: int) -> GroupOrder:
        made = group_on(shop, executor, size, size, "true", self.container)
        return replaced(made, orders=tuple(replaced(order, is_new=True) for order in made.orders))

    async def until(self, is_so: Callable[[], object], seconds: float = 900) -> None:
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                raise TimeoutError
            await asyncio.sleep(0.05)

    async def empty(self) -> None:
        """Wait until nothing is left in the namespace."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs?propagationPolicy=Background"
        await asyncio.to_thread(self.cluster.request, "DELETE", path)
        while await asyncio.to_thread(lambda: jobs_of(self.cluster, self.namespace) or self.some_pods()):
            await asyncio.sleep(0.5)

    def some_pods(self) -> list[Any]:
        path = f"/api/v1/namespaces/{self.namespace}/pods?limit=1"
        found: list[Any] = self.cluster.request("GET", path)["items"]
        return found

    def asked(self, since: int) -> list[str]:
        """Verbs and resources of what the executor asked, after so many requests."""
        requests = self.cluster.requests(scheduler_name(self.namespace))[since:]
        return [f"{each.verb} {each.resource}" for each in requests]


def heard(_key: object, _status: object = None, /) -> None:
    return


async def own_time(bench: Bench, count: int) -> dict[str, Any]:
    bench.node.ends()
    shop, executor = bench.shop()
    orders = bench.orders(shop, executor, count)
    attempts = [order.attempt for order in orders]
    before, began, wall = len(bench.asked(0)), time.process_time(), time.monotonic()
    await executor.start(orders, heard)
    while set(await executor.find(attempts)) != {Presence.GONE}:
        await asyncio.sleep(0.5)
    executor.release(attempts)
    await executor.close()
    used, took = time.process_time() - began, time.monotonic() - wall
    asked = bench.asked(before)
    await bench.empty()
    bench.node.hold()
    return {
        "pods": count,
        "milliseconds of CPU a pod": round(1000 * used / count, 2),
        "requests a pod": round(len(asked) / count, 2),
        "seconds": round(took, 1),
        "ok": used / count <= MOST_SECONDS,
    }


async def one_job(bench: Bench, size: int, turns: int) -> dict[str, Any]:
    alone, ours = [], []
    for _ in range(turns):
        alone.append(await _alone(bench, size))
        ours.append(await _as_group(bench, size))
    ratio = statistics.median(mine / bare for mine, bare in zip(ours, alone, strict=True))
    return {
        "instances": size,
        "Job controller alone, seconds": [round(each, 2) for each in alone],
        "Ork, seconds": [round(each, 2) for each in ours],
        "ratio": round(ratio, 3),
        "ok": ratio <= SLOWER,
    }


async def _alone(bench: Bench, size: int) -> float:
    shop, executor = bench.shop()
    group = bench.group(shop, executor, size)
    spec = {**shop.spec(group.orders[0].attempt), "kind": "command", "container": bench.container}
    made = group_job(group, spec, "nobody", 0, objects_url=shop.objects.url, ork_image=None)
    path = f"/apis/batch/v1/namespaces/{bench.namespace}/jobs"
    began = time.monotonic()
    await asyncio.to_thread(bench.cluster.request, "POST", path, made)
    last = await asyncio.to_thread(bench.node.started, made["metadata"]["name"], size)
    await executor.close()
    await bench.empty()
    return last - began


async def _as_group(bench: Bench, size: int) -> float:
    shop, executor = bench.shop()
    group = bench.group(shop, executor, size)
    began = time.monotonic()
    await executor.start_groups([group], heard)
    await bench.until(lambda: executor._units[group.id].job)
    job = str(executor._units[group.id].job)
    last = await asyncio.to_thread(bench.node.started, job, size)
    await bench.until(lambda: len(executor._watch) == size)
    executor.release([order.attempt for order in group.orders])
    await executor.close()
    await bench.empty()
    return last - began


async def many_pods(bench: Bench, size: int) -> dict[str, Any]:
    shop, executor = bench.shop()
    group = bench.group(shop, executor, size)
    await executor.find([group.orders[0].attempt])  # so that all modules are loaded
    before, memory = len(bench.asked(0)), resident()
    await executor.start_groups([group], heard)
    await bench.until(lambda: len(executor._watch) == size)
    await bench.until(lambda: all(pod.started_at for pod in executor._watch._pods.values()))
    full = resident()
    changed = await asyncio.to_thread(bench.node.touch)
    await asyncio.sleep(5)
    again = resident()
    assert set(await executor.find([order.attempt for order in group.orders])) == {Presence.RUNNING}
    asked = bench.asked(before)
    executor.release([order.attempt for order in group.orders])
    await executor.close()
    await bench.empty()
    kinds = {kind: asked.count(kind) for kind in sorted(set(asked))}
    too_slow = bench.cluster.log("kube-apiserver").count("watcher close due to unresponsiveness")
    return {
        "pods": size,
        "bytes a pod": round((full - memory) / size),
        "bytes a pod, after each has changed": round((again - memory) / size),
        "changed": changed,
        "requests": kinds,
        "watches that the server ended because their clients were slow": too_slow,
        "lists": executor._watch.lists,
        "ok": max(full, again) - memory <= MOST_BYTES * size and executor._watch.lists == 1,
    }


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


async def measured(bench: Bench, size: float, turns: int, only: str | None) -> dict[str, Any]:
    found = {}
    if only in (None, "memory"):
        found["running pods"] = await many_pods(bench, int(5000 * size))
    if only in (None, "time"):
        found["own time"] = await own_time(bench, int(200 * size))
    if only in (None, "fan-out"):
        found["a fan-out as one Job"] = await one_job(bench, int(1000 * size), turns)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--turns", type=int, default=3, help="of the fan-out")
    parser.add_argument("--only", choices=("memory", "time", "fan-out"))
    asked = parser.parse_args()
    cluster = Cluster(folder_or_skip("kubernetes"), daemon_or_skip())
    cluster.node.stop()  # the node that runs pods
    del cluster.node
    node = PretendNode(cluster.url, cluster.token, str(cluster.ca))
    try:
        with cluster.namespace("perf") as namespace:
            found = asyncio.run(measured(Bench(cluster, node, namespace), asked.size, asked.turns, asked.only))
    finally:
        node.close()
        cluster.remove()
        for folder in Path("/tmp").glob("ork-perf-*"):
            shutil.rmtree(folder, ignore_errors=True)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    sys.stdout.write(json.dumps({**found, "load": load}, indent=2) + "\n")
    return 0 if all(each["ok"] for each in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
