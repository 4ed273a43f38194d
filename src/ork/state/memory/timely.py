"""Schedules, notices and pruning, in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ork.model.ids import RunId
from ork.model.notice import Notice, NoticeKind
from ork.model.quarantine import ItemKind
from ork.model.record import replaced
from ork.model.run import NewRun, Run
from ork.model.workflow import WorkflowEntry
from ork.state.records import LookAhead, ScheduleEntry, UnsentAlert

if TYPE_CHECKING:
    from ork.state.memory.rows import NoticeRow, RunRow, Shared


def plan(state: Shared, workflow: str, before: WorkflowEntry | None, next_fire: datetime | None) -> None:
    """Set the next time of the schedule after its workflow was written, unless it was enabled and is unchanged."""
    entry = state.workflows[workflow]
    if not _fires(entry):
        state.next_fires.pop(workflow, None)
    elif before is None or not _fires(before) or before.schedule != entry.schedule:
        state.next_fires[workflow] = next_fire


def _fires(entry: WorkflowEntry) -> bool:
    return entry.enabled and entry.schedule is not None and entry.schedule.enabled


class TimelyVerbs:
    """A part of the memory store."""

    def _used(self) -> Shared:
        raise AssertionError("the store defines this")

    def _changing(self) -> Shared:
        raise AssertionError("the store defines this")

    def _create_all(self, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
        raise AssertionError(f"the store defines this: {runs}, {now}")

    async def next_location_at(self, names: Collection[str]) -> datetime | None:
        raise AssertionError(f"the store defines this: {names}")

    # ── schedules ────────────────────────────────────────────────────────────────────────────────

    async def list_schedules(self) -> tuple[ScheduleEntry, ...]:
        state = self._used()
        return tuple(
            ScheduleEntry(name, entry.version, entry.schedule, _fires(entry), state.next_fires.get(name))
            for name, entry in sorted(state.workflows.items())
            if entry.schedule is not None
        )

    async def look_ahead(self, locations: Collection[str]) -> LookAhead:
        state = self._used()
        return LookAhead(
            bool(state.claimable()) or any(row.owner is not None for row in state.runs.values()),
            tuple(entry for entry in await self.list_schedules() if entry.enabled),
            await self.next_alert_at(),
            await self.next_location_at(locations),
        )

    async def due_schedules(self, now: datetime) -> tuple[ScheduleEntry, ...]:
        entries = await self.list_schedules()
        return tuple(e for e in entries if e.enabled and (e.next_fire is None or e.next_fire <= now))

    async def next_fire_at(self, after: datetime) -> datetime | None:
        planned = [entry.next_fire for entry in await self.list_schedules() if entry.enabled]
        return min((time for time in planned if time is not None and time > after), default=None)

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
        state = self._used()
        entry = state.workflows.get(workflow)
        if entry is None or not _fires(entry) or state.next_fires.get(workflow) != expected:
            return False
        self._changing()
        self._create_all(runs, now)
        state.next_fires[workflow] = next_fire
        if missed is not None:
            state.raise_notice(NoticeKind.MISSED, workflow, now, detail=missed)
        return True

    # ── notices ──────────────────────────────────────────────────────────────────────────────────

    async def take_alerts(self, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
        due = [row for row in self._used().notices if row.due_at is not None and row.due_at <= now]
        taken = sorted(due, key=lambda row: (row.due_at, row.notice.id))[:limit]
        for row in taken:
            row.due_at = now + timedelta(seconds=hold_seconds)
            row.notice = replaced(row.notice, tries=row.notice.tries + 1)
        return tuple(sorted((row.notice for row in taken), key=lambda notice: notice.id))

    async def settle_alert(
        self, id: str, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
    ) -> None:
        for row in self._used().notices:
            if row.notice.id == id:
                row.due_at, row.error = retry_at, error
                row.notice = replaced(row.notice, sent=tuple(sorted({*row.notice.sent, *sent})))

    async def unsent_alerts(self, limit: int) -> tuple[UnsentAlert, ...]:
        rows = sorted(self._used().notices, key=lambda row: row.notice.id, reverse=True)
        unsent = [UnsentAlert(row.notice, row.error, row.due_at) for row in rows if row.error is not None]
        return tuple(unsent[:limit])

    async def next_alert_at(self) -> datetime | None:
        return min((row.due_at for row in self._used().notices if row.due_at is not None), default=None)

    # ── keeping house ────────────────────────────────────────────────────────────────────────────

    async def prunable_runs(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        state = self._used()
        rows = sorted(state.runs.values(), key=lambda row: (row.run.created_at, row.run.id))
        old = [row.run.id for row in rows if _is_old(row, before) and not state.commands_of(row.run.id)]
        names = {row.run.workflow for row in rows}
        newest = {
            row.run.id for name in names for row in [row for row in rows if row.run.workflow == name][::-1][:keep_last]
        }
        return tuple([run for run in old if run not in newest][:limit])

    async def prune(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        runs = await self.prunable_runs(before, limit, keep_last)
        state = self._used()
        for run in runs:
            del state.runs[run]
            state.quarantine.pop((ItemKind.RUN, run), None)
        state.leftovers.update(runs)
        for row in state.notices:
            if row.notice.run in runs:
                row.due_at = row.error = None
        state.notices = [row for row in state.notices if not _is_told(row, before)]
        return runs

    async def leftovers(self, limit: int) -> tuple[RunId, ...]:
        return tuple(sorted(self._used().leftovers)[:limit])

    async def swept(self, runs: Sequence[RunId]) -> None:
        self._used().leftovers.difference_update(runs)


def _is_told(row: NoticeRow, before: datetime) -> bool:
    return row.notice.run is None and row.due_at is None and row.notice.raised_at < before


def _is_old(row: RunRow, before: datetime) -> bool:
    run = row.run
    ended = run.finished_at is not None and run.finished_at < before and run.created_at < before
    return run.status.is_final and ended and row.owner is None
