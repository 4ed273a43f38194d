"""Where a snapshot is written: a folder, or a bucket behind a URL."""

from __future__ import annotations

import mimetypes
import os
import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ork.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from ork.objects.buckets.documents import BucketDocuments

_MARK = "data/manifest.json"


class ExportTarget(Protocol):
    """Files by relative path. A reader sees a whole file or none."""

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, data: bytes) -> None: ...

    def delete(self, names: Iterable[str]) -> None: ...


class FolderTarget:
    """A folder of a local disk. RefusedError if it has files that are not those of a snapshot."""

    def __init__(self, path: str) -> None:
        self._path = path
        if os.path.exists(path) and not os.path.isdir(path):
            raise UsageError(f"{path} is a file", hint="name a folder, or a file that ends with .html")
        if os.path.isdir(path) and os.listdir(path) and not os.path.exists(os.path.join(path, _MARK)):
            raise RefusedError(
                f"the folder {path} is not empty and has no snapshot", hint="name a new or empty folder for the export"
            )

    def read(self, name: str) -> bytes | None:
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        write_file(os.path.join(self._path, name), data, makes_folders=True)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            path = os.path.join(self._path, name)
            if ".." in name.split("/") or os.path.isabs(name):
                continue  # the manifest was changed by somebody else
            if os.path.exists(path):
                os.unlink(path)
            folder = os.path.dirname(path)
            if os.path.isdir(folder) and not os.listdir(folder):
                shutil.rmtree(folder)


class BucketTarget:
    """A prefix of a bucket. Files get the content type that a browser needs."""

    def __init__(self, documents: BucketDocuments) -> None:
        self._documents = documents

    def read(self, name: str) -> bytes | None:
        return self._documents.get(name)

    def write(self, name: str, data: bytes) -> None:
        self._documents.bucket.put(self._documents.whole_key(name), data, content_type(name))

    def delete(self, names: Iterable[str]) -> None:
        self._documents.bucket.delete_many([self._documents.whole_key(name) for name in names])


def content_type(name: str) -> str:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def write_file(path: str, data: bytes, *, makes_folders: bool = False) -> None:
    """Replaces the file atomically. UsageError if it cannot be written."""
    temporary = f"{path}.{os.getpid()}.part"
    try:
        if makes_folders:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
