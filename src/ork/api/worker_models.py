"""Worker configs, as the API describes them."""

from __future__ import annotations

from ork.api.models import Response


class WorkerConfig(Response):
    name: str
    where: str | None
    cpu: float | None
    memory: int | None
    pids: int | None
    timeout: float | None
    env: list[str]
    host: str | None
    network: str | None
    user: str | None
    read_only: bool
    capabilities: list[str]
    new_privileges: bool
    pull: str
    volumes: list[str]
    service_account: str | None
    vpc_connector: str | None
    image: str | None
    subnet: str | None
    gpu: str | None
    project: str | None
    region: str | None
    namespace: str | None
    context: str | None
    node_selector: dict[str, str]
    tolerations: list[dict[str, str | int]]
    image_pull_secrets: list[str]
    labels: dict[str, str]
    pod_template: str | None


class WorkerConfigPage(Response):
    workers: list[WorkerConfig]
    cursor: str | None
