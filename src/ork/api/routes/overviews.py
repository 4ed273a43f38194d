"""Reads for pages about many runs or the whole installation: the home page, the runs of one workflow, settings, error
codes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from ork import __version__
from ork.api import page_models
from ork.api.bodies import json_response
from ork.api.context import api_of
from ork.api.parameters import NameCursor, WorkflowName, parse_time
from ork.api.routes.workflows import known_workflow
from ork.api.routing import Routes
from ork.api.views import ended_runs
from ork.definition.codes import find
from ork.definition.custom import EXECUTORS, custom_executors
from ork.definition.project import Project
from ork.model.access import Role
from ork.model.alarm import NO_ALARM
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


@routes.add("GET", "/installation", Role.VIEWER, response_model=page_models.InstallationAbout)
async def get_installation(request: Request) -> Response:
    """Returns the server's version, its kind of store and alarm, and the pools and executors of its project."""
    api = api_of(request)
    project = api.project or Project()
    custom = custom_executors(api.project)
    found = {
        "version": __version__,
        "store": api.store_kind,
        "alarm": (project.alarm or NO_ALARM).kind,
        "has_scheduler": api.wake is not None,
        "pools": [
            {
                "name": name,
                "slots": slots,
                "rate": str(project.pool_rates[name]) if name in project.pool_rates else None,
            }
            for name, slots in sorted(project.pools.items())
        ],
        "executors": [
            {
                "name": name,
                "class": custom[name].target if name in custom else None,
                "max_workers": project.executor_limits.get(name),
            }
            for name in (*EXECUTORS, *sorted(custom))
        ],
    }
    return json_response(found)


@routes.add("GET", "/codes/{code}", Role.VIEWER, response_model=page_models.ExplainedCode)
async def explain_code(request: Request, code: Annotated[str, Path(pattern="^(ORK)?[0-9]{3}$")]) -> Response:
    """Explains an error code, as `ork explain` does."""
    api_of(request)
    return json_response(find(code)._asdict())
