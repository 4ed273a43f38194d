"""Puts stored values into the place of their references in the input of a task."""

from __future__ import annotations

from ork.model.value_reference import description_in
from ork.worker.data.codecs import ProjectCodecs
from ork.worker.data.decode import Incoming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments


class InputValues:
    """The values of one attempt's input. Copies of files go to `folder`."""

    def __init__(self, objects: AttemptDocuments, folder: str, codecs: dict[str, str] | None) -> None:
        self._objects = objects
        self._folder = folder
        self._codecs = ProjectCodecs(codecs) if codecs else None

    def in_place(self, value: Any) -> Any:
        """The JSON value with `Incoming` values instead of references."""
        found = description_in(value)
        if found is not None:
            return self.incoming(found)
        if isinstance(value, dict):
            return {name: self.in_place(member) for name, member in value.items()}
        return [self.in_place(item) for item in value] if isinstance(value, list) else value

    def incoming(self, description: dict[str, Any]) -> Incoming:
        made = Incoming(self._objects, description, self._folder)
        made.codecs = self._codecs
        return made


def as_they_were(value: Any, path: str = "") -> Any:
    """The value with every `Incoming` value read."""
    if isinstance(value, Incoming):
        return value.as_it_was(path)
    if isinstance(value, dict):
        return {name: as_they_were(member, f"{path}.{name}") for name, member in value.items()}
    return [as_they_were(item, f"{path}[{n}]") for n, item in enumerate(value)] if isinstance(value, list) else value
