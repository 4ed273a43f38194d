"""Workflows and their versions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from ork.api import models, page_models
from ork.api.bodies import CheckBody, WorkflowBody, described, json_response, read_body
from ork.api.caching import entity_tag, not_modified, tagged
from ork.api.context import Api, api_of, caller_of
from ork.api.deploy import COMPILED, MAX_DEFINITION, read_version
from ork.api.paging import page_after
from ork.api.parameters import Folder, IdCursor, Limit, NameCursor, VersionText, WorkflowName
from ork.api.routing import Routes
from ork.compile.content import to_document
from ork.errors import NotFoundError, UsageError
from ork.model.access import Role
from ork.model.code import code_json
from ork.model.ids import VersionId
from ork.model.location import location_of
from ork.model.run import Run
from ork.model.workflow import WorkflowEntry
from ork.status.param_fields import param_fields
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
    """Lists workflows by name, each with its last run. The cursor is the last name of the previous page."""
    api = api_of(request)
    entries = [entry for entry in await api.store.list_workflows() if cursor is None or entry.name > cursor]
    last_runs = await api.store.last_runs([entry.name for entry in entries[:limit]])
    rows = [workflow_json(entry, last_runs.get(entry.name)) for entry in entries[:limit]]
    return json_response({"workflows": rows, "cursor": entries[limit - 1].name if len(entries) > limit else None})


@routes.add(
    "POST",
    "/workflows",
    Role.ADMIN,
    body_limit=MAX_DEFINITION,
    status_code=201,
    response_model=models.DeployedWorkflows,
    responses={200: {"model": models.DeployedWorkflows, "description": "This version was already deployed."}},
    openapi_extra=_DEFINITION,
)
async def deploy_workflow(
    request: Request,
    root: Folder = None,
    source: Annotated[
        str | None, Query(max_length=4000, description="Where the workflow comes from; shown to people.")
    ] = None,
) -> Response:
    """Deploys a workflow: new runs use this version. Returns all errors at once. User code is not run."""
    api, caller = api_of(request), caller_of(request)
    if location_of(source) is not None:
        raise UsageError("`source` cannot name a location: only the location itself deploys such workflows")
    text, kind = await request.body(), request.headers.get("content-type", "").partition(";")[0].strip().lower()
    version = await asyncio.to_thread(read_version, text, kind, root or api.root, source, api.project)
    is_new = await deploy(api.store, version, origin=source, now=api.now())
    name = version.workflow.name
    await api.record_change(caller, "workflow.deploy", name, f'{{"version": "{version.id}"}}')
    deployed = {"name": name, "version": version.id, "new": is_new}
    return json_response({"workflows": [deployed]}, 201 if is_new else 200)


@routes.add(
    "POST",
    "/workflow-checks",
    Role.OPERATOR,
    response_model=page_models.CheckedWorkflow,
    openapi_extra=described(CheckBody, required=True),
)
async def check_workflow(request: Request) -> Response:
    """Checks a workflow file as `ork validate` does: 422 with all errors at once, or its name and tasks. Nothing is
    deployed, and user code is not run."""
    api, body = api_of(request), await read_body(request, CheckBody)
    text = body.definition.encode()
    version = await asyncio.to_thread(read_version, text, "application/yaml", api.root, body.source, api.project)
    tasks = [task.name for task in version.workflow.tasks]
    return json_response({"name": version.workflow.name, "version": version.id, "tasks": tasks})


@routes.add("GET", "/workflows/{name}", Role.VIEWER, response_model=models.WorkflowWithDefinition)
async def get_workflow(request: Request, name: WorkflowName) -> Response:
    """Returns a workflow with its definition."""
    api = api_of(request)
    entry = await known_workflow(api, name)
    version = await api.store.get_version(entry.version)
    definition = to_document(version.workflow) if version else None
    return json_response({**workflow_json(entry, await _last_run(api, name)), "definition": definition})


@routes.add("GET", "/workflows/{name}/params", Role.VIEWER, response_model=models.WorkflowParams)
async def get_params(request: Request, name: WorkflowName) -> Response:
    """Returns the params of the workflow's current version, for a form that starts a run."""
    api = api_of(request)
    entry = await known_workflow(api, name)
    version = await api.store.get_version(entry.version)
    if version is None:
        raise NotFoundError(f"no version `{entry.version}`")
    return json_response({"workflow": name, "version": version.id, "params": param_fields(version.workflow)})


@routes.add(
    "PATCH",
    "/workflows/{name}",
    Role.OPERATOR,
    response_model=models.Workflow,
    openapi_extra=described(WorkflowBody, required=True),
)
async def change_workflow(request: Request, name: WorkflowName) -> Response:
    """Enables or disables a workflow: a disabled workflow keeps its runs and gets no new scheduled ones."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, WorkflowBody)
    if not await set_schedule_enabled(api.store, name, body.enabled, api.now()):
        raise unknown_workflow(name)
    await api.record_change(caller, "workflow.enable" if body.enabled else "workflow.disable", name)
    return json_response(workflow_json(await known_workflow(api, name), await _last_run(api, name)))


@routes.add("DELETE", "/workflows/{name}", Role.ADMIN, status_code=204)
async def delete_workflow(request: Request, name: WorkflowName) -> Response:
    """Deletes a workflow. Its runs and versions are kept. Refused while one of its runs is unfinished."""
    api, caller = api_of(request), caller_of(request)
    if not await api.store.delete_workflow(name):
        raise unknown_workflow(name)
    await api.record_change(caller, "workflow.delete", name)
    return Response(status_code=204)


@routes.add("GET", "/workflows/{name}/versions", Role.VIEWER, response_model=models.VersionPage)
async def list_versions(request: Request, name: WorkflowName, limit: Limit = 20, cursor: IdCursor = None) -> Response:
    """Lists versions, newest first. The cursor is the last version of the previous page."""
    entries = await api_of(request).store.list_versions(name, MOST_VERSIONS)
    if not entries:
        raise unknown_workflow(name)
    shown, last = page_after(entries, cursor, limit, lambda each: each.id)
    rows = [{"id": each.id, "saved_at": time_json(each.saved_at), "source": each.source} for each in shown]
    return json_response({"versions": rows, "cursor": last})


@routes.add("GET", "/versions/{version}", Role.VIEWER, response_model=models.Version)
async def get_version(request: Request, version: VersionText) -> Response:
    """Returns a version. Versions never change."""
    tag = entity_tag(version)
    found = await api_of(request).store.get_version(VersionId(version))
    if found is None:
        raise NotFoundError(f"no version `{version}`")
    if (kept := not_modified(request, tag)) is not None:
        return kept
    shape: dict[str, Any] = {
        "id": found.id,
        "workflow": found.workflow.name,
        "root": found.root,
        "source": found.source,
        "definition": to_document(found.workflow),
        "code": code_json(found.code),
    }
    return json_response(shape, headers=tagged(tag))


async def known_workflow(api: Api, name: str) -> WorkflowEntry:
    entry = await api.store.get_workflow(name)
    if entry is None:
        raise unknown_workflow(name)
    return entry


def unknown_workflow(name: str) -> NotFoundError:
    return NotFoundError(f"no workflow `{name}`", hint="`ork workflows` lists them")


async def _last_run(api: Api, workflow: str) -> Run | None:
    return (await api.store.last_runs([workflow])).get(workflow)
