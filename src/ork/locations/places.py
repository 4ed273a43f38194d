"""From what locations.yaml says to a place that can be looked into."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ork.locations.folder import Folder
from ork.locations.place import Place
from ork.model.location import Location


class Places:
    """What all locations of a project share."""

    def __init__(self, root: str, cache_dir: str, environ: Mapping[str, str]) -> None:
        self._project = os.path.join(root, "ork.yaml")
        self._cache_dir = cache_dir
        self._environ = environ

    def of(self, location: Location) -> Place:
        assert location.path is not None
        own = os.path.join(location.path, "ork.yaml")
        project = None if os.path.exists(own) else self._project
        return Folder(location.path, project=project, cache_dir=self._cache_dir, environ=self._environ)
