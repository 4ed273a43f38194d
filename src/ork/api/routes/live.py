"""Changes as they happen."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from ork.api.context import Api, api_of
from ork.api.events import EVENT_SCHEMA, STILL_HERE, STREAM, heard_within, sse
from ork.api.logs import BEAT_SECONDS
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
    """Server-sent events: `run` for each run that changed, with the tasks that did. `id` is a mark: with
    `Last-Event-ID` (or `since`) the stream goes on behind it, and nothing that happened meanwhile is missing.

    Several changes of one run may come as one: what is sent is how things are now.
    """
    api = api_of(request)
    behind = last_event or since
    page = await api.store.changes_since(
        behind, 1
    )  # a mark that is not of this store is refused before the stream begins
    mark = page.mark if behind is None else behind
    return StreamingResponse(_stream(api, workflow, mark), media_type=STREAM)


async def _stream(api: Api, workflow: str | None, mark: str) -> AsyncIterator[bytes]:
    async with api.hub.listening() as heard:
        # At once, so that a client knows where it stands before anything happens.
        yield sse("{}", event="ready", id=mark)
        while not api.hub.is_closed:
            page = await api.store.changes_since(mark, PAGE)
            for run in page.runs:
                if workflow in (None, run.workflow):
                    yield sse(json.dumps(await _change(api, run, mark)), event="run")
            if page.mark != mark:
                # The mark comes after all of its changes: who is cut off in between gets them again, never too few.
                mark = page.mark
                yield sse("{}", event="mark", id=mark)
                continue
            if not await heard_within(heard, BEAT_SECONDS):
                yield STILL_HERE


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
