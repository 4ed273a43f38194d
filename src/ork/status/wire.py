"""Reads the JSON that `ork.status.shapes` writes, for API clients.

That JSON contains no tokens and no headers of external jobs, so attempts read from it have none.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.json_fields import from_json
from ork.model.run import Run
from ork.model.task import Attempt, InlineOutput, Output, StoredOutput, Task
from ork.model.workflow import WorkflowEntry
from ork.objects.json_text import dumps
from ork.objects.references import output_reference


def read_run(row: dict[str, Any]) -> Run:
    return from_json(Run, row, params=row["params"] or {})


def read_task(run: RunId, row: dict[str, Any]) -> Task:
    key = TaskKey(row["name"], row["index"])
    item = row["width"] if key.index is None else row.get("item")
    return from_json(
        Task,
        row,
        key=key,
        cause=None if row["cause"] is None else read_key(row["cause"]),
        output=_read_output(AttemptKey(run, key, row["attempt"]), row),
        item=None if item is None else dumps(item),
    )


def read_attempt(run: RunId, row: dict[str, Any]) -> Attempt:
    jobs = row.get("waits_for")
    return from_json(
        Attempt,
        row,
        key=AttemptKey(run, TaskKey(row["task"], row["index"]), row["attempt"]),
        token_hash="",
        external_name=row.get("external_name") or "",
        waits_for=dumps([{"call": name} for name in jobs]) if jobs else None,
    )


def read_workflow(row: dict[str, Any]) -> WorkflowEntry:
    return from_json(WorkflowEntry, row)


def read_moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def read_attempt_key(run: RunId, text: str) -> AttemptKey:
    """The attempt from TASK/2 or TASK[3]/2."""
    task, _, number = text.rpartition("/")
    return AttemptKey(run, read_key(task), int(number))


def read_key(text: str) -> TaskKey:
    """Parses TASK or TASK[3]."""
    name, bracket, index = text.partition("[")
    return TaskKey(name, int(index[:-1]) if bracket else None)


def _read_output(attempt: AttemptKey, row: dict[str, Any]) -> Output | None:
    if row.get("output_size") is not None:
        return StoredOutput(output_reference(str(attempt)), row["output_size"])
    # JSON null stands for both no output and a null output; both print `null`.
    return None if row["output"] is None else InlineOutput(dumps(row["output"]))
