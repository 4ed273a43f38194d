"""Schedulers, controls, limits, ticks, pruning, health and metrics."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Request
from starlette.responses import Response

from ork.api import models
from ork.api.bodies import ControlBody, PruneBody, described, json_response, read_body
from ork.api.context import Api, api_of, caller_of
from ork.api.metrics import MEDIA_TYPE, render_metrics
from ork.api.parameters import parse_time
from ork.api.problems import of_error
from ork.api.routing import Routes
from ork.errors import AlarmError, NotFoundError, OrkError, RefusedError, UsageError
from ork.model.access import Role
from ork.model.ids import RunId
from ork.model.installation import Control, Mode
from ork.objects.calls import DocumentCalls
from ork.status.controls import control_json, find_control_target, find_target
from ork.status.overview import overview_json, quarantined_json, read_overview
from ork.status.pruning import Delete, prune_some
from ork.status.schedulers import Liveness, liveness, present_schedulers
from ork.status.shapes import time_json

routes = Routes("installation")

ControlTarget = Annotated[str, Path(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._+-]{0,254})$")]

# A message of Pub/Sub may have 10 MiB; completion events have a few KiB.
EVENT_LIMIT = 256 * 1024
_PUSHED = {"requestBody": {"required": False, "content": {"application/json": {"schema": {}}}}}  # it is not read
_METRICS = {200: {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}}


@routes.add("GET", "/schedulers", Role.VIEWER, response_model=models.Schedulers)
async def list_schedulers(request: Request) -> Response:
    """Lists the registered schedulers; `liveness` is alive, unverified (idle, cannot be checked from the server) or dead."""
    rows = [
        {
            "id": entry.id,
            "kind": entry.kind,
            "identity": entry.identity,
            "started_at": time_json(entry.started_at),
            "runs": entry.active_runs,
            "lease_seconds_left": round(entry.lease_seconds_left, 3),
            "notes": list(entry.notes),
            "alive": liveness(entry) is Liveness.ALIVE,
            "liveness": liveness(entry),
        }
        for entry in await api_of(request).store.list_schedulers()
    ]
    return json_response({"schedulers": rows})


@routes.add("GET", "/controls", Role.VIEWER, response_model=models.Controls)
async def list_controls(request: Request) -> Response:
    """Lists paused and draining schedulers and hosts (`*`: all)."""
    return json_response(
        {"controls": [control_json(control) for control in await api_of(request).store.list_controls()]}
    )


@routes.add(
    "PUT",
    "/controls/{target}",
    Role.ADMIN,
    response_model=models.Control,
    openapi_extra=described(ControlBody, required=True),
)
async def set_control(request: Request, target: ControlTarget) -> Response:
    """Pauses or drains a scheduler, a host's schedulers or all (`*`), until the control is deleted.

    A scheduler is named by its id or a unique prefix of it; a host by its name, followed by the machine id if several
    hosts have that name. The response has the full `target`.
    """
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, ControlBody)
    if body.mode not in set(Mode):
        raise UsageError(f"there is no mode {body.mode!r}", hint=f"one of: {', '.join(Mode)}")
    found = find_target(await present_schedulers(api.store, None), target)
    control = Control(found, Mode(body.mode), caller.name, api.now(), body.reason)
    await api.store.set_control(control)
    action = "scheduler.pause" if control.mode is Mode.PAUSED else "scheduler.drain"
    await api.record_change(caller, action, found, body.reason and json.dumps({"reason": body.reason}))
    return json_response(control_json(control))


@routes.add("DELETE", "/controls/{target}", Role.ADMIN, status_code=204)
async def clear_control(request: Request, target: ControlTarget) -> Response:
    """Ends a pause or drain. The target is named as in PUT."""
    api, caller = api_of(request), caller_of(request)
    found = find_control_target(await api.store.list_controls(), target)
    if found is None or not await api.store.clear_control(found):
        raise NotFoundError(f"{target} is neither paused nor drained", hint="GET /api/v1/controls lists them")
    await api.record_change(caller, "scheduler.resume", found)
    return Response(status_code=204)


@routes.add("GET", "/limits", Role.VIEWER, response_model=models.Limits)
async def list_limits(request: Request) -> Response:
    """Lists limits with their use, and some of their holders."""
    rows = [
        {
            "name": use.name,
            "slots": use.slots,
            "used": use.used,
            "holders": [
                {"run": key.run, "task": key.task.name, "index": key.task.index, "attempt": key.number}
                for key in use.holders
            ],
        }
        for use in await api_of(request).store.limit_use()
    ]
    return json_response({"limits": rows})


@routes.add("GET", "/status", Role.VIEWER, response_model=models.InstallationStatus)
async def status(request: Request) -> Response:
    """Returns an overview: schedulers, leases, unfinished runs, limits in use, and the longest waiting tasks."""
    api = api_of(request)
    is_disk_full = await DocumentCalls(api.objects).call(api.objects.is_full)
    return json_response({"is_disk_full": is_disk_full, **overview_json(await read_overview(api.store), api.now())})


@routes.add("GET", "/quarantine", Role.VIEWER, response_model=models.Quarantine)
async def list_quarantined(request: Request) -> Response:
    """Lists quarantined items, which cannot be decoded or processed, and why."""
    found = await api_of(request).store.list_quarantined()
    return json_response({"quarantined": [quarantined_json(item) for item in found]})


@routes.add("POST", "/tick", Role.OPERATOR, is_for_platform=True, response_model=models.TickReport)
async def tick(request: Request) -> Response:
    """Does all work that is due, then returns when to wake next. Started tasks continue. The identity token of the
    alarm's service account is accepted, too."""
    report = await api_of(request).tick()
    api_of(request).hub.notify()
    return json_response(
        {
            "steps": report.steps,
            "launched": report.launched,
            "finished": report.finished,
            "next_wake": time_json(report.next_wake),
        }
    )


_running_ticks: set[asyncio.Task[None]] = set()


@routes.add("POST", "/wake", Role.OPERATOR, is_for_workers=True, status_code=202, response_model=models.Woken)
async def wake(request: Request) -> Response:
    """Wakes the scheduler in this process. Without one, sets the alarm to now; without an alarm, starts a tick. Returns at
    once."""
    api = api_of(request)
    if api.wake is not None or api.set_alarm is not None:
        return await _woken(api)
    # Referenced, because asyncio keeps only weak references to tasks.
    work = asyncio.create_task(_tick_in_background(api))
    _running_ticks.add(work)
    work.add_done_callback(_running_ticks.discard)
    return json_response({"woken": "tick"}, 202)


@routes.add(
    "POST",
    "/events/pubsub",
    Role.OPERATOR,
    is_for_platform=True,
    body_limit=EVENT_LIMIT,
    status_code=202,
    response_model=models.Woken,
    openapi_extra=_PUSHED,
)
async def pushed_event(request: Request) -> Response:
    """Receives a push of Pub/Sub: the platform says that a container has ended. The message is not read, it only wakes
    the scheduler or sets the alarm to now. The identity token of the alarm's service account is accepted."""
    api = api_of(request)
    await request.body()
    if api.wake is None and api.set_alarm is None:
        raise RefusedError("this server has neither a scheduler nor an alarm", hint="set `alarm` in ork.yaml")
    return await _woken(api)


async def _woken(api: Api) -> Response:
    """Wakes the scheduler in this process, or sets the alarm. AlarmError (503) if that fails: the caller may try again."""
    if api.wake is not None:
        api.wake()
        return json_response({"woken": "scheduler"}, 202)
    if api.set_alarm is None or not await api.set_alarm():
        raise AlarmError("the alarm cannot be set", hint="see the server's log")
    return json_response({"woken": "alarm"}, 202)


async def _tick_in_background(api: Api) -> None:
    try:
        await api.tick()
    except OrkError as error:
        from ork.telemetry import TelemetryEvent

        api.telemetry.emit(TelemetryEvent.STEP_FAILED, run=None, why=error.message)
    api.hub.notify()


@routes.add(
    "POST", "/prune", Role.ADMIN, response_model=models.PrunedRuns, openapi_extra=described(PruneBody, required=True)
)
async def prune(request: Request) -> Response:
    """Deletes old runs with their logs and outputs, a few at a time: repeat until none is returned."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, PruneBody)
    before = parse_time(body.before, "before")
    if body.dry_run:
        return json_response({"runs": await api.store.prunable_runs(before, body.limit, body.keep_last)})
    runs = await prune_some(api.store, _delete_objects(api), before, body.keep_last, body.limit)
    if runs:
        await api.record_change(caller, "runs.prune", f"{len(runs)} runs", json.dumps({"before": time_json(before)}))
    return json_response({"runs": runs})


def _delete_objects(api: Api) -> Delete:
    async def delete(runs: Sequence[RunId]) -> None:
        await asyncio.to_thread(api.objects.delete_runs, runs)

    return delete


@routes.add("GET", "/metrics", Role.VIEWER, responses=_METRICS, response_class=Response)
async def metrics(request: Request) -> Response:
    """Returns metrics of this process and of the store, for Prometheus."""
    caller_of(request)
    api = api_of(request)
    return Response(await render_metrics(api.store, api.telemetry), media_type=MEDIA_TYPE)


@routes.add("GET", "/healthz", None, is_health=True, response_model=models.Health)
async def healthz() -> Response:
    """Returns 200 while this process responds."""
    return json_response({"status": "ok"})


@routes.add("GET", "/readyz", None, is_health=True, response_model=models.Health)
async def readyz(request: Request) -> Response:
    """Returns 200 while this process and the store respond."""
    try:
        await api_of(request).store.list_schedulers()
    except OrkError as error:
        return of_error(type(error)("the store does not respond"))  # no details, since no token is required
    return json_response({"status": "ready"})


for _path, _role, _endpoint in (
    ("/metrics", Role.VIEWER, metrics),
    ("/healthz", None, healthz),
    ("/readyz", None, readyz),
):
    # Also at the conventional paths for probes and scrapers.
    routes.add(
        "GET", _path, _role, at_root=True, is_health=_role is None, include_in_schema=False, response_class=Response
    )(_endpoint)
