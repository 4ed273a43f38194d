"""The external name of an attempt on this machine, which tells where it runs."""

from __future__ import annotations

from functools import cache

from ork.executors import processes
from ork.executors.executor import Presence
from ork.model.ids import AttemptKey
from ork.model.task import Attempt


def name_for(attempt: AttemptKey) -> str:
    return _prefix() + str(attempt)


@cache
def _prefix() -> str:
    return f"local:{processes.machine()}:{processes.boot_id()}:{processes.pid_namespace()}:"


def location_of(attempt: Attempt) -> Presence:
    """RUNNING only means that the attempt, if it is alive, is on this machine."""
    try:
        kind, host, boot, namespace, _ = attempt.external_name.split(":", 4)
    except ValueError:
        return Presence.UNKNOWN
    if kind == "local" and processes.is_another_boot(host, boot):
        return Presence.LOST
    # Names of 0.1.0 have no machine id, but a boot id belongs to one machine.
    if kind != "local" or host not in (processes.machine(), processes.hostname()) or boot != processes.boot_id():
        return Presence.UNKNOWN
    return Presence.RUNNING if namespace == str(processes.pid_namespace()) else Presence.UNKNOWN
