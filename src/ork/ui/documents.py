"""The documents of a snapshot: the answers that the pages read, in JSON, each under a name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ork.ui.reads import Reads, every_page
from ork.ui.run_documents import Logs, log_documents, run_answers

FORMAT = 1
PAGE_ROWS = 200
MOST_WORKFLOWS = 500
NEXT_TIMES = 10
VERSIONS_OF_EACH = 20
_CALENDAR = timedelta(days=35)
_HOME = timedelta(days=7)
_FINAL = ("success", "failed", "cancelled")
_SINGLE = ("status", "limits", "schedulers", "controls", "quarantine", "approvals", "installation")


class Choice(NamedTuple):
    """What is exported: the newest `runs`, created after `since`, or the run `only` and nothing else."""

    runs: int = 200
    since: datetime | None = None
    logs: Logs = Logs.FAILED
    only: str | None = None


class Kept(NamedTuple):
    """What an earlier export has written: digests of documents by name, and of the row of each run."""

    documents: Mapping[str, str]
    runs: Mapping[str, str]


class Documents:
    """Reads all documents once. `runs` and `more_runs` are for the manifest."""

    def __init__(self, reads: Reads, choice: Choice, as_of: datetime, kept: Kept) -> None:
        self._reads = reads
        self._choice = choice
        self._as_of = as_of
        self._kept = kept
        self.runs: dict[str, str] = {}
        self.more_runs = False

    async def all(self) -> AsyncIterator[tuple[str, bytes | None]]:
        """Names and bytes; None for a document that is as the earlier export has written it."""
        rows = await self._rows()
        for month, listed in _by_month(rows).items():
            yield f"runs/{month}.json", encoded({"runs": listed})
        for row in rows:
            async for each in self._run(row):
                yield each
        names = await self._workflow_names(rows)
        versions = {row["version"] for row in rows}
        for name in names:
            answers = await self._workflow(name)
            versions |= {each["id"] for each in answers.get("/workflows/{name}/versions", {}).get("versions", ())}
            yield f"workflow/{name}.json", encoded(answers)
        for version in sorted(versions):
            yield await self._version(version)
        yield "overview.json", encoded({} if self._choice.only else await self._overview())

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────

    async def _rows(self) -> list[dict[str, Any]]:
        if self._choice.only is not None:
            summary = await self._reads.get("runs", self._choice.only, "summary")
            rows = [] if summary is None else [{**summary["run"], "progress": summary["progress"]}]
        else:
            rows = await self._newest()
        self.runs = {row["id"]: digest(encoded(row)) for row in rows}
        return rows

    async def _newest(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        cursor, after = None, self._choice.since and self._choice.since.isoformat()
        while len(rows) < self._choice.runs:
            limit = min(PAGE_ROWS, self._choice.runs - len(rows))
            page = await self._reads.get("runs", limit=limit, cursor=cursor, counts=True, created_after=after)
            rows += page["runs"]
            cursor = page["cursor"]
            if cursor is None:
                break
        self.more_runs = cursor is not None
        return rows

    async def _run(self, row: dict[str, Any]) -> AsyncIterator[tuple[str, bytes | None]]:
        """A run that has ended never changes, until somebody retries it: then its row does."""
        run, name = row["id"], f"run/{row['id']}.json"
        if row["status"] in _FINAL and self._kept.runs.get(run) == self.runs[run] and name in self._kept.documents:
            for known in (name, *(each for each in self._kept.documents if each.startswith(f"log/{run}/"))):
                yield known, None
            return
        answers = await run_answers(self._reads, run)
        async for each in log_documents(self._reads, run, answers, self._choice.logs):
            yield each
        yield name, encoded(answers)  # last: where it is, the logs are

    # ── workflows ────────────────────────────────────────────────────────────────────────────────

    async def _workflow_names(self, rows: Iterable[dict[str, Any]]) -> list[str]:
        names = {row["workflow"] for row in rows}
        if self._choice.only is None:
            found = await every_page(self._reads, "workflows", rows="workflows", limit=PAGE_ROWS)
            names |= {each["name"] for each in found["workflows"][:MOST_WORKFLOWS]}
        return sorted(names)

    async def _workflow(self, name: str) -> dict[str, Any]:
        parts: dict[str, dict[str, Any]] = {"": {}, "/params": {}}
        if self._choice.only is None:
            parts |= {"/grid": {}, "/durations": {}, "/versions": {"limit": VERSIONS_OF_EACH}}
        found = {
            f"/workflows/{{name}}{part}": await self._reads.get("workflows", name, *part.split("/")[1:], **query)
            for part, query in parts.items()
        }
        return {key: answer for key, answer in found.items() if answer is not None}

    async def _version(self, version: str) -> tuple[str, bytes | None]:
        name = f"version/{version}.json"
        if name in self._kept.documents:
            return name, None
        return name, encoded({"/versions/{version}": await self._reads.get("versions", version)})

    # ── the installation ─────────────────────────────────────────────────────────────────────────

    async def _overview(self) -> dict[str, Any]:
        since = (self._choice.since or self._as_of - _HOME).isoformat()
        first, last = ((self._as_of + days).isoformat() for days in (-_CALENDAR, _CALENDAR))
        answers = {f"/{part}": await self._reads.get(part) for part in _SINGLE}
        pages: dict[str, tuple[str, dict[str, Any]]] = {
            "overview": ("workflows", {"since": since, "limit": PAGE_ROWS}),
            "workflows": ("workflows", {"limit": PAGE_ROWS}),
            "schedules": ("schedules", {"limit": PAGE_ROWS, "next": NEXT_TIMES}),
            "locations": ("locations", {"limit": PAGE_ROWS}),
            "workers": ("workers", {"limit": PAGE_ROWS}),
            "calendar": ("workflows", {"from": first, "to": last}),
        }
        for part, (rows, query) in pages.items():
            answers[f"/{part}"] = await every_page(self._reads, part, rows=rows, **query)
        return {key: answer for key, answer in answers.items() if answer is not None}


def _by_month(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["created_at"][:7], []).append(row)
    return found


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
