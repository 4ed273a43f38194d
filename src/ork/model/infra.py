"""Where tasks run and how large they may be: what a workflow may name, and never set."""

from __future__ import annotations

from enum import StrEnum

from ork.model.record import Record

# What the root of a version begins with whose files are in an image: `image:/app`.
IMAGE_ROOT = "image:"


class Place(StrEnum):
    """What runs an attempt."""

    LOCAL = "local"
    DOCKER = "docker"
    CLOUDRUN = "cloudrun"
    KUBERNETES = "kubernetes"


class Pull(StrEnum):
    """When an image is asked for at its registry."""

    MISSING = "missing"  # when the engine does not have it
    ALWAYS = "always"
    NEVER = "never"


class Resources(Record):
    """Processors and bytes of memory; None is not said."""

    cpu: float | None = None
    memory: int | None = None


class Mount(Record):
    """A folder or named volume of the engine's machine, seen at `target` in the container."""

    source: str
    target: str
    read_only: bool = False

    def __str__(self) -> str:
        return f"{self.source}:{self.target}" + (":ro" if self.read_only else "")


class WorkerConfig(Record):
    """One entry of workers.yaml. What it does not say is as the place has it. `service_account` and `vpc_connector` are
    for places that know them; others ignore them."""

    name: str
    where: Place | None  # None: where the installation runs such tasks, processes here and images on the engine
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
    service_account: str | None = None
    vpc_connector: str | None = None


# What holds for tasks with an image where workers.yaml says nothing.
PLAIN_DOCKER = WorkerConfig("default", Place.DOCKER)
