"""The state store for schedulers: creates runs, assigns them to schedulers, and commits decisions about them.

Every sentence of a docstring is a test in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import QuarantinedRun
from ork.model.run import NewRun, Run, RunCommand
from ork.model.task import Heartbeat
from ork.state.reading import StateReader
from ork.state.records import Accepted, Claim, Committed, RunChanges, TooLate
from ork.state.schedules import ScheduleFiring


class RunRequests(StateReader, Protocol):
    """Requests of people and of sub-workflows: new runs, and commands for runs."""

    async def create_runs(self, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
        """Create the runs; each is durable and pending when this returns.

        If a (workflow, key) exists, the existing run is returned if version and params are equal; otherwise
        RefusedError, and nothing is created. If a (workflow, scheduled_for) of trigger schedule or backfill exists, the
        existing run is returned. If an id exists, the existing run is returned (the caller repeats a call whose result
        was lost).
        """
        ...

    async def submit_command(self, command: RunCommand, now: datetime) -> Accepted | TooLate | None:
        """Store the command and wake the run's owner. None if the run does not exist. An accepted cancel is on the
        run's row at once and is binding.

        TooLate is returned for CANCEL, PAUSE and RESUME of a final run, RETRY of a run that is not final, PAUSE of a
        paused run, and RESUME of a run that is not paused.
        """
        ...


class SchedulerStore(RunRequests, ScheduleFiring, Protocol):
    """Ownership of runs by leases and epochs, commits checked against the epoch, and firing schedules."""

    # ── leases ───────────────────────────────────────────────────────────────────────────────────

    async def register(
        self, scheduler: SchedulerId, identity: str, kind: str, now: datetime, *, terms: str | None = None
    ) -> None:
        """Register the scheduler with a lease of `lease_seconds` by the store's clock.

        It owns no runs: those that it owned under the same id have no owner any more and can be claimed at once.
        SettingsDifferError, and nothing is written, if `terms` are given and differ from the recorded shared settings.
        """
        ...

    async def renew(self, scheduler: SchedulerId) -> bool:
        """Extend the lease to `lease_seconds` from now. False if it had expired and another scheduler claimed a run, or
        if the scheduler is unknown; it must register and claim again."""
        ...

    async def expire(self, schedulers: Sequence[SchedulerId]) -> None:
        """Expire the leases of these schedulers now. They must be provably dead."""
        ...

    async def release(
        self, scheduler: SchedulerId, runs: Sequence[RunId] | None = None, *, exits: bool = False
    ) -> None:
        """Release the runs (None: all), so that they can be claimed at once. With None the scheduler is deleted as well
        and, if it `exits`, also a control for it alone. If there is nothing to release, nothing is written and no one
        is woken."""
        ...

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────

    async def claim_runs(
        self, scheduler: SchedulerId, room: int, now: datetime, *, only: Collection[RunId] | None = None
    ) -> Claim:
        """Claim up to `room` runs that need an owner, and increment the epoch of each.

        A run needs an owner if it is pending, running, or paused with active attempts, or has pending commands, and if
        it has no owner, an unknown one, or one whose lease has expired. Higher priority first, then older first.
        `max_active_runs` of a workflow applies: a pending run beyond it stays unclaimed until another one ends, unless
        it is to be cancelled. A scheduler that is unknown or whose own lease has expired gets nothing. With `only`, the
        claim is limited to those runs, their sub-workflows, and interrupted runs (the owner's lease has expired, or
        there is no owner and an attempt is active). Commands are returned for every run that the scheduler owns, in
        order of id, until a commit finishes them. Two schedulers never get the same run at the same epoch. A run that
        cannot be decoded (its row, a task, a current attempt, its version) is quarantined; a command of an unknown kind
        is finished and listed by `list_quarantined`.
        """
        ...

    async def commit(self, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
        """Write the changes of each run: all of them durably, or none. Different runs need not be atomic with each
        other.

        A run whose epoch or owner differs is fenced; other runs are written. A run that would become success or failed
        although there is a cancel request it does not know of (`run.cancel_requested_at` is None in the row to be
        written) is overruled, unless it had ended before, since that request was for an earlier round.

        Launches are admitted by priority while every limit they count against ("*", "executor:X", "pool:Y") has
        capacity, counting active attempts of all runs that do not wait for an external job, and while every rate (of
        the pool and of the task) has a start left by the store's clock. Admitted launches are written with the rest.
        Limits are never exceeded, even by concurrent commits. How a store ensures that is up to the store: by counting
        under a lock, or by shares of each limit that schedulers hold and pass on.

        Launches with the same `attempt.group.id` are admitted as one unit, into the slots that are free below every
        limit, up to `group.parallelism`. The number of slots is written as the parallelism and returned in
        `Committed.parallelism`. Without a free slot none of them is admitted; a rate admits the first ones, as many as
        it has starts left. While k attempts of a group are active and do not wait for an external job, the group holds
        min(parallelism, k) slots.

        Alerts become notices that are due at once. A run that succeeds creates a notice of recovery if the workflow's
        previous run (the newest earlier one that succeeded or failed) had failed, or if the run itself had been
        reported as failed; the store may decide that in the commit or when notices are next taken. A commit that writes
        nothing wakes no one: otherwise two schedulers that wait for the same full pool would wake each other for ever.
        """
        ...

    async def set_aside(
        self, scheduler: SchedulerId, run: RunId, epoch: int, reason: str, now: datetime
    ) -> QuarantinedRun | None:
        """Quarantine the run: it has no owner and cannot be claimed until a person submits a command. None if the epoch
        is stale.

        It is paused with the reason as its note (a final run keeps its status) and listed by `list_quarantined`. If a
        cancel request is pending, it is cancelled instead, with its tasks and attempts. Its commands are finished. It
        holds no slots and does not count for its workflow's `max_active_runs`.
        """
        ...

    async def runs_with_commands(self) -> tuple[RunId, ...]:
        """Runs with a command that is not finished, by id."""
        ...

    # ── notes ────────────────────────────────────────────────────────────────────────────────────

    async def note_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> None:
        """Store, for each active attempt, the highest heartbeat number and when it was first seen by the store's clock
        (now minus its age). It is returned with the attempt when its run is claimed, unless the machine with that clock
        was restarted since. A negative number (see `Heartbeat`) replaces any other number and is replaced by any other.
        Needs no ownership, because an observed heartbeat stays true; wakes no one."""
        ...

    async def note_fallbacks(self, scheduler: SchedulerId, notes: Sequence[str]) -> None:
        """Set the notes that `list_schedulers` returns for this scheduler. Notes of an unknown scheduler are ignored;
        no one is woken."""
        ...
