"""What Cloud Run refuses in a Job, as far as its documentation says so. The fake is as strict."""

from __future__ import annotations

import re
from typing import Any

from ork.model.cloud_run import SIZES

JOB_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,47}[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9_-]{0,63}")
_CONNECTOR = re.compile(r"projects/[^/]+/locations/[^/]+/connectors/[^/]+")
_ACCOUNT = re.compile(r"[a-z0-9-]+@[a-z0-9.-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_MEMORY = re.compile(r"(\d+)(Mi|Gi)")
_LONGEST = 168 * 3600


class RefusedError(Exception):
    def __init__(self, message: str, code: int = 400, status: str = "INVALID_ARGUMENT") -> None:
        super().__init__(message)
        self.code, self.status = code, status


def check_job(job_id: str, job: Any) -> None:
    """`job` is the protobuf message of a Job."""
    if not JOB_NAME.fullmatch(job_id):
        raise RefusedError(
            f"job_id: {job_id!r} must be lower case letters, digits and hyphens, at most 49, from a letter"
        )
    if job.name or job.uid or job.etag or job.conditions or job.HasField("terminal_condition"):
        raise RefusedError("job.name and output-only fields must be empty on creation")
    for key, value in job.labels.items():
        if not _LABEL.fullmatch(key) or not _LABEL.fullmatch(value):
            raise RefusedError(f"labels: {key}={value} is not a label")
    template = job.template
    task = template.template
    if template.task_count < 1 or template.parallelism > template.task_count:
        raise RefusedError("template.parallelism must not exceed template.task_count")
    if len(task.containers) != 1 or not task.containers[0].image:
        raise RefusedError("template.template.containers: exactly one container with an image is required")
    if not 1 <= task.timeout.seconds <= _LONGEST:
        raise RefusedError(f"template.template.timeout: {task.timeout.seconds}s must be between 1s and 168h")
    if task.service_account and not _ACCOUNT.fullmatch(task.service_account):
        raise RefusedError(f"template.template.service_account: {task.service_account!r} is not an e-mail address")
    connector = task.vpc_access.connector
    if connector and not _CONNECTOR.fullmatch(connector):
        raise RefusedError(f"template.template.vpc_access.connector: {connector!r} is not a connector")
    _check_container(task.containers[0], {volume.name for volume in task.volumes})
    for volume in task.volumes:
        if volume.WhichOneof("volume_type") is None:
            raise RefusedError(f"volume {volume.name} has no source")


def _check_container(container: Any, volumes: set[str]) -> None:
    check_variables(container.env)
    for mount in container.volume_mounts:
        if mount.name not in volumes:
            raise RefusedError(f"volume_mounts: there is no volume {mount.name}")
        if not mount.mount_path.startswith("/") or mount.mount_path in ("/", "/dev", "/proc", "/sys"):
            raise RefusedError(f"volume_mounts: {mount.mount_path!r} cannot be a mount path")
    limits = dict(container.resources.limits)
    cpu, memory = limits.get("cpu", "1"), limits.get("memory", "512Mi")
    found = _MEMORY.fullmatch(memory)
    if found is None or not cpu.isdigit() or int(cpu) not in SIZES:
        raise RefusedError(f"resources.limits: cpu {cpu!r} and memory {memory!r} are not offered")
    size, (low, high) = int(found[1]) << (20 if found[2] == "Mi" else 30), SIZES[int(cpu)]
    if not low <= size <= high:
        raise RefusedError(
            f"Invalid value specified for container memory. For {cpu} CPU, memory must be between {low} and {high}."
        )


def check_variables(env: Any) -> None:
    names = [variable.name for variable in env]
    if len(set(names)) != len(names):
        raise RefusedError("env: the same variable twice")
    for name in names:
        if not _VARIABLE.fullmatch(name) or name.startswith("CLOUD_RUN_") or name == "PORT":
            raise RefusedError(f"env: {name!r} is reserved or not a name")
