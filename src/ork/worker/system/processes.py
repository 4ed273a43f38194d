"""What the worker asks of the operating system, on top of `ork.system`: its own identity, signals, whether it waited.

The processes of an attempt are found by a tag: the variable ORK_ATTEMPT_ID in the environment that /proc shows, which is the one
that a program was started with. The fork server is started with room in that variable, so that each process forked from it can
write its own tag in place; what it forks has the same tag.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import time
from resource import RUSAGE_SELF, getrusage

from ork.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def own_process() -> dict[str, Any]:
    """Host, pid, start time, boot id and pid namespace, which together identify this process for ever. Unknown ones are null."""
    global _system
    if _system is None:
        _system = system.boot_id(), system.pid_namespace()  # the same in all forked processes
    boot, namespace = _system
    return {
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "start_time": system.start_time(os.getpid()),
        "boot_id": boot,
        "pid_ns": namespace,
    }


def become_subreaper() -> bool:
    """Adopt orphaned descendants, so that `wait` shows when all of them have ended. True if the system supports it."""
    if not system.is_subreaper():
        system.set_subreaper(True)
    return system.is_subreaper()


def has_children() -> bool:
    """True if this process has a child, or had one that nobody waited for."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


_system: tuple[str | None, int | None] | None = None


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
