"""Logs and outputs of tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request
from starlette.responses import Response, StreamingResponse

from ork.api import page_models
from ork.api.bodies import json_response
from ork.api.context import Api, api_of
from ork.api.events import EVENT_SCHEMA, STREAM
from ork.api.logs import ByteRange, NotSatisfiable, find_attempt, follow_log, log_bytes, log_size, requested_range
from ork.api.parameters import AttemptNumber, RunText, TaskIndex, TaskName
from ork.api.problems import problem
from ork.api.routing import Routes
from ork.errors import NotFoundError, UsageError
from ork.model.access import Role
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.objects.references import value_reference
from ork.state.records import TaskFilter
from ork.status.ids import resolve_run
from ork.status.outputs import check_has_output, output_parts
from ork.status.previews import described_by, preview_of_value, preview_output
from ork.status.run_view import is_group, open_task, open_view, version_of
from ork.status.values import value_bytes

routes = Routes("runs")

TEXT = "text/plain; charset=utf-8"
_LOG = {
    200: {
        "description": "The log, or with `follow` a stream of it.",
        "content": {"text/plain": {"schema": {"type": "string"}}, STREAM: {"schema": EVENT_SCHEMA}},
    },
    206: {"description": "The requested range.", "content": {"text/plain": {"schema": {"type": "string"}}}},
}
_OUTPUT = {
    200: {
        "description": "The output, any JSON; with `preview` an OutputPreview.",
        "model": Any | page_models.OutputPreview,
    }
}
BYTES = "application/octet-stream"
_BYTES = {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}
_VALUE = {200: {"description": "The bytes.", **_BYTES}, 206: {"description": "The requested range.", **_BYTES}}
Preview = Annotated[
    int | None, Query(ge=1, le=1000, description="Only a preview, with at most this number of rows or keys.")
]


@routes.add(
    "GET",
    "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log",
    Role.VIEWER,
    is_stream=True,
    responses=_LOG,
    response_class=Response,
)
async def get_log(
    request: Request,
    run: RunText,
    name: TaskName,
    index: TaskIndex,
    number: AttemptNumber,
    follow: Annotated[str | None, Query(description="As server-sent events until the attempt has ended.")] = None,
    wanted: Annotated[str | None, Header(alias="Range", max_length=100, description="bytes=FIRST-LAST")] = None,
    last_event: Annotated[str | None, Header(alias="Last-Event-ID", max_length=30)] = None,
) -> Response:
    """Returns the log of the attempt, unchanged. It is untrusted: show it as text, never as markup."""
    api = api_of(request)
    attempt = AttemptKey(found := await resolve_run(api.store, run), await task_key(api, found, name, index), number)
    await find_attempt(api, attempt)
    if follow is not None and follow.lower() not in ("0", "false"):
        stream = follow_log(api, attempt, _offset(last_event))
        return StreamingResponse(stream, media_type=STREAM)
    size = await log_size(api, attempt)
    span = requested_range(wanted, size)
    headers = {"Accept-Ranges": "bytes", "Content-Disposition": "inline"}
    if isinstance(span, NotSatisfiable):
        detail = f"the log has {size:,} bytes so far"
        return problem(416, UsageError.code, detail, None, {"Content-Range": f"bytes */{size}"})
    status, whole = (200, ByteRange(0, size)) if span is None else (206, span)
    headers["Content-Length"] = str(whole.end - whole.start)
    if status == 206:
        headers["Content-Range"] = f"bytes {whole.start}-{whole.end - 1}/{size}"
    return StreamingResponse(log_bytes(api, attempt, whole), status, headers, TEXT)


def _offset(last_event: str | None) -> int:
    if last_event is None:
        return 0
    if not last_event.isdecimal() or int(last_event) > 2**53:
        raise UsageError("Last-Event-ID is not an id of this stream")
    return int(last_event)


@routes.add("GET", "/runs/{run}/tasks/{name}/output", Role.VIEWER, responses=_OUTPUT, response_class=Response)
async def get_whole_output(request: Request, run: RunText, name: TaskName, preview: Preview = None) -> Response:
    """Returns the output of the task; for a fan-out the list of its instances' outputs. With `preview`, only its kind, size
    and first rows or keys."""
    api = api_of(request)
    return await _output(api, await resolve_run(api.store, run), TaskKey(name), preview)


@routes.add("GET", "/runs/{run}/tasks/{name}/{index}/output", Role.VIEWER, responses=_OUTPUT, response_class=Response)
async def get_output(
    request: Request, run: RunText, name: TaskName, index: TaskIndex, preview: Preview = None
) -> Response:
    """Returns the output of one instance; index 0 for a task without instances. With `preview`, only its kind, size and first
    rows or keys."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    return await _output(api, found, await task_key(api, found, name, index), preview)


@routes.add(
    "GET",
    "/runs/{run}/tasks/{name}/{index}/attempts/{number}/values/{value}",
    Role.VIEWER,
    responses=_VALUE,
    response_class=Response,
)
async def get_value(
    request: Request,
    run: RunText,
    name: TaskName,
    index: TaskIndex,
    number: AttemptNumber,
    value: Annotated[str, Path(pattern="^[0-9]{1,9}(-[0-9]{1,9}|-preview)?$", description="N, N-FILE or N-preview.")],
    wanted: Annotated[str | None, Header(alias="Range", max_length=100, description="bytes=FIRST-LAST")] = None,
) -> Response:
    """Returns the bytes of a value that is not JSON, unchanged, or a range of them. They are untrusted: save them, or show them
    in a sandbox. A preview is JSON, with secrets masked."""
    api = api_of(request)
    found = await resolve_run(api.store, run)
    key = AttemptKey(found, await task_key(api, found, name, index), number)
    reference = value_reference(str(key), value)
    if value.endswith("-preview"):
        view, _ = await open_task(api.store, found, key.task)
        preview = await asyncio.to_thread(preview_of_value, api.objects, view, described_by(reference))
        if preview is None:
            raise NotFoundError(f"`{key.task}` has no preview {value}")
        return json_response(preview)
    size = await asyncio.to_thread(api.objects.value_size, reference)
    if size is None:
        raise NotFoundError(f"`{key.task}` has no value {value}", hint="its run may have been pruned")
    span = requested_range(wanted, size)
    headers = {"Accept-Ranges": "bytes", "Content-Disposition": "attachment"}
    if isinstance(span, NotSatisfiable):
        return problem(416, UsageError.code, f"it has {size:,} bytes", None, {"Content-Range": f"bytes */{size}"})
    status, whole = (200, ByteRange(0, size)) if span is None else (206, span)
    headers["Content-Length"] = str(whole.end - whole.start)
    if status == 206:
        headers["Content-Range"] = f"bytes {whole.start}-{whole.end - 1}/{size}"
    parts = value_bytes(api.objects, reference, whole.start, whole.end)
    first = await asyncio.to_thread(next, parts, b"")
    return StreamingResponse(_in_a_thread(first, parts), status, headers, BYTES)


async def _output(api: Api, run: RunId, key: TaskKey, preview: int | None) -> Response:
    view, task = await open_task(api.store, run, key)
    if task is None:
        raise NotFoundError(f"no task `{key}` in this run", hint=f"ork show {view.short}")
    check_has_output(view, task)
    if is_group(task):
        only = TaskFilter(key.name, limit=None if preview is None else preview + 1)
        view, _ = await open_view(api.store, run, only)
    if preview is not None:
        return json_response(await asyncio.to_thread(preview_output, api.objects, view, task, preview))
    parts = output_parts(api.objects, view, task)
    # Read before the response starts, so that errors can be reported.
    first = await asyncio.to_thread(next, parts, b"")
    return StreamingResponse(_in_a_thread(first, parts), media_type="application/json")


async def _in_a_thread(first: bytes, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part


async def task_key(api: Api, run: RunId, name: str, index: int) -> TaskKey:
    """Index 0 is a task without instances, or the first instance of a fan-out."""
    known = await api.store.get_run(run)
    version = await version_of(api.store, known) if known else None
    specs = {spec.name: spec for spec in version.workflow.tasks} if version else {}
    if name not in specs or (index and not specs[name].fans_out):
        raise NotFoundError(f"no task `{name}[{index}]` in this run", hint=f"ork show {run}")
    return TaskKey(name, index if specs[name].fans_out else None)
