"""Where tasks run and how large they may be. Workflows refer to these settings by name, and cannot define them."""

from __future__ import annotations

from enum import StrEnum

from ork.model.kubernetes import PodSettings
from ork.model.record import Record

# Prefix of the root of a version whose files are in an image: `image:/app`.
IMAGE_ROOT = "image:"


class Where(StrEnum):
    """What runs an attempt."""

    LOCAL = "local"
    DOCKER = "docker"
    CLOUDRUN = "cloudrun"
    KUBERNETES = "kubernetes"


class Pull(StrEnum):
    """When an image is pulled from its registry."""

    MISSING = "missing"  # if the engine does not have it
    ALWAYS = "always"
    NEVER = "never"


class Resources(Record):
    """CPUs and bytes of memory; None means unspecified."""

    cpu: float | None = None
    memory: int | None = None


class Mount(Record):
    """A folder or named volume of the engine's host, mounted at `target` in the container."""

    source: str
    target: str
    read_only: bool = False

    def __str__(self) -> str:
        return f"{self.source}:{self.target}" + (":ro" if self.read_only else "")


class WorkerConfig(Record):
    """One entry of workers.yaml. Fields that are None use the default of the platform. `service_account` and
    `vpc_connector` are ignored on platforms without them."""

    name: str
    where: Where | None  # None: processes run on this machine, images on the engine
    resources: Resources = Resources()
    timeout: float | None = None
    env: tuple[tuple[str, str], ...] = ()
    host: str | None = None  # the engine's address
    certificates: str | None = None
    network: str | None = None
    user: str | None = None
    read_only: bool = False
    pids: int | None = None
    capabilities: tuple[str, ...] = ()
    new_privileges: bool = False
    pull: Pull = Pull.MISSING
    volumes: tuple[Mount, ...] = ()
    image: str | None = None  # of tasks that name none; it has the project's files in its working directory
    service_account: str | None = None
    vpc_connector: str | None = None
    subnet: str | None = None
    gpu: str | None = None  # on Cloud Run the type of accelerator, on Kubernetes their number
    project: str | None = None
    region: str | None = None
    pod: PodSettings = PodSettings()


def resources_of(requested: Resources | None, config: WorkerConfig | None) -> Resources:
    """What an attempt gets: a task may request less than its config allows, not more."""
    asked, allowed = requested or Resources(), config.resources if config is not None else Resources()
    cpus = [cpu for cpu in (asked.cpu, allowed.cpu) if cpu is not None]
    memories = [memory for memory in (asked.memory, allowed.memory) if memory is not None]
    return Resources(min(cpus, default=None), min(memories, default=None))


# The config of tasks with an image if workers.yaml has none.
PLAIN_DOCKER = WorkerConfig("default", Where.DOCKER)
