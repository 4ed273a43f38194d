"""Who is working on this store."""

from __future__ import annotations

from ork.executors.processes import identity, is_provably_dead
from ork.model.run import SchedulerEntry
from ork.state.store import StateStore

LASTING = "scheduler"
NO_SCHEDULER = "no scheduler is running on this store: start `ork scheduler` or `ork tick`"

NOTHING_FIRES = "no scheduler is running: schedules fire only while `ork scheduler` or `ork serve` runs, or when `ork tick` is called"
NOTHING_STARTS = (
    "no scheduler is running: these runs wait until `ork scheduler` or `ork serve` runs, or `ork tick` is called"
)


async def fires_schedules(store: StateStore) -> bool:
    """Whether somebody is there who does; `ork run` works on its own run only."""
    return any(entry.kind != "run" for entry in await live_schedulers(store, None))


async def live_schedulers(store: StateStore, kind: str | None = LASTING) -> list[SchedulerEntry]:
    """Those that can be counted on; `kind` None means of any kind."""
    entries = await store.list_schedulers()
    return [entry for entry in entries if kind in (None, entry.kind) and is_alive(entry)]


def is_alive(entry: SchedulerEntry) -> bool:
    """On this machine the process itself tells (an idle scheduler lets its lease run out); elsewhere the lease."""
    if is_provably_dead(entry.identity):
        return False
    return entry.lease_seconds_left > 0 or _is_of_this_machine(entry.identity)


def _is_of_this_machine(other: str) -> bool:
    return other.split("/")[:3] == identity().split("/")[:3]
