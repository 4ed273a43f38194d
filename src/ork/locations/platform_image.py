"""An image as a location that is read on a platform, for schedulers without a container engine beside them."""

from __future__ import annotations

from collections.abc import Mapping

from ork.executors.docker.names import read_image_name
from ork.locations.document import FoundWorkflow
from ork.locations.image import registry_digest
from ork.locations.pinning import pinned_version
from ork.locations.source import ParseImage, SourceReading
from ork.model.infra import WorkerConfig
from ork.model.location import Location
from ork.model.workflow import Version


class PlatformImageSource:
    """`parse_image` runs `ork-parse` there. `config_dir` is the folder of the credentials of `docker login`."""

    def __init__(
        self, location: Location, parse_image: ParseImage, config_dir: str, workers: Mapping[str, WorkerConfig]
    ) -> None:
        assert location.image is not None
        self._name = read_image_name(location.image)
        self._parse_image = parse_image
        self._config_dir = config_dir
        self._workers = workers

    async def digest(self) -> str:
        return await registry_digest(self._name, self._config_dir)

    async def parse(self, digest: str) -> SourceReading:
        return await self._parse_image(self._name.at(digest))

    def version(self, found: FoundWorkflow, digest: str) -> Version:
        return pinned_version(found, self._name.at(digest), self._workers)
