"""What an export reads of a run, and how much of a large one."""

from __future__ import annotations

import asyncio
from typing import Any

from ork.ui.run_documents import MOST_DETAILS, MOST_EXPLAINED, MOST_LOGS, MOST_ROWS, Logs, log_documents, run_answers


class Answers:
    """A run with a fan-out, of which the last instances failed. Counts what is read."""

    def __init__(self, instances: int, failed: int) -> None:
        rows = [
            _row("first", None, "success"),
            *(_row("load", index, "success") for index in range(instances - failed)),
        ]
        self._rows = rows + [_row("load", index, "failed") for index in range(instances - failed, instances)]
        self._rows.append(_row("last", None, "skipped"))
        self.explained: list[str] = []

    async def get(self, *path: object, **query: Any) -> Any:
        if path[2:] == ("tasks",):
            rows = [row for row in self._rows if _is_wanted(row, query)]
            return {"tasks": rows[: query["limit"]], "cursor": "more" if len(rows) > query["limit"] else None}
        if path[2:] == ("attempts",):
            rows = [row for row in self._rows if query.get("task", row["name"]) == row["name"]]
            rows = [row for row in rows if query.get("index", row["index"]) == row["index"]]
            attempts = [{"task": row["name"], "index": row["index"], "attempt": 1} for row in rows]
            is_more = "task" not in query and len(rows) > query["limit"]
            return {"attempts": attempts[: query.get("limit")], "cursor": "more" if is_more else None}
        if path[2:] == ("summary",):
            return {"tasks": [{"name": "first"}, {"name": "load"}, {"name": "last"}]}
        if path[2:] == ("why",) and query:
            self.explained.append(query["task"])
            return {"why": []}
        return None

    async def log_end(self, *path: object, most: int) -> tuple[bytes, int] | None:
        return b"half a line\nlast\n", 1000


def test_a_small_run_is_read_as_a_whole() -> None:
    reads = Answers(instances=20, failed=2)
    answers = asyncio.run(run_answers(reads, "7f3k"))
    assert len(answers["/runs/{run}/tasks"]["tasks"]) == 22
    assert reads.explained[:2] == ["load[18]", "load[19]"]
    assert len(reads.explained) == 22


def test_of_a_large_run_there_are_the_failed_tasks_and_one_row_of_each_task() -> None:
    reads = Answers(instances=5 * MOST_ROWS, failed=200)
    answers = asyncio.run(run_answers(reads, "7f3k"))
    rows = {f"{row['name']}[{row['index']}]": row for row in answers["/runs/{run}/tasks"]["tasks"]}
    assert {"last[None]", f"load[{5 * MOST_ROWS - 1}]"} <= rows.keys()
    assert len(rows) == MOST_ROWS + 200 + 1
    assert len(reads.explained) == MOST_EXPLAINED
    attempts = [each for each in answers["/runs/{run}/attempts"]["attempts"] if each["index"] is not None]
    assert len([each for each in attempts if each["index"] >= 5 * MOST_ROWS - 200]) == MOST_DETAILS


def test_logs_are_bounded_and_begin_with_a_whole_line() -> None:
    reads = Answers(instances=5 * MOST_ROWS, failed=200)

    async def logs() -> dict[str, bytes]:
        answers = await run_answers(reads, "7f3k")
        return {name: data async for name, data in log_documents(reads, "7f3k", answers, Logs.FAILED)}

    found = asyncio.run(logs())
    assert len(found) == MOST_LOGS[Logs.FAILED]
    assert set(found.values()) == {"… 995 bytes before this are omitted\nlast\n".encode()}


def _row(name: str, index: int | None, status: str) -> dict[str, Any]:
    return {"name": name, "index": index, "status": status, "attempt": 1, "instances": None}


def _is_wanted(row: dict[str, Any], query: dict[str, Any]) -> bool:
    return all(query.get(key, row[key]) == row[key] for key in ("name", "status"))
