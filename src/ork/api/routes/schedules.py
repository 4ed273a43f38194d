"""Schedules and backfills."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from ork.api import models, page_models
from ork.api.bodies import BackfillBody, WorkflowBody, described, json_response, read_body
from ork.api.context import api_of, caller_of
from ork.api.parameters import LARGEST_PAGE, Limit, NameCursor, OptionalName, WorkflowName, parse_time
from ork.api.routes.workflows import known_workflow, unknown_workflow
from ork.api.routing import Routes
from ork.compile.params import check_params
from ork.core.cron import times_between
from ork.errors import RefusedError, UsageError
from ork.model.access import Role
from ork.model.run import NewRun
from ork.model.workflow import Schedule, Trigger
from ork.state.sealing import stored_params
from ork.status.calendar import Range, backfill_plan, calendar, check_range
from ork.status.ids import new_run_id
from ork.status.schedules import set_schedule_enabled, upcoming
from ork.status.shapes import time_json, upcoming_json

routes = Routes("schedules")

MOST_RUNS = 10_000
_TIME: dict[str, Any] = {"format": "date-time"}
AT_ONCE = 100


@routes.add("GET", "/schedules", Role.VIEWER, response_model=models.SchedulePage)
async def list_schedules(
    request: Request,
    count: Annotated[int, Query(alias="next", ge=1, le=1000)] = 1,
    limit: Limit = LARGEST_PAGE,
    cursor: NameCursor = None,
) -> Response:
    """Lists the workflows with a schedule by name, with their next times. A schedule fires while workflow and schedule
    are enabled. The cursor is the last workflow of the previous page."""
    api = api_of(request)
    entries = [entry for entry in await api.store.list_schedules() if cursor is None or entry.workflow > cursor]
    rows = [{**upcoming_json(upcoming(entry, api.now(), count)), "version": entry.version} for entry in entries[:limit]]
    return json_response({"schedules": rows, "cursor": rows[-1]["workflow"] if len(entries) > limit else None})


@routes.add("GET", "/calendar", Role.VIEWER, response_model=page_models.Calendar)
async def get_calendar(
    request: Request,
    first: Annotated[
        str, Query(alias="from", max_length=60, description="RFC 3339, included.", json_schema_extra=_TIME)
    ],
    to: Annotated[
        str, Query(max_length=60, description="RFC 3339, excluded; at most 92 days.", json_schema_extra=_TIME)
    ],
    workflow: OptionalName = None,
    cursor: NameCursor = None,
) -> Response:
    """Lists the times of schedules in a range: past ones with their runs, missed ones and future ones. At most 1000 of each
    workflow, and about 5000 in all: `partial` says so, and `cursor` continues with the next workflow."""
    api = api_of(request)
    start, end = parse_time(first, "from"), parse_time(to, "to")
    check_range(start, end)
    if workflow is not None:
        await known_workflow(api, workflow)
    entries = [
        entry
        for entry in await api.store.list_schedules()
        if workflow in (None, entry.workflow) and (cursor is None or entry.workflow > cursor)
    ]
    return json_response(await calendar(api.store, entries, Range(start, end, api.now())))


@routes.add(
    "PATCH",
    "/workflows/{name}/schedule",
    Role.OPERATOR,
    response_model=models.ScheduleState,
    openapi_extra=described(WorkflowBody, required=True),
)
async def switch_schedule(request: Request, name: WorkflowName) -> Response:
    """Enables or disables the schedule. Times while it is disabled do not count as missed."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, WorkflowBody)
    if (await known_workflow(api, name)).schedule is None:
        raise RefusedError(f"workflow `{name}` has no schedule")
    if not await set_schedule_enabled(api.store, name, body.enabled, api.now()):
        raise unknown_workflow(name)
    await api.record_change(caller, "schedule.enable" if body.enabled else "schedule.disable", name)
    return json_response({"workflow": name, "enabled": body.enabled})


@routes.add(
    "POST",
    "/workflows/{name}/backfills",
    Role.OPERATOR,
    response_model=models.Backfill,
    openapi_extra=described(BackfillBody, required=True),
)
async def backfill(request: Request, name: WorkflowName) -> Response:
    """Creates runs for past times of the schedule. A time that already has a run gets no second one, so a repeated
    request continues where the last one ended. The workflow's `max_active_runs` applies."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, BackfillBody)
    entry = await known_workflow(api, name)
    version = await api.store.get_version(entry.version)
    if version is None or version.workflow.schedule is None:
        raise RefusedError(f"workflow `{name}` has no schedule", hint="POST its `runs` to create a single one")
    times = _times(
        version.workflow.schedule, parse_time(body.first, "from"), min(parse_time(body.last, "to"), api.now())
    )
    params = await stored_params(api.store, version.workflow, check_params(version.workflow, body.params))
    created = 0
    for start in range(0, 0 if body.dry_run else len(times), AT_ONCE):
        wanted = [
            NewRun(new_run_id(), name, version.id, params, Trigger.BACKFILL, time)
            for time in times[start : start + AT_ONCE]
        ]
        made = await api.store.create_runs(wanted, api.now())
        created += sum(run.id == new.id for run, new in zip(made, wanted, strict=True))
    if not body.dry_run:
        detail = {"from": body.first, "to": body.last, "created": created}
        await api.record_change(caller, "workflow.backfill", name, json.dumps(detail))
    shown = [time_json(time) for time in times] if body.dry_run else None
    plan = await backfill_plan(api.store, name, times) if body.dry_run else None
    return json_response({"created": created, "total": len(times), "times": shown, "plan": plan})


def _times(schedule: Schedule, first: datetime, last: datetime) -> list[datetime]:
    times = list(islice(times_between(schedule, first, last), MOST_RUNS + 1))
    if len(times) > MOST_RUNS:
        raise UsageError(f"there are more than {MOST_RUNS:,} times in between", hint="choose a shorter range")
    return times
