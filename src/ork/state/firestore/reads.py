"""Runs, tasks and attempts, for readers."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt, TaskStatus
from ork.state.firestore.database import Database
from ork.state.firestore.definitions import schedule_entries
from ork.state.firestore.documents import (
    FACTS,
    RunState,
    codec,
    lenient,
    mark_number,
    mark_text,
    run_state,
    task_text,
)
from ork.state.firestore.locations import next_location_at
from ork.state.firestore.notices import next_alert_at
from ork.state.firestore.requests import key_path, slot_path
from ork.state.firestore.rows import (
    attempts_in_order,
    params_of,
    place_of_columns,
    rows_of,
    shown_run,
    tasks_in_order,
)
from ork.state.firestore.values import micros, moment_of
from ork.state.firestore.wire import Doc, Filter, Query
from ork.state.lenient import readable_params
from ork.state.paging import attempt_place, read_cursor, shortest_prefix, task_place, write_cursor
from ork.state.records import (
    ALL_TASKS,
    NO_TIMES,
    Cached,
    Changes,
    LookAhead,
    RunFilter,
    RunPage,
    RunUpdate,
    TaskCount,
    TaskFilter,
    TimesPage,
)
from ork.state.rows import counts_of_records, times_of_records

NET = timedelta(seconds=60)
"""How much the field `changed`, the time a request came in, may precede the time its document was written."""
_GET_AT_ONCE = 100
_LISTED = tuple(name for name in FACTS if name not in ("params", "commands", "act"))
_LAST = "\U0010ffff"


async def get_run(db: Database, run: RunId) -> Run | None:
    doc = await _get(db, run, FACTS)
    return None if doc is None else await shown_run(db, doc)


async def _get(db: Database, run: RunId, select: Sequence[str] | None = None) -> Doc | None:
    """None also for an id that no document can have."""
    if not run or "/" in run:
        return None
    return (await db.wire.get_all([f"runs/{run}"], select)).get(f"runs/{run}")


async def find_by_key(db: Database, workflow: str, key: str) -> Run | None:
    doc = await db.wire.get(key_path(workflow, key))
    return None if doc is None else await get_run(db, RunId(doc.fields["run"]))


async def find_scheduled(db: Database, workflow: str, times: Sequence[datetime]) -> Mapping[datetime, Run]:
    found: dict[datetime, Run] = {}
    for start in range(0, len(times), _GET_AT_ONCE):
        names = await db.wire.get_all([slot_path(workflow, time) for time in times[start : start + _GET_AT_ONCE]])
        paths = [f"runs/{doc.fields['run']}" for doc in names.values()]
        runs = [run_state(doc).listed() for doc in (await db.wire.get_all(paths, _LISTED)).values()]
        found |= {run.scheduled_for: run for run in runs if run.scheduled_for is not None}
    return found


async def find_runs(db: Database, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
    if "/" in prefix:
        return ()
    where: tuple[Filter, ...] = (("__name__", ">=", prefix), ("__name__", "<", prefix + _LAST)) if prefix else ()
    return tuple(RunId(doc.id) for doc in await db.wire.query(Query("runs", where, ("__name__",), limit, ())))


async def shorten_ids(db: Database, runs: Collection[RunId], least: int) -> Mapping[RunId, str]:
    async def shortened(run: RunId) -> str:
        before = db.wire.query(Query("runs", (("id", "<", run),), ("-id",), 1, ()))
        after = db.wire.query(Query("runs", (("__name__", ">", run),), ("__name__",), 1, ()))
        found = await db.wire.together(before, after)
        return shortest_prefix(run, [doc.id for docs in found for doc in docs], least)

    return dict(zip(runs, await db.wire.together(*map(shortened, runs)), strict=True))


async def list_runs(db: Database, query: RunFilter) -> RunPage:
    where: list[Filter] = [] if query.workflow is None else [("workflow", "==", query.workflow)]
    statuses = sorted(status.value for status in query.statuses)
    if statuses:
        where.append(("status", "==", statuses[0]) if len(statuses) == 1 else ("status", "in", statuses))
    if query.cursor is not None:
        where.append(("place", "<", " ".join(read_cursor(query.cursor))))
    if query.created_before is not None:
        where.append(("place", "<", f"{micros(query.created_before):017d}"))
    if query.created_after is not None:
        where.append(("place", ">=", f"{micros(query.created_after):017d}"))
    limit = max(query.limit, 1)
    docs = await db.wire.query(Query("runs", tuple(where), ("-place",), limit + 1, _LISTED))
    states = [run_state(doc) for doc in docs]
    cursor = write_cursor(*states[limit - 1].place.split(" ")) if len(states) > limit else None
    return RunPage(tuple(state.listed() for state in states[:limit]), cursor)


async def param_values(db: Database, runs: Sequence[RunId], name: str) -> Mapping[RunId, Any]:
    found: dict[RunId, Any] = {}
    for start in range(0, len(runs), _GET_AT_ONCE):
        paths = [f"runs/{run}" for run in runs[start : start + _GET_AT_ONCE] if run and "/" not in run]
        for doc in (await db.wire.get_all(paths, FACTS)).values():
            params = readable_params(await params_of(db, run_state(doc)))
            found |= {RunId(doc.id): params[name]} if name in params else {}
    return found


async def last_runs(db: Database, workflows: Sequence[str]) -> Mapping[str, Run]:
    pages = await db.wire.together(*(list_runs(db, RunFilter(workflow=name, limit=1)) for name in workflows))
    return {run.workflow: run for page in pages for run in page.runs}


async def count_unfinished(db: Database) -> Mapping[RunStatus, int]:
    statuses = [status for status in RunStatus if not status.is_final]
    counts = [db.wire.count(Query("runs", (("status", "==", status.value),))) for status in statuses]
    return dict(zip(statuses, await db.wire.together(*counts), strict=True))


async def changes_since(db: Database, mark: str | None, limit: int = 100) -> Changes:
    """The field `changed` finds the candidates; the mark is the exact time at which a document was written."""
    if mark is None:
        newest = [run_state(doc) for doc in await db.wire.query(Query("runs", (), ("-changed",), 20, _LISTED))]
        return Changes((), mark_text(max((state.changed for state in newest), default=0)))
    behind = mark_number(mark)
    since, after = moment_of(behind) - NET if behind > micros(_EPOCH) else _EPOCH, None
    found: dict[RunId, RunState] = {}
    while True:
        where = (("changed", ">=", since),) if after is None else ()
        docs = await db.wire.query(Query("runs", where, ("changed",), limit + 50, (*_LISTED, "changed"), after=after))
        found |= {state.id: state for state in map(run_state, docs) if state.changed > behind}
        later = sorted(found.values(), key=lambda state: (state.changed, state.id))
        last = later[:limit][-1].changed if later else behind
        is_last = len(docs) < limit + 50
        # A document that came in after `last` was written after it, too.
        if is_last or (len(later) >= limit and micros(docs[-1].fields["changed"]) > last):
            break
        after = (docs[-1].fields["changed"],)
    shown = [state for state in later if state.changed <= last]
    return Changes(tuple(state.listed() for state in shown), mark_text(last) if shown else mark)


_EPOCH = datetime.fromisoformat("1970-01-02T00:00:00+00:00")


async def run_updates(
    db: Database, run: RunId, since: str | None = None, only: TaskFilter = ALL_TASKS
) -> RunUpdate | None:
    mark = None if since is None else mark_number(since)
    doc = await _get(db, run)
    if doc is None:
        return None
    state = run_state(doc)
    shown = await shown_run(db, doc)
    if mark is not None and state.changed <= mark:
        return RunUpdate(shown, (), mark_text(state.changed))
    order = await db.order_of(state.version)
    first = task_place(order, only.after)
    rows = await rows_of(db, doc, state, 0 if mark is None else state.number_behind(mark))
    tasks = [
        task
        for columns in tasks_in_order(rows, order)
        if place_of_columns(order, columns) > first
        and only.name in (None, columns[0])
        and (not only.statuses or columns[2] in only.statuses)
        for task in [lenient.task(columns)]
        if (only.with_instances or task.key.index is None) and (not only.is_retrying or task.retry_at is not None)
    ]
    return RunUpdate(shown, tuple(tasks[: only.limit]), mark_text(state.changed))


async def count_tasks(db: Database, run: RunId) -> tuple[TaskCount, ...]:
    """Reads the run's documents, which hold its tasks: about two hundred in each."""
    update = await run_updates(db, run)
    return () if update is None else counts_of_records(update.tasks)


async def task_times(
    db: Database,
    run: RunId,
    since: str | None = None,
    *,
    after: TaskKey | None = None,
    limit: int = 1000,  # noqa: ARG001 (documents are read as a whole, so all tasks are one page)
    with_instances: bool = True,
) -> TimesPage:
    update = await run_updates(db, run, since, TaskFilter(after=after))
    if update is None:
        return NO_TIMES
    tasks = [task for task in update.tasks if with_instances or task.key.index is None]
    has_earlier = any(task.attempt > 1 or (task.attempt and task.status is TaskStatus.PENDING) for task in tasks)
    return times_of_records(tasks, await list_attempts(db, run) if has_earlier else (), None)


async def list_attempts(
    db: Database,
    run: RunId,
    task: TaskKey | None = None,
    *,
    after: AttemptKey | None = None,
    limit: int | None = None,
) -> tuple[Attempt, ...]:
    doc = await _get(db, run)
    if doc is None:
        return ()
    state = run_state(doc)
    order = await db.order_of(state.version)
    first = attempt_place(order, after)
    rows = attempts_in_order(run, await rows_of(db, doc, state), order)
    wanted = None if task is None else task_text(task)
    found = [columns for place, columns in rows if place > first and wanted in (None, f"{columns[1]}:{columns[2]}")]
    return tuple(lenient.attempt(columns) for columns in found[:limit])


async def find_cached(db: Database, key: str, since: datetime) -> Cached | None:
    """The newest success is looked up; whether it still is one, the run's own row says."""
    doc = await db.wire.get(f"cached/{hashlib.sha256(key.encode()).hexdigest()}")
    if doc is None or doc.fields["finished"] < micros(since):
        return None
    run_doc = await _get(db, RunId(doc.fields["run"]))
    if run_doc is None:
        return None
    rows = await rows_of(db, run_doc, run_state(run_doc))
    row = rows.tasks.get(task_text(TaskKey(doc.fields["task"], doc.fields["index"])))
    task = None if row is None else codec.task_of(row[1])
    if task is None or task.cache_key != key or task.status is not TaskStatus.SUCCESS:
        return None
    return Cached(RunId(doc.fields["run"]), task.output)


async def look_ahead(db: Database, locations: Collection[str]) -> LookAhead:
    """Four reads for an installation that has nothing to do. Whether a run has an owner matters only if none waits for one."""
    queued, planned, alert, location = await db.wire.together(
        db.wire.query(Query("runs", (("queue", ">", ""),), (), 1, ())),
        db.wire.query(Query("workflows", (("due", ">=", 0),))),
        next_alert_at(db),
        next_location_at(db, locations),
    )
    runs = queued or await db.wire.query(Query("runs", (("owner", ">", ""),), (), 1, ()))
    return LookAhead(bool(runs), schedule_entries(planned), alert, location)
