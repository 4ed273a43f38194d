"""Quarantines runs, in memory."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import ItemKind, Quarantined, QuarantinedRun
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import AttemptStatus, TaskStatus
from ork.state.quarantine import note_of

if TYPE_CHECKING:
    from ork.state.memory.rows import RunRow, Shared


class QuarantineVerbs:
    """A part of the memory store."""

    def _used(self) -> Shared:
        raise AssertionError("the store defines this")

    def _changing(self) -> Shared:
        raise AssertionError("the store defines this")

    async def set_aside(
        self, scheduler: SchedulerId, run: RunId, epoch: int, reason: str, now: datetime
    ) -> QuarantinedRun | None:
        row = self._used().runs.get(run)
        if row is None or row.owner != scheduler or row.epoch != epoch:
            return None
        state = self._changing()
        attempts = tuple(attempt for attempt in row.attempts.values() if not attempt.status.is_final)
        is_cancelled = not row.run.status.is_final and state.cancel_waits(run)
        if is_cancelled:
            _cancel(state, row, note_of(reason, is_cancelled), now)
        elif not row.run.status.is_final:
            row.run = replaced(row.run, status=RunStatus.PAUSED)
        if not is_cancelled:
            state.quarantine[ItemKind.RUN, run] = Quarantined(ItemKind.RUN, run, reason, now)
        row.run = replaced(row.run, note=note_of(reason, is_cancelled))
        row.owner, row.changed = None, state.changed
        for command in state.commands_of(run):
            del state.commands[command.id]
        return QuarantinedRun(run, row.run.workflow, reason, is_cancelled, attempts)

    async def list_quarantined(self, limit: int = 100) -> tuple[Quarantined, ...]:
        return tuple(item for _, item in sorted(self._used().quarantine.items()))[:limit]


def _cancel(state: Shared, row: RunRow, note: str, now: datetime) -> None:
    row.run = replaced(row.run, status=RunStatus.CANCELLED, finished_at=now)
    for key, task in row.tasks.items():
        if not task.status.is_final:
            row.tasks[key] = replaced(task, status=TaskStatus.CANCELLED, reason=note, finished_at=now, retry_at=None)
            row.task_changed[key] = state.changed
    for place, attempt in row.attempts.items():
        if not attempt.status.is_final:
            row.attempts[place] = replaced(attempt, status=AttemptStatus.CANCELLED, finished_at=now)
