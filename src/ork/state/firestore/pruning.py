"""Forgetting runs that ended long ago."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from ork.model.ids import RunId
from ork.state.firestore.database import Database, Plan
from ork.state.firestore.documents import FACTS, RunState, run_state
from ork.state.firestore.requests import key_path, slot_path
from ork.state.firestore.values import micros, moment_of
from ork.state.firestore.wire import Put, Query

_PAGE = 200
_FINISHED, _CREATED, _SCHEDULED, _TRIGGER = 9, 6, 7, 4  # places in a run's columns
_DELETED_AT_ONCE = 400
_PRUNED_AT_ONCE = 50  # runs, with the documents that stand for them elsewhere


async def prunable_runs(db: Database, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
    return tuple(state.id for state in await _prunable(db, before, limit, keep_last))


async def _prunable(db: Database, before: datetime, limit: int, keep_last: int) -> list[RunState]:
    """`ended` is there only for final runs without owner and commands; its order is that of creation."""
    end, found, kept, after = micros(before), list[RunState](), dict[str, set[str]](), ""
    while len(found) < limit:
        where = (("ended", ">", after), ("ended", "<", f"{end:017d}"))
        page = [run_state(doc) for doc in await db.wire.query(Query("runs", where, ("ended",), _PAGE, FACTS))]
        for state in page:
            if keep_last and state.workflow not in kept:
                newest = Query("runs", (("workflow", "==", state.workflow),), ("-place",), keep_last, ())
                kept[state.workflow] = {doc.id for doc in await db.wire.query(newest)}
            finished = state.columns[_FINISHED]
            if finished is not None and finished < end and state.id not in kept.get(state.workflow, ()):
                found.append(state)
        if len(page) < _PAGE:
            break
        after = page[-1].place
    return found[:limit]


async def prune(db: Database, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
    """What is below a run's document is not found without it, and is deleted by `swept`: it may be thousands of documents."""

    async def plan() -> Plan[tuple[RunId, ...]]:
        states = await _prunable(db, before, min(limit, _PRUNED_AT_ONCE), keep_last)
        beside = await db.wire.together(*(_documents_beside(db, state) for state in states))
        puts = [Put(f"leftovers/{state.id}", {"run": state.id}) for state in states]
        puts += [Put(f"runs/{state.id}", None, state.time) for state in states]
        puts += [Put(path, None) for paths in beside for path in paths]
        told = await db.wire.query(Query("notices", (("raised", "<", micros(before)),)))
        puts += [Put(doc.path, None) for doc in told if "run" not in doc.fields and "due" not in doc.fields][
            :_PRUNED_AT_ONCE
        ]
        return Plan(puts, tuple(state.id for state in states))

    return await db.change(plan)


async def _documents_beside(db: Database, state: RunState) -> list[str]:
    """Those that stand for the run elsewhere."""
    own = (("run", "==", state.id),)
    found = await db.wire.together(*(db.wire.query(Query(name, own, (), None, ())) for name in ("notices", "cached")))
    paths = [doc.path for docs in found for doc in docs]
    if state.key is not None:
        paths.append(key_path(state.workflow, state.key))
    if state.columns[_SCHEDULED] is not None and state.columns[_TRIGGER] in ("schedule", "backfill"):
        paths.append(slot_path(state.workflow, moment_of(state.columns[_SCHEDULED])))
    return paths


async def leftovers(db: Database, limit: int) -> tuple[RunId, ...]:
    return tuple(RunId(doc.id) for doc in await db.wire.query(Query("leftovers", (), ("__name__",), limit, ())))


async def swept(db: Database, runs: Sequence[RunId]) -> None:
    """First what is below the runs' documents, then the note that says there is something left."""
    for run in runs:
        for name in ("chunks", "big", "notes"):
            while await db.change(partial(_some_deleted, db, Query(name, (), (), _DELETED_AT_ONCE, (), f"runs/{run}"))):
                continue
    for start in range(0, len(runs), _DELETED_AT_ONCE):
        await db.change(partial(_all_deleted, [f"leftovers/{run}" for run in runs[start : start + _DELETED_AT_ONCE]]))


async def _some_deleted(db: Database, query: Query) -> Plan[bool]:
    docs = await db.wire.query(query)
    return Plan([Put(doc.path, None) for doc in docs], len(docs) == query.limit)


async def _all_deleted(paths: Sequence[str]) -> Plan[None]:
    return Plan([Put(path, None) for path in paths], None)
