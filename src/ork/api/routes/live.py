"""A stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from ork.api import page_models
from ork.api.context import Api, api_of
from ork.api.events import EVENT_SCHEMA, KEEP_ALIVE, STREAM, sse, wait_for_event
from ork.api.feed import ChangeFeed
from ork.api.logs import KEEP_ALIVE_SECONDS
from ork.api.parameters import LastEvent, Mark, OptionalName, OptionalRun
from ork.api.routing import Routes
from ork.model.access import Role
from ork.model.ids import RunId
from ork.model.record import Record
from ork.model.run import Run
from ork.status.ids import resolve_run

routes = Routes("events")

RESET_AFTER = 1000
"""A client that missed more changed runs than this reads the pages it shows again, instead of all changes."""
_EVENTS = {
    200: {
        "description": "Events. The data of `run` is a RunEvent; other events have no data.",
        "model": page_models.RunEvent,
        "content": {STREAM: {"schema": EVENT_SCHEMA}},
    }
}


class Wanted(Record):
    """Which changes a stream sends."""

    workflow: str | None
    run: RunId | None
    with_tasks: bool

    def includes(self, run: Run) -> bool:
        return self.workflow in (None, run.workflow) and self.run in (None, run.id)


@routes.add("GET", "/events", Role.VIEWER, is_stream=True, responses=_EVENTS, response_class=Response)
async def events(
    request: Request,
    workflow: OptionalName = None,
    run: OptionalRun = None,
    tasks: Annotated[
        Literal["changed", "none"], Query(description="`none`: the number of tasks in each status, and no tasks.")
    ] = "changed",
    since: Mark = None,
    last_event: LastEvent = None,
) -> Response:
    """Server-sent events: `run` for each changed run, with its changed tasks. `id` is a mark: with `Last-Event-ID` (or
    `since`) the stream continues after it without gaps.

    Several changes of one run may be sent as one event, which has the current state. If more than 1000 runs changed
    after the mark, the stream begins with `reset` instead: read again what you show.
    """
    api = api_of(request)
    wanted = Wanted(workflow, None if run is None else await resolve_run(api.store, run), tasks == "changed")
    after = last_event or since
    # An invalid mark is rejected before the stream starts.
    page = await api.store.changes_since(after, RESET_AFTER + 1)
    is_reset = len(page.runs) > RESET_AFTER
    if is_reset:
        page = await api.store.changes_since(None)
    mark = page.mark if after is None or is_reset else after
    return StreamingResponse(_stream(api, wanted, mark, is_reset), media_type=STREAM)


async def _stream(api: Api, wanted: Wanted, mark: str, is_reset: bool) -> AsyncIterator[bytes]:
    feed: ChangeFeed = api.kept.setdefault(ChangeFeed, ChangeFeed(api.store, api.hub))
    async with api.hub.listening() as changed:
        # Sent at once, so that the client has a mark before anything changes.
        yield sse("{}", event="reset" if is_reset else "ready", id=mark)
        while not api.hub.is_closed:
            batch = await feed.after(mark)
            for run in filter(wanted.includes, batch.runs):
                yield sse(await batch.text(run, wanted.with_tasks), event="run")
            if batch.mark != mark:
                # The mark follows its changes: a client that is disconnected in between gets them again.
                mark = batch.mark
                yield sse("{}", event="mark", id=mark)
                await asyncio.sleep(batch.pause)
                continue
            if not await wait_for_event(changed, KEEP_ALIVE_SECONDS):
                yield KEEP_ALIVE
