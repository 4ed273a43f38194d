"""What Ork asks of Linux: identities, ends and families of processes, clocks, memory files, kinds of disks.

The processes of an attempt are found by a tag: the variable ORK_ATTEMPT_ID in the environment that /proc shows, which is the one
that a program was started with.
"""

from __future__ import annotations

import os
import time
from os import getppid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # Pid, parent, start time, attempt and session of a living process. The session is 0 where nobody needs it.
    Process = tuple[int, int, int, str | None, int]

NAME = "Linux"
PROCESS_LIST = "mount /proc"  # what to do where processes are not shown
HAS_WORKER_POOL = True  # fork servers, reused workers and shared processes
HAS_TASK_USERS = True
HAS_JOURNALS = True  # on disks where `appends_are_atomic`
HAS_LIMITS = True  # of memory and processors
CHILDREN_DIE_WITH_PARENT = True  # where they ask for it; else a worker has a guard
HAS_MEMORY_FILES = True  # that other processes can open by a path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9
_DEAD = (b"Z", b"X")
_HALTED = (b"T", b"t")
_PIECE = 4096

descriptors: set[int] = set()
"""Descriptors that stay open in this process, and must be closed in processes of tasks."""
# The process, and the descriptor that lists its children. It is kept open, because opening it takes longest.
_children: tuple[int, int] | None = None
_call: Callable[[int, tuple[int, ...]], int]
_prctl_at: int | None = None
_is_subreaper = False  # this process; a forked process does not inherit it and does not ask
_boot: str | None = None


# ── the machine ──────────────────────────────────────────────────────────────────────────────────


def boot_id() -> str | None:
    """Different after every boot; None if the system does not provide it."""
    global _boot
    if _boot is None:
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb") as file:
                _boot = file.read().decode("ascii").strip()
        except (OSError, ValueError):
            return None
    return _boot


def machine_id() -> str:
    """The installation's id, the same after every boot; empty if there is none, as in most containers."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def pid_namespace() -> int | None:
    """Pids of different namespaces name different processes. None if it is not known."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def awake_seconds() -> float:
    """A clock that cannot be set, is the same in all processes until the next boot, and counts time in which the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


# ── other processes ──────────────────────────────────────────────────────────────────────────────


def start_time(pid: int) -> int | None:
    """When the process started, in units of this system; None if there is no such process or it is a zombie."""
    fields = _stat_fields(str(pid))
    return None if fields is None or fields[0] in _DEAD else int(fields[19])


def is_same_start(one: int | None, other: int | None) -> bool:
    """Whether two start times of a pid are of the same process."""
    return one == other


def is_halted(pid: int) -> bool:
    """Whether SIGSTOP has taken effect, or the process is gone."""
    fields = _stat_fields(str(pid))
    return fields is None or fields[0] in _DEAD or fields[0] in _HALTED


def attempt_of(pid: int, variable: str) -> str | None:
    """The attempt in the process's environment; None if it has no such variable, or is gone."""
    return _attempt_in_environment(str(pid), variable.encode() + b"=")


def tagged_processes(variable: str) -> list[Process]:
    """All living processes, with the attempts that `variable` in their environments names."""
    prefix = variable.encode() + b"="
    found: list[Process] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        fields = _stat_fields(name)
        if fields is not None and fields[0] not in _DEAD:
            tag = _attempt_in_environment(name, prefix)
            found.append((int(name), int(fields[1]), int(fields[19]), tag, 0))
    return found


def watch_end(pid: int, started: int) -> int | None:
    """A descriptor that becomes readable when exactly this process ends; None if it is gone. OSError when descriptors have
    run out."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    # Checked after opening: from here on the descriptor refers to this process.
    if start_time(pid) == started:
        return descriptor
    os.close(descriptor)
    return None


def send_signal(pid: int, started: int, number: int) -> bool:
    """Signal exactly this process. False if it is gone or belongs to another user."""
    from signal import pidfd_send_signal

    try:
        descriptor = watch_end(pid, started)
        if descriptor is None:
            return False
        try:
            pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


# ── this process and its family ──────────────────────────────────────────────────────────────────


def set_subreaper(wanted: bool) -> bool:
    """Adopt orphaned descendants, or stop that. Returns what was so before."""
    global _is_subreaper
    before = _is_subreaper
    if wanted != before and prctl(_PR_SET_CHILD_SUBREAPER, int(wanted)):
        _is_subreaper = wanted
    return before


def is_subreaper() -> bool:
    return _is_subreaper


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent dies. It exits at once if the parent is already dead."""
    prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if getppid() != parent:
        os._exit(1)


def survive_parent() -> None:
    """Undo `die_with_parent`."""
    prctl(_PR_SET_PDEATHSIG, 0)


def has_other_children(known: int) -> bool:
    """True if this process has other children than `known`, including adopted ones and zombies. False where the system does not
    show them."""
    global _children
    me = os.getpid()
    try:
        if _children is None or _children[0] != me:
            _children = me, os.open(f"/proc/self/task/{me}/children", os.O_RDONLY | os.O_CLOEXEC)
            descriptors.add(_children[1])
        found = os.pread(_children[1], _PIECE, 0)
    except OSError:
        return False
    return found not in (b"", b"%d " % known)


def descendants(marker: bytes) -> list[int]:
    """Living descendants of this process, and processes that have the marker in their environment. Parents come before
    their children: a shell whose child was ended first would go on with its next command."""
    parents: dict[int, int] = {}
    marked = []
    me = os.getpid()
    for name in _process_names():
        fields = _stat_fields(name)
        if fields is None or fields[0] in _DEAD:
            continue
        parents[int(name)] = int(fields[1])
        if int(name) != me and marker in _environment(name):
            marked.append(int(name))
    found = {pid for pid in parents if _is_below(pid, me, parents)}.union(marked)
    return sorted(found, key=lambda pid: (_depth(pid, parents), pid))


def members_of(session: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for name in _process_names():
        fields = _stat_fields(name)
        if fields is not None and fields[0] not in _DEAD and int(fields[3]) == session:
            found.append(int(name))
    return found


def prctl(option: int, argument: int) -> bool:
    """Whether the system accepted it."""
    global _call, _prctl_at
    if _prctl_at is None:
        _call, _prctl_at = _call_of("prctl")
    return _call(_prctl_at, (option, argument, 0, 0, 0)) == 0


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def unnamed_file(name: str) -> int:
    """A descriptor of a new, empty file that no other process can find. A program that this process becomes inherits it."""
    return os.memfd_create(name, 0)


def memory_file(name: str) -> tuple[int, str]:
    """A descriptor of a new, empty file, and a path at which other processes of this user open it. The file is never on a disk,
    where HAS_MEMORY_FILES is True."""
    descriptor = os.memfd_create(name)
    return descriptor, f"/proc/{os.getpid()}/fd/{descriptor}"


def sealed_file(name: str, content: bytes) -> tuple[int, str]:
    """A `memory_file` that nobody can change."""
    from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE, fcntl

    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.write(descriptor, content)
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, f"/proc/{os.getpid()}/fd/{descriptor}"


def sync(descriptor: int) -> None:
    """Return when the file's content and size are on the disk."""
    os.fsync(descriptor)


def sync_data(descriptor: int) -> None:
    """`sync`, perhaps without the file's times."""
    os.fdatasync(descriptor)


def with_short_path(folder: str, use: Callable[[str], object]) -> None:
    """Call `use` with a short path of the folder: addresses of sockets have about 100 bytes."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        use(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


# Where appending to a file is atomic for all who can see the file. Not on what is shared between machines.
_LOCAL_DISKS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "zfs", "f2fs", "overlay", "bcachefs"})


def appends_are_atomic(folder: str) -> bool:
    """Whether the folder is on a disk of this machine, where appending to a file is one step for all who see the file."""
    with open("/proc/self/mounts", "rb") as mounts:
        return disk_of(os.path.realpath(folder), mounts) in _LOCAL_DISKS


def disk_of(path: str, mounts: Iterable[bytes]) -> str:
    """The type of the file system that a folder is on; mounts as the system lists them, the last one is on top."""
    best, kind = -1, ""
    for line in mounts:
        _, place, type, *_ = line.split(b" ")
        where = _unescaped(place)
        if len(where) >= best and (path == where or path.startswith(where.rstrip("/") + "/")):
            best, kind = len(where), type.decode()
    return kind


def _unescaped(place: bytes) -> str:
    """Blanks and the like are written as octal numbers there."""
    return os.fsdecode(place.decode("unicode_escape").encode("latin-1"))


MAX_FILES = 65_536


def limit_files(pid: int, limits: tuple[int, int]) -> None:
    """Limit the open files of a child process. OSError or ValueError if that is not allowed."""
    import resource

    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


# ── /proc ────────────────────────────────────────────────────────────────────────────────────────


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    for _ in range(len(parents)):
        above = parents.get(pid)
        if above is None or above == 0:
            return False
        if above == ancestor:
            return True
        pid = above
    return False


def _depth(pid: int, parents: dict[int, int]) -> int:
    """How many processes stand above it."""
    depth = 0
    while depth < len(parents) and (pid := parents.get(pid, 0)):
        depth += 1
    return depth


def _process_names() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _stat_fields(name: str) -> list[bytes] | None:
    """The fields of /proc/<pid>/stat from the third (state) on; the second may contain anything, even brackets."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split() or None
    except OSError:
        return None


def _environment(name: str) -> list[bytes]:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _attempt_in_environment(name: str, prefix: bytes) -> str | None:
    for variable in _environment(name):
        if variable.startswith(prefix):
            return variable[len(prefix) :].decode("utf-8", "replace")
    return None


def _call_of(name: str) -> tuple[Callable[[int, tuple[int, ...]], int], int]:
    """A function that calls an address, and the address of a function of the C library. Both do nothing where that is
    impossible."""
    try:
        # `ctypes` itself takes several times as long to import as these three calls.
        import _ctypes

        return _ctypes.call_function, _ctypes.dlsym(_ctypes.dlopen(None, 0), name)  # type: ignore[arg-type]
    except (ImportError, OSError, AttributeError):
        return lambda _address, _arguments: -1, 0
