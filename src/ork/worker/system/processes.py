"""What the worker asks of the operating system: its own identity, its descendants, to outlive no parent, whether it waited.

The processes of an attempt are found by a tag: the variable ORK_ATTEMPT_ID in the environment that /proc shows, which is the one
that a program was started with. The fork server is started with room in that variable, so that each process forked from it can
write its own tag in place; what it forks has the same tag.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import time
from os import getppid
from resource import RUSAGE_SELF, getrusage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9
DEATH_WITH_PARENT = (1, _SIGKILL, 0, 0, 0)  # to be asked of `prctl`
_PIECE = 4096


def own_process() -> dict[str, Any]:
    """Host, pid, start time, boot id and pid namespace, which together identify this process for ever. Unknown ones are null."""
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
    """Boot id and pid namespace, which are the same in all forked processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().decode().strip(), os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None, None


def become_subreaper() -> bool:
    """Adopt orphaned descendants, so that `wait` shows when all of them have ended. True if the system supports it."""
    if not _is_subreaper:
        set_subreaper(True)
    return _is_subreaper


def set_subreaper(wanted: bool) -> bool:
    """Set or clear the attribute, and return its former value."""
    global _is_subreaper
    before = _is_subreaper
    if wanted != before and prctl(_PR_SET_CHILD_SUBREAPER, int(wanted)):
        _is_subreaper = wanted
    return before


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent dies. It exits at once if the parent is already dead."""
    prctl(*DEATH_WITH_PARENT[:2])
    if getppid() != parent:
        os._exit(1)


def has_children() -> bool:
    """True if this process has a child, or had one that nobody waited for."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


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
    """Living descendants of this process, and processes that have the marker in their environment."""
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
    """A function that calls an address, and the address of a function of the C library. Both do nothing where that is
    impossible."""
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
"""Descriptors that stay open in this process, and must be closed in processes of tasks."""
# The process, and the descriptor that lists its children. It is kept open, because opening it takes longest.
_children: tuple[int, int] | None = None
_system: tuple[str | None, int | None] | None = None
_call: Callable[[int, tuple[int, ...]], int]
_prctl_at: int | None = None
_is_subreaper = False  # this process; a forked process does not inherit it and does not ask


class Signals:
    """Counts SIGTERM instead of ending the process. `wake` is readable after SIGTERM or SIGCHLD."""

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
        """Empty `wake`; it is readable again after the next signal."""
        try:
            os.read(self.wake, 4096)
        except BlockingIOError:
            return

    def _on_term(self, _number: int, _frame: object) -> None:
        self.terms += 1


VARIABLE = "ORK_ATTEMPT_ID"
SEVERAL = b"*"  # a worker with several attempts; its shared process has the tag of the current one
_ENV_START = 47  # in /proc/self/stat, counted from the state on


class AttemptTag:
    """The tag in this process's memory. OSError or ValueError if it was started without one."""

    def __init__(self) -> None:
        name = f"{VARIABLE}=".encode()
        with open("/proc/self/environ", "rb") as file:
            environment = b"\0" + file.read()
        at = environment.index(b"\0" + name)  # an offset in the environment, because of the NUL in front
        with open("/proc/self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[_ENV_START])
        self._address = start + at + len(name)
        self._room = environment.index(b"\0", at + 1) - at - 1 - len(name)
        # Written at once, because some systems forbid it.
        self.write(b"-" * self._room)

    def write(self, attempt: bytes) -> None:
        if len(attempt) > self._room:
            raise ValueError(f"there is no room for {attempt!r}")
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.pwrite(memory, attempt.ljust(self._room, b"\0"), self._address)
        finally:
            os.close(memory)


AT_ONCE_SECONDS = 0.00005


def times_waited() -> int:
    """Number of voluntary context switches of this process."""
    return getrusage(RUSAGE_SELF).ru_nvcsw


class Waits:
    """Waits of a process that makes one call after the other. Tasks that never wait gain nothing from more workers than
    processors."""

    def __init__(self) -> None:
        self._seen = times_waited()

    def none_since(self, begun: float) -> bool:
        """True if the call since `begun` did not wait. Must be called after every call; very short calls count as not waiting."""
        if time.monotonic() - begun < AT_ONCE_SECONDS:
            return True
        before, self._seen = self._seen, times_waited()
        return self._seen == before

    def forget(self) -> None:
        """Ignore waits until now."""
        self._seen = times_waited()
