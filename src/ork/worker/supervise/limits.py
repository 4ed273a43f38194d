"""Limits of memory and processors for a local task: by a control group if possible, else by limits of its process.

Memory: a cgroup (v2 or v1) counts what the whole process tree uses. Without a cgroup, each process gets an
address-space limit, which counts reserved memory. Processors: a cgroup gives a share of time; otherwise the processes are
bound to as many processors, rounded up.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from ork.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.worker.supervise.log import Log
    from ork.worker.supervise.status import Ending

MOUNT = "/sys/fs/cgroup"
_PERIOD = 100_000
_OLD_SECONDS = 3600.0
_KILLED = (-9, 137)
_UNITS = ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


class ProcessLimits:
    """Created by the worker before the task's process, entered by that process, removed by the worker."""

    def __init__(self, wanted: dict[str, Any], attempt: str) -> None:
        self.cpu: float | None = wanted.get("cpu")
        self.memory: int | None = wanted.get("memory")
        config = wanted.get("worker")
        self._source = f"in worker config `{config}`" if config is not None else "in the task's `resources`"
        self._groups = _made_groups(attempt.replace("/", "."), self.cpu, self.memory)

    def enter(self, *, executes: bool) -> None:
        """Limit the calling process and its children. `executes`: it will exec another program, so its own memory does not count."""
        for group in self._groups.values():
            _write(f"{group}/cgroup.procs", "0")
        if self.memory is not None and "memory" not in self._groups:
            import resource

            most = self.memory + (0 if executes else _address_space())
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if self.cpu is not None and "cpu" not in self._groups:
            _bind_to_some(self.cpu)

    def explain(self, ending: Ending, log: Log | None) -> Ending:
        """Add a note to the ending if the limit ended the task, or a process that the task started."""
        if self.memory is None:
            return ending
        failure, limit = ending.failure, f"the memory limit of {_in_words(self.memory)} {self._source}"
        is_exceeded = self._was_out_of_memory()
        below = f"a process of the task was killed: out of memory, more than {limit}"
        if failure is None:
            if is_exceeded and log is not None:
                log.note(below)
        elif is_exceeded and ending.exit_code in _KILLED:
            failure["message"] = f"out of memory: the task used more than {limit}"
        elif is_exceeded:
            failure["message"] = f"{failure['message']} ({below})"
        elif (failure.get("detail") or {}).get("type") == "MemoryError":
            failure["message"] = f"{failure['message']} ({limit} is an address-space limit on this machine)"
        return ending

    def remove(self) -> None:
        for group in set(self._groups.values()):
            try:
                os.rmdir(group)
            except OSError:
                continue  # a process is still in it: the system refuses to remove it

    def _was_out_of_memory(self) -> bool:
        group = self._groups.get("memory")
        if group is None:
            return False
        words = (_read(f"{group}/memory.events") or _read(f"{group}/memory.oom_control") or "").split()
        counts = dict(zip(words[::2], words[1::2], strict=False))
        return counts.get("oom_kill", "0") != "0"


def limits_of(spec: dict[str, Any]) -> ProcessLimits | None:
    wanted = spec.get("limits")
    if not wanted or spec.get("container") is not None or not system.HAS_LIMITS:
        return None
    return ProcessLimits(wanted, spec["attempt"])


def enforcement() -> dict[str, str]:
    """How memory and processors are limited on this machine: `cgroup`, its substitute, or `nothing`."""
    if not system.HAS_LIMITS:
        return {"memory": "nothing", "cpu": "nothing"}
    groups = _made_groups(f"trial-{os.getpid()}", 1.0, 64 << 20)
    for group in set(groups.values()):
        os.rmdir(group)
    return {
        "memory": "cgroup" if "memory" in groups else "address space",
        "cpu": "cgroup" if "cpu" in groups else "affinity",
    }


def _made_groups(name: str, cpu: float | None, memory: int | None) -> dict[str, str]:
    """The group of each controller that could be created, with its limit set."""
    made: dict[str, str] = {}
    wanted = {"memory": memory, "cpu": cpu}
    for controller in [each for each, amount in wanted.items() if amount is not None]:
        for place in _places(controller):
            _remove_old(place)
            group = f"{place}/ork-{name}"
            if _is_made(group, controller, wanted[controller]):
                made[controller] = group
                break
    return made


def _is_made(group: str, controller: str, amount: float | None) -> bool:
    assert amount is not None
    is_new = not os.path.isdir(group)
    try:
        if is_new:
            os.mkdir(group, 0o755)
        if controller == "memory":
            _limit_memory(group, int(amount))
        else:
            _limit_cpu(group, amount)
    except OSError:
        if is_new:
            _remove_quietly(group)
        return False
    return True


def _remove_old(place: str) -> None:
    """Remove old, empty groups that killed workers left behind."""
    oldest = time.time() - _OLD_SECONDS
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith("ork-") and entry.stat(follow_symlinks=False).st_mtime < oldest:
                _remove_quietly(entry.path)


def _remove_quietly(group: str) -> None:
    try:
        os.rmdir(group)
    except OSError:
        return


def _limit_memory(group: str, size: int) -> None:
    is_new_kind = os.path.exists(f"{group}/memory.max")
    _write(f"{group}/{'memory.max' if is_new_kind else 'memory.limit_in_bytes'}", str(size))
    try:  # swap would raise the limit; without swap there is no such file
        if is_new_kind:
            _write(f"{group}/memory.swap.max", "0")
        else:
            _write(f"{group}/memory.memsw.limit_in_bytes", str(size))
    except OSError:
        return


def _limit_cpu(group: str, cpu: float) -> None:
    quota = max(1000, int(cpu * _PERIOD))
    if os.path.exists(f"{group}/cpu.max"):
        _write(f"{group}/cpu.max", f"{quota} {_PERIOD}")
    else:
        _write(f"{group}/cpu.cfs_period_us", str(_PERIOD))
        _write(f"{group}/cpu.cfs_quota_us", str(quota))


def _places(controller: str) -> list[str]:
    """Folders in which a group with this controller can be created: below our own group, else next to it."""
    for line in (_read("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        own = path.rstrip("/")
        if controller in controllers.split(","):
            return [f"{MOUNT}/{controllers}{own}"]
        if controllers == "" and os.path.exists(f"{MOUNT}/cgroup.controllers"):
            beside = [f"{MOUNT}{os.path.dirname(own)}".rstrip("/")] if own else []
            return [place for place in (f"{MOUNT}{own}", *beside) if _has_controller(place, controller)]
    return []


def _has_controller(place: str, controller: str) -> bool:
    """Enable the controller for groups below this one. Returns whether they have it."""
    with suppress(OSError):  # this may fail although the controller is already enabled
        _write(f"{place}/cgroup.subtree_control", f"+{controller}")
    return controller in (_read(f"{place}/cgroup.subtree_control") or "").split()


def _bind_to_some(cpu: float) -> None:
    from random import sample

    known = sorted(os.sched_getaffinity(0))
    many = max(1, -int(-cpu // 1))
    if many < len(known):
        os.sched_setaffinity(0, sample(known, many))


def _address_space() -> int:
    pages = (_read("/proc/self/statm") or "0").split()[0]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _in_words(size: int) -> str:
    return next((f"{size // unit}{word}" for unit, word in _UNITS if size % unit == 0), f"{size} bytes")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
