"""A stream of changes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from ork.api.context import Api, api_of
from ork.api.events import EVENT_SCHEMA, KEEP_ALIVE, STREAM, sse, wait_for_event
from ork.api.logs import KEEP_ALIVE_SECONDS
from ork.api.paging import fitting
from ork.api.parameters import LastEvent, Mark, OptionalName
from ork.api.routing import Routes
from ork.model.access import Role
from ork.model.run import Run
from ork.status.hidden_params import hidden_params, mask_params
from ork.status.run_view import version_of
from ork.status.secret_masking import mask_secrets_of
from ork.status.shapes import listed_run_json, task_row

routes = Routes("events")

PAGE = 100
MAX_TASKS = 500
_EVENTS = {200: {"description": "Events.", "content": {STREAM: {"schema": EVENT_SCHEMA}}}}


@routes.add("GET", "/events", Role.VIEWER, is_stream=True, responses=_EVENTS, response_class=Response)
async def events(
    request: Request,
    workflow: OptionalName = None,
    since: Mark = None,
    last_event: LastEvent = None,
) -> Response:
    """Server-sent events: `run` for each changed run, with its changed tasks. `id` is a mark: with `Last-Event-ID` (or
    `since`) the stream continues after it without gaps.

    Several changes of one run may be sent as one event, which has the current state.
    """
    api = api_of(request)
    after = last_event or since
    page = await api.store.changes_since(after, 1)  # an invalid mark is rejected before the stream starts
    mark = page.mark if after is None else after
    return StreamingResponse(_stream(api, workflow, mark), media_type=STREAM)


async def _stream(api: Api, workflow: str | None, mark: str) -> AsyncIterator[bytes]:
    async with api.hub.listening() as changed:
        # Sent at once, so that the client has a mark before anything changes.
        yield sse("{}", event="ready", id=mark)
        while not api.hub.is_closed:
            page = await api.store.changes_since(mark, PAGE)
            for run in page.runs:
                if workflow in (None, run.workflow):
                    yield sse(json.dumps(await _change(api, run, mark)), event="run")
            if page.mark != mark:
                # The mark follows its changes: a client that is disconnected in between gets them again.
                mark = page.mark
                yield sse("{}", event="mark", id=mark)
                continue
            if not await wait_for_event(changed, KEEP_ALIVE_SECONDS):
                yield KEEP_ALIVE


async def _change(api: Api, run: Run, mark: str) -> dict[str, Any]:
    update = await api.store.run_updates(run.id, mark)
    if update is None:
        return {"run": listed_run_json(run), "tasks": [], "more": False}
    version = await version_of(api.store, run)
    mask_secrets_of(version.workflow)
    update = mask_params(await hidden_params(api.store, update.run), update)
    needs = {spec.name: spec.depends_on for spec in version.workflow.tasks}
    rows = fitting(task_row(task, needs.get(task.key.name, ())) for task in update.tasks[:MAX_TASKS])
    return {"run": listed_run_json(update.run), "tasks": rows, "more": len(update.tasks) > len(rows)}
