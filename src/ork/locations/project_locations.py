"""Reads the project's `locations.yaml` and resolves its paths."""

from __future__ import annotations

import os

from ork.definition.locations_file import load_locations
from ork.definition.problems import Problem
from ork.definition.yaml_tree import MAX_BYTES
from ork.errors import DefinitionError, UsageError
from ork.model.location import Location
from ork.model.record import replaced
from ork.objects.regular import read_regular

LOCATIONS_FILE = "locations.yaml"


def read_locations(root: str) -> dict[str, Location] | None:
    """Locations by name; None without the file. Raises DefinitionError for mistakes."""
    read = valid_locations(root)
    if read is not None and read[1]:
        raise DefinitionError(f"{LOCATIONS_FILE} has errors", read[1])
    return None if read is None else read[0]


def valid_locations(root: str) -> tuple[dict[str, Location], tuple[Problem, ...]] | None:
    """Valid locations by name, and the problems; None without the file."""
    path = os.path.join(root, LOCATIONS_FILE)
    try:
        found, problems = load_locations(read_regular(path, MAX_BYTES + 1), os.path.relpath(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return {location.name: _resolved(location, root) for location in found}, problems


def _resolved(location: Location, root: str) -> Location:
    if location.path is None:
        return location
    return replaced(location, path=os.path.normpath(os.path.join(root, os.path.expanduser(location.path))))
