"""Worker configs as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ork.model.infra import WorkerConfig


def worker_json(config: WorkerConfig) -> dict[str, Any]:
    """A worker config. Environment variables are listed by name only, because values may be confidential."""
    return {
        "name": config.name,
        "where": None if config.where is None else str(config.where),
        "cpu": config.resources.cpu,
        "memory": config.resources.memory,
        "pids": config.pids,
        "timeout": config.timeout,
        "env": [name for name, _ in config.env],
        "host": config.host,
        "network": config.network,
        "user": config.user,
        "read_only": config.read_only,
        "capabilities": list(config.capabilities),
        "new_privileges": config.new_privileges,
        "pull": str(config.pull),
        "volumes": [str(mount) for mount in config.volumes],
        "image": config.image,
        "service_account": config.service_account,
        "vpc_connector": config.vpc_connector,
        "subnet": config.subnet,
        "gpu": config.gpu,
        "project": config.project,
        "region": config.region,
        "namespace": config.pod.namespace,
        "context": config.pod.context,
        "node_selector": dict(config.pod.node_selector),
        "tolerations": [each.manifest() for each in config.pod.tolerations],
        "image_pull_secrets": list(config.pod.image_pull_secrets),
        "labels": dict(config.pod.labels),
        "pod_template": config.pod.pod_template,
    }


def workers_json(configs: Mapping[str, WorkerConfig]) -> list[dict[str, Any]]:
    return [worker_json(configs[name]) for name in sorted(configs)]
