"""Ends that a real platform brings about, and pods that wait: what the attempt's documents say then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ork.executors.executor import LaunchOrder, Presence
from ork.executors.kubernetes.access import NEEDED
from ork.model.record import replaced
from tests.integration.workshop import ENDS, Workshop
from tests.kubernetes.cluster import Cluster, scheduler_name
from tests.kubernetes.subject import container_on, executor_on, jobs_of, pods_of

pytestmark = [pytest.mark.slow, pytest.mark.kubernetes]
HOLD = "example.org/hold"


def heard(_key: object, _status: object = None, /) -> None:
    return


class Ends:
    """Attempts on a cluster, started by an identity with exactly the rights of a scheduler."""

    def __init__(self, folder: Path, cluster: Cluster, namespace: str) -> None:
        self.shop, self.cluster, self.namespace = Workshop(folder), cluster, namespace
        self.folder, self._kubeconfig = folder, cluster.scheduler(namespace)
        self.executor = self.another()
        self.orders: dict[str, LaunchOrder] = {}

    def another(self) -> Any:
        return executor_on(self._kubeconfig, self.namespace, self.shop.objects, self.cluster.images.ork)

    def container(self, image: str, **changes: Any) -> dict[str, Any]:
        return container_on(image, self.folder, **changes)

    async def start(self, task: str, script: str, container: dict[str, Any] | None = None, **spec: Any) -> None:
        """A command with a worker; or a plain image with `kind="container"`."""
        attempt = self.shop.attempt(task)
        attempt = replaced(attempt, executor="kubernetes", external_name=self.executor.name_for(attempt.key))
        made = {"argv": ["sh", "-c", f"touch {self.shop.root}/{task}; {script}"], "to_file": None, "from_file": None}
        found = container or self.container(self.cluster.images.ork)
        self.orders[task] = self.shop.order(attempt, news=None, container=found, **{**made, **spec})
        assert list(await self.executor.start([self.orders[task]], heard)) == []

    async def plain(self, task: str, script: str, **changes: Any) -> None:
        spec = {name: changes.pop(name) for name in ("timeout", "env") if name in changes}
        await self.start(task, script, self.container(self.cluster.images.busybox, **changes), kind="container", **spec)

    async def begun(self, *tasks: str) -> None:
        await self.until(lambda: all((self.shop.root / task).exists() for task in tasks))

    async def pod(self, task: str) -> str:
        """The name of its pod."""
        found: list[str] = []

        def is_there() -> bool:
            pods = pods_of(self.cluster, self.namespace)
            found[:] = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"]["ork.dev/task"] == task]
            return bool(found)

        await self.until(is_there)
        return found[0]

    async def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        return await asyncio.to_thread(self.cluster.request, method, self.path(path), body, kind)

    def path(self, path: str) -> str:
        group = "/apis/batch/v1" if path.startswith("jobs") else "/api/v1"
        return f"{group}/namespaces/{self.namespace}/{path}"

    async def ended(self, task: str, state: str, words: str) -> None:
        """Its last status, or what the scheduler adds to it in the platform's words, has these words."""
        order = self.orders[task]
        await self.until(lambda: (self.shop.status(order.attempt) or {}).get("state") in ENDS)
        found = self.shop.status(order.attempt) or {}
        assert found["state"] == state, (task, found)
        message = found["failure"]["message"]
        if words not in message:
            await self.waits(task, words)

    async def waits(self, task: str, words: str) -> None:
        key = self.orders[task].attempt.key
        end = time.monotonic() + 120
        while words not in (self.executor.why_waiting(key) or ""):
            assert time.monotonic() < end, (task, words, self.executor.why_waiting(key))
            await asyncio.sleep(0.1)

    async def until(self, is_so: Callable[[], object]) -> None:
        end = time.monotonic() + 90
        while not await asyncio.to_thread(is_so):
            assert time.monotonic() < end, self.explained()
            await asyncio.sleep(0.1)

    def explained(self) -> str:
        attempts = [
            f"{task}: {self.shop.status(order.attempt)}, {self.executor.why_waiting(order.attempt.key)}"
            for task, order in self.orders.items()
        ]
        pods = [f"{pod['metadata']}, {pod['status']}" for pod in pods_of(self.cluster, self.namespace)]
        return "\n".join([*attempts, *pods])

    async def close(self) -> None:
        self.executor.release([order.attempt for order in self.orders.values()])
        await self.until(lambda: not jobs_of(self.cluster, self.namespace))
        await self.executor.close()


def test_every_end_has_the_platforms_words_and_no_right_is_unused(
    tmp_path: Path, cluster: Cluster, namespace: str
) -> None:
    async def work() -> None:
        ends = Ends(tmp_path, cluster, namespace)
        await ends.executor.sweep()
        await start_all(ends)
        await end_all(ends)
        await wait_in_vain(ends)
        await lose_the_node(ends)
        await vanish_while_nobody_looks(ends)
        await ends.close()
        await ends.until(lambda: not pods_of(cluster, namespace))

    asyncio.run(work())
    asked = cluster.requests(scheduler_name(namespace))
    used = {(each.verb, f"{each.group}/{each.resource}") for each in asked}
    # A pod is read by its name only if it vanished before anybody saw it, which cannot be brought about here.
    assert used | {("get", "/pods")} == set(NEEDED)
    assert [each for each in asked if each.status == 403] == []
    assert {each.namespace for each in asked} == {namespace}


async def start_all(ends: Ends) -> None:
    for task in ("evicted", "preempted", "deleted", "orphaned"):
        await ends.start(task, "exec sleep 600")
    template = {"metadata": {"finalizers": [HOLD]}, "spec": ends.container("")["kubernetes"]["template"]["spec"]}
    await ends.start("held", "exec sleep 600", ends.container(ends.cluster.images.ork, template=template))
    await ends.plain("hungry", "exec tail /dev/zero", memory=32 << 20)
    await ends.plain("late", "exec sleep 600", timeout=3)
    await ends.plain("wrong", "echo so it goes; exit 7")
    secret = {"secrets": {"ORK_SECRET_KEY": "login/token"}}
    await ends.plain("secretive", "exec sleep 600", env={"KEY": {"secret": "ORK_SECRET_KEY"}}, **secret)
    await ends.start("unpulled", "true", ends.container("127.0.0.1:9/none:1"))


async def end_all(ends: Ends) -> None:
    await ends.begun("evicted", "preempted", "deleted", "orphaned", "held")
    await asyncio.to_thread(ends.cluster.node.evict, ends.namespace, await ends.pod("evicted"))
    await asyncio.to_thread(ends.cluster.node.preempt, ends.namespace, await ends.pod("preempted"))
    await ends.ask("DELETE", f"pods/{await ends.pod('deleted')}?gracePeriodSeconds=1")
    held = await ends.pod("held")
    await ends.ask("DELETE", f"pods/{held}?gracePeriodSeconds=1")
    job = ends.orders["orphaned"].attempt
    name = ends.executor._launching.job_of(str(job.key))
    await ends.ask("DELETE", f"jobs/{name}?propagationPolicy=Background")

    await ends.ended("evicted", "stopped", "its node ended its pod (The node was low on resource: memory.)")
    await ends.ended("preempted", "stopped", "its pod was preempted for a more important one")
    await ends.ended("deleted", "stopped", "its pod was deleted")
    await ends.ended("orphaned", "stopped", "its pod was deleted")
    await ends.ended("held", "stopped", "its pod was deleted")  # although its object stays
    while await ends.executor.find([ends.orders["held"].attempt]) != [Presence.GONE]:
        await asyncio.sleep(0.1)
    # The Job controller has taken its own finalizer off: without it, it would not count the pod and start another one.
    await ends.until(lambda: ends.cluster.request("GET", ends.path(f"pods/{held}"))["metadata"]["finalizers"] == [HOLD])
    patch = "application/merge-patch+json"
    await ends.ask("PATCH", f"pods/{held}", {"metadata": {"finalizers": None}}, patch)
    await ends.ended("hungry", "failed", "out of memory, more than 32Mi: exit code 137")
    await ends.ended("late", "timed_out", "timed out after 3s")
    await ends.ended("wrong", "failed", "exit code 7")
    assert b"so it goes\n" in ends.shop.log(ends.orders["wrong"].attempt)


async def wait_in_vain(ends: Ends) -> None:
    """Nothing has begun, and the platform's words say why. What a person changes then takes effect."""
    await ends.waits("secretive", 'secret "login" not found')
    await ends.waits("unpulled", "127.0.0.1:9")
    secret = {"metadata": {"name": "login"}, "stringData": {"token": "t"}}
    await ends.ask("POST", "secrets", secret)
    await ends.begun("secretive")
    await asyncio.to_thread(ends.cluster.node.hold, lambda pod: pod["metadata"]["namespace"] == ends.namespace)
    try:
        await ends.start("waiting", "exec sleep 600")
        await ends.waits("waiting", "Insufficient cpu")
        waiting = ends.orders["waiting"].attempt
        await ends.until(lambda: b"ork: Kubernetes: " in ends.shop.log(waiting))
        assert await ends.executor.find([waiting]) == [Presence.RUNNING]
    finally:
        await asyncio.to_thread(ends.cluster.node.release)
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await ends.ask("POST", "resourcequotas", quota)
    await ends.until(
        lambda: ends.cluster.request("GET", ends.path("resourcequotas/none"))["status"].get("hard") == {"pods": "0"}
    )
    await ends.start("refused", "true")
    await ends.waits("refused", "exceeded quota: none")
    await ends.ask("DELETE", "resourcequotas/none")
    stopped = [ends.orders[task].attempt for task in ("secretive", "unpulled", "waiting", "refused")]
    await ends.executor.stop(stopped, at_once=True)


async def lose_the_node(ends: Ends) -> None:
    await ends.start("lost", "exec sleep 600")
    await ends.begun("lost")
    await asyncio.to_thread(lambda: ends.cluster.node.lose(kill=True))
    try:
        await ends.waits("lost", "its pod was removed from a node that is lost or must not be used")
    finally:
        await asyncio.to_thread(ends.cluster.node.come_back)
    await ends.ended("lost", "failed", "its pod was removed from a node that is lost or must not be used")


async def vanish_while_nobody_looks(ends: Ends) -> None:
    """The scheduler is away, and somebody deletes the pod by force. Nothing in it writes a status."""
    await ends.plain("vanished", "exec sleep 600")
    await ends.begun("vanished")
    pod = await ends.pod("vanished")
    ends.executor.release([order.attempt for task, order in ends.orders.items() if task != "vanished"])
    await ends.executor.close()
    await ends.ask("DELETE", f"pods/{pod}?gracePeriodSeconds=0")
    ends.orders = {"vanished": ends.orders["vanished"]}
    ends.executor = ends.another()
    vanished = ends.orders["vanished"].attempt
    await ends.executor.watch([vanished], heard)
    await ends.until(lambda: (ends.shop.status(vanished) or {}).get("state") in ENDS)
    assert (ends.shop.status(vanished) or {})["failure"]["message"] == "Kubernetes: its pod was deleted"
