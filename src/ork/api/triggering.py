"""New runs, by request or by hook."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import Any, NamedTuple

from ork.api.context import Api
from ork.compile.params import check_params
from ork.errors import NotFoundError, RefusedError, UsageError
from ork.model.ids import ID_ALPHABET, RUN_ID_LENGTH, RunId, VersionId
from ork.model.run import NewRun, Run
from ork.model.sealed import SHOWN, is_sealed
from ork.model.workflow import CompiledWorkflow, Trigger, Version
from ork.state.sealing import stored_params


class Wanted(NamedTuple):
    workflow: str
    params: dict[str, Any]
    key: str | None = None
    version: str | None = None  # None: whichever is current
    priority: int = 0
    fresh: bool = False
    parent: str | None = None
    by: Trigger = Trigger.MANUAL
    scheduled_for: datetime | None = None
    started_by: str | None = None


async def trigger(api: Api, wanted: Wanted) -> tuple[Run, bool]:
    """The run, and whether it is new. The same key and content name the same run, also after another deploy."""
    existing = await _named_before(api, wanted)
    if existing is not None:
        return existing, False
    version = await _version(api, wanted)
    new = NewRun(
        id=new_run_id(),
        workflow=wanted.workflow,
        version=version.id,
        params=await _params(api, wanted, version.workflow),
        trigger=wanted.by,
        scheduled_for=wanted.scheduled_for,
        key=wanted.key,
        priority=wanted.priority,
        fresh=wanted.fresh,
        parent=wanted.parent,
        started_by=wanted.started_by,
    )
    (run,) = await api.store.create_runs([new], api.now())
    return run, run.id == new.id


def new_run_id() -> RunId:
    return RunId("".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in os.urandom(RUN_ID_LENGTH)))


async def _named_before(api: Api, wanted: Wanted) -> Run | None:
    existing = await api.store.find_by_key(wanted.workflow, wanted.key) if wanted.key else None
    if existing is None:
        return None
    if not await _is_same(api, wanted, existing):
        raise RefusedError(
            f"the key {wanted.key!r} was used for run {existing.id} with another body",
            hint=f"use another key, or look at that run: ork show {existing.id}",
        )
    return existing


async def _is_same(api: Api, wanted: Wanted, existing: Run) -> bool:
    if wanted.version not in (None, existing.version) or wanted.priority != existing.priority:
        return False
    if (wanted.fresh, wanted.parent) != (existing.fresh, existing.parent):
        return False
    version = await api.store.get_version(existing.version)
    try:
        params = await _params(api, wanted, version.workflow) if version else wanted.params
    except UsageError:
        return False
    # As text, because to Python 1, 1.0 and True are equal and to JSON they are not.
    return _as_text(params) == _as_text(existing.params)


async def _params(api: Api, wanted: Wanted, workflow: CompiledWorkflow) -> dict[str, Any]:
    """Checked, and sealed where they are sensitive. A client that repeats a run knows such a param only as `•••`."""
    given = dict(wanted.params)
    hidden = [param.name for param in workflow.params if param.sensitive and given.get(param.name) == SHOWN]
    if hidden and wanted.parent:
        parent = await api.store.get_run(RunId(wanted.parent))
        known = parent.params if parent is not None and parent.workflow == workflow.name else {}
        given |= {name: known[name] for name in hidden if is_sealed(known.get(name))}
    return await stored_params(api.store, workflow, check_params(workflow, given))


def _as_text(params: dict[str, Any]) -> str:
    return json.dumps(params, sort_keys=True)


async def _version(api: Api, wanted: Wanted) -> Version:
    entry = await api.store.get_workflow(wanted.workflow)
    if entry is None:
        raise NotFoundError(f"no workflow `{wanted.workflow}` here", hint="`ork workflows` lists them")
    asked = VersionId(wanted.version) if wanted.version is not None else entry.version
    version = await api.store.get_version(asked)
    if version is None or version.workflow.name != wanted.workflow:
        raise NotFoundError(f"workflow `{wanted.workflow}` has no version `{asked}`")
    return version
