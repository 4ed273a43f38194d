"""Chooses what is killed next, and kills it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from random import Random
from typing import Any

from ork.chaos.containers import Containers
from ork.chaos.databases import SandboxDatabase
from ork.chaos.sandbox import Sandbox
from ork.chaos.verdict import Kill
from ork.executors.local_worker import ATTEMPT_VARIABLE
from ork.executors.processes import ProcessEntry, attempt_of

SCHEDULER, DATABASE, WORKER, TASK, FORK_SERVER, CONTAINER = (
    "scheduler", "database", "worker", "task", "fork server", "container",
)  # fmt: skip
# How often each is tried. A scheduler and a database take a second to come back; tasks come by the dozen.
_WEIGHTS = {SCHEDULER: 5, DATABASE: 2, WORKER: 6, TASK: 5, FORK_SERVER: 1}
_BUSY = (
    0.7  # how often a worker is chosen among those at work; the others have just ended their attempt, or wait for one
)
_CONTAINER_WEIGHTS = {SCHEDULER: 5, DATABASE: 2, CONTAINER: 10}


class Killer:
    """Kills by dice. `containers` is None if tasks are processes."""

    def __init__(
        self, sandbox: Sandbox, database: SandboxDatabase, dice: Random, containers: Containers | None
    ) -> None:
        self._sandbox, self._database, self._dice, self._containers = sandbox, database, dice, containers
        self._entries = -1  # in the ledger at the last kill of a scheduler or database
        self._ways: dict[str, Callable[[], Coroutine[Any, Any, Kill | None]]] = {
            SCHEDULER: self._kill_scheduler,
            DATABASE: self._kill_database,
            WORKER: lambda: self._kill_process(WORKER),
            TASK: lambda: self._kill_process(TASK),
            FORK_SERVER: lambda: self._kill_process(FORK_SERVER),
            CONTAINER: self._kill_container,
        }

    async def kill(self) -> Kill | None:
        """Kills something; None if there was nothing of the chosen kind.

        Schedulers and databases are killed only after something has started or ended since the last time: otherwise no
        work would ever be done, and nothing would be tried but starting."""
        weights = _WEIGHTS if self._containers is None else _CONTAINER_WEIGHTS
        kind = self._dice.choices(list(weights), list(weights.values()))[0]
        if kind in (SCHEDULER, DATABASE):
            if len(self._sandbox.ledger.read()) == self._entries:
                return None
            self._entries = len(self._sandbox.ledger.entries)
        return await self._ways[kind]()

    async def _kill_scheduler(self) -> Kill:
        victim = self._dice.choice(self._sandbox.schedulers)
        at = datetime.now(UTC)
        self._sandbox.kill_scheduler(victim)
        self._sandbox.start_scheduler()
        return Kill(SCHEDULER, f"scheduler {victim.pid}", at, of_scheduler=True)

    async def _kill_database(self) -> Kill:
        at = datetime.now(UTC)
        return Kill(DATABASE, await self._database.kill(), at, of_scheduler=self._database.kills_schedulers)

    async def _kill_process(self, kind: str) -> Kill | None:
        candidates = [process for process in self._sandbox.others() if self._kind(process) == kind]
        if kind == WORKER and self._dice.random() < _BUSY:
            candidates = list(filter(self._is_busy, candidates)) or candidates
        if not candidates:
            return None
        at = datetime.now(UTC)
        victim = self._sandbox.kill(self._dice.choice(candidates))
        if victim is None:
            return None
        self._sandbox.ledger.forget(victim.pid)
        return Kill(kind, f"process {victim.pid}", at, victim.attempts, victim.several)

    def _kind(self, process: ProcessEntry) -> str:
        if process.pid in self._sandbox.ledger.working.values():
            return TASK
        tag = attempt_of(process.pid, ATTEMPT_VARIABLE) or ""
        return WORKER if "/" in tag or tag == "*" else FORK_SERVER

    def _is_busy(self, process: ProcessEntry) -> bool:
        """The work of its attempt has not ended, or not even started."""
        return attempt_of(process.pid, ATTEMPT_VARIABLE) not in self._sandbox.ledger.ended

    async def _kill_container(self) -> Kill | None:
        assert self._containers is not None
        at = datetime.now(UTC)
        attempt = await self._containers.kill_one(self._dice)
        return None if attempt is None else Kill(CONTAINER, "container", at, frozenset({attempt}))
