"""Those who do the work: schedulers, limits, ticks, health, metrics."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Request
from starlette.responses import Response

from ork.api import models
from ork.api.bodies import ControlBody, PruneBody, answer, described, read_body
from ork.api.context import Api, api_of, caller_of
from ork.api.metrics import MEDIA_TYPE, render_metrics
from ork.api.parameters import moment_of
from ork.api.problems import of_error
from ork.api.routing import Routes
from ork.errors import NotFoundError, OrkError, UsageError
from ork.model.access import Role
from ork.model.ids import RunId
from ork.model.installation import Control, Mode
from ork.objects.calls import Calls
from ork.status.controls import control_json, find_control_target, find_target
from ork.status.overview import overview_json, quarantined_json, read_overview
from ork.status.pruning import Delete, prune_some
from ork.status.schedulers import Liveness, liveness, present_schedulers
from ork.status.shapes import time_json

routes = Routes("installation")

ControlTarget = Annotated[str, Path(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._+-]{0,254})$")]

_METRICS = {200: {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}}


@routes.add("GET", "/schedulers", Role.VIEWER, response_model=models.Schedulers)
async def list_schedulers(request: Request) -> Response:
    """Those that registered; `liveness` is alive, unverified (idle, cannot be checked from the server) or dead."""
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
    return answer({"schedulers": rows})


@routes.add("GET", "/controls", Role.VIEWER, response_model=models.Controls)
async def list_controls(request: Request) -> Response:
    """Schedulers, hosts (or `*`: all) that people paused or drain."""
    return answer({"controls": [control_json(control) for control in await api_of(request).store.list_controls()]})


@routes.add(
    "PUT",
    "/controls/{target}",
    Role.ADMIN,
    response_model=models.Control,
    openapi_extra=described(ControlBody, required=True),
)
async def set_control(request: Request, target: ControlTarget) -> Response:
    """Pauses or drains a scheduler, a host's schedulers or all (`*`), until it is deleted.

    A scheduler is named by its id or a unique beginning of it, a host by its name, with the machine id behind it where
    several have that name. `target` of the answer is the full one.
    """
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, ControlBody)
    if body.mode not in set(Mode):
        raise UsageError(f"there is no mode {body.mode!r}", hint=f"one of: {', '.join(Mode)}")
    found = find_target(await present_schedulers(api.store, None), target)
    control = Control(found, Mode(body.mode), caller.name, api.now(), body.reason)
    await api.store.set_control(control)
    action = "scheduler.pause" if control.mode is Mode.PAUSED else "scheduler.drain"
    await api.changed(caller, action, found, body.reason and json.dumps({"reason": body.reason}))
    return answer(control_json(control))


@routes.add("DELETE", "/controls/{target}", Role.ADMIN, status_code=204)
async def clear_control(request: Request, target: ControlTarget) -> Response:
    """They work again. Named as in PUT."""
    api, caller = api_of(request), caller_of(request)
    found = find_control_target(await api.store.list_controls(), target)
    if found is None or not await api.store.clear_control(found):
        raise NotFoundError(f"{target} is neither paused nor drained", hint="GET /api/v1/controls lists what stands")
    await api.changed(caller, "scheduler.resume", found)
    return Response(status_code=204)


@routes.add("GET", "/limits", Role.VIEWER, response_model=models.Limits)
async def list_limits(request: Request) -> Response:
    """How full each limit is, and some of those who hold it."""
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
    return answer({"limits": rows})


@routes.add("GET", "/status", Role.VIEWER, response_model=models.Status)
async def status(request: Request) -> Response:
    """What goes on right now: schedulers, leases, unfinished runs, limits in use, and what waits longest."""
    api = api_of(request)
    is_disk_full = await Calls(api.objects).call(api.objects.is_full)
    return answer({"is_disk_full": is_disk_full, **overview_json(await read_overview(api.store), api.now())})


@routes.add("GET", "/quarantine", Role.VIEWER, response_model=models.Quarantine)
async def list_quarantined(request: Request) -> Response:
    """Items that cannot be decoded or worked with, and why; everything else goes on without them."""
    found = await api_of(request).store.list_quarantined()
    return answer({"quarantined": [quarantined_json(item) for item in found]})


@routes.add("POST", "/tick", Role.OPERATOR, response_model=models.TickReport)
async def tick(request: Request) -> Response:
    """Works until nothing is due, then says when to come back. What was started goes on."""
    report = await api_of(request).tick()
    api_of(request).hub.poke()
    return answer(
        {
            "steps": report.steps,
            "launched": report.launched,
            "finished": report.finished,
            "next_wake": time_json(report.next_wake),
        }
    )


_ticking: set[asyncio.Task[None]] = set()


@routes.add("POST", "/wake", Role.OPERATOR, is_for_workers=True, status_code=202, response_model=models.Woken)
async def wake(request: Request) -> Response:
    """Wakes the scheduler of this process; where there is none, begins a tick and answers at once."""
    api = api_of(request)
    if api.wake is not None:
        api.wake()
        return answer({"woken": "scheduler"}, 202)
    # Held on to, or it could be collected before it is done.
    work = asyncio.create_task(_tick_quietly(api))
    _ticking.add(work)
    work.add_done_callback(_ticking.discard)
    return answer({"woken": "tick"}, 202)


async def _tick_quietly(api: Api) -> None:
    try:
        await api.tick()
    except OrkError as error:
        from ork.telemetry import TelemetryEvent

        api.telemetry.emit(TelemetryEvent.STEP_FAILED, run=None, why=error.message)
    api.hub.poke()


@routes.add(
    "POST", "/prune", Role.ADMIN, response_model=models.PrunedRuns, openapi_extra=described(PruneBody, required=True)
)
async def prune(request: Request) -> Response:
    """Forgets old runs with their logs and outputs, a few at a time: ask again until none comes back."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, PruneBody)
    before = moment_of(body.before, "before")
    if body.dry_run:
        return answer({"runs": await api.store.prunable_runs(before, body.limit, body.keep_last)})
    runs = await prune_some(api.store, _deleter(api), before, body.keep_last, body.limit)
    if runs:
        await api.changed(caller, "runs.prune", f"{len(runs)} runs", json.dumps({"before": time_json(before)}))
    return answer({"runs": runs})


def _deleter(api: Api) -> Delete:
    async def delete(runs: Sequence[RunId]) -> None:
        await asyncio.to_thread(api.objects.delete_runs, runs)

    return delete


@routes.add("GET", "/metrics", Role.VIEWER, responses=_METRICS, response_class=Response)
async def metrics(request: Request) -> Response:
    """For Prometheus: what this process did, and what stands in the store."""
    caller_of(request)
    api = api_of(request)
    return Response(await render_metrics(api.store, api.telemetry), media_type=MEDIA_TYPE)


@routes.add("GET", "/healthz", None, response_model=models.Health)
async def healthz() -> Response:
    """This process answers."""
    return answer({"status": "ok"})


@routes.add("GET", "/readyz", None, response_model=models.Health)
async def readyz(request: Request) -> Response:
    """This process answers, and so does the store."""
    try:
        await api_of(request).store.list_schedulers()
    except OrkError as error:
        return of_error(type(error)("the store does not answer"))  # no details for those without a token
    return answer({"status": "ready"})


for _path, _role, _endpoint in (
    ("/metrics", Role.VIEWER, metrics),
    ("/healthz", None, healthz),
    ("/readyz", None, readyz),
):
    # Where probes and scrapers look for them by custom.
    routes.add("GET", _path, _role, at_root=True, include_in_schema=False, response_class=Response)(_endpoint)
