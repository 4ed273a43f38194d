"""Folders that are made once for all who need the same content: environments, compiled programs.

A shelf holds one folder per content, each beside its lock. The folder counts only with its stamp, which is written
last, so that a build which was killed leaves nothing that anybody would use. It is made in its place rather than moved
there: the programs of a virtual environment know the path they were installed under.
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
    """One folder of a shelf. Whoever has it open and ready keeps it from being pruned."""

    def __init__(self, shelf: str, digest: str) -> None:
        self.shelf = shelf
        self.folder = f"{shelf}/{digest}"
        _make_shelf(shelf)
        self.lock = os.open(self.folder + _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        _give_to_owner(self.lock, shelf)

    def is_ready(self) -> bool:
        """Never waits. True: it is there, and stays while we have it open."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return self._touch()

    def make(self, build: Callable[[str], None]) -> None:
        """Waits for whoever is at it, and builds only what nobody has built.

        May be called in a child of the process that opened it: the lock belongs to both.
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
        """Whether it is complete; its stamp says when it was last used."""
        try:
            os.utime(f"{self.folder}/{_STAMP}", follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


def digest_of(parts: Iterable[str | bytes]) -> str:
    """A name for the content. No two lists of parts share one because their texts run together."""
    from hashlib import sha256

    whole = sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(b"%d:" % len(data) + data)
    return whole.hexdigest()[:_DIGEST_LENGTH]


def prune(shelf: str, now: float, unused_seconds: float = UNUSED_SECONDS) -> list[str]:
    """Removes what nobody uses and nobody has used for that long; gives the folders."""
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
        # The lock file stays: somebody may be about to lock it, and would hold another one than whoever comes next.
        build.close()
    return True


def _last_used(folder: str) -> float:
    try:
        return os.stat(f"{folder}/{_STAMP}").st_mtime
    except FileNotFoundError:
        return os.stat(folder).st_mtime


def _give_to_owner(lock: int, shelf: str) -> None:
    """A shelf of the task's user (see `task_user`) has locks of that user, who prunes it."""
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
        # The stamp first: what is being taken apart is complete no more.
        os.unlink(f"{folder}/{_STAMP}")
    shutil.rmtree(folder, ignore_errors=True)
