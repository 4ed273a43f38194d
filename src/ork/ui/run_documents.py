"""The documents of one run: what its pages read, and the ends of the logs of failed tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any

from ork.status.secret_masking import mask_bytes
from ork.ui.reads import Reads, every_page

LOG_BYTES = 100_000
MOST_ROWS = 1000
MOST_NAMES = 200
MOST_DETAILS = 100
"""Tasks with an explanation and an output: failed and unfinished ones first."""
MOST_EXPLAINED = 5
"""Explained tasks of a run with more than MOST_ROWS tasks: each explanation reads the whole run."""
MOST_LOGS = {"failed": 50, "all": 300}
LOGS_IN_ALL = 16 << 20
"""Bytes of the logs of one run, before they are compressed."""
PREVIEW_ROWS = 50
_PARTS = ("summary", "columns", "graph", "why", "cost", "previous-success", "commands")
_RUN = "/runs/{run}"


class Logs(StrEnum):
    """Whose logs are exported, each from its end: of no task, of failed tasks, or of all, failed ones first."""

    NONE = "none"
    FAILED = "failed"
    ALL = "all"


async def run_answers(reads: Reads, run: str) -> dict[str, Any]:
    """Answers by the path of the API, with the parameters that `ui/src/data/snapshot.ts` puts into its keys."""
    answers = {f"{_RUN}/{part}": await reads.get("runs", run, part) for part in _PARTS}
    tasks = await _tasks(reads, run, answers[f"{_RUN}/summary"])
    details = sorted(tasks["tasks"], key=lambda row: _RANKS.get(row["status"], 1))[:MOST_DETAILS]
    answers[f"{_RUN}/tasks"] = tasks
    answers[f"{_RUN}/attempts"] = await _attempts(reads, run, details)
    is_large = tasks["cursor"] is not None
    for row in details[: MOST_EXPLAINED if is_large else None]:
        answers[f"{_RUN}/why task={task_name(row)}"] = await reads.get("runs", run, "why", task=task_name(row))
    for row in details:
        answers |= await _output(reads, run, row)
    answers |= await _difference(reads, run, answers[f"{_RUN}/previous-success"])
    return {key: answer for key, answer in answers.items() if answer is not None}


async def log_documents(
    reads: Reads, run: str, answers: dict[str, Any], logs: Logs
) -> AsyncIterator[tuple[str, bytes]]:
    """The ends of logs, with secrets masked."""
    left = LOGS_IN_ALL
    for each in _attempts_with_logs(answers, logs):
        place = (each["task"], each["index"] or 0)
        path = ("runs", run, "tasks", *place, "attempts", each["attempt"], "log")
        end = await reads.log_end(*path, most=min(LOG_BYTES, left)) if left > 0 else None
        if end is not None:
            left -= len(end[0])
            yield f"log/{run}/{place[0]}.{place[1]}.{each['attempt']}.txt", mask_bytes(_whole_lines(*end))


def _attempts_with_logs(answers: dict[str, Any], logs: Logs) -> list[dict[str, Any]]:
    if logs is Logs.NONE:
        return []
    failed = {task_name(row) for row in answers[f"{_RUN}/tasks"]["tasks"] if row["status"] == "failed"}
    attempts: list[dict[str, Any]] = answers[f"{_RUN}/attempts"]["attempts"]
    ranked = sorted(attempts, key=lambda each: task_name(each, "task") not in failed)
    wanted = ranked if logs is Logs.ALL else [each for each in ranked if task_name(each, "task") in failed]
    return wanted[: MOST_LOGS[logs]]


def task_name(row: dict[str, Any], key: str = "name") -> str:
    return str(row[key]) if row["index"] is None else f"{row[key]}[{row['index']}]"


_RANKS = {"failed": -1, "success": 2, "skipped": 3}


async def _tasks(reads: Reads, run: str, summary: dict[str, Any]) -> dict[str, Any]:
    """All rows of a small run. Of a large one the first ones, the failed ones, and one of each task."""
    found: dict[str, Any] = await reads.get("runs", run, "tasks", limit=MOST_ROWS)
    if found["cursor"] is None:
        return found
    rows = {task_name(row): row for row in found["tasks"]}
    names = [task["name"] for task in summary["tasks"] if task["name"] not in rows][:MOST_NAMES]
    pages = [await reads.get("runs", run, "tasks", status="failed", limit=MOST_ROWS)]
    pages += [await reads.get("runs", run, "tasks", name=name, limit=1) for name in names]
    rows |= {task_name(row): row for page in pages for row in page["tasks"]}
    return {**found, "tasks": list(rows.values())}


async def _attempts(reads: Reads, run: str, details: list[dict[str, Any]]) -> dict[str, Any]:
    """The first ones of the run, and all of the tasks with details."""
    found: dict[str, Any] = await reads.get("runs", run, "attempts", limit=MOST_ROWS)
    if found["cursor"] is None:
        return found
    known = {task_name(each, "task") for each in found["attempts"]}
    for row in details:
        if task_name(row) not in known and row["attempt"]:
            page = await every_page(
                reads, "runs", run, "attempts", rows="attempts", task=row["name"], index=row["index"]
            )
            found["attempts"] += page["attempts"] if page else []
    return {**found, "cursor": None}


async def _output(reads: Reads, run: str, row: dict[str, Any]) -> dict[str, Any]:
    name, index = row["name"], row["index"]
    if row["status"] != "success" and row["instances"] is None:
        return {}
    if index is None:
        found = await reads.get("runs", run, "tasks", name, "output", preview=PREVIEW_ROWS)
        return {f"{_RUN}/tasks/{{name}}/output name={name}": found}
    found = await reads.get("runs", run, "tasks", name, index, "output", preview=PREVIEW_ROWS)
    return {f"{_RUN}/tasks/{{name}}/{{index}}/output index={index} name={name}": found}


async def _difference(reads: Reads, run: str, previous: dict[str, Any] | None) -> dict[str, Any]:
    """From the last success before this run, and the other way round."""
    other = previous and previous["run"] and previous["run"]["id"]
    if not other:
        return {}
    path = f"{_RUN}/diff/{{other}}"
    return {
        f"{path} other={other}": await reads.get("runs", run, "diff", other),
        f"{path} from={other}": await reads.get("runs", other, "diff", run),
    }


def _whole_lines(data: bytes, size: int) -> bytes:
    """Of a long log the last whole lines, and before them how much was omitted."""
    omitted = size - len(data)
    if omitted == 0:
        return data
    before, found, rest = data.partition(b"\n")
    omitted, data = (omitted + len(before) + 1, rest) if found else (omitted, data)
    return f"… {omitted:,} bytes before this are omitted\n".encode() + data
