"""Comparisons: of two runs, and of two versions of a workflow."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request
from starlette.responses import Response

from ork.api import page_models
from ork.api.bodies import json_response
from ork.api.context import Api, api_of
from ork.api.parameters import RunText, VersionText
from ork.api.routing import Routes
from ork.compile.content import to_document
from ork.errors import NotFoundError
from ork.model.access import Role
from ork.model.ids import VersionId
from ork.model.workflow import Version
from ork.objects.calls import in_thread
from ork.status.compare import Bounds, compare_runs, previous_success
from ork.status.diff import diff_code, diff_workflows
from ork.status.ids import resolve_run
from ork.status.shapes import listed_run_json

routes = Routes("comparisons")

BOUNDS = Bounds(tasks=500, output_bytes=1 << 16)
TEXT_SHOWN = 1000
_RUN_FIELDS = ("workflow", "version", "status", "trigger", "scheduled_for", "error", "definition", "code")
_TASK_FIELDS = ("status", "attempts", "error", "output", "log")


@routes.add("GET", "/runs/{run}/diff/{other}", Role.VIEWER, response_model=page_models.RunDifference)
async def diff_two_runs(
    request: Request,
    run: RunText,
    other: Annotated[str, Path(pattern="^(@last|[0-9A-Za-z]{1,40})$", description="The run to compare it with.")],
) -> Response:
    """Returns the differences between two runs: fields, params, definitions, tasks, and the first line that differs in the
    logs of tasks that ended differently. Of runs with more than 500 tasks only tasks that ended differently."""
    api = api_of(request)
    a, b = await resolve_run(api.store, run), await resolve_run(api.store, other)
    async with api.large_responses:
        found = await compare_runs(api.store, api.objects, a, b, BOUNDS)
    missing = dict.fromkeys(_RUN_FIELDS)
    return json_response({**missing, **found, "tasks": [_task(row) for row in found["tasks"]]})


@routes.add("GET", "/runs/{run}/previous-success", Role.VIEWER, response_model=page_models.PreviousSuccess)
async def get_previous_success(request: Request, run: RunText) -> Response:
    """Returns the last run of the same workflow that was created before this one and succeeded, to compare with."""
    api = api_of(request)
    row = await api.store.get_run(await resolve_run(api.store, run))
    found = None if row is None else await previous_success(api.store, row)
    return json_response({"run": None if found is None else listed_run_json(found)})


@routes.add("GET", "/versions/{version}/diff/{other}", Role.VIEWER, response_model=page_models.VersionDifference)
async def diff_versions(
    request: Request, version: VersionText, other: Annotated[str, Path(min_length=1, max_length=200)]
) -> Response:
    """Returns the differences between two versions, and both definitions."""
    api = api_of(request)
    a, b = await _version(api, version), await _version(api, other)
    return json_response(await in_thread(_version_difference, a, b))


async def _version(api: Api, id: str) -> Version:
    found = await api.store.get_version(VersionId(id))
    if found is None:
        raise NotFoundError(f"no version `{id}`")
    return found


def _version_difference(a: Version, b: Version) -> dict[str, Any]:
    documents = {"before": to_document(a.workflow), "after": to_document(b.workflow)}
    code = diff_code(a.code, b.code)
    return {"a": a.id, "b": b.id, **diff_workflows(a.workflow, b.workflow), **documents, "code": code}


def _task(row: dict[str, Any]) -> dict[str, Any]:
    shown = {**dict.fromkeys(_TASK_FIELDS), **row}
    if shown["output"] is not None:
        shown["output"] = {side: text and text[:TEXT_SHOWN] for side, text in shown["output"].items()}
    return shown
