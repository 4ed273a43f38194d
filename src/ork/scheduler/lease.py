"""The scheduler's own lease, and the leases of other schedulers that may be dead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ork.model.ids import RunId, SchedulerId
from ork.model.installation import Control, Mode, control_for
from ork.model.run import SchedulerEntry
from ork.scheduler.options import SchedulerOptions
from ork.state.records import Claim
from ork.state.scheduling import SchedulerStore

PEER_CHECK_SECONDS = 1.0


def never_provably_dead(_identity: str) -> bool:
    return False


class SchedulerLease:
    """The lease of this scheduler. Its age is measured by the monotonic clock, from before the last successful renewal was sent."""

    def __init__(
        self,
        id: SchedulerId,
        identity: str,
        kind: str,
        store: SchedulerStore,
        options: SchedulerOptions,
        monotonic: Callable[[], float],
        is_provably_dead: Callable[[str], bool],
        terms: str | None = None,
        only: RunId | None = None,
    ) -> None:
        self.id = id
        self.control: Control | None = None  # a pause or drain that a user requested
        self.has_claimed = False
        self.peers: tuple[SchedulerEntry, ...] = ()
        self._only = None if only is None else {only}  # the only runs to work on; None: any
        self._identity = identity
        self.kind = kind
        self._store = store
        self._options = options
        self._monotonic = monotonic
        self._is_provably_dead = is_provably_dead
        self._terms = terms
        self._may_be_registered = False
        self._renewed_at: float | None = None
        self._peers_checked_at: float | None = None
        self._checks_controls = True

    async def register(self, now: datetime) -> None:
        sent = self._monotonic()
        self._may_be_registered = True
        await self._store.register(self.id, self._identity, self.kind, now, terms=self._terms)
        self._renewed_at = sent
        await self._read_controls()
        self._checks_controls = self.kind != "tick"  # a tick has just read them: on Firestore reads are billed

    async def _read_controls(self) -> None:
        self.control = control_for(await self._store.list_controls(), self.id, self._identity)

    @property
    def is_to_exit(self) -> bool:
        """True if a user drains this scheduler itself, not its host or the installation: then it exits when done."""
        control = self.control
        return control is not None and control.mode is Mode.DRAINING and control.target == self.id

    async def claim(self, limit: int, now: datetime) -> tuple[Claim, float | None]:
        """Claim up to `limit` runs. Also returns when to claim again: at once if sub-workflow runs were found, since they
        may have sub-workflows of their own."""
        self.has_claimed = True
        if self.control is not None:
            drains = self.control.mode is Mode.DRAINING
            commanded = () if drains else await self._store.runs_with_commands()
            claim = await self._store.claim_runs(self.id, 0 if drains else limit, now, only=commanded)
            return claim, None
        claim = await self._store.claim_runs(self.id, limit, now, only=self._only)
        if self._only is None:
            return claim, None
        found = {claimed.run.id for claimed in claim.runs} - self._only
        self._only |= found
        return claim, 0.0 if found else None

    async def release(self) -> None:
        """Release all runs that this scheduler may own in the store."""
        if self._may_be_registered:
            await self._store.release(self.id)

    @property
    def is_trusted(self) -> bool:
        """True while our lease is certainly still valid."""
        if self._renewed_at is None:
            return False
        held = self._monotonic() - self._renewed_at
        return held < self._options.lease_seconds - self._options.lease_margin_seconds

    @property
    def renew_at(self) -> float:
        return (self._renewed_at or 0.0) + self._options.renew_seconds

    @property
    def is_due(self) -> bool:
        return self._renewed_at is None or self._monotonic() >= self.renew_at

    async def renew(self, now: datetime) -> bool:
        """Renew the lease. False means that it had expired: another scheduler may own our runs, so this one registers
        again and must drop its state."""
        sent = self._monotonic()
        if await self._store.renew(self.id):
            self._renewed_at = sent
            return True
        await self.register(now)
        return False

    async def check_peers(self) -> float | None:
        """After a claim, expire the leases of schedulers that are provably dead. Returns when runs may become free: now, or
        when the lease of a scheduler that owns runs ends."""
        if not self.has_claimed:
            return None
        self.has_claimed, self._peers_checked_at = False, self._monotonic()
        before = self.control
        if self._checks_controls:
            await self._read_controls()
        self._checks_controls = True
        schedulers = await self._store.list_schedulers()
        others = [entry for entry in schedulers if entry.id != self.id]
        if len(others) == len(schedulers):
            self._renewed_at = None  # our row is gone: register again before the next claim
            return 0.0
        dead = [entry for entry in others if self._is_provably_dead(entry.identity)]
        self.peers = tuple(entry for entry in others if entry not in dead)
        unexpired = [entry.id for entry in dead if entry.lease_seconds_left > 0]
        if unexpired:
            await self._store.expire(unexpired)
        if unexpired or before != self.control:
            return 0.0
        left = [entry.lease_seconds_left for entry in others if entry.active_runs]
        return self._monotonic() + max(0.5, min(left) + 0.1) if left else None

    def next_peer_check(self, planned: float | None) -> float:
        """When to check the peers next, while a task waits for slots that a dead scheduler may hold.

        With small limits tasks wait after every commit, and mostly for slots of our own. So a check that has just been
        done, or is about to be done, is not repeated at once.
        """
        checked_at = self._monotonic() if self.has_claimed else self._peers_checked_at
        soon = 0.0 if checked_at is None else checked_at + PEER_CHECK_SECONDS
        return soon if planned is None else min(planned, soon)
