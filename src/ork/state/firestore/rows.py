"""Reading what is in and below a run's document."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import Run
from ork.state.firestore.database import Database
from ork.state.firestore.documents import (
    FoundRows,
    RunState,
    found_rows,
    in_big,
    lenient,
    run_state,
    task_key,
)
from ork.state.firestore.wire import Doc, Query
from ork.state.rows import index_number


def packed(text: str) -> bytes:
    return zlib.compress(text.encode())


async def shown_run(db: Database, doc: Doc) -> Run:
    """With its params, wherever they are."""
    state = run_state(doc)
    return lenient.run(state.row(await params_of(db, state)))


async def params_of(db: Database, state: RunState) -> str:
    if state.params is not None:
        return state.params
    found = await db.wire.get(f"runs/{state.id}/big/params")
    return "{}" if found is None else zlib.decompress(found.fields["params"]).decode()


def run_of_state(state: RunState, params: dict[str, Any]) -> Run:
    return replaced(lenient.run(state.row("{}")), params=params)


async def rows_of(db: Database, doc: Doc, state: RunState, behind: int = 0) -> FoundRows:
    """The rows of a run that changed after its change number `behind`."""
    docs = [doc]
    if state.has_chunks:
        docs += await db.wire.query(Query("chunks", (("n", ">", behind),), under=doc.path))
    big = await db.wire.get_all([f"{doc.path}/big/{key}" for key in in_big(docs, behind)])
    rows = {path.rpartition("/")[2]: found.fields["row"] for path, found in big.items()}
    found = found_rows(docs, rows)
    return (
        found
        if not behind
        else FoundRows({key: row for key, row in found.tasks.items() if row[0] > behind}, found.attempts)
    )


def tasks_in_order(found: FoundRows, order: Mapping[str, int]) -> list[list[Any]]:
    """Columns of tasks, as the workflow names them."""
    places = [
        ((order[key.name], index_number(key.index)), text)
        for text in found.tasks
        if (key := task_key(text)).name in order
    ]
    return [found.tasks[text][1] for _, text in sorted(places)]


def place_of_columns(order: Mapping[str, int], columns: list[Any]) -> tuple[int, int]:
    return order[columns[0]], columns[1]


def attempts_in_order(
    run: RunId, found: FoundRows, order: Mapping[str, int]
) -> list[tuple[tuple[int, int, int], list[Any]]]:
    """Columns of attempts with their places."""
    rows = [columns for columns in found.attempts.values() if columns and columns[0] in order]
    return sorted(
        ((order[name], index, number), [run, *columns]) for columns in rows for name, index, number in [columns[:3]]
    )


def current_attempts(run: RunId, found: FoundRows, tasks: Iterable[list[Any]]) -> list[list[Any]]:
    """Columns of the current attempt of each active task, in the order of the tasks."""
    rows = []
    for columns in tasks:
        name, index, status, _, number, *_ = columns
        if status in ("dispatched", "running") and number:
            rows.append([run, *found.attempts.get(f"{name}:{index}:{number}", [])])
    return rows


def beats_of(doc: Doc | None) -> dict[str, tuple[int, float]]:
    """What was noted of heartbeats: number and moment by attempt."""
    return {} if doc is None else {key: tuple(json.loads(text)) for key, text in doc.fields.get("beats", {}).items()}
