"""How to reach a cluster: from the kubeconfig, or from the pod that this process runs in."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any

from ork.errors import UsageError
from ork.model.digest import sha256
from ork.model.record import Record

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

    from ork.model.kubernetes import KubernetesPlace

_HINT = "set KUBECONFIG or `context`, or run the scheduler in a pod with a service account"


class ClusterConnection(Record):
    """`identity` is the same for all who reach this cluster: a hash of its certificate authority, or of its address if it has
    none."""

    config: Any
    namespace: str
    identity: str
    server: str


def connection_to(place: KubernetesPlace, kubeconfig: str | None = None) -> ClusterConnection:
    """UsageError if there is no such context, or no configuration at all, or the extra `kubernetes` is not installed."""
    try:
        from lightkube.config.kubeconfig import KubeConfig
        from lightkube.core.exceptions import ConfigError
    except ImportError as error:
        hint = "pip install 'ork-orchestrator[kubernetes]'"
        raise UsageError(f"Kubernetes needs a package that is not installed: {error.name}", hint=hint) from None
    try:
        # A context is one of a kubeconfig; without one, the pod's own identity comes first, as for kubectl.
        if kubeconfig is not None:
            found = KubeConfig.from_file(kubeconfig)
        elif place.context is not None:
            found = KubeConfig.from_file("~/.kube/config")
        else:
            found = KubeConfig.from_env()
        config = found.get(place.context)
    except (ConfigError, KeyError, OSError, ValueError) as error:
        raise UsageError(f"Kubernetes: no configuration: {_shown(error)}", hint=_HINT) from None
    if config is None:
        raise UsageError("Kubernetes: the kubeconfig names no current context", hint=_HINT)
    if config.user is None:
        from lightkube.config.models import User

        config = config._replace(user=User())
    return ClusterConnection(
        config, place.namespace or config.namespace, _identity(config), str(config.cluster.server).rstrip("/")
    )


def _identity(config: SingleConfig) -> str:
    cluster = config.cluster
    known = cluster.server.rstrip("/").encode()
    if cluster.certificate_auth_data:
        known = base64.b64decode(cluster.certificate_auth_data)
    elif cluster.certificate_auth:
        path = os.fspath(config.abs_file(cluster.certificate_auth))
        try:
            with open(path, "rb") as file:
                known = file.read()
        except OSError as error:
            raise UsageError(f"Kubernetes: {path} cannot be read: {error.strerror}") from None
    return sha256(known.strip()).hexdigest()[:12]


def _shown(error: Exception) -> str:
    return f"there is no entry {error}" if isinstance(error, KeyError) else str(error)
