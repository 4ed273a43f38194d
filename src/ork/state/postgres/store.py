"""The Postgres store: the verbs of `ork.state.store.StateStore`, each one call of a function in this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, TypeVar

from ork.errors import StoreError
from ork.state.postgres import (
    access,
    definitions,
    installation,
    locations,
    ownership,
    quarantine,
    reads,
    requests,
    schedules,
    set_aside_list,
)
from ork.state.postgres.address import read_address
from ork.state.postgres.commit import commit as commit_changes
from ork.state.postgres.database import Database, LeaseClock
from ork.state.postgres.failures import TROUBLE, is_locked_out, is_lost, store_error
from ork.state.postgres.waiting import Listener

LEASE_SECONDS = 60.0
ANSWER_SECONDS = 45.0  # for a whole verb; less than a lease, so that its holder learns of trouble before others do

P = ParamSpec("P")
T = TypeVar("T")


def _verb(
    function: Callable[Concatenate[Database, P], Awaitable[T]],
) -> Callable[Concatenate[PostgresStore, P], Coroutine[Any, Any, T]]:
    """The function as a method: what it does to a database, a store can be asked for."""

    async def verb(store: PostgresStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._do(function, *args, **kwargs)

    verb.__name__ = function.__name__
    return verb


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

    save_version = _verb(definitions.save_version)
    set_enabled = _verb(definitions.set_enabled)
    delete_workflow = _verb(definitions.delete_workflow)
    set_limits = _verb(definitions.set_limits)

    # ── runs and what people ask of them ─────────────────────────────────────────────────────────

    create_runs = _verb(requests.create_runs)
    submit_command = _verb(requests.submit_command)

    # ── schedules, notices, keeping house ────────────────────────────────────────────────────────

    list_schedules = _verb(schedules.list_schedules)
    due_schedules = _verb(schedules.due_schedules)
    next_fire_at = _verb(schedules.next_fire_at)
    fire = _verb(schedules.fire)
    take_alerts = _verb(schedules.take_alerts)
    settle_alert = _verb(schedules.settle_alert)
    unsent_alerts = _verb(schedules.unsent_alerts)
    next_alert_at = _verb(schedules.next_alert_at)
    prunable_runs = _verb(schedules.prunable_runs)
    prune = _verb(schedules.prune)
    leftovers = _verb(schedules.leftovers)
    swept = _verb(schedules.swept)

    # ── code locations ───────────────────────────────────────────────────────────────────────────

    set_locations = _verb(locations.set_locations)
    list_locations = _verb(locations.list_locations)
    ask_refresh = _verb(locations.ask_refresh)
    take_location = _verb(locations.take_location)
    keep_location = _verb(locations.keep_location)
    settle_location = _verb(locations.settle_location)
    next_location_at = _verb(locations.next_location_at)

    # ── the installation as a whole ──────────────────────────────────────────────────────────────

    read_shared_settings = _verb(installation.read_shared_settings)
    record_shared_settings = _verb(installation.record_shared_settings)
    replace_shared_settings = _verb(installation.replace_shared_settings)
    set_control = _verb(installation.set_control)
    clear_control = _verb(installation.clear_control)
    list_controls = _verb(installation.list_controls)
    runs_with_commands = _verb(installation.runs_with_commands)

    # ── ownership ────────────────────────────────────────────────────────────────────────────────

    introduce = _verb(ownership.introduce)
    claim_runs = _verb(ownership.claim_runs)
    commit = _verb(commit_changes)
    note_fallbacks = _verb(ownership.note_fallbacks)
    note_heartbeats = _verb(ownership.note_heartbeats)
    renew = _verb(ownership.renew)
    bury = _verb(ownership.bury)
    release = _verb(ownership.release)
    set_aside = _verb(quarantine.set_aside)
    list_quarantined = _verb(set_aside_list.list_quarantined)

    # ── waking ───────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        await self._open()
        if self._listener is None:
            self._listener = Listener(self._db)
        return await self._listener.wait(timeout)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    get_version = _verb(definitions.get_version)
    list_versions = _verb(definitions.list_versions)
    get_workflow = _verb(definitions.get_workflow)
    list_workflows = _verb(definitions.list_workflows)
    get_run = _verb(reads.get_run)
    find_by_key = _verb(reads.find_by_key)
    count_unfinished = _verb(reads.count_unfinished)
    changes_since = _verb(reads.changes_since)
    find_runs = _verb(reads.find_runs)
    list_runs = _verb(reads.list_runs)
    last_runs = _verb(reads.last_runs)
    run_updates = _verb(reads.run_updates)
    list_attempts = _verb(reads.list_attempts)
    find_cached = _verb(reads.find_cached)
    list_alerts = _verb(reads.list_alerts)
    list_schedulers = _verb(ownership.list_schedulers)
    needs_owner = _verb(ownership.needs_owner)
    get_owner = _verb(ownership.get_owner)
    get_starter = _verb(ownership.get_starter)
    pending_commands = _verb(requests.pending_commands)
    limit_use = _verb(reads.limit_use)

    # ── who may do what, and who did what ────────────────────────────────────────────────────────

    add_token = _verb(access.add_token)
    find_token = _verb(access.find_token)
    list_tokens = _verb(access.list_tokens)
    live_tokens = _verb(access.live_tokens)
    revoke_token = _verb(access.revoke_token)
    rotate_token = _verb(access.rotate_token)
    mark_token_used = _verb(access.mark_token_used)
    record = _verb(access.record)
    list_audit = _verb(access.list_audit)
    signing_key = _verb(definitions.signing_key)

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
            await self._recover(error)
            raise store_error(error, self.name) from error

    async def _recover(self, error: BaseException) -> None:
        """So that the next verb fares better."""
        if is_lost(error):
            await self._db.trust_no_connection()
        elif is_locked_out(error):
            with suppress(*TROUBLE):
                await self._db.end_silent_sessions()
