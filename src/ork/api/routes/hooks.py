"""Hooks: external events that start a workflow."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ork.api import models
from ork.api.bodies import json_response, read_json
from ork.api.context import Api, api_of, caller_of
from ork.api.parameters import WorkflowName
from ork.api.routes.workflows import known_workflow
from ork.api.routing import Routes
from ork.api.trigger import RunRequest, trigger
from ork.errors import UsageError
from ork.model.access import Role
from ork.model.workflow import Trigger
from ork.status.shapes import run_json

routes = Routes("hooks")

WHOLE_EVENT = "event"
_EVENT = {"requestBody": {"required": False, "content": {"application/json": {"schema": {"type": "object"}}}}}


@routes.add(
    "POST",
    "/hooks/{name}",
    Role.OPERATOR,
    is_signed=True,
    status_code=201,
    response_model=models.Run,
    responses={200: {"model": models.Run, "description": "The run of an earlier request with this event."}},
    openapi_extra=_EVENT,
)
async def receive_event(request: Request, name: WorkflowName) -> Response:
    """Starts the workflow. Its param `event` receives the whole body, other params receive the body's fields of the same
    name. The same signature (or Idempotency-Key, with a token) starts only one run."""
    api, caller = api_of(request), caller_of(request)
    event = await read_json(request)
    if not isinstance(event, dict):
        raise UsageError("an event is a JSON object")
    params = await _params(api, name, event)
    run, is_new = await trigger(api, RunRequest(name, params, _key(request), by=Trigger.EVENT, started_by=caller.name))
    if is_new:
        await api.record_change(caller, "run.trigger", run.id, json.dumps({"workflow": name}))
    return json_response(run_json(run), 201 if is_new else 200)


async def _params(api: Api, name: str, event: dict[str, Any]) -> dict[str, Any]:
    entry = await known_workflow(api, name)
    version = await api.store.get_version(entry.version)
    declared = [param.name for param in version.workflow.params] if version else []
    params = {key: event[key] for key in declared if key in event}
    return {**params, WHOLE_EVENT: event} if WHOLE_EVENT in declared else params


def _key(request: Request) -> str | None:
    if "authorization" in request.headers:
        given = request.headers.get("idempotency-key")
        return given[:200] if given else None
    key: str | None = request.scope["ork.hook_key"]
    return key
