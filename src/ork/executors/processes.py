"""Identifies processes. Pids are reused, so a process is identified by machine, boot, namespace, pid and start time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

_DEAD = (b"Z", b"X")
_HALTED = (b"T", b"t")
_LOOKS_UNTIL_HALTED = 1000


class ProcessEntry(NamedTuple):
    """A living process in one read of the process table. `attempt` is the tag in its environment."""

    pid: int
    parent: int
    start_time: int
    attempt: str | None


@cache
def hostname() -> str:
    return os.uname().nodename


@cache
def machine() -> str:
    """The machine's name and, after a `+`, its id. Machines made from one image often have the same name; without an id (in
    most containers) they cannot be distinguished."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            id = file.read().strip()[:12]
    except (OSError, ValueError):
        id = ""
    return f"{hostname()}+{id}" if id else hostname()


def is_another_boot(of_machine: str, boot: str) -> bool:
    """True if the boot is certainly an earlier one of this machine."""
    return of_machine == machine() and "+" in of_machine and boot != boot_id() and "unknown" not in (boot, boot_id())


@cache
def boot_id() -> str:
    """Different after every boot; "unknown" if the system does not provide it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


@cache
def pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def process_start_time(pid: int) -> int | None:
    """In ticks since boot; None if there is no such process or it is a zombie."""
    fields = _stat_fields(pid)
    return None if fields is None else int(fields[19])


def identity() -> str:
    """A unique name of this process: host/boot/namespace/pid/start."""
    pid = os.getpid()
    return f"{machine()}/{boot_id()}/{pid_namespace()}/{pid}/{process_start_time(pid) or 0}"


def is_provably_dead(identity: str) -> bool:
    """True only if that process cannot be alive; False if it is alive or unknown."""
    parts = _parsed(identity)
    if parts is None:
        return False
    host, boot, namespace, pid, start = parts
    if is_another_boot(host, boot):
        return True
    if host != machine() or boot != boot_id() or boot == "unknown":
        return False
    return namespace == pid_namespace() and process_start_time(pid) != start


def watch_death(identity: str) -> int | None:
    """A descriptor that becomes readable when that process ends; None if it cannot be watched from here."""
    parts = _parsed(identity)
    if parts is None or parts[:3] != (machine(), boot_id(), pid_namespace()):
        return None
    return open_process(parts[3], parts[4])


def open_process(pid: int, start_time: int) -> int | None:
    """A pidfd of exactly this process; None if it is gone. OSError when descriptors have run out."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    # Checked after opening: from here on the pidfd refers to this process.
    if process_start_time(pid) == start_time:
        return descriptor
    os.close(descriptor)
    return None


def send_signal(pid: int, start_time: int, number: signal.Signals) -> bool:
    """Signal exactly this process. False if it is gone or belongs to another user."""
    try:
        descriptor = open_process(pid, start_time)
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def send_signal_if(pid: int, start_time: int, number: signal.Signals, is_meant: Callable[[], bool]) -> bool:
    """Signal the process if `is_meant` returns True. It is suspended during the call, so that it cannot change its attempt."""
    send_signal(pid, start_time, signal.SIGSTOP)
    for _ in range(_LOOKS_UNTIL_HALTED):
        fields = _stat_fields(pid)
        if fields is None or fields[0] in _HALTED:
            break
    sent = is_meant() and send_signal(pid, start_time, number)
    send_signal(pid, start_time, signal.SIGCONT)
    return sent


def collect(pid: int) -> None:
    """Reap a child process that has ended."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def is_hidden(pid: int) -> bool:
    """True if the process exists and belongs to another user, so that it cannot be inspected."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def attempt_of(pid: int, variable: str) -> str | None:
    """The attempt in the process's environment; None if it has no such variable, or is gone."""
    return _attempt_in_environment(str(pid), variable.encode() + b"=")


def tagged_processes(variable: str) -> list[ProcessEntry]:
    """Read the whole process table once. `variable` is the environment variable that names a process's attempt."""
    prefix = variable.encode() + b"="
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        fields = _stat_fields(int(name))
        if fields is not None:
            found.append(
                ProcessEntry(int(name), int(fields[1]), int(fields[19]), _attempt_in_environment(name, prefix))
            )
    return found


def family(processes: Iterable[ProcessEntry], attempt: str, holder: int | None = None) -> list[ProcessEntry]:
    """The tagged processes of an attempt and the holder of its gate, and all their descendants."""
    children: dict[int, list[ProcessEntry]] = {}
    members: dict[int, ProcessEntry] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
        if process.attempt == attempt or process.pid == holder:
            members[process.pid] = process
    waiting = list(members)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in members:
                members[child.pid] = child
                waiting.append(child.pid)
    return list(members.values())


class ProcessTable:
    """Reads the process table at most twice for a whole batch of attempts."""

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._seen: list[list[ProcessEntry]] = []

    def members(self, attempt: str) -> list[ProcessEntry]:
        # Twice: a process that was created during the first read is found by the second.
        for number in range(2):
            if len(self._seen) <= number:
                self._seen.append(tagged_processes(self._variable))
            found = family(self._seen[number], attempt)
            if found:
                return found
        return []


def kill_family(look: Callable[[], list[ProcessEntry]], rounds: int = 50) -> bool:
    """Kill everything that `look` finds until it finds nothing. False if something is still alive after that.

    All processes are suspended before any is killed, so that none can start another one.
    """
    for _ in range(rounds):
        halted: set[tuple[int, int]] = set()
        while new := (meant := {(process.pid, process.start_time) for process in look()}) - halted:
            halted |= new
            for pid, start_time in new:
                send_signal(pid, start_time, signal.SIGSTOP)
        if not halted:
            return True
        for pid, start_time in halted:
            # A reusable worker may have started another attempt before it was suspended.
            is_meant = (pid, start_time) in meant
            send_signal(pid, start_time, signal.SIGKILL if is_meant else signal.SIGCONT)
    return not look()


def _parsed(identity: str) -> tuple[str, str, int, int, int] | None:
    try:
        host, boot, namespace, pid, start = identity.split("/")
        return host, boot, int(namespace), int(pid), int(start)
    except ValueError:
        return None


def _stat_fields(pid: int) -> list[bytes] | None:
    """The fields of /proc/<pid>/stat from the third (state) on, if it is alive. The name may contain any character."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if not fields or fields[0] in _DEAD else fields


def _attempt_in_environment(name: str, prefix: bytes) -> str | None:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            for variable in file.read().split(b"\0"):
                if variable.startswith(prefix):
                    return variable[len(prefix) :].decode("utf-8", "replace")
    except OSError:
        pass
    return None
