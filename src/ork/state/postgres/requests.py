"""Creates runs, and stores the commands that people submit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from ork.errors import NotFoundError
from ork.model.ids import RunId
from ork.model.run import CommandKind, NewRun, Run, RunCommand, RunStatus
from ork.state.postgres.connection import Session
from ork.state.postgres.database import Database, run_by_id, runs_by_id
from ork.state.postgres.quarantine import try_again
from ork.state.postgres.rows import free_text
from ork.state.records import Accepted, TooLate
from ork.state.refusals import check_same_request, is_too_late
from ork.state.rows import Columns, command_of, is_command, json_text, text_of


async def create_runs(db: Database, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
    if not runs:
        return ()
    columns = zip(*map(_new_row, runs), strict=True)
    created = await db.rows("create_runs", *columns, now, *db.sender)
    if len(created) < len(runs):
        return await _find_or_create(db, runs, now)
    db.own_changes += 1
    return tuple(_as_created(new, now) for new in runs)


def _as_created(new: NewRun, now: datetime) -> Run:
    """The run as its new row has it."""
    return Run(
        new.id, new.workflow, new.version, RunStatus.PENDING, new.trigger, json.loads(json_text(new.params)), now, new.scheduled_for,
        priority=new.priority, fresh=new.fresh, parent=new.parent,
    )  # fmt: skip


async def _find_or_create(db: Database, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
    """Create the runs, some of which may exist already."""
    async with db.writing() as session:
        ids = await add_runs(session, runs, now)
        created = tuple(run for run, _ in await runs_by_id(session, ids))
        await session.notify_others()
    return created


async def add_runs(session: Session, runs: Sequence[NewRun], now: datetime) -> list[str]:
    """Add the runs and return the ids of the new or existing ones. Call inside a transaction."""
    if not runs:
        return []
    wanted = {new.version for new in runs}
    known = {id for (id,) in await session.rows("known_versions", sorted(wanted))}
    for version in sorted(wanted - known):
        raise NotFoundError(f"There is no version {version}.", hint="Deploy the workflow first.")
    columns = zip(*map(_new_row, runs), strict=True)
    added = {id for (id,) in await session.rows("add_runs", *columns, now, await session.next_change())}
    return [new.id if new.id in added else await _existing(session, new) for new in runs]


def _new_row(new: NewRun) -> Columns:
    return (
        new.id, new.workflow, new.version, new.trigger.value, json_text(new.params), new.scheduled_for, new.priority,
        new.key, new.fresh, new.parent, free_text(new.started_by),
    )  # fmt: skip


async def _existing(session: Session, new: NewRun) -> str:
    """The id of the existing run with the same id, key or scheduled time."""
    if await run_by_id(session, new.id) is not None:
        return new.id
    by_key = await session.row("find_by_key", new.workflow, new.key)
    if by_key is not None:
        existing = (await runs_by_id(session, [by_key[0]]))[0][0]
        check_same_request(new, existing)
        return existing.id
    return str((await session.rows("find_by_slot", new.workflow, new.scheduled_for))[0][0])


async def submit_command(db: Database, command: RunCommand, now: datetime) -> Accepted | TooLate | None:
    async with db.writing() as session:
        await session.rows("lock_run", command.run)
        run = await run_by_id(session, command.run)
        if run is None:
            return None
        if is_too_late(command.kind, run.status):
            return TooLate(run)
        return await _accept(session, command, now)


async def _accept(session: Session, command: RunCommand, now: datetime) -> Accepted:
    asked = (
        command.run, command.kind.value, free_text(command.by), free_text(command.task), command.everything,
        free_text(command.comment), now,
    )  # fmt: skip
    (command_id,) = (await session.rows("add_command", *asked))[0]
    await try_again(session, command.run)
    cancels = command.kind is CommandKind.CANCEL
    await session.run("call_for_attention", command.run, await session.next_change(), cancels, now)
    run = (await runs_by_id(session, [command.run]))[0][0]
    await session.notify_others()
    return Accepted(run, text_of(command_id))


async def pending_commands(db: Database, run: RunId) -> tuple[RunCommand, ...]:
    return tuple(command_of(row) for row in await db.rows("pending_commands", run) if is_command(row))
