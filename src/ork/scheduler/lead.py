"""Whether we may act at all: our own lease, and the leases of those who may be dead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ork.model.ids import RunId, SchedulerId
from ork.model.installation import Control, Mode, control_for
from ork.model.run import SchedulerEntry
from ork.scheduler.options import SchedulerOptions
from ork.state.records import Claim
from ork.state.scheduling import SchedulerStore

AGAIN_SECONDS = 1.0


def nobody_is_dead(_identity: str) -> bool:
    return False


class Lead:
    """Our lease, judged by our own monotonic clock, counted from before the last successful renewal was sent."""

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
        self.control: Control | None = None  # what a person told us to do
        self.has_claimed = False
        self.peers: tuple[SchedulerEntry, ...] = ()
        self._only = None if only is None else {only}  # the runs we work on; None: any
        self._identity = identity
        self._kind = kind
        self._store = store
        self._options = options
        self._monotonic = monotonic
        self._is_provably_dead = is_provably_dead
        self._terms = terms
        self._may_be_known = False
        self._renewed_at: float | None = None
        self._looked_at: float | None = None

    async def register(self, now: datetime) -> None:
        sent = self._monotonic()
        self._may_be_known = True
        await self._store.register(self.id, self._identity, self._kind, now, terms=self._terms)
        self._renewed_at = sent
        await self._read_controls()

    async def _read_controls(self) -> None:
        self.control = control_for(await self._store.list_controls(), self.id, self._identity)

    @property
    def is_to_exit(self) -> bool:
        """A person drains this very scheduler, and not its host or everybody: then it need not stand by."""
        control = self.control
        return control is not None and control.mode is Mode.DRAINING and control.target == self.id

    async def claim(self, room: int, now: datetime) -> tuple[Claim, float | None]:
        """What may now be worked on, and when to claim again: at once if runs were found that were not asked for, as they
        may have sub-workflows of their own."""
        self.has_claimed = True
        if self.control is not None:
            drains = self.control.mode is Mode.DRAINING
            asked = () if drains else await self._store.runs_with_commands()
            return await self._store.claim_runs(self.id, 0 if drains else room, now, only=asked), None
        if self._only is None:
            return await self._store.claim_runs(self.id, room, now), None
        claim = await self._store.claim_runs(self.id, room, now, only=self._only)
        found = {claimed.run.id for claimed in claim.runs} - self._only
        self._only |= found
        return claim, 0.0 if found else None

    async def release(self) -> None:
        """Gives up what the store may believe to be ours."""
        if self._may_be_known:
            await self._store.release(self.id)

    @property
    def is_trusted(self) -> bool:
        """Surely nobody else may own what we own."""
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
        """False: we were taken for dead. What we owned may be somebody else's; we begin anew."""
        sent = self._monotonic()
        if await self._store.renew(self.id):
            self._renewed_at = sent
            return True
        await self.register(now)
        return False

    async def look_around(self) -> float | None:
        """After a claim: expires the leases of the provably dead. Returns when there may be something to take over: now, or when one that
        owns runs could lose its lease."""
        if not self.has_claimed:
            return None
        self.has_claimed, self._looked_at = False, self._monotonic()
        before = self.control
        await self._read_controls()
        everybody = await self._store.list_schedulers()
        others = [entry for entry in everybody if entry.id != self.id]
        if len(others) == len(everybody):
            self._renewed_at = None  # we are not known any more: register again before the next claim
            return 0.0
        dead = [entry for entry in others if self._is_provably_dead(entry.identity)]
        self.peers = tuple(entry for entry in others if entry not in dead)
        unknown = [entry.id for entry in dead if entry.lease_seconds_left > 0]
        if unknown:
            await self._store.expire(unknown)
        if unknown or before != self.control:
            return 0.0
        left = [entry.lease_seconds_left for entry in others if entry.active_runs]
        return self._monotonic() + max(0.5, min(left) + 0.1) if left else None

    def look_soon(self, planned: float | None) -> float:
        """The moment for the next look around, now that something waits for slots and whoever holds them may be dead.

        Where there is little room that is so after every commit, and it is mostly ourselves who hold them: not at once if
        we have just looked, or are about to.
        """
        looked_at = self._monotonic() if self.has_claimed else self._looked_at
        soon = 0.0 if looked_at is None else looked_at + AGAIN_SECONDS
        return soon if planned is None else min(planned, soon)
