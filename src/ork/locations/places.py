"""From what locations.yaml says to a place that can be looked into."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ork.locations.folder import Folder
from ork.locations.place import Place
from ork.model.digest import sha256
from ork.model.infra import Where, WorkerConfig
from ork.model.location import Location


class Places(NamedTuple):
    """What all locations of a project share. `key` is the installation's own: it tells its containers from others'."""

    root: str
    cache_dir: str
    environ: Mapping[str, str]
    key: bytes
    workers: Mapping[str, WorkerConfig]
    docker_host: str | None
    docker_certificates: str | None
    docker_config: str
    task_user: str | None = None

    def of(self, location: Location) -> Place:
        return self._image(location) if location.path is None else self._folder(location.path)

    def _folder(self, path: str) -> Place:
        is_project = os.path.exists(os.path.join(path, "ork.yaml"))
        project = os.path.join(path if is_project else self.root, "ork.yaml")
        return Folder(path, project=project, cache_dir=self.cache_dir, environ=self.environ, user=self.task_user)

    def _image(self, location: Location) -> Place:
        """Looked into on the engine that runs tasks which name no worker config."""
        from ork.executors.docker.address import engine_address
        from ork.executors.docker.engine import Engine
        from ork.locations.image import Image

        host, certificates = self.docker_host, self.docker_certificates
        default = self.workers.get("default")
        if default is not None and default.where is Where.DOCKER and default.host is not None:
            host, certificates = default.host, default.certificates
        mark = sha256(self.key + location.name.encode()).hexdigest()[:16]
        engine = Engine(engine_address(host, certificates))
        return Image(location, engine, f"ork-parse-{mark}", self.docker_config, self.workers)
