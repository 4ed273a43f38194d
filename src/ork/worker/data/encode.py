"""Stores the values in a result that are not JSON, and returns references to them."""

from __future__ import annotations

import os
import sys

from ork.errors import DocumentError, ObjectsError
from ork.model.value_reference import MARK
from ork.objects.json_text import dumps
from ork.objects.references import value_reference
from ork.worker.data.codecs import Encoded, ProjectCodecs, encoded
from ork.worker.data.errors import NotStoredError, ResultError, place_of, type_name
from ork.worker.data.media_types import FOLDER, media_type_of
from ork.worker.data.tables import MissingPackageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.sdk.files import File

PREVIEW_LIMIT = 256 << 10
MOST_VALUES = 100_000
_CHUNK = 1 << 22
_MOST_SHOWN = 100


class ValueWriter:
    """Writes the values of one attempt. They are numbered in the order in which they are found in the result."""

    def __init__(self, objects: AttemptDocuments, attempt: str, codecs: dict[str, str] | None = None) -> None:
        self._objects = objects
        self._attempt = attempt
        self._codecs = ProjectCodecs(codecs) if codecs else None
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}  # a value that occurs twice is stored once
        self._count = 0

    def reference_to(self, value: Any, path: str) -> dict[str, Any] | None:
        """The reference to the value, which is now stored; None if it is of no type that is stored."""
        if id(value) in self._known:
            return {MARK: self._known[id(value)][1]}
        try:
            description = self._stored(value)
        except MissingPackageError as error:
            raise ResultError(f"returned {type_name(value)}{place_of(path)}: {error}") from None
        except ObjectsError as error:
            kind = ResultError if isinstance(error, DocumentError) else NotStoredError
            raise kind(
                f"returned {type_name(value)}{place_of(path)}: it could not be stored: {error.message}"
            ) from None
        if description is None:
            return None
        self._known[id(value)] = value, description
        return {MARK: description}

    def discard(self) -> None:
        """Delete what was stored: the attempt has failed, and nothing refers to it."""
        if self._count:
            try:
                self._objects.delete_values(self._attempt)
            except ObjectsError:
                return  # it is deleted with its run

    def _stored(self, value: Any) -> dict[str, Any] | None:
        sdk = sys.modules.get("ork.sdk.files")
        if sdk is not None and isinstance(value, sdk.File):
            return self._file(value)
        found = None if self._codecs is None else self._codecs.encoded(value)
        found = found or encoded(value)
        return None if found is None else self._written(found, value)

    def _next(self) -> str:
        if self._count == MOST_VALUES:
            raise ResultError(f"returned more than {MOST_VALUES:,} values that are not JSON")
        self._count += 1
        return str(self._count - 1)

    def _written(self, found: Encoded, value: Any) -> dict[str, Any]:
        name = self._next()
        try:
            size, digest = self._sent(name, found.write)
        except (MissingPackageError, ObjectsError):
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise ResultError(f"returned {type_name(value)}: it cannot be stored as {found.codec}: {text}") from error
        return {
            "object": value_reference(self._attempt, name),
            "codec": found.codec,
            "type": found.type,
            "media_type": found.media_type,
            "size": size,
            "sha256": digest,
            **found.facts,
            **self._previewed(name, found.preview),
        }

    def _sent(self, name: str, write: Callable[[Any], object]) -> tuple[int, str]:
        sink = self._objects.open_value(self._attempt, name)
        try:
            write(sink)
            return sink.finish()
        except BaseException:
            sink.abandon()
            raise

    def _previewed(self, name: str, make: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
        """A preview is worth nothing that could fail a task."""
        try:
            preview = make()
            text = None if preview is None else dumps(preview).encode()
            if text is None or len(text) > PREVIEW_LIMIT:
                return {}
            self._sent(f"{name}-preview", lambda sink: sink.write(text))
        except Exception as error:
            sys.stderr.write(f"ork: no preview of the output: {type(error).__name__}: {error}\n")
            return {}
        return {"has_preview": True}

    # ── files ────────────────────────────────────────────────────────────────────────────────────

    def _file(self, file: File) -> dict[str, Any]:
        from ork.sdk.files import stored_in

        stored = stored_in(file)
        path = stored.library_path() if stored is not None and not stored.is_folder else str(file.path)
        if os.path.isdir(path):
            return self._folder(path, file.name)
        name = self._next()
        try:
            size, digest = self._sent(name, lambda sink: _copy(path, sink))
        except OSError as error:
            raise ResultError(f"returned ork.File({path!r}), which cannot be read: {error.strerror}") from None
        description = {
            "object": value_reference(self._attempt, name),
            "codec": "file",
            "type": "ork.File",
            "media_type": file.media_type or media_type_of(file.name),
            "size": size,
            "sha256": digest,
            "name": os.path.basename(file.name),
        }
        return {**description, **self._previewed(name, lambda: _preview_of_file(path))}

    def _folder(self, path: str, folder: str) -> dict[str, Any]:
        """Each file is an object of its own; the value itself is the list of them."""
        name, listed = self._next(), []
        for number, inner in enumerate(_files_below(path)):
            try:
                size, digest = self._sent(f"{name}-{number}", lambda sink, inner=inner: _copy(f"{path}/{inner}", sink))  # type: ignore[misc]
            except OSError as error:
                raise ResultError(f"returned ork.File({path!r}): {inner} cannot be read: {error.strerror}") from None
            listed.append({"name": inner, "size": size, "sha256": digest})
        _, digest = self._sent(name, lambda sink: sink.write(dumps({"files": listed}).encode()))
        shown = [{"name": each["name"], "size": each["size"]} for each in listed[:_MOST_SHOWN]]
        return {
            "object": value_reference(self._attempt, name),
            "codec": "folder",
            "type": "ork.File",
            "media_type": FOLDER,
            "size": sum(each["size"] for each in listed),
            "sha256": digest,
            "name": os.path.basename(folder.rstrip("/")),
            "parts": len(listed),
            **self._previewed(name, lambda: {"kind": "folder", "files": shown}),
        }


def _files_below(folder: str) -> Iterator[str]:
    """Paths of the regular files in a folder, sorted. Links are not followed."""
    found = []
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in names:
            path = os.path.join(above, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found.append(os.path.relpath(path, folder))
    return iter(sorted(found))


def _copy(path: str, sink: Any) -> None:
    from ork.objects.regular import open_regular

    with open(open_regular(path, follows_links=True), "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            sink.write(chunk)


def _preview_of_file(path: str) -> dict[str, Any] | None:
    from ork.worker.data.previews import of_bytes

    with open(path, "rb") as file:
        return of_bytes(file.read(4096))
