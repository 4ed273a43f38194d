"""Creates runs for API requests and hooks."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from ork.api.context import Api
from ork.compile.params import check_params
from ork.errors import NotFoundError, RefusedError, UsageError
from ork.model.ids import RunId, VersionId
from ork.model.run import NewRun, Run
from ork.model.secret import SHOWN, is_sealed
from ork.model.workflow import CompiledWorkflow, Trigger, Version
from ork.state.sealing import stored_params
from ork.status.ids import new_run_id


class RunRequest(NamedTuple):
    workflow: str
    params: dict[str, Any]
    key: str | None = None
    version: str | None = None  # None: the current one
    priority: int = 0
    fresh: bool = False
    parent: str | None = None
    by: Trigger = Trigger.MANUAL
    scheduled_for: datetime | None = None
    started_by: str | None = None


async def trigger(api: Api, request: RunRequest) -> tuple[Run, bool]:
    """The run, and whether it is new. The same key and content return the same run, even after another deploy."""
    existing = await _existing_run(api, request)
    if existing is not None:
        return existing, False
    version = await _version(api, request)
    new = NewRun(
        id=new_run_id(),
        workflow=request.workflow,
        version=version.id,
        params=await _params(api, request, version.workflow),
        trigger=request.by,
        scheduled_for=request.scheduled_for,
        key=request.key,
        priority=request.priority,
        fresh=request.fresh,
        parent=request.parent,
        started_by=request.started_by,
    )
    (run,) = await api.store.create_runs([new], api.now())
    return run, run.id == new.id


async def _existing_run(api: Api, request: RunRequest) -> Run | None:
    existing = await api.store.find_by_key(request.workflow, request.key) if request.key else None
    if existing is None:
        return None
    if not await _is_same(api, request, existing):
        raise RefusedError(
            f"the key {request.key!r} was used for run {existing.id} with another body",
            hint=f"use another key, or see that run: ork show {existing.id}",
        )
    return existing


async def _is_same(api: Api, request: RunRequest, existing: Run) -> bool:
    if request.version not in (None, existing.version) or request.priority != existing.priority:
        return False
    if (request.fresh, request.parent) != (existing.fresh, existing.parent):
        return False
    version = await api.store.get_version(existing.version)
    try:
        params = await _params(api, request, version.workflow) if version else request.params
    except UsageError:
        return False
    # Compared as text, because 1, 1.0 and True are equal in Python but not in JSON.
    return _as_text(params) == _as_text(existing.params)


async def _params(api: Api, request: RunRequest, workflow: CompiledWorkflow) -> dict[str, Any]:
    """Checked params, with sensitive ones encrypted. A client that reruns a run has only `•••` for those."""
    given = dict(request.params)
    hidden = [param.name for param in workflow.params if param.sensitive and given.get(param.name) == SHOWN]
    if hidden and request.parent:
        parent = await api.store.get_run(RunId(request.parent))
        known = parent.params if parent is not None and parent.workflow == workflow.name else {}
        given |= {name: known[name] for name in hidden if is_sealed(known.get(name))}
    return await stored_params(api.store, workflow, check_params(workflow, given))


def _as_text(params: dict[str, Any]) -> str:
    return json.dumps(params, sort_keys=True)


async def _version(api: Api, request: RunRequest) -> Version:
    entry = await api.store.get_workflow(request.workflow)
    if entry is None:
        raise NotFoundError(f"no workflow `{request.workflow}`", hint="`ork workflows` lists them")
    version_id = VersionId(request.version) if request.version is not None else entry.version
    version = await api.store.get_version(version_id)
    if version is None or version.workflow.name != request.workflow:
        raise NotFoundError(f"workflow `{request.workflow}` has no version `{version_id}`")
    return version
