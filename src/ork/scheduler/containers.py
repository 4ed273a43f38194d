"""The container settings of a spec. They come only from the worker config."""

from __future__ import annotations

from typing import Any

from ork.compile.project import import_paths
from ork.model.infra import IMAGE_ROOT, PLAIN_DOCKER, Resources, WorkerConfig
from ork.model.workflow import TaskSpec, Version

DEFAULT_PIDS = 4096  # enough for a database or a build, too few for a fork bomb


def container_document(spec: TaskSpec, config: WorkerConfig | None) -> dict[str, Any] | None:
    """Container settings, or None for a task without an image. A task may request less than the config allows, not more."""
    if spec.image is None:
        return None
    config = config or PLAIN_DOCKER
    requested = spec.resources or Resources()
    return {
        "image": spec.image,
        "worker": config.name,
        "host": config.host,
        "certificates": config.certificates,
        "network": config.network,
        "user": config.user,
        "read_only": config.read_only,
        "pull": str(config.pull),
        "cpu": least(requested.cpu, config.resources.cpu),
        "memory": least(requested.memory, config.resources.memory),
        "pids": config.pids or DEFAULT_PIDS,
        "capabilities": list(config.capabilities),
        "new_privileges": config.new_privileges,
        "volumes": [str(mount) for mount in config.volumes],
    }


def local_limits(spec: TaskSpec, config: WorkerConfig | None) -> dict[str, Any] | None:
    """CPU and memory limits of a task without an image; None if it has none."""
    if spec.image is not None:
        return None
    requested, allowed = spec.resources or Resources(), config.resources if config is not None else Resources()
    cpu, memory = least(requested.cpu, allowed.cpu), least(requested.memory, allowed.memory)
    if cpu is None and memory is None:
        return None
    return {"cpu": cpu, "memory": memory, "worker": config.name if config is not None else None}


def root_in_place(root: str, spec: TaskSpec) -> str:
    """The project folder as the task's process sees it. In an image without a known folder: its working directory."""
    if spec.image is None:
        return root
    return root.removeprefix(IMAGE_ROOT) if root.startswith(IMAGE_ROOT) else "."


def paths_in_place(version: Version, spec: TaskSpec) -> tuple[str, ...]:
    """The import folders as the task's process sees them. If the workflow's files do not come from the task's image, the
    image's working directory counts as the project folder."""
    root, workflow = root_in_place(version.root, spec), version.workflow
    is_other_image = spec.image is not None and root == "."
    return import_paths(root, None if is_other_image else workflow.project, workflow.pythonpath)


def least(*amounts: float | None) -> float | None:
    return min((amount for amount in amounts if amount is not None), default=None)
