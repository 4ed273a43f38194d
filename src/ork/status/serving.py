"""Who is working on this store."""

from __future__ import annotations

from enum import StrEnum

from ork.executors.processes import identity, is_provably_dead
from ork.model.run import SchedulerEntry
from ork.state.reading import StateReader
from ork.status.words import rough

LASTING = "scheduler"
# An idle scheduler that cannot be checked from here and whose lease ended longer ago than this counts as dead.
FORGOTTEN_SECONDS = 7 * 86400.0
NO_SCHEDULER = "no scheduler is running on this store: start `ork scheduler` or `ork tick`"
NO_DEADLINE = (
    "no scheduler is running: the run goes on once a person decides, but nothing fails it when the time is over"
)

NOTHING_FIRES = "no scheduler is running: schedules fire only while `ork scheduler` or `ork serve` runs, or when `ork tick` is called"
NOTHING_STARTS = (
    "no scheduler is running: these runs wait until `ork scheduler` or `ork serve` runs, or `ork tick` is called"
)


class Liveness(StrEnum):
    """UNVERIFIED: an idle scheduler renews no lease, and its process cannot be checked from here: it may be alive."""

    ALIVE = "alive"
    UNVERIFIED = "unverified"
    DEAD = "dead"


async def fires_schedules(store: StateReader) -> bool:
    """Whether a process is there, as far as we know, that does; `ork run` works on its own run only."""
    return any(entry.kind != "run" for entry in await present_schedulers(store, None))


async def live_schedulers(store: StateReader, kind: str | None = LASTING) -> list[SchedulerEntry]:
    """Those that are certainly alive; `kind` None means of any kind."""
    return [entry for entry in await present_schedulers(store, kind) if liveness(entry) is Liveness.ALIVE]


async def present_schedulers(store: StateReader, kind: str | None = LASTING) -> list[SchedulerEntry]:
    """Those that are alive or may be; while there is one, nobody is told that no scheduler is running."""
    entries = await store.list_schedulers()
    return [entry for entry in entries if kind in (None, entry.kind) and liveness(entry) is not Liveness.DEAD]


def liveness(entry: SchedulerEntry) -> Liveness:
    """The process itself decides where it can be checked; elsewhere the lease, and without one what the entry owns.

    A scheduler that owns runs renews its lease, so an expired one means that it is dead. After a reboot of the machine
    that holds a SQLite store, the lease ended infinitely long ago.
    """
    if is_provably_dead(entry.identity):
        return Liveness.DEAD
    if entry.lease_seconds_left > 0 or _is_of_this_machine(entry.identity):
        return Liveness.ALIVE
    may_be_idle = entry.kind == LASTING and not entry.active_runs
    return Liveness.UNVERIFIED if may_be_idle and -entry.lease_seconds_left <= FORGOTTEN_SECONDS else Liveness.DEAD


def unverified_words(entry: SchedulerEntry) -> str:
    """Of an UNVERIFIED one, for people."""
    return f"idle, its lease ended {rough(-entry.lease_seconds_left)} ago; it cannot be checked from here"


def _is_of_this_machine(other: str) -> bool:
    return other.split("/")[:3] == identity().split("/")[:3]
