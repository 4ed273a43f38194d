"""Identifies processes. Pids are reused, so a process is identified by machine, boot, namespace, pid and start time."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from ork.system import system

_LOOKS_UNTIL_HALTED = 1000


class ProcessEntry(NamedTuple):
    """A living process in one read of the process table. `attempt` is its tag. `session` is 0 where tags are enough."""

    pid: int
    parent: int
    start_time: int
    attempt: str | None
    session: int = 0


@cache
def hostname() -> str:
    return os.uname().nodename


@cache
def machine() -> str:
    """The machine's name and, after a `+`, its id. Machines made from one image often have the same name; without an id (in
    most containers) they cannot be distinguished."""
    id = system.machine_id()[:12]
    return f"{hostname()}+{id}" if id else hostname()


def is_another_boot(of_machine: str, boot: str) -> bool:
    """True if the boot is certainly an earlier one of this machine."""
    return of_machine == machine() and "+" in of_machine and boot != boot_id() and "unknown" not in (boot, boot_id())


@cache
def boot_id() -> str:
    """Different after every boot; "unknown" if the system does not provide it."""
    return system.boot_id() or "unknown"


@cache
def pid_namespace() -> int:
    return system.pid_namespace() or 0


def process_start_time(pid: int) -> int | None:
    """In units of the system; None if there is no such process or it is a zombie."""
    return system.start_time(pid)


def is_alive(pid: int, start_time: int) -> bool:
    """Whether exactly this process is alive."""
    return system.is_same_start(system.start_time(pid), start_time)


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
    return namespace == pid_namespace() and not is_alive(pid, start)


def watch_death(identity: str) -> int | None:
    """A descriptor that becomes readable when that process ends; None if it cannot be watched from here."""
    parts = _parsed(identity)
    if parts is None or parts[:3] != (machine(), boot_id(), pid_namespace()):
        return None
    return watch_end(parts[3], parts[4])


def watch_end(pid: int, start_time: int) -> int | None:
    """A descriptor that becomes readable when exactly this process ends; None if it is gone. OSError when descriptors have
    run out."""
    return system.watch_end(pid, start_time)


def send_signal(pid: int, start_time: int, number: signal.Signals) -> bool:
    """Signal exactly this process. False if it is gone or belongs to another user."""
    return system.send_signal(pid, start_time, number)


def send_signal_if(pid: int, start_time: int, number: signal.Signals, is_meant: Callable[[], bool]) -> bool:
    """Signal the process if `is_meant` returns True. It is suspended during the call, so that it cannot change its attempt."""
    send_signal(pid, start_time, signal.SIGSTOP)
    for _ in range(_LOOKS_UNTIL_HALTED):
        if system.is_halted(pid):
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
    """The attempt that the process is tagged with; None if it has no tag, or is gone."""
    return system.attempt_of(pid, variable)


def tagged_processes(variable: str) -> list[ProcessEntry]:
    """Read the whole process table once. `variable` is the environment variable that names a process's attempt."""
    return [ProcessEntry(*found) for found in system.tagged_processes(variable)]


class Leader(NamedTuple):
    """The worker that won an attempt's gate. It leads a session, which may outlive it."""

    pid: int
    start_time: int


def family(processes: Iterable[ProcessEntry], attempt: str, leader: Leader | None = None) -> list[ProcessEntry]:
    """The tagged processes of an attempt, its living worker and the rest of the worker's session, and all their descendants."""
    children: dict[int, list[ProcessEntry]] = {}
    members: dict[int, ProcessEntry] = {}
    processes = list(processes)
    has_session = leader is not None and not _is_reused(processes, leader)
    for process in processes:
        children.setdefault(process.parent, []).append(process)
        if process.attempt == attempt or (
            has_session and leader is not None and leader.pid in (process.pid, process.session)
        ):
            members[process.pid] = process
    waiting = list(members)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in members:
                members[child.pid] = child
                waiting.append(child.pid)
    return list(members.values())


def _is_reused(processes: Iterable[ProcessEntry], leader: Leader) -> bool:
    """Whether the pid belongs to another process by now."""
    return any(
        process.pid == leader.pid and not system.is_same_start(process.start_time, leader.start_time)
        for process in processes
    )


class ProcessTable:
    """Reads the process table at most twice for a whole batch of attempts."""

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._seen: list[list[ProcessEntry]] = []

    def members(self, attempt: str, leader: Leader | None = None) -> list[ProcessEntry]:
        # Twice: a process that was created during the first read is found by the second.
        for number in range(2):
            if len(self._seen) <= number:
                self._seen.append(tagged_processes(self._variable))
            found = family(self._seen[number], attempt, leader)
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
