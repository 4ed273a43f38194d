"""Which process is which: pids are reused, so a process is named by machine, boot, namespace, pid and start time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

_DEAD = (b"Z", b"X")
_HALTED = (b"T", b"t")
_LOOKS_UNTIL_HALTED = 1000


class Process(NamedTuple):
    """A living process as seen in one look at the process table. `attempt` is the mark in its environment."""

    pid: int
    parent: int
    start_time: int
    attempt: str | None


@cache
def hostname() -> str:
    return os.uname().nodename


@cache
def machine() -> str:
    """Its name and, behind a `+`, its id. Machines made from one image often have one name; where there is no id (in most
    containers) they cannot be told apart."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            id = file.read().strip()[:12]
    except (OSError, ValueError):
        id = ""
    return f"{hostname()}+{id}" if id else hostname()


def is_another_boot(of_machine: str, boot: str) -> bool:
    """Certainly of this machine, and before it was restarted."""
    return of_machine == machine() and "+" in of_machine and boot != boot_id() and "unknown" not in (boot, boot_id())


@cache
def boot_id() -> str:
    """Different after every boot; "unknown" where the system does not say."""
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
    """In ticks since boot; None if there is no such process or it is dead and only waits to be collected."""
    fields = _stat_fields(pid)
    return None if fields is None else int(fields[19])


def identity() -> str:
    """This process's name for ever, as text: host/boot/namespace/pid/start."""
    pid = os.getpid()
    return f"{machine()}/{boot_id()}/{pid_namespace()}/{pid}/{process_start_time(pid) or 0}"


def is_provably_dead(identity: str) -> bool:
    """True only if that process cannot be alive; False whenever it lives or we cannot know."""
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
    # Looked at after opening: from here on the pid cannot come to mean another process unnoticed.
    if process_start_time(pid) == start_time:
        return descriptor
    os.close(descriptor)
    return None


def send_signal(pid: int, start_time: int, number: signal.Signals) -> bool:
    """Signals exactly this process; False if it is gone or not ours."""
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
    """The same, if it is meant: asked while it is halted, so that it cannot become another's meanwhile."""
    send_signal(pid, start_time, signal.SIGSTOP)
    for _ in range(_LOOKS_UNTIL_HALTED):
        fields = _stat_fields(pid)
        if fields is None or fields[0] in _HALTED:
            break
    sent = is_meant() and send_signal(pid, start_time, number)
    send_signal(pid, start_time, signal.SIGCONT)
    return sent


def collect(pid: int) -> None:
    """A child of ours that has ended: the system may forget it."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def is_hidden(pid: int) -> bool:
    """There is such a process, and it is another user's: nothing more can be found out about it."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def attempt_of(pid: int, mark: str) -> str | None:
    """The attempt that a process works for now; None if it bears no such mark, or is gone."""
    return _attempt_in_environment(str(pid), mark.encode() + b"=")


def tagged_processes(mark: str) -> list[Process]:
    """One look at the whole process table; `mark` is the environment variable that names a process's attempt."""
    prefix = mark.encode() + b"="
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        fields = _stat_fields(int(name))
        if fields is not None:
            found.append(Process(int(name), int(fields[1]), int(fields[19]), _attempt_in_environment(name, prefix)))
    return found


def family(processes: Iterable[Process], attempt: str, holder: int | None = None) -> list[Process]:
    """The marked processes of an attempt and the holder of its gate, and everything below them, marked or not."""
    children: dict[int, list[Process]] = {}
    members: dict[int, Process] = {}
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
    """At most two looks at the process table for a whole batch of attempts."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._seen: list[list[Process]] = []

    def members(self, attempt: str) -> list[Process]:
        # Twice: one that was born while the first look passed by is older than the second.
        for number in range(2):
            if len(self._seen) <= number:
                self._seen.append(tagged_processes(self._mark))
            found = family(self._seen[number], attempt)
            if found:
                return found
        return []


def kill_family(look: Callable[[], list[Process]], rounds: int = 50) -> bool:
    """Kills everything that `look` finds until it finds nothing; False if something still lives after that.

    All are halted before any is killed, so that none can start another one meanwhile.
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
            # A worker that stays may have moved on to another attempt between the look and the halt.
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
    """The fields of /proc/<pid>/stat from the third (state) on, if it lives; its name may contain anything."""
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
