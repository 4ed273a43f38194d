"""Quarantines runs and other items that cannot be decoded or processed, so that all others continue."""

from __future__ import annotations

from datetime import datetime

from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import ItemKind, QuarantinedRun
from ork.model.run import RunStatus
from ork.state.postgres.connection import Session
from ork.state.postgres.database import Database
from ork.state.postgres.rows import free_text, lenient
from ork.state.quarantine import note_of


async def set_aside(
    db: Database, scheduler: SchedulerId, run: RunId, epoch: int, reason: str, now: datetime
) -> QuarantinedRun | None:
    async with db.writing() as session:
        row = await session.row("lock_claimed_run", run, scheduler, epoch)
        if row is None:
            return None
        workflow, is_final = row
        # A separate statement: the one above may have waited for the lock, and does not see a command committed
        # meanwhile.
        is_cancelled = not is_final and bool((await session.rows("cancel_is_pending", run))[0][0])
        attempts = lenient.readable_attempts(await session.rows("active_attempts", run))
        changed, words = await session.next_change(), free_text(note_of(reason, is_cancelled))
        if is_cancelled:
            await session.run("cancel_tasks", run, changed, words, now)
            await session.run("cancel_attempts", run, now)
        await session.run("free_slots", run)
        await session.run("finish_commands", run, now)
        status = None if is_final else (RunStatus.CANCELLED if is_cancelled else RunStatus.PAUSED).value
        await session.run("set_run_aside", run, changed, words, status, now)
        if is_cancelled:
            await session.run("forget_quarantined", ItemKind.RUN.value, [run])
        else:
            await note(session, ItemKind.RUN, run, reason, now)
        await session.notify_others()
    return QuarantinedRun(run, workflow, reason, is_cancelled, attempts)


async def try_again(session: Session, run: RunId) -> None:
    """End the quarantine of a run because a person sent a command: the next claim decodes it again."""
    if await session.run("forget_quarantined", ItemKind.RUN.value, [run]):
        await session.run("take_slots_again", run)


async def note(session: Session, kind: ItemKind, id: str, reason: str, now: datetime) -> None:
    await session.run("note_quarantined", kind.value, id, free_text(reason), now)
