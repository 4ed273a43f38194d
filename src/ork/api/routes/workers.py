"""Worker configs: where tasks run, and their limits, from workers.yaml."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from ork.api import worker_models
from ork.api.bodies import json_response
from ork.api.context import api_of
from ork.api.parameters import LARGEST_PAGE, Limit, NameCursor
from ork.api.routing import Routes
from ork.model.access import Role
from ork.status.workers import workers_json

routes = Routes("worker configs")


@routes.add("GET", "/workers", Role.VIEWER, response_model=worker_models.WorkerConfigPage)
async def list_workers(request: Request, limit: Limit = LARGEST_PAGE, cursor: NameCursor = None) -> Response:
    """Lists worker configs by name, as they were when the server started. The cursor is the last name of the previous
    page."""
    project = api_of(request).project
    configs = (project.workers if project is not None else None) or {}
    rows = [row for row in workers_json(configs) if cursor is None or row["name"] > cursor]
    page = rows[:limit]
    return json_response({"workers": page, "cursor": page[-1]["name"] if len(rows) > limit else None})
