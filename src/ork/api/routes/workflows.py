"""Workflows and their versions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from ork.api import models
from ork.api.bodies import WorkflowBody, answer, described, read_body
from ork.api.context import Api, api_of, caller_of
from ork.api.deploying import COMPILED, MAX_DEFINITION, read_version
from ork.api.paging import page_behind
from ork.api.parameters import Folder, IdCursor, Limit, NameCursor, VersionText, WorkflowName
from ork.api.routing import Routes
from ork.compile.content import to_document
from ork.errors import NotFoundError, UsageError
from ork.model.access import Role
from ork.model.ids import VersionId
from ork.model.location import location_of
from ork.model.run import Run
from ork.model.workflow import WorkflowEntry
from ork.status.schedules import deploy, set_schedule_enabled
from ork.status.shapes import time_json, workflow_json

routes = Routes("workflows")

MOST_VERSIONS = 10_000

_TEXT = {"schema": {"type": "string", "description": "A workflow file."}}
_DEFINITION = {
    "requestBody": {
        "required": True,
        "content": {
            "application/yaml": _TEXT,
            "application/json": {
                "schema": {"title": "WorkflowFile", "type": "object", "description": "A workflow file, as JSON."}
            },
            COMPILED: {
                "schema": {"title": "CompiledWorkflow", "type": "object", "description": "As a version shows it."}
            },
        },
    }
}


@routes.add("GET", "/workflows", Role.VIEWER, response_model=models.WorkflowPage)
async def list_workflows(request: Request, limit: Limit = 100, cursor: NameCursor = None) -> Response:
    """The workflows known here, by name, each with its last run. The cursor is the name the last page ended with."""
    api = api_of(request)
    entries = [entry for entry in await api.store.list_workflows() if cursor is None or entry.name > cursor]
    last_runs = await api.store.last_runs([entry.name for entry in entries[:limit]])
    rows = [workflow_json(entry, last_runs.get(entry.name)) for entry in entries[:limit]]
    return answer({"workflows": rows, "cursor": entries[limit - 1].name if len(entries) > limit else None})


@routes.add(
    "POST",
    "/workflows",
    Role.ADMIN,
    body_limit=MAX_DEFINITION,
    status_code=201,
    response_model=models.DeployedWorkflows,
    responses={200: {"model": models.DeployedWorkflows, "description": "It was known already."}},
    openapi_extra=_DEFINITION,
)
async def deploy_workflow(
    request: Request,
    root: Folder = None,
    source: Annotated[str | None, Query(max_length=4000, description="Where it comes from, for people.")] = None,
) -> Response:
    """Registers a workflow: new runs get this version. All its mistakes come back at once. No user code is run."""
    api, caller = api_of(request), caller_of(request)
    if location_of(source) is not None:
        raise UsageError("only a location itself can say that a workflow comes from there")
    text, kind = await request.body(), request.headers.get("content-type", "").partition(";")[0].strip().lower()
    version = await asyncio.to_thread(read_version, text, kind, root or api.root, source, api.project)
    is_new = await deploy(api.store, version, origin=source, now=api.now())
    name = version.workflow.name
    await api.changed(caller, "workflow.deploy", name, f'{{"version": "{version.id}"}}')
    deployed = {"name": name, "version": version.id, "new": is_new}
    return answer({"workflows": [deployed]}, 201 if is_new else 200)


@routes.add("GET", "/workflows/{name}", Role.VIEWER, response_model=models.WorkflowWithDefinition)
async def get_workflow(request: Request, name: WorkflowName) -> Response:
    """One workflow with its definition."""
    api = api_of(request)
    entry = await known_workflow(api, name)
    version = await api.store.get_version(entry.version)
    definition = to_document(version.workflow) if version else None
    return answer({**workflow_json(entry, await _last_run(api, name)), "definition": definition})


@routes.add(
    "PATCH",
    "/workflows/{name}",
    Role.OPERATOR,
    response_model=models.Workflow,
    openapi_extra=described(WorkflowBody, required=True),
)
async def change_workflow(request: Request, name: WorkflowName) -> Response:
    """Enables or disables it: a disabled workflow keeps its history and gets no new scheduled runs."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, WorkflowBody)
    if not await set_schedule_enabled(api.store, name, body.enabled, api.now()):
        raise unknown_workflow(name)
    await api.changed(caller, "workflow.enable" if body.enabled else "workflow.disable", name)
    return answer(workflow_json(await known_workflow(api, name), await _last_run(api, name)))


@routes.add("DELETE", "/workflows/{name}", Role.ADMIN, status_code=204)
async def delete_workflow(request: Request, name: WorkflowName) -> Response:
    """Forgets the name. Its runs and versions stay. Refused while a run of it has not ended."""
    api, caller = api_of(request), caller_of(request)
    if not await api.store.delete_workflow(name):
        raise unknown_workflow(name)
    await api.changed(caller, "workflow.delete", name)
    return Response(status_code=204)


@routes.add("GET", "/workflows/{name}/versions", Role.VIEWER, response_model=models.VersionPage)
async def list_versions(request: Request, name: WorkflowName, limit: Limit = 20, cursor: IdCursor = None) -> Response:
    """Newest first. The cursor is the version the last page ended with."""
    entries = await api_of(request).store.list_versions(name, MOST_VERSIONS)
    if not entries:
        raise unknown_workflow(name)
    shown, last = page_behind(entries, cursor, limit, lambda each: each.id)
    rows = [{"id": each.id, "saved_at": time_json(each.saved_at), "source": each.source} for each in shown]
    return answer({"versions": rows, "cursor": last})


@routes.add("GET", "/versions/{version}", Role.VIEWER, response_model=models.Version)
async def get_version(request: Request, version: VersionText) -> Response:
    """A version never changes."""
    found = await api_of(request).store.get_version(VersionId(version))
    if found is None:
        raise NotFoundError(f"no version `{version}`")
    shape: dict[str, Any] = {
        "id": found.id,
        "workflow": found.workflow.name,
        "root": found.root,
        "source": found.source,
        "definition": to_document(found.workflow),
    }
    return answer(shape)


async def known_workflow(api: Api, name: str) -> WorkflowEntry:
    entry = await api.store.get_workflow(name)
    if entry is None:
        raise unknown_workflow(name)
    return entry


def unknown_workflow(name: str) -> NotFoundError:
    return NotFoundError(f"no workflow `{name}` here", hint="`ork workflows` lists them")


async def _last_run(api: Api, workflow: str) -> Run | None:
    return (await api.store.last_runs([workflow])).get(workflow)
