"""`ork.File` and `ork.Table`: values that a task returns, or takes, as files and tables."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any, BinaryIO, Protocol

    class StoredFile(Protocol):
        """A value in the object store that is a file or a folder."""

        description: dict[str, Any]

        @property
        def is_folder(self) -> bool: ...
        def file_name(self) -> str: ...
        def copied(self) -> str: ...
        def opened(self) -> BinaryIO: ...
        def parts(self) -> Iterable[StoredFile]: ...
        def library_path(self) -> str: ...


class File:
    """A file or a folder.

    Return `ork.File("report.pdf")`: its bytes are stored, and the next task can have them wherever it runs. A parameter that is
    annotated `ork.File` gets one whose `path` is a copy of its own, which it may change; `open()` reads without a copy.
    """

    def __init__(self, path: str | os.PathLike[str], *, name: str | None = None, media_type: str | None = None) -> None:
        self._path: str | None = os.fspath(path)
        self._stored: StoredFile | None = None
        self.name = name or os.path.basename(os.path.abspath(self._path))
        self.media_type = media_type

    @property
    def path(self) -> Path:
        """Where the file or folder is on this machine. A stored one is copied when this is read first."""
        from pathlib import Path

        if self._path is None:
            assert self._stored is not None
            self._path = self._stored.copied()
        return Path(self._path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"ork.File({self.name!r})"

    @property
    def size(self) -> int:
        """Bytes; of a folder, of all its files."""
        if self._stored is not None:
            return int(self._stored.description["size"])
        if not self.is_folder:
            return self.path.stat().st_size
        return sum(each.stat().st_size for each in self.path.rglob("*") if each.is_file())

    @property
    def is_folder(self) -> bool:
        if self._stored is not None:
            return self._stored.is_folder
        return self.path.is_dir()

    def open(self) -> BinaryIO:
        """The file's bytes, for reading."""
        if self._stored is not None and self._path is None:
            return self._stored.opened()
        return self.path.open("rb")

    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    def files(self) -> Iterator[File]:
        """The files of a folder, in order of their names, each with its path in the folder as its name."""
        if self._stored is not None and self._path is None:
            yield from (stored_file(each) for each in self._stored.parts())
            return
        for each in sorted(self.path.rglob("*")):
            if each.is_file():
                yield File(each, name=str(each.relative_to(self.path)))


class Table:
    """A data frame that is split: `foreach` over it makes one instance for `part_rows` rows. Any other frame has parts of
    1,048,576 rows."""

    def __init__(self, frame: Any, *, part_rows: int) -> None:
        if part_rows < 1:
            raise ValueError("part_rows is at least 1")
        self.frame = frame
        self.part_rows = part_rows


def stored_file(stored: StoredFile) -> File:
    """A file that is in the object store."""
    made = File.__new__(File)
    made._path, made._stored = None, stored
    made.name, made.media_type = stored.file_name(), stored.description.get("media_type")
    return made


def stored_in(file: File) -> StoredFile | None:
    """The stored value that the file came from, if it was neither copied nor changed."""
    return file._stored if file._path is None else None
