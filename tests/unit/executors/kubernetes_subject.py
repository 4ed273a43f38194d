"""An executor for Kubernetes on a scripted API server, and orders for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightkube import KubeConfig
from lightkube.config.models import Cluster, User

from ork.app.kubernetes import make_executor
from ork.executors.executor import GroupOrder, LaunchOrder, Presence
from ork.executors.kubernetes.connection import ClusterConnection
from ork.executors.kubernetes.executor import KubernetesExecutor
from ork.model.ids import AttemptKey
from ork.model.record import replaced
from ork.model.task import Attempt
from ork.objects.documents import sign
from ork.worker.supervise.stand_in import StandIn
from tests.cloud.documents import group_order
from tests.integration.workshop import Workshop
from tests.unit.executors.scripted_cluster import ScriptedCluster

CONFIG = KubeConfig.from_one(cluster=Cluster(server="https://cluster.invalid"), user=User(), namespace="ns").get()
CONNECTION = ClusterConnection(CONFIG, "ns", "abc123", "https://cluster.invalid")


def pod_document(image: str = "image", **changes: Any) -> dict[str, Any]:
    """`container` of a spec for Kubernetes."""
    own = {
        "service_account": None, "gpu": None, "node_selector": {}, "tolerations": [], "image_pull_secrets": [], "labels": {},
        "template": None, "has_ork": True, "secrets": {}, "env": {}, "objects_secret": None,
    }  # fmt: skip
    outer = {"cpu": None, "memory": None, "user": None, "read_only": False, "pull": "missing"}
    size = {name: changes.pop(name) for name in list(changes) if name in outer}
    return {"image": image, **outer, **size, "kubernetes": own | changes}


class KubernetesShop:
    """A workshop whose executor is one for Kubernetes. Use it inside an event loop."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.shop = Workshop(folder)
        self.cluster = ScriptedCluster()
        self.options = options
        self.executor = self.another()
        self.reported: list[AttemptKey] = []

    def another(self, **options: Any) -> KubernetesExecutor:
        made = {"ork_image": "ork:1", **self.options, **options}
        return make_executor("kubernetes", CONNECTION, self.shop.objects, transport=self.cluster, **made)

    def order(self, task: str = "work", number: int = 1, **spec: Any) -> LaunchOrder:
        attempt = self.shop.attempt(task, number)
        attempt = replaced(attempt, executor="kubernetes", external_name=self.executor.name_for(attempt.key))
        spec.setdefault("container", pod_document())
        spec.setdefault("kind", "python")
        order = self.shop.order(attempt, **{"argv": [], "to_file": None, "from_file": None, **spec})
        return replaced(order, is_new=True)

    def plain(self, task: str = "work", **spec: Any) -> LaunchOrder:
        return self.order(task, kind="container", **spec)

    def group(self, size: int, parallelism: int = 3) -> GroupOrder:
        made = group_order(self.shop, self.executor, size, parallelism, "true")
        orders = []
        for order in made.orders:
            spec = {**self.shop.spec(order.attempt), "kind": "command", "argv": ["true"], "container": pod_document()}
            signed = sign(spec, order.attempt.token_hash)
            self.shop.objects.put_specs([(str(order.attempt.key), signed)])
            orders.append(replaced(order, spec=signed, is_new=True))
        return replaced(made, orders=tuple(orders))

    def on_status(self, key: AttemptKey, _status: object = None, /) -> None:
        self.reported.append(key)

    async def start(self, *orders: LaunchOrder) -> list[Any]:
        return list(await self.executor.start(orders, self.on_status))

    async def started(self, order: LaunchOrder) -> str:
        """Start it and wait for its Job, which is returned by name."""
        assert await self.start(order) == []
        await self.until(lambda: bool(self.cluster.jobs))
        return next(iter(self.cluster.jobs))

    async def presence(self, attempt: Attempt) -> Presence:
        (found,) = await self.executor.find([attempt])
        return found

    def win_gate(self, attempt: Attempt, pod: str) -> None:
        """As the worker in the pod, or `ork-worker begin`, does."""
        assert StandIn(self.shop.objects, attempt).win_gate({"pod": pod})

    def status(self, attempt: Attempt) -> dict[str, Any]:
        return StandIn(self.shop.objects, attempt).status() or {}

    async def ended(self, attempt: Attempt) -> dict[str, Any]:
        """The last status, when it is written."""
        await self.until(lambda: self.status(attempt).get("state") in ("success", "failed", "timed_out", "stopped"))
        return self.status(attempt)

    async def until(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < end
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        await self.executor.close()
