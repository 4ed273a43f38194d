"""Reads for people and the API. The cost of a read depends on what it returns, not on the size of the store."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from ork.core.effects import Alert
from ork.core.limits import EVERYTHING
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt
from ork.state.admission import ActiveAttempts, room_left
from ork.state.lenient import readable_params, shown_failure
from ork.state.paging import attempt_place, read_cursor, shortest_prefix, task_place, write_cursor
from ork.state.records import (
    ALL_TASKS,
    NO_TIMES,
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
from ork.state.rows import count_in_order, last_of, number_of, task_count, text_of, time_columns, tried_tasks
from ork.state.sqlite.connection import Row
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import (
    attempt_key,
    index_number,
    index_of,
    json_text,
    lenient,
    output_of,
    time_text,
)

_HOLDERS_SHOWN = 5
_LAST_ORDINAL = 2**62
_NO_LIMIT = -1
_NEWEST = ("~", "")  # sorts after every time


def find_runs(db: Database, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
    return tuple(RunId(id) for (id,) in db.connection.rows("find_runs", {"prefix": prefix, "limit": limit}))


def shorten_ids(db: Database, runs: Collection[RunId], least: int) -> dict[RunId, str]:
    rows = db.connection.rows("neighbours", {"ids": json_text(list(runs))})
    return {RunId(id): shortest_prefix(id, neighbours, least) for id, *neighbours in rows}


def list_runs(db: Database, query: RunFilter) -> RunPage:
    """Merge one index range per status, so that a filter costs one page however long the history is."""
    before, before_id = _NEWEST if query.cursor is None else read_cursor(query.cursor)
    if query.created_before is not None:
        before, before_id = min((before, before_id), (time_text(query.created_before) or "", ""))
    name = "list_runs_by_status" if query.workflow is None else "list_runs_by_workflow"
    limit = max(query.limit, 1)
    wanted = {"workflow": query.workflow, "before": before, "before_id": before_id, "limit": limit + 1}
    wanted["after"] = time_text(query.created_after) or ""
    with db.connection.reading():
        places: list[tuple[str, str]] = []
        for status in sorted(query.statuses or RunStatus):
            places += db.connection.rows(name, {**wanted, "status": status.value})
        if not query.statuses:
            places += db.connection.rows("list_runs_of_unknown_status", wanted)
        places.sort(reverse=True)
        shown = places[:limit]
        runs = db.listed_runs([id for _, id in shown])
    return RunPage(runs, write_cursor(*shown[-1]) if len(places) > limit else None)


def last_runs(db: Database, workflows: Sequence[str]) -> dict[str, Run]:
    pages = [list_runs(db, RunFilter(workflow=name, limit=1)) for name in workflows]
    return {run.workflow: run for page in pages for run in page.runs}


def param_values(db: Database, runs: Sequence[RunId], name: str) -> dict[RunId, Any]:
    rows = db.connection.rows("params_of_runs", {"ids": json_text(list(runs)), "key": json_text(name)})
    return {RunId(id): params[name] for id, text in rows if name in (params := readable_params(text))}


def get_run(db: Database, run: RunId) -> Run | None:
    return db.run(run)


def find_by_key(db: Database, workflow: str, key: str) -> Run | None:
    row = db.connection.row("find_by_key", {"workflow": workflow, "key": key})
    return None if row is None else db.run(row[0])


def find_scheduled(db: Database, workflow: str, times: Sequence[datetime]) -> dict[datetime, Run]:
    wanted = json_text([time_text(time) for time in times])
    with db.connection.reading():
        ids = [id for (id,) in db.connection.rows("find_scheduled", {"workflow": workflow, "times": wanted})]
        runs = db.listed_runs(ids)
    return {run.scheduled_for: run for run in runs if run.scheduled_for is not None}


def count_unfinished(db: Database) -> dict[RunStatus, int]:
    found: dict[str, int] = dict(db.connection.rows("count_unfinished"))
    return {status: found.get(status.value, 0) for status in RunStatus if not status.is_final}


def changes_since(db: Database, mark: str | None, limit: int = 100) -> Changes:
    if mark is None:
        return Changes((), text_of(db.last_change()))
    with db.connection.reading():
        places = db.connection.rows("changed_runs", {"mark": number_of(mark), "limit": max(limit, 1)})
        runs = db.listed_runs([id for id, _ in places])
    return Changes(runs, text_of(places[-1][1]) if places else mark)


def run_updates(db: Database, run: RunId, since: str | None = None, only: TaskFilter = ALL_TASKS) -> RunUpdate | None:
    behind = 0 if since is None else number_of(since)
    with db.connection.reading():
        found = db.runs([run])
        if not found:
            return None
        known, row = found[0]
        # Every write to a task also updates its run, so the run has the highest number.
        mark = row[-1]
        if only != ALL_TASKS:
            tasks = _page_of_tasks(db, known, behind, only)
        elif behind <= 0:
            tasks = db.connection.rows("tasks_of_run", {"run": run})
        elif behind < mark:
            tasks = db.connection.rows("tasks_changed_since", {"run": run, "since": behind})
        else:
            tasks = []
    return RunUpdate(known, tuple(lenient.task(task) for task in tasks), text_of(mark))


def _page_of_tasks(db: Database, run: Run, since: int, only: TaskFilter) -> list[Row]:
    order = {} if only.name is None and only.after is None else db.order(run.version)
    if only.name is not None and only.name not in order:
        return []
    after, after_idx = task_place(order, only.after)
    wanted = {
        "run": run.id,
        "after": after,
        "after_idx": after_idx,
        "place": order[only.name] if only.name is not None else None,
        "statuses": json_text(sorted(only.statuses)) if only.statuses else None,
        "limit": _NO_LIMIT if only.limit is None else only.limit,
        "with_instances": only.with_instances,
        "is_retrying": only.is_retrying,
    }
    if since <= 0:
        return db.connection.rows("page_of_tasks", wanted)
    return db.connection.rows("page_of_changed_tasks", {**wanted, "since": since})


def count_tasks(db: Database, run: RunId) -> tuple[TaskCount, ...]:
    return count_in_order(map(task_count, db.connection.rows("count_tasks", {"run": run})))


def task_times(
    db: Database,
    run: RunId,
    since: str | None = None,
    *,
    after: TaskKey | None = None,
    limit: int = 1000,
    with_instances: bool = True,
) -> TimesPage:
    behind = 0 if since is None else number_of(since)
    with db.connection.reading():
        ordinal, idx = task_place({} if after is None else _order(db, run), after)
        wanted = {"run": run, "after": ordinal, "after_idx": idx, "with_instances": with_instances, "limit": limit + 1}
        if behind <= 0:
            (columns,) = db.connection.rows("page_of_times", wanted)
        else:
            (columns,) = db.connection.rows("page_of_changed_times", {**wanted, "since": behind})
        names, idxs, statuses, *numbers, tried_text, last = columns
        if last is None:
            return NO_TIMES
        numbers = [json.loads(text) for text in (idxs, *numbers)]
        has_more = len(numbers[0]) > limit
        tried = tried_tasks(
            each for each in json.loads(tried_text) if not has_more or each[:2] != [last, numbers[0][-1]]
        )
        earlier = db.connection.rows("earlier_times", {"run": run, "tasks": json_text(tried)}) if tried else []
    idx, *times = numbers
    page = (names.split("\n"), idx, statuses.split("\n"), *times)
    shown = time_columns(column[:limit] for column in page)
    return TimesPage(shown, time_columns(zip(*earlier, strict=True)), last_of(shown, has_more))


def list_attempts(
    db: Database, run: RunId, task: TaskKey | None = None, *, after: AttemptKey | None = None, limit: int | None = None
) -> tuple[Attempt, ...]:
    wanted = {"run": run, "first": 0, "last": _LAST_ORDINAL, "idx": None}
    order = {} if task is None and after is None else _order(db, run)
    if task is not None:
        if task.name not in order:
            return ()
        wanted |= {"first": order[task.name], "last": order[task.name], "idx": index_number(task.index)}
    if after is None and limit is None:
        rows = db.connection.rows("attempts_of_run", wanted)
    else:
        ordinal, idx, number = attempt_place(order, after)
        wanted |= {"after": ordinal, "after_idx": idx, "after_number": number}
        rows = db.connection.rows("page_of_attempts", {**wanted, "limit": _NO_LIMIT if limit is None else limit})
    return tuple(lenient.attempt(row) for row in rows)


def _order(db: Database, run: RunId) -> dict[str, int]:
    known = db.run(run)
    return {} if known is None else db.order(known.version)


def find_cached(db: Database, key: str, since: datetime) -> Cached | None:
    row = db.connection.row("find_cached", {"key": key, "since": time_text(since)})
    return None if row is None else Cached(RunId(row[0]), output_of(*row[1:]))


def list_alerts(db: Database, run: RunId) -> tuple[Alert, ...]:
    return tuple(
        Alert(None if task is None else TaskKey(task, index_of(idx)), shown_failure(failure))
        for task, idx, failure in db.connection.rows("alerts_of_run", {"run": run})
    )


def over_budget_at(db: Database, run: RunId) -> datetime | None:
    row = db.connection.row("over_budget_at", {"run": run})
    return None if row is None else lenient.time(row[0])


def limit_use(db: Database) -> tuple[LimitUse, ...]:
    with db.connection.reading():
        limits: dict[str, int] = dict(db.connection.rows("list_limits"))
        if not limits:
            return ()
        room = room_left(limits, (ActiveAttempts(*row) for row in db.connection.rows("count_active")))
        return tuple(_use(db, name, slots, slots - room[name]) for name, slots in sorted(limits.items()))


def _use(db: Database, name: str, slots: int, used: int) -> LimitUse:
    kind, _, subject = name.partition(":")
    wanted = {
        "executor": subject if kind == "executor" else None,
        "pool": subject if kind == "pool" else None,
        "limit": _HOLDERS_SHOWN if name == EVERYTHING or subject else 0,
    }
    return LimitUse(name, slots, used, tuple(attempt_key(row) for row in db.connection.rows("holders", wanted)))
