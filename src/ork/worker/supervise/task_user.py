"""Running the user's process as another user than the worker's (`task_user`).

The worker keeps its user, and only the worker can access the attempt's documents. Inputs are copied into a folder
that belongs to the task's user; outputs are copied from there, without following links.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from ork.objects.opening import open_values
from ork.objects.portable import output_file
from ork.system import linux, system
from ork.worker.build.builds import SHELVES
from ork.worker.supervise.confinement import TaskUserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import IO, Any

    from ork.objects.attempt_documents import AttemptDocuments

_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION = 0x20080522
_FIRST_OTHER = 3
_CHUNK = 4 << 20
BUILDS = "/var/tmp/ork-tasks-"


class TaskUser:
    """A user by name or number. TaskUserError if there is no such user."""

    def __init__(self, name: str) -> None:
        import pwd

        try:
            known = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
        except KeyError:
            raise TaskUserError(f"task_user: there is no user `{name}` on this machine") from None
        self.name, self.uid, self.gid, self.home = known.pw_name, known.pw_uid, known.pw_gid, known.pw_dir
        if self.uid == 0:
            raise TaskUserError("task_user: tasks do not run as root by this setting; name another user")

    def variables(self) -> dict[str, str]:
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    def become(self, keep: Collection[int] = ()) -> None:
        """Change the user of this process permanently, and close all descriptors except the standard streams and `keep`.
        OSError if the system does not allow it."""
        parent = os.getppid()
        drop_capabilities = _capabilities_dropper()
        os.environ.update(self.variables())
        _close_all_but(keep)
        for descriptor in (0, 1, 2):
            self._own_pipe(descriptor)
        os.initgroups(self.name, self.gid)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)
        drop_capabilities()
        linux.prctl(_PR_SET_NO_NEW_PRIVS, 1)
        linux.prctl(_PR_SET_DUMPABLE, 1)  # else it could not open its own /dev/stdout
        linux.die_with_parent(parent)  # the system resets this when a process changes its user
        if os.getresuid() != (self.uid,) * 3 or os.getresgid() != (self.gid,) * 3:
            os._exit(1)

    def _own_pipe(self, descriptor: int) -> None:
        """Let the user open the pipe by name, as `echo > /dev/stderr` does."""
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.fchown(descriptor, self.uid, self.gid)
        except OSError:
            return

    def builds(self) -> str:
        """The folder in which environments and programs of its tasks are built. Its parent folder is ours, so that the user
        cannot replace it. TaskUserError if the folder belongs to another user."""
        folder = f"{BUILDS}{self.uid}"
        _make_folder(folder, 0o755, os.getuid(), os.getgid())
        for shelf in SHELVES:
            _make_folder(f"{folder}/{shelf}", 0o700, self.uid, self.gid)
        return folder


def _make_folder(path: str, mode: int, uid: int, gid: int) -> None:
    try:
        os.mkdir(path, mode)
        os.chown(path, uid, gid)
    except FileExistsError:
        pass
    except OSError as error:
        raise TaskUserError(f"cannot make {path}: {error.strerror}") from None
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid:
        raise TaskUserError(f"{path} belongs to another user: remove it")


class Exchange:
    """A folder for exchanging files with the task's user. It belongs to the worker while the worker fills it, so that no link
    can redirect the worker's writes; then it is handed over."""

    def __init__(self, user: TaskUser) -> None:
        from tempfile import mkdtemp

        self._user = user
        self.folder = mkdtemp(prefix="ork-task-")

    def objects(self, source: AttemptDocuments, spec: dict[str, Any]) -> AttemptDocuments:
        """A store with copies of what the spec's values point at, for the task's process. ObjectsError if one is gone."""
        from ork.objects.portable import values_for

        copies = open_values(f"file:{self.folder}/objects", "normal")
        values = values_for(source, spec)
        copies.put_shared(list(values.items()))
        os.makedirs(f"{self.folder}/objects", 0o700, exist_ok=True)
        self._bring_values(source, spec, values.values())
        return copies

    def _bring_values(self, source: AttemptDocuments, spec: dict[str, Any], outputs: Iterable[bytes]) -> None:
        from ork.worker.data.moving import copy_value, needed_values

        for reference, size in needed_values(source, spec, outputs).items():
            path = f"{self.folder}/objects/{reference}"
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            copy_value(source, reference, size, path)

    def hand_over(self) -> None:
        """Give the folder and its content to the task's user; the folder itself last."""
        for folder, _, files in os.walk(self.folder, topdown=False):
            for path in (*(os.path.join(folder, name) for name in files), folder):
                os.chown(path, self._user.uid, self._user.gid, follow_symlinks=False)

    def take_output(self, target: AttemptDocuments, attempt: str, limit: int) -> int | None:
        """Store a function's large output. Returns its size, or None if there is none."""
        data = self.read(f"objects/{output_file(attempt)}", limit)
        if data is None:
            return None
        target.put_output(attempt, data)
        return len(data)

    def take_values(self, target: AttemptDocuments, attempt: str, output: dict[str, Any]) -> None:
        """Store the values that a function's output refers to. OSError or DocumentError if one is missing or another one."""
        from ork.worker.data.moving import TakenValue, written_values

        stored = self.read(f"objects/{output_file(attempt)}", int(output["size"])) if "object" in output else None
        for reference, digest in written_values(attempt, output, stored):
            taken = TakenValue(target, attempt, reference, digest)
            with self.opened(f"objects/{reference}", most_names=2) as file:  # a store gives values a second name
                while data := file.read(_CHUNK):
                    taken.write(data)
            taken.finish()

    def opened(self, path: str, most_names: int = 1) -> IO[bytes]:
        """A file that the task wrote. OSError if there is none, or it is not a regular file of the task's user."""
        descriptor = self._open(path.split("/"))
        if descriptor is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
        file = open(descriptor, "rb")  # noqa: SIM115 - the caller closes it
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != self._user.uid or found.st_nlink > most_names:
            file.close()
            raise OSError(errno.EPERM, "it is no plain file of the task's own")
        return file

    def read(self, path: str, limit: int) -> bytes | None:
        """A file that the task wrote; None if there is none. OSError if it is larger than the limit, or not a regular file of
        the task's user: a link could point to a file that only the worker may read."""
        try:
            file = self.opened(path)
        except FileNotFoundError:
            return None
        with file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes")
        return data

    def _open(self, parts: list[str]) -> int | None:
        """Open a path step by step without following links, because the task can change every part of it."""
        above = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
                os.close(above)
                above = below
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(parts[-1], flags, dir_fd=above)
        except FileNotFoundError:
            return None
        finally:
            os.close(above)

    def remove(self) -> None:
        import shutil

        with suppress(OSError):  # in a folder such as /tmp only the owner may remove it
            os.chown(self.folder, os.getuid(), -1, follow_symlinks=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def user_of(spec: dict[str, Any]) -> TaskUser | None:
    """The user of the spec's task; None if it runs as the worker's user. TaskUserError if there is no such user."""
    name = spec.get("task_user")
    if name is None or spec.get("container") is not None:
        return None
    if not system.HAS_TASK_USERS:
        raise TaskUserError("task_user: only Linux can run tasks as another user")
    user = TaskUser(str(name))
    return None if user.uid == os.getuid() else user


def _close_all_but(keep: Collection[int]) -> None:
    """Close the worker's files and sockets, which the task must not use."""
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor < _FIRST_OTHER or descriptor in keep:
            continue
        with suppress(OSError):
            os.close(descriptor)


def _capabilities_dropper() -> Callable[[], None]:
    """Returns a function that drops all capabilities: a process that was not root keeps them when it changes its user. Its
    modules are imported now, because the user may not be able to read the interpreter's files."""
    import ctypes

    linux.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    capset = ctypes.CDLL(None, use_errno=True).capset
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()

    def drop() -> None:
        if capset(header, nothing) != 0:
            raise OSError(ctypes.get_errno(), "capabilities could not be dropped")

    return drop
