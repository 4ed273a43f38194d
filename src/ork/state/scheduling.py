"""The state store for schedulers: creating runs, owning them, and committing what was decided about them.

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
    """What people ask for, and sub-workflows: new runs, and commands for runs."""

    async def create_runs(self, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
        """Each run is durable and pending when this returns.

        A (workflow, key) that exists gives the existing run if version and params are equal, else RefusedError and
        nothing is created. A (workflow, scheduled_for) of trigger schedule or backfill that exists gives the existing
        run. An id that exists gives the existing run (the caller repeats an ambiguous call).
        """
        ...

    async def submit_command(self, command: RunCommand, now: datetime) -> Accepted | TooLate | None:
        """None: no such run. An accepted cancel is on the run's row at once and is binding.

        CANCEL, PAUSE and RESUME are too late for a final run; RETRY is too early for one that is not final;
        PAUSE of a paused run and RESUME of one that is not paused are TooLate as well.
        """
        ...


class SchedulerStore(RunRequests, ScheduleFiring, Protocol):
    """Ownership of runs by leases and epochs, commits behind the epoch, and firing schedules."""

    # ── leases ───────────────────────────────────────────────────────────────────────────────────

    async def register(
        self, scheduler: SchedulerId, identity: str, kind: str, now: datetime, *, terms: str | None = None
    ) -> None:
        """The scheduler is known and holds a lease of `lease_seconds` by the store's clock.

        It begins with nothing: runs it held under the same id have no owner any more and can be claimed at once.
        SettingsDifferError, and nothing is written, if `terms` are given and differ from the recorded shared settings.
        """
        ...

    async def renew(self, scheduler: SchedulerId) -> bool:
        """The lease runs `lease_seconds` from now. False: it had expired and another scheduler took a run over, or the
        scheduler is unknown; it must register and claim again."""
        ...

    async def expire(self, schedulers: Sequence[SchedulerId]) -> None:
        """These schedulers are provably dead: their leases end now."""
        ...

    async def release(
        self, scheduler: SchedulerId, runs: Sequence[RunId] | None = None, *, exits: bool = False
    ) -> None:
        """The runs (None: all) have no owner and can be claimed at once. With None the scheduler is forgotten, too; if
        it `exits`, so is a control that is for it alone. Where there is nothing to release, nothing is written and nobody is woken.
        """
        ...

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────

    async def claim_runs(
        self, scheduler: SchedulerId, room: int, now: datetime, *, only: Collection[RunId] | None = None
    ) -> Claim:
        """Up to `room` runs that need an owner become this scheduler's, each with its epoch raised by one.

        A run needs an owner if it is pending, running, or paused with something active, or has commands waiting, and if
        its owner is nobody, unknown, or one whose lease has expired. Higher priority first, then older first.
        `max_active_runs` of a workflow holds: a pending run beyond it stays unclaimed until another ends, unless it is
        to be cancelled. A scheduler that is unknown or whose own lease has expired gets nothing. With `only` they are
        those runs, their sub-workflows, and what was left in the middle (the owner's lease has expired, or there is no
        owner and an attempt is active). Commands come for every run the scheduler owns, in order of id, until a commit
        says they are done. Two schedulers never get the same run at the same epoch.
        A run that cannot be decoded (its row, a task, a current attempt, its version) is set aside, and a command of an
        unknown kind is done with and listed by `list_quarantined`.
        """
        ...

    async def commit(self, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
        """All of a run's changes are durable together, or none are. Runs need not be atomic with each other.

        A run whose epoch or owner differs is fenced, alone: its neighbours are written. A run that would become success
        or failed while there is a cancel request it does not know of (`run.cancel_requested_at` is None in the row to be
        written) is overruled, unless it had ended before: that request was for an earlier round.

        Launches are admitted by priority while every limit they count against ("*", "executor:X", "pool:Y") has room,
        counting active attempts of all runs that wait for nothing external, and while every rate (the pool's, the
        task's own) has a start left by the store's clock; those admitted are written with the rest. No limit is ever
        exceeded, whoever commits at the same time. How a store ensures that is its own matter: by counting under a
        lock, or by shares of each limit that schedulers hold and hand over.

        Alerts become notices that are due at once. A run that succeeds where its workflow's run before it (the newest
        earlier one that succeeded or failed) had failed, or that had itself been reported as failed, leads to a notice
        of recovery; the store may decide that in the commit or when notices are next taken. A commit that came to
        nothing wakes nobody: two schedulers that wait for the same full pool would wake each other for ever.
        """
        ...

    async def set_aside(
        self, scheduler: SchedulerId, run: RunId, epoch: int, reason: str, now: datetime
    ) -> QuarantinedRun | None:
        """The run has no owner and nobody claims it until a person asks something of it. None: the epoch is stale.

        It is paused with the reason as its note (a final run keeps its status) and listed by `list_quarantined`. If a
        cancel request is pending it is cancelled instead, with its tasks and attempts. Its commands are done with. It
        takes neither slots nor a place below its workflow's `max_active_runs`.
        """
        ...

    async def runs_with_commands(self) -> tuple[RunId, ...]:
        """Those with a command that is not done, by id."""
        ...

    # ── notes ────────────────────────────────────────────────────────────────────────────────────

    async def note_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> None:
        """Keeps, for each attempt that is active, the highest number noted and the moment it was first seen, by the
        store's clock (now less its age). What is kept comes with the attempt when its run is claimed; after a restart
        of the machine whose clock it is, nothing does. A negative number (see `Heartbeat`) replaces any other number and
        is replaced by any other. Needs no ownership, since what somebody saw stays true; wakes nobody."""
        ...

    async def note_fallbacks(self, scheduler: SchedulerId, notes: Sequence[str]) -> None:
        """What `list_schedulers` says of it from now on. An unknown scheduler has no notes; nobody is woken."""
        ...
