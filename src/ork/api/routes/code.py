"""The code of runs: whether it has changed since, and how to run it again."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from ork.api import page_models
from ork.api.bodies import json_response
from ork.api.context import api_of, caller_of
from ork.api.parameters import RunText
from ork.api.routing import Routes
from ork.errors import NotFoundError
from ork.model.access import Role
from ork.model.json_fields import to_json
from ork.status.code_report import code_report
from ork.status.ids import resolve_run

routes = Routes("runs")


@routes.add("GET", "/runs/{run}/code", Role.VIEWER, response_model=page_models.CodeReport)
async def get_code(request: Request, run: RunText) -> Response:
    """Returns the code that the run's version recorded, and what has changed since in the project's folder on the server."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    async with api.large_responses:  # reads the project's files
        return json_response(to_json(await code_report(api.store, found)))


@routes.add("POST", "/runs/{run}/same-code", Role.OPERATOR, response_model=page_models.PreparedVersion)
async def prepare_same_code(request: Request, run: RunText) -> Response:
    """Prepares a version with the code of this run, to be named in `POST /workflows/{name}/runs`. The server checks the code out
    of Git if it has changed since. 409 says what is missing."""
    api, caller = api_of(request), caller_of(request)
    row = await api.store.get_run(await resolve_run(api.store, run))
    if row is None:
        raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")
    async with api.large_responses:
        version = await api.same_code(row)
    if version.id != row.version:
        await api.record_change(caller, "version.check-out", version.workflow.name, f'{{"version": "{version.id}"}}')
    return json_response({"version": version.id})
