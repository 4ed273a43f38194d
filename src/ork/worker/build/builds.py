"""Folders that are built once per content and shared: environments, compiled programs.

A shelf has one folder per content, each next to its lock file. A folder is valid only if it has a stamp, which is
written last, so that an interrupted build is never used. It is built in place and not moved there, because programs of
a virtual environment contain their path.
"""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SHELVES = ("environments", "rust")
UNUSED_SECONDS = 30 * 86_400.0
_STAMP = ".ork-ready"
_LOCK = ".lock"
_DIGEST_LENGTH = 24


class Build:
    """One folder of a shelf. It is not pruned while a process has it open and ready."""

    def __init__(self, shelf: str, digest: str) -> None:
        self.shelf = shelf
        self.folder = f"{shelf}/{digest}"
        _make_shelf(shelf)
        self.lock = os.open(self.folder + _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        _give_to_owner(self.lock, shelf)

    def is_ready(self) -> bool:
        """True if the folder is complete; it then stays while this object is open. Never waits."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return self._touch()

    def make(self, build: Callable[[str], None]) -> None:
        """Build the folder unless it is complete. Waits for another process that is building it.

        May be called in a child of the process that opened it, because both share the lock.
        """
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        if not self._touch():
            _remove(self.folder)
            try:
                build(self.folder)
            except BaseException:
                _remove(self.folder)
                raise
            os.close(os.open(f"{self.folder}/{_STAMP}", os.O_WRONLY | os.O_CREAT, 0o600))
        fcntl.flock(self.lock, fcntl.LOCK_SH)

    def close(self) -> None:
        os.close(self.lock)

    def _touch(self) -> bool:
        """Update the time of last use; False if the folder is incomplete."""
        try:
            os.utime(f"{self.folder}/{_STAMP}", follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


def digest_of(parts: Iterable[str | bytes]) -> str:
    """A name for the content. Each part is hashed with its length, so that different lists never give the same text."""
    from hashlib import sha256

    whole = sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(b"%d:" % len(data) + data)
    return whole.hexdigest()[:_DIGEST_LENGTH]


def prune(shelf: str, now: float, unused_seconds: float = UNUSED_SECONDS) -> list[str]:
    """Remove folders that are not in use and were not used for that long; return their paths."""
    try:
        names = [entry.name for entry in os.scandir(shelf) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    return [f"{shelf}/{name}" for name in sorted(names) if _prune_one(shelf, name, now - unused_seconds)]


def _prune_one(shelf: str, name: str, limit: float) -> bool:
    build = Build(shelf, name)
    try:
        fcntl.flock(build.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _last_used(build.folder) >= limit:
            return False
        _remove(build.folder)
    except OSError:
        return False
    finally:
        # The lock file stays: if it were removed, a process about to lock it and a later one would hold different
        # files.
        build.close()
    return True


def _last_used(folder: str) -> float:
    try:
        return os.stat(f"{folder}/{_STAMP}").st_mtime
    except FileNotFoundError:
        return os.stat(folder).st_mtime


def _give_to_owner(lock: int, shelf: str) -> None:
    """Give the lock file to the owner of the shelf: the user of the task (see `task_user`) prunes its own shelf."""
    owner, found = os.stat(shelf), os.fstat(lock)
    if found.st_uid == os.getuid() != owner.st_uid and found.st_nlink == 1:
        os.fchown(lock, owner.st_uid, owner.st_gid)


def _make_shelf(shelf: str) -> None:
    if os.path.isdir(shelf):
        return
    os.makedirs(shelf, 0o700, exist_ok=True)
    with open(shelf + "/.gitignore", "w", encoding="utf-8") as file:
        file.write("*\n")


def _remove(folder: str) -> None:
    import shutil
    from contextlib import suppress

    with suppress(FileNotFoundError):
        # The stamp first: a folder that is being removed is no longer complete.
        os.unlink(f"{folder}/{_STAMP}")
    shutil.rmtree(folder, ignore_errors=True)
