"""Creates the source of each location in locations.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ork.locations.folder import FolderSource
from ork.locations.source import ParseImage, WorkflowSource
from ork.model.digest import sha256
from ork.model.infra import Where, WorkerConfig
from ork.model.location import Location, Lookup


class WorkflowSources(NamedTuple):
    """Settings shared by all locations of a project. `key` is the installation's: it distinguishes its containers from
    others."""

    root: str
    cache_dir: str
    environ: Mapping[str, str]
    key: bytes
    workers: Mapping[str, WorkerConfig]
    docker_host: str | None
    docker_certificates: str | None
    docker_config: str
    task_user: str | None = None
    parse_image: ParseImage | None = None  # runs `ork-parse` on a platform; None: on a container engine

    def of(self, location: Location) -> WorkflowSource:
        return self._image(location) if location.path is None else self._folder(location.path)

    def _folder(self, path: str) -> WorkflowSource:
        is_project = os.path.exists(os.path.join(path, "ork.yaml"))
        project = os.path.join(path if is_project else self.root, "ork.yaml")
        return FolderSource(path, project=project, cache_dir=self.cache_dir, environ=self.environ, user=self.task_user)

    def _image(self, location: Location) -> WorkflowSource:
        """Read on the platform or engine that runs tasks without a worker config."""
        if self.parse_image is not None and location.pull is not Lookup.NEVER:
            from ork.locations.platform_image import PlatformImageSource

            return PlatformImageSource(location, self.parse_image, self.docker_config, self.workers)
        from ork.executors.docker.address import engine_address
        from ork.executors.docker.engine import Engine
        from ork.locations.image import ImageSource

        host, certificates = self.docker_host, self.docker_certificates
        default = self.workers.get("default")
        if default is not None and default.where is Where.DOCKER and default.host is not None:
            host, certificates = default.host, default.certificates
        mark = sha256(self.key + location.name.encode()).hexdigest()[:16]
        engine = Engine(engine_address(host, certificates))
        return ImageSource(location, engine, f"ork-parse-{mark}", self.docker_config, self.workers)
