"""Values that are not JSON, in a folder: a file for each, and one file for equal values.

Each value of some size has a second name, made of its hash. The next value with this hash becomes another name of the same file.
A file that only the second name is left of is used by nobody, and is removed when runs are deleted.
"""

from __future__ import annotations

import os
import time

from ork.errors import ObjectsError
from ork.objects.layout import OWN, VALUES
from ork.objects.local import explained
from ork.objects.value_parts import hasher
from ork.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORTH_SHARING = 64 << 10
_FULL_PATIENCE_SECONDS = 600.0
_SLICE = 1 << 24
_MODE = 0o600


class FileValue:
    """Writes to the file directly. While the disk is full it waits, because space may be freed."""

    def __init__(self, root: str, path: str, key: str, *, is_durable: bool) -> None:
        self._root, self._path, self._key = root, path, key
        self._is_durable = is_durable
        self._hash = hasher()
        self._size = 0
        self._descriptor = self._created()

    def _created(self) -> int:
        """A new file: an older one of this name may be another value's, too, and is left as it is."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            try:
                return os.open(self._path, flags, _MODE)
            except FileExistsError:
                os.unlink(self._path)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            return os.open(self._path, flags, _MODE)
        except OSError as error:
            raise explained(error, "write", self._key) from error

    @property
    def closed(self) -> bool:
        return self._descriptor < 0

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            part = rest[:_SLICE]
            done = self._patiently_written(part)
            self._hash.update(part[:done])
            rest = rest[done:]
            self._size += done
        return size

    def _patiently_written(self, part: memoryview) -> int:
        give_up_at = time.monotonic() + _FULL_PATIENCE_SECONDS
        while True:
            try:
                return os.write(self._descriptor, part)
            except OSError as error:
                problem = explained(error, "write", self._key)
                if "disk is full" not in problem.message or time.monotonic() > give_up_at:
                    raise problem from error
            time.sleep(0.5)

    def finish(self) -> tuple[int, str]:
        digest = self._hash.hexdigest()
        try:
            if self._is_durable:
                system.sync(self._descriptor)
            self._closed()
            if self._size >= WORTH_SHARING:
                self._share(f"{self._root}/{OWN}{VALUES}/{digest[:2]}", digest)
            if self._is_durable:
                _sync(os.path.dirname(self._path))
        except OSError as error:
            raise explained(error, "write", self._key) from error
        return self._size, digest

    def _share(self, shelf: str, digest: str) -> None:
        """Use the file of an equal value if there is one; else let later ones use this file. Nothing is lost if that fails."""
        known, second = f"{shelf}/{OWN}{digest}", f"{self._path}.{OWN}equal"
        try:
            os.makedirs(shelf, mode=0o700, exist_ok=True)
            os.link(self._path, known)
        except FileExistsError:
            pass
        except OSError:
            return  # a disk without second names, or with too many
        else:
            return
        try:
            if os.lstat(known).st_size == self._size:
                os.link(known, second)
                os.replace(second, self._path)
        except OSError:
            return

    def abandon(self) -> None:
        self._closed()
        try:
            os.unlink(self._path)
        except OSError:
            return

    def _closed(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    # Libraries ask file objects for these.

    def writable(self) -> bool:
        return not self.closed

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """A library that is done with its file says so; `finish` follows."""


def write_part(path: str, key: str, start: int, data: bytes, *, is_durable: bool) -> None:
    """Write bytes of a value's file from `start` on."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    try:
        try:
            descriptor = os.open(path, flags, _MODE)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            descriptor = os.open(path, flags, _MODE)
        try:
            rest = memoryview(data)
            while rest:
                done = os.pwrite(descriptor, rest, start)
                rest, start = rest[done:], start + done
            if is_durable:
                system.sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise explained(error, "write", key) from error


def forget_unused(root: str) -> None:
    """Remove the second names of values that have no other name. A value that is written meanwhile keeps its own name."""
    try:
        shelves = os.listdir(f"{root}/{OWN}{VALUES}")
    except OSError:
        return
    for shelf in shelves:
        folder = f"{root}/{OWN}{VALUES}/{shelf}"
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.stat(follow_symlinks=False).st_nlink == 1:
                        os.unlink(entry.path)
        except FileNotFoundError:
            continue  # another process removes them as well
        except OSError as error:
            raise ObjectsError(f"cannot remove unused values in {folder}: {error.strerror}") from error


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
