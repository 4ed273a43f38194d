"""A stored value that is not JSON, seen by the process that reads it."""

from __future__ import annotations

import os

from ork.errors import ObjectsError
from ork.objects.json_text import stored_json
from ork.objects.layout import PART_BYTES
from ork.objects.references import file_reference, task_of
from ork.worker.data.media_types import extension_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from ork.objects.attempt_documents import AttemptDocuments

_LIST_LIMIT = 256 << 20


class StoredValue:
    """`folder` is where copies go: the inputs folder of the attempt, which its supervisor removes."""

    def __init__(self, objects: AttemptDocuments, description: dict[str, Any], folder: str) -> None:
        self._objects = objects
        self.description = description
        self._folder = folder
        self._files: list[dict[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"<{self.description.get('type')}, {self.description.get('size'):,} bytes>"

    @property
    def reference(self) -> str:
        return str(self.description["object"])

    @property
    def is_folder(self) -> bool:
        return self.description["codec"] == "folder" and "part" not in self.description

    # ── its bytes ────────────────────────────────────────────────────────────────────────────────

    def library_path(self) -> str:
        """A file with the value's bytes that a library may read, but must not change."""
        reference, size = self.object_and_size()
        path = self._objects.value_path(reference)
        if path is None:
            return self._downloaded(reference, size, self._place("values", _as_name(reference)))
        if not os.path.exists(path):
            raise ObjectsError(f"the value {reference} is no longer in the object store")
        return path

    def copied(self) -> str:
        """The path of a copy that belongs to the task: a file, or a folder with all its files."""
        return self.copy_all_to(self._place(self._own_folder(), self.file_name()))

    def copy_all_to(self, target: str) -> str:
        """Write the file, or the folder with all its files, to this path."""
        if not self.is_folder:
            return self.copy_to(target)
        os.makedirs(target, exist_ok=True)
        for part in self.parts():
            part.copy_to(os.path.join(target, part.file_name()))
        return target

    def copy_to(self, target: str) -> str:
        """Write the bytes of a file to this path."""
        reference, size = self.object_and_size()
        os.makedirs(os.path.dirname(target), exist_ok=True)
        path = self._objects.value_path(reference)
        if path is None:
            return self._downloaded(reference, size, target)
        try:
            _copy(path, target)
        except FileNotFoundError:
            raise ObjectsError(f"the value {reference} is no longer in the object store") from None
        except OSError as error:
            raise ObjectsError(f"cannot copy a value to {target}: {error.strerror}") from error
        return target

    def opened(self) -> BinaryIO:
        return open(self.library_path(), "rb")

    def read(self) -> bytes:
        reference, size = self.object_and_size()
        data = self._objects.read_value(reference, 0, size)
        if len(data) != size:
            raise ObjectsError(f"the value {reference} is no longer in the object store")
        return data

    def object_and_size(self) -> tuple[str, int]:
        """The object that has the bytes, and its size."""
        if self.description["codec"] == "folder":
            if "part" not in self.description:
                raise ObjectsError(f"{self.file_name()} is a folder, not a file")
            entry = self._entry()
            return file_reference(self.reference, self.description["part"]), int(entry["size"])
        return self.reference, int(self.description["size"])

    def _downloaded(self, reference: str, size: int, target: str) -> str:
        """Parts are fetched several at a time, and written where they belong."""
        from ork.objects.value_parts import few_threads

        if os.path.exists(target):
            return target
        os.makedirs(os.path.dirname(target), exist_ok=True)
        unfinished = f"{target}.part-{os.urandom(4).hex()}"

        def fetch(start: int) -> None:
            data = self._objects.read_value(reference, start, min(PART_BYTES, size - start))
            if len(data) != min(PART_BYTES, size - start):
                raise ObjectsError(f"the value {reference} is no longer in the object store")
            os.pwrite(descriptor, data, start)

        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                if size <= PART_BYTES:
                    fetch(0)
                else:
                    with few_threads() as threads:
                        for _ in threads.map(fetch, range(0, size, PART_BYTES)):
                            pass
            finally:
                os.close(descriptor)
            os.replace(unfinished, target)
        except OSError as error:
            raise ObjectsError(f"cannot copy a value to {target}: {error.strerror}") from error
        return target

    # ── a folder ─────────────────────────────────────────────────────────────────────────────────

    def parts(self) -> list[StoredValue]:
        """The files of a folder."""
        count = len(self._listed())
        found = [
            StoredValue(self._objects, {**self.description, "part": number}, self._folder) for number in range(count)
        ]
        for each in found:
            each._files = self._files
        return found

    def _listed(self) -> list[dict[str, Any]]:
        files: list[dict[str, Any]] | None = self._files
        if files is None:
            data = self._objects.read_value(self.reference)
            if not data:
                raise ObjectsError(f"the value {self.reference} is no longer in the object store")
            files = self._files = list(stored_json(data, max_size=_LIST_LIMIT)["files"])
            for entry in files:
                if not is_inside(entry["name"]):
                    raise ObjectsError(
                        f"the folder {self.reference} has a file {entry['name'][:100]!r}, which is outside of it"
                    )
        return files

    def _entry(self) -> dict[str, Any]:
        number: int = self.description["part"]
        return self._listed()[number]

    # ── names ────────────────────────────────────────────────────────────────────────────────────

    def file_name(self) -> str:
        """The name that a file with this value has; of a file in a folder, its path there."""
        if self.description["codec"] == "folder" and "part" in self.description:
            return str(self._entry()["name"])
        name = os.path.basename(str(self.description.get("name") or ""))
        if name and is_inside(name):
            return name
        return task_of(self.reference) + extension_of(self.description["media_type"])

    def media_type(self) -> str:
        if self.description["codec"] == "folder" and "part" in self.description:
            from ork.worker.data.media_types import media_type_of

            return media_type_of(self.file_name())
        return str(self.description["media_type"])

    def _own_folder(self) -> str:
        """Of copies of this value: its object's name, which no other value has."""
        return _as_name(self.reference)

    def _place(self, *names: str) -> str:
        return os.path.join(self._folder, *names)


def is_inside(name: str) -> bool:
    """Whether a path stays in the folder that it is seen from."""
    return bool(name) and "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))


def _as_name(reference: str) -> str:
    return reference.partition("/")[2].replace("/", ".")


def _copy(source: str, target: str) -> None:
    """In the kernel; on some disks no bytes are copied at all."""
    with open(source, "rb") as given, open(target, "wb") as made:
        rest = os.fstat(given.fileno()).st_size
        try:
            while rest > 0:
                done = os.copy_file_range(given.fileno(), made.fileno(), rest)
                if not done:
                    break
                rest -= done
            return
        except (OSError, AttributeError):
            from shutil import copyfileobj

            given.seek(0)
            made.seek(0)
            made.truncate()
            copyfileobj(given, made, 1 << 22)
