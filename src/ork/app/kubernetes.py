"""Creates the executors for Kubernetes from the settings."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from ork.app.platforms import placement_of
from ork.errors import OrkError
from ork.executors.attempt_rows import AttemptOf, unknown_attempt
from ork.executors.kubernetes.api import ClusterApi
from ork.executors.kubernetes.connection import ClusterConnection, connection_to
from ork.executors.kubernetes.executor import KubernetesExecutor
from ork.executors.kubernetes.launching import Launching
from ork.model.digest import sha256
from ork.worker.supervise.stand_in import StandIn

if TYPE_CHECKING:
    from ork.model.infra import WorkerConfig
    from ork.model.kubernetes import KubernetesPlace
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.settings import Settings

_CHECK_SECONDS = 30.0


def executor_for(
    name: str,
    place: KubernetesPlace,
    settings: Settings,
    objects: AttemptDocuments,
    attempt_of: AttemptOf = unknown_attempt,
    *,
    waits: bool = False,
) -> KubernetesExecutor:
    """The executor of one namespace. UsageError if the cluster is not configured, or the extra `kubernetes` is not installed."""
    image = placement_of(settings).cluster.image
    return make_executor(
        name, connection_of(place, settings), objects, ork_image=image, attempt_of=attempt_of, waits=waits
    )


def connection_of(place: KubernetesPlace, settings: Settings) -> ClusterConnection:
    return connection_to(place, settings.environ.get("KUBECONFIG") or None)


def make_executor(
    name: str,
    connection: ClusterConnection,
    objects: AttemptDocuments,
    *,
    ork_image: str | None = None,
    attempt_of: AttemptOf = unknown_attempt,
    waits: bool = False,
    transport: Any = None,
) -> KubernetesExecutor:
    api = ClusterApi(connection, transport)
    installation = sha256(objects.url.encode()).hexdigest()[:16]
    launching = Launching(api, objects, installation, ork_image)
    return KubernetesExecutor(
        name, api, launching, partial(StandIn, objects), objects, attempt_of=attempt_of, waits=waits
    )


async def check_permissions(config: WorkerConfig, settings: Settings) -> dict[str, Any]:
    """What our identity lacks to run the config's tasks on Kubernetes: address, `ok` and message. Starts nothing."""
    from ork.app.platforms import kubernetes_document
    from ork.executors.kubernetes.access import missing_rights

    address = None
    try:
        kubernetes_document(config, settings, has_ork=True, secrets={})  # reads its pod template
        connection = connection_of(placement_of(settings).namespace(config), settings)
        address = f"{connection.server}/{connection.namespace}"
        api = ClusterApi(connection)
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                missing = await missing_rights(api)
        finally:
            await api.close()
    except OrkError as error:
        advice = f" ({error.hint})" if error.hint else ""
        return {"address": address, "ok": False, "message": error.message + advice}
    except TimeoutError:
        return {"address": address, "ok": False, "message": f"no answer within {_CHECK_SECONDS:g} s"}
    where = f"in namespace {connection.namespace}"
    words = f"missing rights {where}: {', '.join(missing)}" if missing else f"rights complete {where}"
    return {"address": address, "ok": not missing, "message": words}
