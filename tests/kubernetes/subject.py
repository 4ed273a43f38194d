"""Executors on a real cluster, as a scheduler makes them, and orders for them. Pods share folders of this machine by a pod template."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ork.app.kubernetes import make_executor
from ork.executors.executor import Executor, GroupOrder
from ork.executors.kubernetes.connection import connection_to
from ork.executors.kubernetes.executor import KubernetesExecutor
from ork.model.kubernetes import KubernetesPlace
from ork.model.record import replaced
from ork.objects import documents as documents_module
from ork.objects.attempt_documents import AttemptDocuments
from tests.cloud.documents import group_order
from tests.integration.workshop import Workshop
from tests.unit.executors.kubernetes_subject import pod_document


def executor_on(
    kubeconfig: Path, namespace: str, documents: AttemptDocuments, ork_image: str | None = None, **options: Any
) -> KubernetesExecutor:
    connection = connection_to(KubernetesPlace(None, namespace), str(kubeconfig))
    return make_executor("kubernetes", connection, documents, ork_image=ork_image, **options)


def shared_folders(*folders: Path) -> dict[str, Any]:
    """A pod template by which the program, and what is beside it, sees these folders of this machine, at the same place."""
    names = {f"shared-{number}": str(folder) for number, folder in enumerate(folders)}
    mounts = [{"name": name, "mountPath": path} for name, path in names.items()]
    volumes = [{"name": name, "hostPath": {"path": path}} for name, path in names.items()]
    containers = [{"name": name, "volumeMounts": mounts} for name in ("main", "ork-begin", "ork-upload")]
    return {
        "metadata": {},
        "spec": {"volumes": volumes, "containers": containers[:1], "initContainers": containers[1:]},
    }


def container_on(image: str, *folders: Path, **changes: Any) -> dict[str, Any]:
    """`container` of a spec whose pod shares these folders."""
    return pod_document(image, **{"template": shared_folders(*folders), **changes})


def group_on(
    shop: Workshop, executor: Executor, size: int, parallelism: int, script: str, container: dict[str, Any]
) -> GroupOrder:
    """As `group_order`, for pods."""
    made = group_order(shop, executor, size, parallelism, script)
    orders = []
    for order in made.orders:
        own = {"kind": "command", "argv": ["sh", "-c", script.format(name=order.attempt.key)], "container": container}
        spec = {**shop.spec(order.attempt), **own, "news": None}
        signed = documents_module.sign(spec, order.attempt.token_hash)
        shop.objects.put_specs([(str(order.attempt.key), signed)])
        orders.append(replaced(order, spec=signed))
    return replaced(made, orders=tuple(orders))


def pods_of(cluster: Any, namespace: str) -> Sequence[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return found


def jobs_of(cluster: Any, namespace: str) -> Sequence[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.request("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"]
    return found
