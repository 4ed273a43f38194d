"""The project's `locations.yaml`, with its paths made whole."""

from __future__ import annotations

import os

from ork.definition.locations_file import load_locations
from ork.errors import DefinitionError, UsageError
from ork.model.location import Location
from ork.model.record import replaced

LOCATIONS_FILE = "locations.yaml"


def read_locations(root: str) -> dict[str, Location] | None:
    """By name; None where there is no such file: then nothing is said about locations. Mistakes are a DefinitionError."""
    path = os.path.join(root, LOCATIONS_FILE)
    try:
        with open(path, "rb") as file:
            found, problems = load_locations(file.read(), os.path.relpath(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if problems:
        raise DefinitionError(f"{LOCATIONS_FILE} has mistakes", problems)
    return {location.name: _whole(location, root) for location in found}


def _whole(location: Location, root: str) -> Location:
    if location.path is None:
        return location
    return replaced(location, path=os.path.normpath(os.path.join(root, os.path.expanduser(location.path))))
