"""What the worker asks of the operating system: its own identity, its descendants, and to outlive no parent."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
from os import getppid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9
DEATH_WITH_PARENT = (1, _SIGKILL, 0, 0, 0)  # to be asked of `prctl`
_PIECE = 4096


def own_process() -> dict[str, Any]:
    """Host, pid, start time, boot id and pid namespace: together they name this process for ever (null where unknown)."""
    global _system
    if _system is None:
        _system = _this_system()
    fields = _stat_fields("self")
    boot, namespace = _system
    return {
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "start_time": int(fields[19]) if fields else None,
        "boot_id": boot,
        "pid_ns": namespace,
    }


def _this_system() -> tuple[str | None, int | None]:
    """Boot id and pid namespace: the same for all that are forked from this process."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().decode().strip(), os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None, None


def start_time_of(pid: int) -> int | None:
    """With the pid it names a process for ever, until the next boot; None if there is no such process."""
    fields = _stat_fields(str(pid))
    return int(fields[19]) if fields else None


def become_subreaper() -> bool:
    """True: whatever a descendant leaves behind becomes our child, so that `wait` tells when all of it is gone."""
    if not _is_subreaper:
        set_subreaper(True)
    return _is_subreaper


def set_subreaper(wanted: bool) -> bool:
    """Whether it was one before."""
    global _is_subreaper
    before = _is_subreaper
    if wanted != before and prctl(_PR_SET_CHILD_SUBREAPER, int(wanted)):
        _is_subreaper = wanted
    return before


def die_with_parent(parent: int) -> None:
    """The calling process is killed when its parent dies, and at once if that has happened already."""
    prctl(*DEATH_WITH_PARENT[:2])
    if getppid() != parent:
        os._exit(1)


def has_other_children(known: int) -> bool:
    """Whether this process has children, adopted ones and those that nobody has waited for included, beside that one; no
    where the system does not tell."""
    global _children
    me = os.getpid()
    try:
        if _children is None or _children[0] != me:
            _children = me, os.open(f"/proc/self/task/{me}/children", os.O_RDONLY | os.O_CLOEXEC)
            descriptors.add(_children[1])
        told = os.pread(_children[1], _PIECE, 0)
    except OSError:
        return False
    return told not in (b"", b"%d " % known)


def descendants(marker: bytes) -> list[int]:
    """Living processes below this one, or that carry the marker in their environment."""
    parents: dict[int, int] = {}
    marked = []
    me = os.getpid()
    for name in _process_names():
        fields = _stat_fields(name)
        if fields is None or fields[0] in (b"Z", b"X"):
            continue
        parents[int(name)] = int(fields[1])
        if int(name) != me and marker in _environment(name):
            marked.append(int(name))
    return sorted({pid for pid in parents if _is_below(pid, me, parents)}.union(marked))


def members_of(session: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for name in _process_names():
        fields = _stat_fields(name)
        if fields is not None and fields[0] not in (b"Z", b"X") and int(fields[3]) == session:
            found.append(int(name))
    return found


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    for _ in range(len(parents)):
        above = parents.get(pid)
        if above is None or above == 0:
            return False
        if above == ancestor:
            return True
        pid = above
    return False


def _process_names() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _stat_fields(name: str) -> list[bytes] | None:
    """The fields of /proc/<pid>/stat from the third (state) on; the second may contain anything, even brackets."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _environment(name: str) -> list[bytes]:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def call_of(name: str) -> tuple[Callable[[int, tuple[int, ...]], int], int]:
    """Calls what is at an address, and the address of a function of the system's library; where that cannot be done, two
    that do nothing."""
    try:
        # `ctypes` itself takes several times as long to import as these three calls.
        import _ctypes

        return _ctypes.call_function, _ctypes.dlsym(_ctypes.dlopen(None, 0), name)  # type: ignore[arg-type]
    except (ImportError, OSError, AttributeError):
        return lambda _address, _arguments: -1, 0


def prctl(option: int, argument: int) -> bool:
    global _call, _prctl_at
    if _prctl_at is None:
        _call, _prctl_at = call_of("prctl")
    return _call(_prctl_at, (option, argument, 0, 0, 0)) == 0


descriptors: set[int] = set()
"""That are kept open in this process: not for the user's."""
# The process, and the descriptor that tells of its children. Kept open: to open it is most of what it costs to ask.
_children: tuple[int, int] | None = None
_system: tuple[str | None, int | None] | None = None
_call: Callable[[int, tuple[int, ...]], int]
_prctl_at: int | None = None
_is_subreaper = False  # this process; one that is forked from it is none, and does not ask


class Signals:
    """From when it is made, SIGTERM is counted instead of ending the process, and `wake` is readable after either."""

    def __init__(self) -> None:
        self.terms = 0
        self.wake, self.ring = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self.ring, False)
        _signal.set_wakeup_fd(self.ring, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGTERM, self._on_term)
        # Without a handler the wake-up descriptor stays silent.
        _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGTERM,))

    def quiet(self) -> None:
        """Takes notice of what came; `wake` is readable again after the next."""
        try:
            os.read(self.wake, 4096)
        except BlockingIOError:
            return

    def _on_term(self, _number: int, _frame: object) -> None:
        self.terms += 1
