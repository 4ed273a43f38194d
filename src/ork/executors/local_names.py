"""The external name of an attempt on this machine: where it is, if it is alive."""

from __future__ import annotations

from functools import cache

from ork.executors import processes
from ork.executors.executor import Presence
from ork.model.ids import AttemptKey
from ork.model.task import Attempt


def name_for(attempt: AttemptKey) -> str:
    return _here() + str(attempt)


@cache
def _here() -> str:
    return f"local:{processes.machine()}:{processes.boot_id()}:{processes.pid_namespace()}:"


def location_of(attempt: Attempt) -> Presence:
    """RUNNING means no more than: if it is alive, then here."""
    try:
        kind, host, boot, namespace, _ = attempt.external_name.split(":", 4)
    except ValueError:
        return Presence.UNKNOWN
    if kind == "local" and processes.is_another_boot(host, boot):
        return Presence.LOST
    # Names of 0.1.0 have no id of the machine: a boot is one machine's, too.
    if kind != "local" or host not in (processes.machine(), processes.hostname()) or boot != processes.boot_id():
        return Presence.UNKNOWN
    return Presence.RUNNING if namespace == str(processes.pid_namespace()) else Presence.UNKNOWN
