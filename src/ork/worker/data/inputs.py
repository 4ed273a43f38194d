"""Puts stored values into the place of their references in the input of a task."""

from __future__ import annotations

import os

from ork.model.value_reference import description_in
from ork.objects.json_text import dumps
from ork.worker.data.codecs import ProjectCodecs
from ork.worker.data.decode import Incoming
from ork.worker.data.errors import InputError

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

    def file_with(self, value: Any, name: str) -> str | None:
        """The path of a file or folder with a value of a spec: of a stored value its bytes, of any other its JSON."""
        if value is None:
            return None
        found = description_in(value)
        if found is None:
            return self._written(f"{name}.json", dumps(value).encode())
        stored = self.incoming(found)
        refuse_rows(found)
        target = f"{self._folder}/{name}{extension_of_name(stored.file_name())}"
        if not os.path.exists(target):
            stored.copy_all_to(target)
        return target

    def _written(self, name: str, data: bytes) -> str:
        path = f"{self._folder}/{name}"
        try:
            os.makedirs(self._folder, exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
        except OSError as error:
            raise InputError(f"the file {name} for the task could not be written: {error.strerror}") from None
        return path

    def incoming(self, description: dict[str, Any]) -> Incoming:
        made = Incoming(self._objects, description, self._folder)
        made.codecs = self._codecs
        return made


def refuse_rows(description: dict[str, Any]) -> None:
    """InputError for a part of a table, which is no file."""
    if description["codec"] == "parquet" and "part" in description:
        table = description["object"]
        raise InputError(f"rows of the table {table} are no file: pass the whole table, or a list of tables")


def extension_of_name(name: str) -> str:
    """`.parquet` of `a/b.parquet`; empty if there is none."""
    name = name.rpartition("/")[2].lstrip(".")
    return name[name.rindex(".") :] if "." in name else ""


def as_they_were(value: Any, path: str = "") -> Any:
    """The value with every `Incoming` value read."""
    if isinstance(value, Incoming):
        return value.as_it_was(path)
    if isinstance(value, dict):
        return {name: as_they_were(member, f"{path}.{name}") for name, member in value.items()}
    return [as_they_were(item, f"{path}[{n}]") for n, item in enumerate(value)] if isinstance(value, list) else value
