"""Reads for pages about many runs: the home page, and the runs of one workflow."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from ork.api import page_models
from ork.api.bodies import json_response
from ork.api.context import api_of
from ork.api.parameters import NameCursor, WorkflowName, parse_time
from ork.api.routes.workflows import known_workflow
from ork.api.routing import Routes
from ork.api.views import ended_runs
from ork.model.access import Role
from ork.status.approvals import approval_json, list_pending_approvals
from ork.status.grid import MOST_RUNS, workflow_durations, workflow_grid
from ork.status.home import overview

routes = Routes("overview")

DAY = timedelta(days=1)


@routes.add("GET", "/overview", Role.VIEWER, response_model=page_models.Overview)
async def get_overview(
    request: Request,
    since: Annotated[
        str | None,
        Query(max_length=60, description="Failures of runs created since then (RFC 3339); default: a day ago."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="The number of workflows.")] = 100,
    cursor: NameCursor = None,
) -> Response:
    """Returns what needs a person, what runs, and how well the workflows are. The cursor is the last workflow's name."""
    api = api_of(request)
    start = api.now() - DAY if since is None else parse_time(since, "since")
    entries = [entry for entry in await api.store.list_workflows() if cursor is None or entry.name > cursor]
    found = await overview(api.store, ended_runs(api), entries[:limit], start, api.now())
    return json_response({**found, "cursor": entries[limit - 1].name if len(entries) > limit else None})


@routes.add("GET", "/approvals", Role.VIEWER, response_model=page_models.Approvals)
async def list_approvals(request: Request) -> Response:
    """Lists the tasks that wait for approval, those of the newest runs first."""
    pending = await list_pending_approvals(api_of(request).store)
    return json_response({"approvals": [approval_json(each) for each in pending]})


@routes.add("GET", "/workflows/{name}/grid", Role.VIEWER, response_model=page_models.WorkflowGrid)
async def get_grid(
    request: Request, name: WorkflowName, runs: Annotated[int, Query(ge=1, le=MOST_RUNS)] = MOST_RUNS
) -> Response:
    """Returns the last runs of the workflow, newest first, with the state of each task in each of them."""
    api = api_of(request)
    await known_workflow(api, name)
    return json_response(await workflow_grid(api.store, ended_runs(api), name, runs))


@routes.add("GET", "/workflows/{name}/durations", Role.VIEWER, response_model=page_models.WorkflowDurations)
async def get_durations(request: Request, name: WorkflowName) -> Response:
    """Returns how long the workflow's runs and tasks took in the last week, and the change from the week before."""
    api = api_of(request)
    await known_workflow(api, name)
    return json_response(await workflow_durations(api.store, ended_runs(api), name, api.now()))
