"""The Postgres store: the verbs of `ork.state.store.StateStore`, each one call of a function in this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

from ork.core.effects import Alert
from ork.errors import StoreError
from ork.model.access import AuditEntry, Token
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey, VersionId
from ork.model.location import LocationEntry, Look
from ork.model.notice import Notice
from ork.model.run import NewRun, Run, RunCommand, RunStatus, SchedulerEntry
from ork.model.task import Attempt
from ork.model.workflow import Rate, Version, VersionEntry, WorkflowEntry
from ork.state.postgres import access, commit, definitions, locations, ownership, reads, requests, schedules
from ork.state.postgres.address import read_address
from ork.state.postgres.database import Database, LeaseClock
from ork.state.postgres.failures import TROUBLE, store_error
from ork.state.postgres.waiting import Listener
from ork.state.schedules import ScheduleEntry
from ork.state.store import (
    ALL_TASKS,
    NO_RATES,
    Accepted,
    Cached,
    Changes,
    Claim,
    Committed,
    LimitUse,
    RunChanges,
    RunFilter,
    RunPage,
    RunUpdate,
    TaskFilter,
    TooLate,
)

LEASE_SECONDS = 60.0
ANSWER_SECONDS = 45.0  # for a whole verb; less than a lease, so that its holder learns of trouble before others do

P = ParamSpec("P")
T = TypeVar("T")


class PostgresStore:
    """One handle: a pool of connections, opened when first used. The schema is created or brought up to date then.

    A verb whose connection is lost, or that is not answered in time, is StoreUnavailableError: what it wrote is there as
    a whole or not at all, and nobody can say which. The handle stays usable. All calls must come from one event loop.
    """

    def __init__(
        self,
        url: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        pool_size: int | None = None,
        clock: LeaseClock | None = None,
    ) -> None:
        address = read_address(url, pool_size)
        self.name = address.shown
        self._db = Database(address, lease_seconds, clock)
        self._listener: Listener | None = None
        self._is_closed = False

    # ── definitions ──────────────────────────────────────────────────────────────────────────────

    async def save_version(
        self, version: Version, *, origin: str | None, now: datetime, next_fire: datetime | None = None
    ) -> bool:
        return await self._do(definitions.save_version, version, origin, now, next_fire)

    async def set_enabled(self, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:
        return await self._do(definitions.set_enabled, workflow, enabled, next_fire)

    async def delete_workflow(self, workflow: str) -> bool:
        return await self._do(definitions.delete_workflow, workflow)

    async def set_limits(self, limits: Mapping[str, int], rates: Mapping[str, Rate] = NO_RATES) -> None:
        await self._do(definitions.set_limits, limits, rates)

    # ── runs and what people ask of them ─────────────────────────────────────────────────────────

    async def create_runs(self, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
        return await self._do(requests.create_runs, runs, now)

    async def submit_command(self, command: RunCommand, now: datetime) -> Accepted | TooLate | None:
        return await self._do(requests.submit_command, command, now)

    # ── schedules, notices, keeping house ────────────────────────────────────────────────────────

    async def list_schedules(self) -> tuple[ScheduleEntry, ...]:
        return await self._do(schedules.list_schedules)

    async def due_schedules(self, now: datetime) -> tuple[ScheduleEntry, ...]:
        return await self._do(schedules.due_schedules, now)

    async def next_fire_at(self, after: datetime) -> datetime | None:
        return await self._do(schedules.next_fire_at, after)

    async def fire(
        self,
        workflow: str,
        expected: datetime | None,
        runs: Sequence[NewRun],
        next_fire: datetime | None,
        now: datetime,
        *,
        missed: str | None = None,
    ) -> bool:
        return await self._do(schedules.fire, workflow, expected, runs, next_fire, now, missed)

    async def take_alerts(self, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
        return await self._do(schedules.take_alerts, limit, now, hold_seconds)

    async def settle_alert(
        self, id: int, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
    ) -> None:
        await self._do(schedules.settle_alert, id, sent, retry_at, error)

    async def next_alert_at(self) -> datetime | None:
        return await self._do(schedules.next_alert_at)

    async def prunable_runs(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        return await self._do(schedules.prunable_runs, before, limit, keep_last)

    async def prune(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        return await self._do(schedules.prune, before, limit, keep_last)

    async def leftovers(self, limit: int) -> tuple[RunId, ...]:
        return await self._do(schedules.leftovers, limit)

    async def swept(self, runs: Sequence[RunId]) -> None:
        await self._do(schedules.swept, runs)

    # ── code locations ───────────────────────────────────────────────────────────────────────────

    async def set_locations(self, sources: Mapping[str, str], now: datetime) -> None:
        await self._do(locations.set_locations, sources, now)

    async def list_locations(self) -> tuple[LocationEntry, ...]:
        return await self._do(locations.list_locations)

    async def ask_refresh(self, location: str, now: datetime) -> bool:
        return await self._do(locations.ask_refresh, location, now)

    async def take_location(self, now: datetime, hold_seconds: float) -> LocationEntry | None:
        return await self._do(locations.take_location, now, hold_seconds)

    async def keep_location(self, held: LocationEntry, now: datetime, hold_seconds: float) -> LocationEntry | None:
        return await self._do(locations.keep_location, held, now, hold_seconds)

    async def settle_location(self, held: LocationEntry, look: Look, due_at: datetime, now: datetime) -> bool:
        return await self._do(locations.settle_location, held, look, due_at, now)

    async def next_location_at(self) -> datetime | None:
        return await self._do(locations.next_location_at)

    # ── ownership ────────────────────────────────────────────────────────────────────────────────

    async def introduce(self, scheduler: SchedulerId, identity: str, kind: str, now: datetime) -> None:
        await self._do(ownership.introduce, scheduler, identity, kind, now)

    async def claim_runs(self, scheduler: SchedulerId, room: int, now: datetime) -> Claim:  # noqa: ARG002 (leases go by the store's clock)
        return await self._do(ownership.claim_runs, scheduler, room)

    async def commit(self, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
        return await self._do(commit.commit, scheduler, changes, now)

    async def renew(self, scheduler: SchedulerId) -> bool:
        return await self._do(ownership.renew, scheduler)

    async def bury(self, schedulers: Sequence[SchedulerId]) -> None:
        await self._do(ownership.bury, schedulers)

    async def release(self, scheduler: SchedulerId, runs: Sequence[RunId] | None = None) -> None:
        await self._do(ownership.release, scheduler, runs)

    # ── waking ───────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        await self._open()
        if self._listener is None:
            self._listener = Listener(self._db)
        return await self._listener.wait(timeout)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    async def get_version(self, version: VersionId) -> Version | None:
        return await self._do(definitions.get_version, version)

    async def list_versions(self, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
        return await self._do(definitions.list_versions, workflow, limit)

    async def get_workflow(self, name: str) -> WorkflowEntry | None:
        return await self._do(definitions.get_workflow, name)

    async def list_workflows(self) -> tuple[WorkflowEntry, ...]:
        return await self._do(definitions.list_workflows)

    async def get_run(self, run: RunId) -> Run | None:
        return await self._do(reads.get_run, run)

    async def find_by_key(self, workflow: str, key: str) -> Run | None:
        return await self._do(reads.find_by_key, workflow, key)

    async def count_unfinished(self) -> Mapping[RunStatus, int]:
        return await self._do(reads.count_unfinished)

    async def changes_since(self, mark: int | None, limit: int = 100) -> Changes:
        return await self._do(reads.changes_since, mark, limit)

    async def find_runs(self, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
        return await self._do(reads.find_runs, prefix, limit)

    async def list_runs(self, query: RunFilter) -> RunPage:
        return await self._do(reads.list_runs, query)

    async def run_updates(self, run: RunId, since: int = 0, only: TaskFilter = ALL_TASKS) -> RunUpdate | None:
        return await self._do(reads.run_updates, run, since, only)

    async def list_attempts(
        self, run: RunId, task: TaskKey | None = None, *, after: AttemptKey | None = None, limit: int | None = None
    ) -> tuple[Attempt, ...]:
        return await self._do(reads.list_attempts, run, task, after, limit)

    async def find_cached(self, key: str, since: datetime) -> Cached | None:
        return await self._do(reads.find_cached, key, since)

    async def list_alerts(self, run: RunId) -> tuple[Alert, ...]:
        return await self._do(reads.list_alerts, run)

    async def list_schedulers(self) -> tuple[SchedulerEntry, ...]:
        return await self._do(ownership.list_schedulers)

    async def get_owner(self, run: RunId) -> SchedulerId | None:
        return await self._do(ownership.get_owner, run)

    async def pending_commands(self, run: RunId) -> tuple[RunCommand, ...]:
        return await self._do(requests.pending_commands, run)

    async def limit_use(self) -> tuple[LimitUse, ...]:
        return await self._do(reads.limit_use)

    # ── who may do what, and who did what ────────────────────────────────────────────────────────

    async def add_token(self, token: Token) -> None:
        await self._do(access.add_token, token)

    async def find_token(self, digest: str) -> Token | None:
        return await self._do(access.find_token, digest)

    async def list_tokens(self) -> tuple[Token, ...]:
        return await self._do(access.list_tokens)

    async def revoke_token(self, id: str, now: datetime) -> bool:
        return await self._do(access.revoke_token, id, now)

    async def record(self, entry: AuditEntry) -> None:
        await self._do(access.record, entry)

    async def list_audit(self, limit: int = 50, before: int | None = None) -> tuple[AuditEntry, ...]:
        return await self._do(access.list_audit, limit, before)

    async def signing_key(self) -> bytes:
        return await self._do(definitions.signing_key)

    async def statement_count(self) -> int:
        return self._db.statements

    async def close(self) -> None:
        """May be called twice."""
        self._is_closed = True
        if self._listener is not None:
            await self._listener.close()
        await self._db.close()

    async def _open(self) -> None:
        """Connecting has a time limit of its own; bringing a schema up to date takes as long as it takes."""
        if self._is_closed:
            raise StoreError(f"The store {self.name} has been closed.")
        try:
            await self._db.open()
        except (*TROUBLE, ValueError) as error:
            raise store_error(error, self.name) from error

    async def _do(
        self,
        verb: Callable[Concatenate[Database, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        await self._open()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await verb(self._db, *args, **kwargs)
        except TROUBLE as error:
            raise store_error(error, self.name) from error
