"""Reads stored values as what the parameter asks for; without an annotation as what they were."""

from __future__ import annotations

from ork.model.value_reference import CODECS, in_words
from ork.worker.convert.scalars import ConversionError, type_name
from ork.worker.data import tables
from ork.worker.data.media_types import NPY, PARQUET
from ork.worker.data.stored import StoredValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.worker.data.codecs import ProjectCodecs

_TABLES = {
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("polars", "LazyFrame"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
}


class Incoming(StoredValue):
    """A stored value in the input of a task, until a parameter says what it wants."""

    codecs: ProjectCodecs | None = None

    def converted(self, annotation: Any, path: str) -> Any:
        """The value as the annotation's type. ConversionError if it cannot be that."""
        try:
            return self._as(annotation, path)
        except (tables.MissingPackageError, LookupError) as error:
            raise ConversionError(f"{path}: {error}") from None

    def as_it_was(self, path: str) -> Any:
        """The value in the type that it had when it was stored."""
        try:
            return self._as_it_was(path)
        except (tables.MissingPackageError, LookupError) as error:
            raise ConversionError(f"{path}: {error}") from None

    def _as(self, annotation: Any, path: str) -> Any:
        if annotation is object:
            return self._as_it_was(path)
        for ancestor in getattr(annotation, "__mro__", ()):
            name = ancestor.__module__.partition(".")[0], ancestor.__qualname__
            if name in _TABLES:
                return self._table(*name, path)
            if name == ("numpy", "ndarray"):
                return self._array(path)
            if name in (("builtins", "bytes"), ("builtins", "bytearray")):
                self._refuse_parts(annotation, path)
                return annotation(self.read())
            if name == ("ork", "File"):
                self._refuse_parts(annotation, path, is_folder_fine=True)
                return self._file()
        if self.description["codec"] in CODECS:
            raise self._mismatch(type_name(annotation), path)
        value = self._as_it_was(path)
        if isinstance(annotation, type) and not isinstance(value, annotation):
            raise self._mismatch(type_name(annotation), path)
        return value

    def _as_it_was(self, path: str) -> Any:
        codec = self.description["codec"]
        if codec == "parquet":
            library, _, kind = self.description["type"].partition(".")
            return self._table(library, kind, path)
        if codec == "npy":
            return self._array(path)
        if codec == "bytes":
            return self.read()
        if codec in ("file", "folder"):
            return self._file()
        if self.codecs is None:
            raise LookupError(f"the project has no codec `{codec}` (`codecs` in ork.yaml)")
        with self.opened() as file:
            return self.codecs.get(codec).read(file)

    def _table(self, library: str, kind: str, path: str) -> Any:
        if self.is_folder or self.media_type() != PARQUET:
            raise self._mismatch(f"{library}.{kind}", path)
        return tables.read(self.library_path(), self.description, library, kind)

    def _array(self, path: str) -> Any:
        if self.is_folder or self.media_type() != NPY:
            raise self._mismatch("numpy.ndarray", path)
        numpy = tables.needed("numpy", "reading an array")
        return numpy.load(self.library_path(), allow_pickle=False)

    def _file(self) -> Any:
        from ork.sdk.files import stored_file

        return stored_file(self)

    def _refuse_parts(self, annotation: Any, path: str, *, is_folder_fine: bool = False) -> None:
        """Rows of a table are no file of their own, and a folder has no bytes."""
        is_rows = self.description["codec"] == "parquet" and "part" in self.description
        if is_rows or (self.is_folder and not is_folder_fine):
            raise self._mismatch(type_name(annotation), path)

    def _mismatch(self, expected: str, path: str) -> ConversionError:
        return ConversionError(f"{path}: expected {expected}, got {in_words(self.description)}")
