"""Objects as files below one folder: atomic replace, create-if-absent, and fsync where it is promised."""

from __future__ import annotations

import errno
import os

from ork.errors import DocumentError, ObjectsError
from ork.objects import layout
from ork.objects.keyed import KeyedDocuments
from ork.objects.layout import OWN, TEMPORARY, checked_key
from ork.objects.regular import NotRegularError, open_regular
from ork.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable

    from ork.objects.value_file import FileValue

_LEAST_ROOM = 1 << 14


class LocalObjects(KeyedDocuments):
    """`durability="full"` promises that objects survive a power failure; "normal", the death of any process."""

    kind = "files"
    answers_at_once = True

    def __init__(self, root: str, durability: str = "normal") -> None:
        self.root = os.path.abspath(root)
        self.url = "file:" + self.root
        self._is_durable = durability == "full"

    def path(self, key: str) -> str:
        """Where the object's file is; a key that points outside is an ObjectsError."""
        inner = "/" + key
        # Few keys have a part that begins with a dot, or is empty: only those are checked in detail.
        if "/." in inner or "//" in inner or "\0" in key or inner[-1] == "/":
            checked_key(key)
        return self.root + inner

    def is_full(self) -> bool:
        """Whether the disk is full."""
        try:
            disk = os.statvfs(self.root)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < _LEAST_ROOM

    def put(self, key: str, data: bytes) -> None:
        self._write_whole(key, data, os.replace)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        # A link is atomic, and fails if the name exists.
        try:
            self._write_whole(key, data, os.link)
        except FileExistsError:
            return False
        return True

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        descriptor = self._open(key)
        if descriptor is None:
            return None
        try:
            size = os.fstat(descriptor).st_size
            if limit is not None and size > limit:
                raise DocumentError(f"{key} has {size} bytes, more than the {limit} allowed")
            return _read_up_to(descriptor, size)
        except OSError as error:
            raise explained(error, "read", key) from error
        finally:
            os.close(descriptor)

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        descriptor = self._open(key)
        if descriptor is None:
            return b""
        try:
            there = max(0, os.fstat(descriptor).st_size - start)
            if not there:
                return b""
            os.lseek(descriptor, start, os.SEEK_SET)
            return _read_up_to(descriptor, there if size is None else min(size, there))
        except OSError as error:
            raise explained(error, "read", key) from error
        finally:
            os.close(descriptor)

    def size(self, key: str) -> int | None:
        try:
            return os.lstat(self.path(key)).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise explained(error, "look at", key) from error

    def list(self, prefix: str) -> builtins.list[str]:
        top = self._folder(prefix)
        found = []
        for folder, _, names in os.walk(top):
            below = folder[len(self.root) + 1 :]
            start = below + "/" if below else ""
            found += [start + name for name in names if not name.startswith((TEMPORARY, OWN))]
        return sorted(found)

    def delete(self, prefix: str) -> None:
        import shutil

        folder = self._folder(prefix)
        while os.path.lexists(folder):
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                continue  # another process deletes as well: start again with the rest
            except OSError as error:
                raise explained(error, "delete", prefix) from error

    # ── values that are not JSON: a file each ────────────────────────────────────────────────────

    def open_value(self, attempt: str, name: str) -> FileValue:
        from ork.objects.value_file import FileValue

        key = layout.value_key(layout.stem(attempt), name)
        return FileValue(self.root, self.path(key), key, is_durable=self._is_durable)

    def write_value(self, attempt: str, name: str, start: int, data: bytes) -> None:
        from ork.objects.value_file import write_part

        key = layout.value_key(layout.stem(attempt), name)
        write_part(self.path(key), key, start, data, is_durable=self._is_durable)

    def read_value(self, reference: str, start: int = 0, size: int | None = None) -> bytes:
        return self.read(reference, start, size)

    def has_value(self, reference: str) -> bool:
        return self.size(reference) is not None

    def list_values(self, attempt: str) -> builtins.list[str]:
        folder, _, start = self.path(layout.stem(attempt) + layout.VALUE).rpartition("/")
        try:
            return sorted(name[len(start) :] for name in os.listdir(folder) if name.startswith(start))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise explained(error, "list", f"the values of {attempt}") from error

    def delete_values(self, attempt: str) -> None:
        for name in self.list_values(attempt):
            _remove(self.path(layout.value_key(layout.stem(attempt), name)))

    def value_size(self, reference: str) -> int | None:
        return self.size(reference)

    def value_path(self, reference: str) -> str | None:
        return self.path(reference)

    def delete_runs(self, runs: Iterable[str]) -> None:
        from ork.objects.value_file import forget_unused

        super().delete_runs(runs)
        forget_unused(self.root)

    # ── files that are written to as they are ────────────────────────────────────────────────────

    def open_log(self, attempt: str) -> FileLog:
        return FileLog(self.path(layout.log_key(layout.stem(attempt))))

    def append_log(self, attempt: str, data: bytes) -> None:
        self._write_log(attempt, data, os.O_APPEND, 0)

    def write_log(self, attempt: str, start: int, data: bytes) -> None:
        self._write_log(attempt, data, 0, start)

    def _write_log(self, attempt: str, data: bytes, flags: int, start: int) -> None:
        key = layout.log_key(layout.stem(attempt))
        path = self.path(key)
        try:
            descriptor = _opened_log(path, flags)
            try:
                rest = memoryview(data)
                while rest:
                    done = os.write(descriptor, rest) if flags else os.pwrite(descriptor, rest, start)
                    rest, start = rest[done:], start + done
            finally:
                os.close(descriptor)
        except OSError as error:
            raise explained(error, "write", key) from error

    def read_log(self, attempt: str, start: int = 0, size: int | None = None) -> bytes:
        return self.read(layout.log_key(layout.stem(attempt)), start, size)

    def log_size(self, attempt: str) -> int | None:
        return self.size(layout.log_key(layout.stem(attempt)))

    def work_file(self, attempt: str, name: str) -> str:
        return self.path(f"{layout.stem(attempt)}.{name}")

    def missing_place(self, run: str | None = None) -> str | None:
        place = self.root if run is None else f"{self.root}/{layout.run_folder(run)}"
        return None if os.path.isdir(place) else place

    def _folder(self, prefix: str) -> str:
        """The folder of a prefix. A prefix is a whole path: `runs/a` does not match `runs/ab`."""
        inner = prefix.strip("/")
        return self.path(inner) if inner else self.root

    def _open(self, key: str) -> int | None:
        path = self.path(key)
        try:
            return open_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except NotRegularError as error:
            raise DocumentError(f"{key} is not a document: {error.strerror}") from error
        except OSError as error:
            raise explained(error, "read", key) from error

    def _write_whole(self, key: str, data: bytes, publish: Callable[[str, str], None]) -> None:
        path = self.path(key)
        folder = path.rpartition("/")[0]
        # Random, not the pid: a dead process of the same pid may have left a second name of a published file.
        temporary = f"{folder}/{TEMPORARY}{os.urandom(8).hex()}"
        try:
            self._write_temporary(temporary, folder, data)
            publish(temporary, path)
            if publish is os.link:
                os.unlink(temporary)
            if self._is_durable:
                _sync_folder(folder)
        except FileExistsError:
            _remove(temporary)
            raise
        except OSError as error:
            _remove(temporary)
            raise explained(error, "write", key) from error

    def _write_temporary(self, temporary: str, folder: str, data: bytes) -> None:
        descriptor = self._create(temporary, folder)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if self._is_durable:
                system.sync(descriptor)
        finally:
            os.close(descriptor)

    def _create(self, path: str, folder: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            self._make_folder(folder)
            return os.open(path, flags, 0o600)

    def _make_file(self, path: str) -> None:
        """Create the file, empty, unless it exists."""
        folder = path.rpartition("/")[0]
        try:
            os.close(self._create(path, folder))
        except FileExistsError:
            return
        if self._is_durable:
            _sync_folder(folder)

    def _make_folder(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        # A new folder survives a power failure only if its parent is synced as well.
        while self._is_durable and len(folder) > len(self.root):
            folder = folder.rpartition("/")[0]
            _sync_folder(folder)


class FileLog:
    """A log that is a file of the store: the descriptor writes to it directly."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def fileno(self) -> int:
        if self._descriptor < 0:
            self._descriptor = _opened_log(self._path, os.O_APPEND)
        return self._descriptor

    def flush(self) -> bool:
        """Nothing to do: the descriptor writes to the file directly."""
        return False

    def due(self, now: float) -> float | None:  # noqa: ARG002
        return None

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _opened_log(path: str, flags: int) -> int:
    """Open a log file. Its folder exists since the spec was written; if it was deleted, it is not created again."""
    return os.open(path, flags | os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _read_up_to(descriptor: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = os.read(descriptor, min(size, 1 << 24))
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def explained(error: OSError, verb: str, key: str) -> ObjectsError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ObjectsError(f"cannot {verb} {key}: the disk is full", hint="free some space; work continues by itself")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ObjectsError(
            f"cannot {verb} {key}: {os.strerror(error.errno or 0)}", hint="check the folder's permissions"
        )
    return ObjectsError(f"cannot {verb} {key}: {error.strerror or error}")
