"""Reads for people and the API. The cost of a read depends on what it returns, not on the size of the store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg

from ork.core.effects import Alert
from ork.core.limits import EVERYTHING
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt, Task
from ork.state.admission import ActiveAttempts, room_left
from ork.state.lenient import shown_failure
from ork.state.paging import attempt_place, not_ours, read_cursor, shortest_prefix, task_place, write_cursor
from ork.state.postgres.connection import Row, Session
from ork.state.postgres.database import Database, run_by_id, runs_by_id
from ork.state.postgres.rows import lenient
from ork.state.records import (
    ALL_TASKS,
    Cached,
    Changes,
    LimitUse,
    RunFilter,
    RunPage,
    RunUpdate,
    TaskCount,
    TaskFilter,
    TimesPage,
)
from ork.state.rows import (
    attempt_key,
    count_in_order,
    index_number,
    index_of,
    number_of,
    output_of,
    task_count,
    text_of,
    times_page,
    tried_tasks,
)

_HOLDERS_SHOWN = 5
_LAST_ORDINAL = 2**31 - 1
_TRIES = 20
_MANY_ROWS = 2000
_TRY_SECONDS = 0.05
_AFTER_ALL_IDS = "\U0010ffff"
_LATEST = datetime.max.replace(tzinfo=UTC)


async def get_run(db: Database, run: RunId) -> Run | None:
    return await run_by_id(db, run)


async def find_by_key(db: Database, workflow: str, key: str) -> Run | None:
    async with db.reading() as session:
        row = await session.row("find_by_key", workflow, key)
        return None if row is None else await run_by_id(session, row[0])


async def find_scheduled(db: Database, workflow: str, times: Sequence[datetime]) -> dict[datetime, Run]:
    runs = [lenient.run(row) for row in await db.rows("find_scheduled", workflow, list(times))]
    return {run.scheduled_for: run for run in runs if run.scheduled_for is not None}


async def find_runs(db: Database, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
    return tuple(RunId(id) for (id,) in await db.rows("find_runs", prefix, limit))


async def shorten_ids(db: Database, runs: Collection[RunId], least: int) -> dict[RunId, str]:
    rows = await db.rows("neighbours", list(runs))
    return {RunId(id): shortest_prefix(id, neighbours, least) for id, *neighbours in rows}


async def list_runs(db: Database, query: RunFilter) -> RunPage:
    before, before_id = (None, _AFTER_ALL_IDS) if query.cursor is None else _place(query.cursor)
    if query.created_before is not None and (before is None or query.created_before <= before):
        before, before_id = query.created_before, ""
    after = query.created_after
    statuses = sorted(status.value for status in query.statuses or RunStatus)
    limit = max(query.limit, 1)
    async with db.reading() as session:
        if query.workflow is None:
            rows = await session.rows("list_runs_by_status", statuses, before, before_id, limit + 1, after)
        else:
            page = (statuses, before, before_id, limit + 1, after, query.workflow)
            rows = await session.rows("list_runs_by_workflow", *page)
        if not query.statuses:
            known = [status.value for status in RunStatus]
            strange = await session.rows(
                "list_runs_of_unknown_status", before, before_id, limit + 1, query.workflow, known, after
            )
            rows = sorted([*rows, *strange], key=_newest_first, reverse=True) if strange else rows
    runs = tuple(lenient.run(row) for row in rows[:limit])
    return RunPage(
        runs, write_cursor(_created(rows[limit - 1]).isoformat(), runs[-1].id) if len(rows) > limit else None
    )


def _newest_first(row: Row) -> tuple[datetime, str]:
    return _created(row), row["id"]


def _created(row: Row) -> datetime:
    """The creation time for sorting; a time outside Python's range counts as the newest."""
    return lenient.time(row["created_at"]) or _LATEST


async def last_runs(db: Database, workflows: Sequence[str]) -> dict[str, Run]:
    rows = await db.rows("last_runs", list(workflows), [status.value for status in RunStatus])
    return {run.workflow: run for run in map(lenient.run, rows)}


async def param_values(db: Database, runs: Sequence[RunId], name: str) -> dict[RunId, Any]:
    try:
        rows = await db.rows("param_values", list(runs), name)
    except (asyncpg.InvalidTextRepresentationError, asyncpg.UntranslatableCharacterError):
        # Params that are damaged, or have a NUL, make the statement fail as a whole. Halving finds them.
        half = len(runs) // 2
        if half:
            return await param_values(db, runs[:half], name) | await param_values(db, runs[half:], name)
        run = await run_by_id(db, runs[0])
        return {run.id: run.params[name]} if run is not None and name in run.params else {}
    return {RunId(id): json.loads(value) for id, value in rows}


def _place(cursor: str) -> tuple[datetime, str]:
    created_at, id = read_cursor(cursor)
    try:
        return datetime.fromisoformat(created_at), id
    except ValueError as error:
        raise not_ours() from error


async def count_unfinished(db: Database) -> dict[RunStatus, int]:
    found = dict(await db.rows("count_unfinished"))
    return {status: found.get(status.value, 0) for status in RunStatus if not status.is_final}


async def changes_since(db: Database, mark: str | None, limit: int = 100) -> Changes:
    """The runs that changed after the mark. Numbers are assigned before transactions end, so only numbers without an
    open transaction below them are returned.

    If there are later ones, this waits for the open transactions, which end soon: one that rolls back would wake no
    one.
    """
    if mark is None:
        return Changes((), text_of(await _settled_changes(db)))
    behind = number_of(mark)
    for _ in range(_TRIES):
        settled = await _settled_changes(db)
        async with db.reading() as session:
            places = await session.rows("changed_runs", behind, settled, max(limit, 1))
            if places:
                runs = tuple(lenient.run(row) for row in await session.rows("listed_runs", [id for id, _ in places]))
                return Changes(runs, text_of(places[-1][1]))
            if not (await session.rows("has_later_changes", max(behind, settled)))[0][0]:
                break
        await asyncio.sleep(_TRY_SECONDS)
    return Changes((), mark)


async def _settled_changes(db: Database) -> int:
    """The highest number such that all transactions up to it have ended.

    The order of the two reads matters: a transaction that is not yet visible when the locks are read gets a number
    above the one read before. The caller reads the runs afterwards, in a transaction that sees everything that has
    ended.
    """
    async with db.writing() as session:
        (last,) = (await session.rows("last_change"))[0]
        (lowest,) = (await session.rows("changes_under_way"))[0]
    return int(last if lowest is None else min(last, lowest))


async def run_updates(
    db: Database, run: RunId, since: str | None = None, only: TaskFilter = ALL_TASKS
) -> RunUpdate | None:
    behind = 0 if since is None else number_of(since)
    async with db.reading() as session:
        found = await runs_by_id(session, [run])
        if not found:
            return None
        known, row = found[0]
        # Every write to a task also updates its run, so the run has the highest number.
        mark = row[-1]
        tasks = [] if 0 < behind >= mark else await _tasks(db, session, known, behind, only)
    # Decoding many rows takes longer than the event loop may be held.
    read = _decoded(tasks) if len(tasks) < _MANY_ROWS else await asyncio.to_thread(_decoded, tasks)
    return RunUpdate(known, read, text_of(mark))


def _decoded(tasks: Sequence[Row]) -> tuple[Task, ...]:
    return tuple(lenient.task(task) for task in tasks)


async def _tasks(db: Database, session: Session, run: Run, since: int, only: TaskFilter) -> list[Row]:
    order = {} if only.name is None and only.after is None else await db.order(session, run.version)
    if only.name is not None and only.name not in order:
        return []
    place = order[only.name] if only.name is not None else None
    kinds = (sorted(only.statuses) or None, only.limit, only.with_instances, only.is_retrying)
    page = (*task_place(order, only.after), place, *kinds)
    if since > 0:
        return await session.rows("tasks_changed_since", run.id, *page, since)
    return await session.rows("tasks_of_run", run.id, *page)


async def count_tasks(db: Database, run: RunId) -> tuple[TaskCount, ...]:
    return count_in_order(map(task_count, await db.rows("count_tasks", run)))


async def task_times(
    db: Database,
    run: RunId,
    since: str | None = None,
    *,
    after: TaskKey | None = None,
    limit: int = 1000,
    with_instances: bool = True,
) -> TimesPage:
    behind = 0 if since is None else number_of(since)
    async with db.reading() as session:
        place = task_place({} if after is None else await _order(db, session, run), after)
        if behind <= 0:
            rows = await session.rows("page_of_times", run, *place, with_instances, limit + 1)
        else:
            rows = await session.rows("page_of_changed_times", run, *place, with_instances, limit + 1, behind)
        tried = tried_tasks((row[7], row[1], row[3], row[8]) for row in rows[:limit])
        earlier = await session.rows("earlier_times", run, *map(list, zip(*tried, strict=True))) if tried else []
    return times_page(rows, earlier, limit)


async def list_attempts(
    db: Database, run: RunId, task: TaskKey | None = None, *, after: AttemptKey | None = None, limit: int | None = None
) -> tuple[Attempt, ...]:
    which: tuple[int, int, int | None] = (0, _LAST_ORDINAL, None)
    async with db.reading() as session:
        order = {} if task is None and after is None else await _order(db, session, run)
        if task is not None:
            if task.name not in order:
                return ()
            which = (order[task.name], order[task.name], index_number(task.index))
        if after is None and limit is None:
            rows = await session.rows("attempts_of_run", run, *which)
        else:
            rows = await session.rows("page_of_attempts", run, *attempt_place(order, after), *which, limit)
    return tuple(lenient.attempt(row) for row in rows)


async def _order(db: Database, session: Session, run: RunId) -> dict[str, int]:
    known = await run_by_id(session, run)
    return {} if known is None else await db.order(session, known.version)


async def find_cached(db: Database, key: str, since: datetime) -> Cached | None:
    row = await db.row("find_cached", key, since)
    return None if row is None else Cached(RunId(row[0]), output_of(*row[1:]))


async def list_alerts(db: Database, run: RunId) -> tuple[Alert, ...]:
    rows = await db.rows("alerts_of_run", run)
    return tuple(
        Alert(None if task is None else TaskKey(task, index_of(idx)), shown_failure(failure))
        for task, idx, failure in rows
    )  # fmt: skip


async def over_budget_at(db: Database, run: RunId) -> datetime | None:
    row = await db.row("over_budget_at", run)
    return None if row is None else lenient.time(row[0])


async def limit_use(db: Database) -> tuple[LimitUse, ...]:
    async with db.reading() as session:
        limits: dict[str, int] = dict(await session.rows("list_limits"))
        if not limits:
            return ()
        room = room_left(limits, (ActiveAttempts(*row) for row in await session.rows("count_active")))
        return tuple([await _use(session, name, slots, slots - room[name]) for name, slots in sorted(limits.items())])


async def _use(session: Session, name: str, slots: int, used: int) -> LimitUse:
    kind, _, subject = name.partition(":")
    executor = subject if kind == "executor" else None
    pool = subject if kind == "pool" else None
    shown = _HOLDERS_SHOWN if name == EVERYTHING or subject else 0
    holders = await session.rows("holders", executor, pool, shown)
    return LimitUse(name, slots, used, tuple(attempt_key(row) for row in holders))
