"""Lists the schedulers of a store, and determines which are alive."""

from __future__ import annotations

from enum import StrEnum

from ork.executors.processes import identity, is_provably_dead
from ork.model.run import SchedulerEntry
from ork.state.reading import StateReader
from ork.status.formatting import rough

SERVICE_KIND = "scheduler"
# An idle scheduler on another machine whose lease expired longer ago than this counts as dead.
MAX_UNVERIFIED_SECONDS = 7 * 86400.0
NO_SCHEDULER = "no scheduler is running on this store: start `ork scheduler` or `ork tick`"
NO_DEADLINE = (
    "no scheduler is running: the run continues once a person decides, but without a decision its timeout has no effect"
)

NOTHING_FIRES = "no scheduler is running: schedules fire only while `ork scheduler` or `ork serve` runs, or when `ork tick` is called"
NOTHING_STARTS = (
    "no scheduler is running: these runs wait until `ork scheduler` or `ork serve` runs, or `ork tick` is called"
)


class Liveness(StrEnum):
    """UNVERIFIED: an idle scheduler renews no lease; its process is on another machine and may be alive."""

    ALIVE = "alive"
    UNVERIFIED = "unverified"
    DEAD = "dead"


async def fires_schedules(store: StateReader) -> bool:
    """Whether a scheduler that fires schedules seems to be running; `ork run` schedules only its own run."""
    return any(entry.kind != "run" for entry in await present_schedulers(store, None))


async def live_schedulers(store: StateReader, kind: str | None = SERVICE_KIND) -> list[SchedulerEntry]:
    """The schedulers that are certainly alive; `kind` None means of any kind."""
    return [entry for entry in await present_schedulers(store, kind) if liveness(entry) is Liveness.ALIVE]


async def present_schedulers(store: StateReader, kind: str | None = SERVICE_KIND) -> list[SchedulerEntry]:
    """The schedulers that are or may be alive."""
    entries = await store.list_schedulers()
    return [entry for entry in entries if kind in (None, entry.kind) and liveness(entry) is not Liveness.DEAD]


def liveness(entry: SchedulerEntry) -> Liveness:
    """Judged by the process if it is on this machine, else by the lease, else by whether the scheduler owns runs.

    A scheduler that owns runs renews its lease, so an expired lease means that it is dead. After a reboot of the machine
    that holds a SQLite store, every lease counts as expired infinitely long ago.
    """
    if is_provably_dead(entry.identity):
        return Liveness.DEAD
    if entry.lease_seconds_left > 0 or _is_on_this_machine(entry.identity):
        return Liveness.ALIVE
    may_be_idle = entry.kind == SERVICE_KIND and not entry.active_runs
    return Liveness.UNVERIFIED if may_be_idle and -entry.lease_seconds_left <= MAX_UNVERIFIED_SECONDS else Liveness.DEAD


def unverified_text(entry: SchedulerEntry) -> str:
    """Describes an UNVERIFIED scheduler."""
    return f"idle, its lease expired {rough(-entry.lease_seconds_left)} ago; it cannot be checked from this machine"


def _is_on_this_machine(other: str) -> bool:
    return other.split("/")[:3] == identity().split("/")[:3]
