"""Schedulers and their leases, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from ork.model.ids import RunId, SchedulerId
from ork.model.task import Heartbeat
from ork.state.installation import check_terms
from ork.state.memory.rows import SchedulerRow, Shared


class LeasesInMemory:
    """A part of the memory store."""

    _clock: Callable[[], float]
    _lease_seconds: float

    def _used(self) -> Shared:
        raise AssertionError("the store defines this")

    def _changing(self) -> Shared:
        raise AssertionError("the store defines this")

    async def register(
        self, scheduler: SchedulerId, identity: str, kind: str, now: datetime, *, terms: str | None = None
    ) -> None:
        state = self._used()
        check_terms(state.settings, terms)
        state.disown([scheduler])
        until = self._clock() + self._lease_seconds
        state.schedulers[scheduler] = SchedulerRow(identity, kind, now, until)

    async def renew(self, scheduler: SchedulerId) -> bool:
        row = self._used().schedulers.get(scheduler)
        if row is not None:
            row.lease_until = self._clock() + self._lease_seconds
        return row is not None

    async def note_fallbacks(self, scheduler: SchedulerId, notes: Sequence[str]) -> None:
        if (row := self._used().schedulers.get(scheduler)) is not None:
            row.notes = tuple(notes)

    async def expire(self, schedulers: Sequence[SchedulerId]) -> None:
        state = self._changing()
        for scheduler in schedulers:
            if scheduler in state.schedulers:
                state.schedulers[scheduler].lease_until = float("-inf")

    async def release(
        self, scheduler: SchedulerId, runs: Sequence[RunId] | None = None, *, exits: bool = False
    ) -> None:
        state = self._used()
        owned = [row for id, row in state.runs.items() if row.owner == scheduler and (runs is None or id in runs)]
        is_forgotten = runs is None and scheduler in state.schedulers
        if not owned and not is_forgotten:
            return
        self._changing()
        for row in owned:
            row.owner = None
        if is_forgotten:
            del state.schedulers[scheduler]
            if exits:
                state.controls.pop(scheduler, None)

    async def note_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> None:
        runs = self._used().runs
        for heartbeat in heartbeats:
            if heartbeat.attempt.run in runs:
                runs[heartbeat.attempt.run].note(heartbeat, self._clock())
