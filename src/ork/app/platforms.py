"""Where the tasks of a project run, from the settings: which platforms it uses, and what their specs say about each."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ork.errors import DefinitionError

if TYPE_CHECKING:
    from ork.compile.placement import Placement
    from ork.model.infra import WorkerConfig
    from ork.model.workflow import CompiledWorkflow, TaskSpec, Version
    from ork.settings import Settings

CLOUDRUN, KUBERNETES = "cloudrun", "kubernetes"


def uses_cloud_run(settings: Settings) -> bool:
    """Whether tasks of the project may run on Cloud Run. Imports nothing for projects that do not."""
    return settings.project is not None and (settings.project.gcp is not None or _names(settings, CLOUDRUN))


def uses_kubernetes(settings: Settings) -> bool:
    """Whether tasks of the project may run on Kubernetes."""
    return settings.project is not None and _names(settings, KUBERNETES)


def _names(settings: Settings, platform: str) -> bool:
    wheres = (settings.project_or_default.default_where, *(each.where for each in settings.workers.values()))
    return platform in wheres


def placement_of(settings: Settings) -> Placement:
    from ork.compile.placement import Placement

    return Placement(settings.project_or_default)


def cloud_run_document(config: WorkerConfig, *, has_ork: bool, secrets: dict[str, str]) -> dict[str, Any]:
    """What the spec of a task on Cloud Run says about it."""
    return {
        "service_account": config.service_account,
        "vpc_connector": config.vpc_connector,
        "network": config.network,
        "subnet": config.subnet,
        "gpu": config.gpu,
        "has_ork": has_ork,
        "secrets": secrets,
    }


def kubernetes_document(
    config: WorkerConfig, settings: Settings, *, has_ork: bool, secrets: dict[str, str]
) -> dict[str, Any]:
    """What the spec of a task on Kubernetes says about its pod. DefinitionError if the pod template cannot be used."""
    pod = config.pod
    return {
        "service_account": config.service_account,
        "gpu": config.gpu,
        "node_selector": dict(pod.node_selector),
        "tolerations": [each.manifest() for each in pod.tolerations],
        "image_pull_secrets": list(pod.image_pull_secrets),
        "labels": dict(pod.labels),
        "env": dict(config.env),
        "objects_secret": placement_of(settings).cluster.objects_secret,
        "template": None if pod.pod_template is None else _pod_template(settings.root, pod.pod_template),
        "has_ork": has_ork,
        "secrets": secrets,
    }


def _pod_template(root: str, path: str) -> dict[str, Any]:
    from ork.definition.pod_template import MAX_BYTES, parse_pod_template
    from ork.objects.regular import read_regular

    try:
        data = read_regular(os.path.join(root, path), MAX_BYTES + 1)
    except OSError as error:
        raise DefinitionError(f"pod_template {path} cannot be read: {error.strerror}") from None
    return parse_pod_template(data, path)


def default_config(settings: Settings) -> WorkerConfig:
    """Of what runs in the image of a code location, and has no worker config."""
    from ork.model.infra import WorkerConfig

    return settings.workers.get("default") or WorkerConfig("default", None)


def placement_options(settings: Settings) -> dict[str, Any]:
    """Options of a scheduler: `placed` and `platform` (see `SchedulerOptions`)."""
    if not (uses_cloud_run(settings) or uses_kubernetes(settings)):
        return {}
    from ork.model.cloud_run import is_on_cloud_run
    from ork.model.infra import IMAGE_ROOT
    from ork.model.kubernetes import is_on_kubernetes
    from ork.model.secret import named_secrets
    from ork.scheduler.spec_secrets import SECRET_PREFIX

    placement, secrets = placement_of(settings), settings.secrets
    project = placement.usual.project if placement.usual is not None else None

    def platform(spec: TaskSpec, version: Version) -> dict[str, Any] | None:
        if not (is_on_cloud_run(spec.executor) or is_on_kubernetes(spec.executor)):
            return None
        problem = placement.problem(spec)
        if problem is not None:
            raise DefinitionError(f"{problem[0]}: {problem[1]}")
        config = placement.config(spec) or default_config(settings)
        in_location = version.root.startswith(IMAGE_ROOT) and (version.source or "").startswith(f"{spec.image}:")
        named, workflow = named_secrets(spec), version.workflow.name
        if is_on_kubernetes(spec.executor):
            entries = {SECRET_PREFIX + name: secrets.entry(name, workflow) for name in named}
            return {"kubernetes": kubernetes_document(config, settings, has_ork=in_location, secrets=entries)}
        references = {SECRET_PREFIX + name: secrets.reference(name, workflow, project) for name in named}
        return {"cloud_run": cloud_run_document(config, has_ork=in_location, secrets=references)}

    placed: Callable[[CompiledWorkflow], CompiledWorkflow] = placement.workflow
    return {"placed": placed, "platform": platform}
