"""Files for an image without a worker: named here, and copied into the container before it starts."""

from __future__ import annotations

from ork.model.value_reference import FILES_IN_IMAGE, description_in
from ork.objects.json_text import dumps
from ork.worker.data.inputs import InputValues, extension_of_name, refuse_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments


class ContainerInputs(InputValues):
    """`files` gets path below the folder, size, and reference or bytes of each file."""

    def __init__(self, objects: AttemptDocuments, files: dict[str, tuple[str, int, str | bytes]]) -> None:
        super().__init__(objects, FILES_IN_IMAGE, None)
        self._files = files

    def file_with(self, value: Any, name: str) -> str | None:
        if value is None:
            return None
        found = description_in(value)
        if found is None:
            data = dumps(value).encode()
            return self._add(f"{name}.json", len(data), data)
        refuse_rows(found)
        stored = self.incoming(found)
        path = name + extension_of_name(stored.file_name())
        if not stored.is_folder:
            reference, size = stored.object_and_size()
            return self._add(path, size, reference)
        for part in stored.parts():
            reference, size = part.object_and_size()
            self._add(f"{path}/{part.file_name()}", size, reference)
        return f"{FILES_IN_IMAGE}/{path}"

    def _add(self, path: str, size: int, source: str | bytes) -> str:
        self._files[path] = path, size, source
        return f"{FILES_IN_IMAGE}/{path}"
