"""What a spec says about the container its attempt runs in: taken from the worker config, and from nowhere else."""

from __future__ import annotations

from typing import Any

from ork.compile.project import import_paths
from ork.model.infra import IMAGE_ROOT, PLAIN_DOCKER, Resources, WorkerConfig
from ork.model.workflow import TaskSpec, Version

DEFAULT_PIDS = 4096  # enough for a database or a build, too few for a fork bomb


def container_document(spec: TaskSpec, config: WorkerConfig | None) -> dict[str, Any] | None:
    """None for a task without an image. A task may ask for less than the config gives, never for more."""
    if spec.image is None:
        return None
    config = config or PLAIN_DOCKER
    asked = spec.resources or Resources()
    return {
        "image": spec.image,
        "worker": config.name,
        "host": config.host,
        "certificates": config.certificates,
        "network": config.network,
        "user": config.user,
        "read_only": config.read_only,
        "pull": str(config.pull),
        "cpu": least(asked.cpu, config.resources.cpu),
        "memory": least(asked.memory, config.resources.memory),
        "pids": config.pids or DEFAULT_PIDS,
        "capabilities": list(config.capabilities),
        "new_privileges": config.new_privileges,
        "volumes": [str(mount) for mount in config.volumes],
    }


def local_limits(spec: TaskSpec, config: WorkerConfig | None) -> dict[str, Any] | None:
    """How large the process of a task without an image may be; None if nothing limits it."""
    if spec.image is not None:
        return None
    asked, allowed = spec.resources or Resources(), config.resources if config is not None else Resources()
    cpu, memory = least(asked.cpu, allowed.cpu), least(asked.memory, allowed.memory)
    if cpu is None and memory is None:
        return None
    return {"cpu": cpu, "memory": memory, "worker": config.name if config is not None else None}


def root_in_place(root: str, spec: TaskSpec) -> str:
    """Where the task's files are, seen from its process; in an image that does not say, its working directory."""
    if spec.image is None:
        return root
    return root.removeprefix(IMAGE_ROOT) if root.startswith(IMAGE_ROOT) else "."


def paths_in_place(version: Version, spec: TaskSpec) -> tuple[str, ...]:
    """The project's folders that the task imports from, seen from its process. The working directory of an image that
    the workflow's files are not taken from counts as the project's folder."""
    root, workflow = root_in_place(version.root, spec), version.workflow
    is_other_image = spec.image is not None and root == "."
    return import_paths(root, None if is_other_image else workflow.project, workflow.pythonpath)


def least(*amounts: float | None) -> float | None:
    return min((amount for amount in amounts if amount is not None), default=None)
