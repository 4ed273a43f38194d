"""Logs as lines and as files: an index, searches in one log or in those of all instances, and downloads."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from ork.api import page_models
from ork.api.bodies import json_response
from ork.api.callers import link_purpose
from ork.api.context import Api, api_of, caller_of, sign_ins_of
from ork.api.logs import ByteRange, find_attempt, log_bytes, log_size
from ork.api.parameters import AttemptCursor, AttemptNumber, OptionalName, RunText, TaskIndex, TaskName
from ork.api.routes.tasks import TEXT, task_key
from ork.api.routing import PREFIX, Routes
from ork.api.tickets import TICKET_SECONDS
from ork.model.access import Role
from ork.model.ids import AttemptKey, RunId
from ork.model.task import Attempt
from ork.status.ids import resolve_run
from ork.status.log_search import Hit, index_lines, search_log
from ork.status.shapes import time_json
from ork.status.wire import read_attempt_key

routes = Routes("runs")

SECONDS = 5.0
"""A search or an index ends after this time, with what it has found."""
HITS_OF_EACH = 3
MOST_LOGS = 200
ATTEMPTS_AT_ONCE = 200
_PATH = "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log"

Text = Annotated[str, Query(min_length=1, max_length=500, description="The text itself, no pattern.")]
IgnoreCase = Annotated[bool, Query(description="Ignore the case of ASCII letters.")]


@routes.add("GET", f"{_PATH}/lines", Role.VIEWER, response_model=page_models.LogLines)
async def index_log(
    request: Request,
    run: RunText,
    name: TaskName,
    index: TaskIndex,
    number: AttemptNumber,
    every: Annotated[int, Query(ge=100, le=1_000_000, description="The distance of the lines.")] = 1000,
) -> Response:
    """Returns the byte offsets of every n-th line, so that any line can be read with a range of the log."""
    api = api_of(request)
    attempt = await _attempt(api, run, name, index, number)
    found = await asyncio.to_thread(index_lines, api.objects, attempt, every, SECONDS)
    return json_response({**found._asdict(), "every": every})


@routes.add("GET", f"{_PATH}/search", Role.VIEWER, response_model=page_models.LogSearch)
async def search_one_log(
    request: Request,
    run: RunText,
    name: TaskName,
    index: TaskIndex,
    number: AttemptNumber,
    q: Text,
    ignore_case: IgnoreCase = False,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 500,
) -> Response:
    """Returns the lines of the log that contain the text, at most `limit`, and the number of all of them."""
    api = api_of(request)
    attempt = await _attempt(api, run, name, index, number)
    until = time.monotonic() + SECONDS
    found = await asyncio.to_thread(search_log, api.objects, attempt, q, limit, until, ignore_case)
    return json_response({**found._asdict(), "hits": [each._asdict() for each in found.hits]})


@routes.add("GET", "/runs/{run}/logs/search", Role.VIEWER, response_model=page_models.RunLogSearch)
async def search_run_logs(
    request: Request,
    run: RunText,
    q: Text,
    ignore_case: IgnoreCase = False,
    task: OptionalName = None,
    cursor: AttemptCursor = None,
) -> Response:
    """Searches the logs of all attempts, in workflow order, for a few seconds. `cursor` continues where it ended."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    search = _RunSearch(api, found, q, ignore_case)
    after = None if cursor is None else read_attempt_key(found, cursor)
    last = await search.go_on(task, after)
    shown = {"logs": search.logs, "searched": search.searched, "total": search.total}
    return json_response({**shown, "cursor": f"{last.task}/{last.number}" if last else None})


@routes.add("POST", f"{_PATH}/link", Role.VIEWER, status_code=201, response_model=page_models.LogLink)
async def link_log(request: Request, run: RunText, name: TaskName, index: TaskIndex, number: AttemptNumber) -> Response:
    """Returns an address from which a browser can download the log, once, within a minute."""
    api, caller = api_of(request), caller_of(request)
    key = await _attempt(api, run, name, index, number)
    assert caller.digest is not None
    path = f"{PREFIX}/runs/{key.run}/tasks/{name}/{index}/attempts/{number}/log/download"
    ticket = await sign_ins_of(request).tickets.make(link_purpose(path), caller.digest, now := api.now())
    until = time_json(now + timedelta(seconds=TICKET_SECONDS))
    return json_response({"path": f"{path}?ticket={ticket}", "until": until}, 201)


@routes.add(
    "GET",
    f"{_PATH}/download",
    Role.VIEWER,
    is_stream=True,
    is_linked=True,
    responses={200: {"description": "The log.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
async def download_log(
    request: Request,
    run: RunText,
    name: TaskName,
    index: TaskIndex,
    number: AttemptNumber,
    ticket: Annotated[  # noqa: ARG001 - checked by the guard
        str | None, Query(max_length=500, description="From `POST …/log/link`, instead of a token.")
    ] = None,
) -> Response:
    """Returns the whole log as a file. The ticket is used up even if the download is interrupted."""
    api = api_of(request)
    key = await _attempt(api, run, name, index, number)
    size = await log_size(api, key)
    file = f"{key.run}-{name}-{index}-{number}.log"
    headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="{file}"'}
    return StreamingResponse(log_bytes(api, key, ByteRange(0, size)), 200, headers, TEXT)


class _RunSearch:
    """A search in the logs of a run. It ends after some seconds or some logs with hits."""

    def __init__(self, api: Api, run: RunId, text: str, ignore_case: bool) -> None:
        self._api = api
        self._run = run
        self._text = text
        self._ignore_case = ignore_case
        self._until = time.monotonic() + SECONDS
        self.logs: list[dict[str, Any]] = []
        self.searched = 0
        self.total = 0

    async def go_on(self, task: str | None, after: AttemptKey | None) -> AttemptKey | None:
        """Searches from the attempt after `after` on. Returns the last one searched; None if there are no more."""
        while True:
            page = await self._api.store.list_attempts(self._run, after=after, limit=ATTEMPTS_AT_ONCE)
            wanted = [attempt for attempt in page if task in (None, attempt.key.task.name)]
            after = await asyncio.to_thread(self._search_all, wanted)
            if after is not None:
                return after
            if len(page) < ATTEMPTS_AT_ONCE:
                return None
            after = page[-1].key

    def _search_all(self, attempts: list[Attempt]) -> AttemptKey | None:
        """The attempt at which the search ended early."""
        for attempt in attempts:
            self._search(attempt)
            if time.monotonic() > self._until or len(self.logs) >= MOST_LOGS:
                return attempt.key
        return None

    def _search(self, attempt: Attempt) -> None:
        # At least a second, so that a search that is continued gets through every log.
        until = max(self._until, time.monotonic() + 1.0)
        found = search_log(self._api.objects, attempt.key, self._text, HITS_OF_EACH, until, self._ignore_case)
        self.searched += 1
        self.total += found.total
        if found.total or not found.is_complete:
            hits = {**found._asdict(), "hits": [Hit._asdict(each) for each in found.hits]}
            key = attempt.key
            self.logs.append({"task": key.task.name, "index": key.task.index, "attempt": key.number, **hits})


async def _attempt(api: Api, run: str, name: str, index: int, number: int) -> AttemptKey:
    found = await resolve_run(api.store, run)
    attempt = AttemptKey(found, await task_key(api, found, name, index), number)
    await find_attempt(api, attempt)
    return attempt
