"""Documents of attempts, for schedulers and workers on machines without access to the object store.

Keys are query parameters, so that no proxy rewrites them. A missing object is a 204; a 404 means that the server does
not have these routes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ParamSpec, TypeVar

from fastapi import Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from ork import __version__
from ork.api import models
from ork.api.bodies import json_response
from ork.api.context import Api, Caller, api_of, caller_of
from ork.api.document_access import OBJECT_LIMIT, DocumentAccess
from ork.api.quotas import Quota
from ork.api.routing import Routes
from ork.errors import DocumentError, ObjectsError, UsageError
from ork.model.access import Role
from ork.model.ids import NAME_PATTERN
from ork.objects.calls import DocumentCalls
from ork.objects.documents import installation_mark
from ork.objects.identity import read_identity
from ork.objects.json_text import strict_json
from ork.objects.keyed import KeyedDocuments
from ork.objects.layout import IDENTITY_KEY, PART_BYTES, checked_key, value_name

P = ParamSpec("P")
T = TypeVar("T")

routes = Routes("objects")

LARGE = 1 << 20  # larger bodies and responses count against the quota
LARGE_BODIES, LARGE_BODIES_OF_ONE_CALLER = 8, 4
WHOLE_ANSWER = 8 << 20  # a larger object is sent in parts
PART = 1 << 20
BATCH_ANSWER = 16 << 20
MOST_KEYS = 1000
PARALLEL_READS = 64
BATCH_BODY = 16 << 20
LOG_PART = 4 << 20
RETRY_SECONDS = 2
_BYTES = "application/octet-stream"
_CONTENT = {_BYTES: {"schema": {"type": "string", "format": "binary"}}}
_FOUND = {
    200: {"description": "The bytes.", "content": _CONTENT},
    204: {"description": "There is no such object."},
}
_BODY = {"requestBody": {"required": True, "content": _CONTENT}}
_MAYBE_EMPTY_BODY = {"requestBody": {"required": False, "content": _CONTENT}}
_LARGEST_NUMBER = 2**53
_LARGEST_VALUE = 2**43  # file systems refuse larger files
_LONGEST_PART = 255  # bytes, of a key between two slashes: no file system takes longer names

Key = Annotated[str, Query(min_length=1, max_length=4000, description="The object's key.")]
Prefix = Annotated[str, Query(max_length=4000, description="The first parts of the keys' paths.")]
AttemptName = Annotated[
    str,
    Query(
        pattern=rf"^[0-9a-z]{{1,40}}/{NAME_PATTERN}/[0-9]{{1,9}}/[0-9]{{1,6}}$", description="RUN/TASK/INDEX/ATTEMPT"
    ),
]
ValueName = Annotated[str, Query(pattern="^[0-9]{1,9}(-[0-9]{1,9}|-preview)?$", description="N, N-FILE or N-preview.")]
Start = Annotated[int, Query(ge=0, le=_LARGEST_NUMBER, description="The first byte.")]
ValueStart = Annotated[int, Query(ge=0, le=_LARGEST_VALUE, description="The first byte.")]
Size = Annotated[int | None, Query(ge=0, le=_LARGEST_NUMBER, description="Maximum number of bytes.")]


class _RouteState:
    """State that the routes share for one API."""

    def __init__(self, objects: KeyedDocuments) -> None:
        self.objects = objects
        self.access = DocumentAccess(objects)
        self.bodies = Quota(LARGE_BODIES, LARGE_BODIES_OF_ONE_CALLER)
        self._calls = DocumentCalls(objects)

    async def call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb of the store without blocking other requests for long."""
        return await self._calls.call(verb, *args, **kwargs)

    async def call_aside(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb in a thread, for calls that take long even in a fast store: much data, or many files."""
        return await asyncio.to_thread(verb, *args, **kwargs)

    async def check_run(self, attempt: str) -> None:
        """Refuses to write a log of a run whose documents were deleted."""
        run = attempt.partition("/")[0]
        if await self.call(self.objects.missing_place, run) is not None:
            raise HTTPException(409, f"there are no documents of run {run}")

    @contextmanager
    def room_for(self, request: Request, caller: Caller, most: int) -> Iterator[None]:
        """Reject a body that is too large, or that exceeds the number of concurrent large bodies."""
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise HTTPException(413, f"the body may have at most {most:,} bytes")
        if length.isdecimal() and int(length) <= LARGE:
            yield
            return
        with self.bodies.held(caller.digest or caller.name) as is_free:
            if not is_free:
                later = {"Retry-After": str(RETRY_SECONDS)}
                raise HTTPException(429, "too many large documents at once", later)
            yield

    @contextmanager
    def room_for_answer(self, caller: Caller, size: int) -> Iterator[None]:
        """Reject a large answer that exceeds the number of concurrent large bodies."""
        if size <= LARGE:
            yield
            return
        with self.bodies.held(caller.digest or caller.name) as is_free:
            if not is_free:
                raise HTTPException(429, "too many large documents at once", {"Retry-After": str(RETRY_SECONDS)})
            yield


def _kept(api: Api) -> _RouteState:
    kept = api.kept.get(_RouteState)
    if kept is None:
        assert isinstance(api.objects, KeyedDocuments)
        kept = api.kept[_RouteState] = _RouteState(api.objects)
    assert isinstance(kept, _RouteState)
    return kept


@routes.add("GET", "/objects/about", Role.SCHEDULER, response_model=models.ObjectsAbout)
async def describe_objects(request: Request) -> Response:
    """Returns the kind and identity of the object store and the installation that it belongs to."""
    caller_of(request)
    api = api_of(request)
    kept = _kept(api)
    identity = await kept.call(read_identity, kept.objects)
    mark = installation_mark(await api.store.signing_key())
    id, kind = None if identity is None else identity.id, kept.objects.kind
    return json_response({"id": id, "kind": kind, "installation": mark, "version": __version__})


# ── one object ───────────────────────────────────────────────────────────────────────────────────


@routes.add("GET", "/objects", Role.SCHEDULER, is_for_attempts=True, responses=_FOUND, response_class=Response)
async def get_object(
    request: Request,
    key: Key,
    start: Annotated[int | None, Query(ge=0, le=_LARGEST_NUMBER, description="The first byte of a part.")] = None,
    size: Size = None,
    limit: Annotated[int | None, Query(ge=0, le=_LARGEST_NUMBER, description="Reject a larger object.")] = None,
) -> Response:
    """Returns the object, or a part of it."""
    kept = _kept(api_of(request))
    await kept.access.check_read(caller_of(request), [_checked(key)])
    if start is not None or size is not None:
        most = WHOLE_ANSWER if size is None else min(size, WHOLE_ANSWER)
        whole = await kept.call(kept.objects.size, key) or 0
        end = whole if size is None else min(whole, (start or 0) + size)
        if end - (start or 0) > most:
            return _in_parts(kept, key, start or 0, end)
        return Response(await kept.call(kept.objects.read, key, start or 0, most), media_type=_BYTES)
    there = await kept.call(kept.objects.size, key)
    if there is None:
        return Response(status_code=204)
    if limit is not None and there > limit:
        raise DocumentError(f"{key} has {there} bytes, more than the {limit} allowed")
    if there > WHOLE_ANSWER:
        return _in_parts(kept, key, 0, there)
    data = await kept.call(kept.objects.get, key, limit=limit)
    return Response(status_code=204) if data is None else Response(data, media_type=_BYTES)


def _in_parts(kept: _RouteState, key: str, start: int, end: int) -> Response:
    """Yields a large object in parts. Objects are written once; if one becomes shorter, the connection is aborted and
    the client retries."""

    async def parts() -> AsyncIterator[bytes]:
        place = start
        while place < end:
            data = await kept.call_aside(kept.objects.read, key, place, min(PART, end - place))
            if not data:
                raise ObjectsError(f"{key} became shorter while it was sent")
            place += len(data)
            yield data

    return StreamingResponse(parts(), 200, {"Content-Length": str(end - start)}, _BYTES)


@routes.add("GET", "/objects/size", Role.SCHEDULER, is_for_attempts=True, response_model=models.ObjectSize)
async def get_object_size(request: Request, key: Key) -> Response:
    """Returns the object's size in bytes; null if there is none."""
    kept = _kept(api_of(request))
    await kept.access.check_read(caller_of(request), [_checked(key)])
    return json_response({"size": await kept.call(kept.objects.size, key)})


@routes.add(
    "PUT",
    "/objects",
    Role.SCHEDULER,
    is_for_attempts=True,
    body_limit=OBJECT_LIMIT,
    response_model=models.ObjectWritten,
    openapi_extra=_MAYBE_EMPTY_BODY,
)
async def put_object(
    request: Request,
    key: Key,
    if_absent: Annotated[bool, Query(description="Write it only if it does not exist.")] = False,
) -> Response:
    """Writes the object in one step."""
    kept, caller = _kept(api_of(request)), caller_of(request)
    most = await kept.access.most_to_write(caller, _checked(key), if_absent=if_absent)
    if key == IDENTITY_KEY and not if_absent:
        raise UsageError(f"{key} is written once, and never replaced")
    with kept.room_for(request, caller, most):
        data = await _body(request, most)
        put = kept.objects.put_if_absent if if_absent else kept.objects.put
        is_written = await (kept.call_aside if len(data) > LARGE else kept.call)(put, key, data)
    return json_response({"is_written": is_written is not False})


@routes.add("DELETE", "/objects", Role.SCHEDULER, status_code=204, response_class=Response)
async def delete_objects(request: Request, prefix: Prefix) -> Response:
    """Deletes every object with the prefix."""
    caller_of(request)
    kept = _kept(api_of(request))
    await kept.call_aside(kept.objects.delete, _checked(prefix))
    return Response(status_code=204)


@routes.add("GET", "/objects/keys", Role.SCHEDULER, response_model=models.ObjectKeys)
async def list_objects(request: Request, prefix: Prefix = "") -> Response:
    """Returns every key with the prefix, sorted."""
    caller_of(request)
    kept = _kept(api_of(request))
    if prefix.strip("/"):
        _checked(prefix.rstrip("/"))
    return json_response({"keys": await kept.call_aside(kept.objects.list, prefix)})


# ── many objects in one request: a line of JSON, then the bytes of one after the other ───────────


@routes.add(
    "POST",
    "/objects/many/get",
    Role.SCHEDULER,
    is_for_attempts=True,
    responses={200: _FOUND[200]},
    response_class=Response,
    openapi_extra=_BODY,
)
async def get_many_objects(request: Request) -> Response:
    """Reads `{"keys": […], "limit": bytes or null}`. Returns a line `{"objects": […]}` with the size of each object,
    null for a missing one, or an error; the bytes of the objects follow. Objects at the end that would make the
    response too large are omitted."""
    kept, caller = _kept(api_of(request)), caller_of(request)
    keys, limit = _wanted(await request.body())
    await kept.access.check_read(caller, keys)
    head, parts = await kept.call_aside(_collected, kept.objects, keys, limit)
    return Response(b"\n".join((json_response({"objects": head}).body, b"".join(parts))), media_type=_BYTES)


def _collected(objects: KeyedDocuments, keys: Sequence[str], limit: int | None) -> tuple[list[Any], list[bytes]]:
    """The sizes and bytes of the response, at least one object. Runs in a thread."""
    head: list[Any] = []
    parts: list[bytes] = []
    room = BATCH_ANSWER
    for begin in range(0, len(keys), PARALLEL_READS):
        if room <= 0:
            break
        for found in objects.read_values(keys[begin : begin + PARALLEL_READS], limit):
            if isinstance(found, ObjectsError):
                head.append({"error": found.message, "is_damaged": isinstance(found, DocumentError)})
                continue
            head.append(None if found is None else len(found))
            parts.append(found or b"")
            room -= len(parts[-1])
    return head, parts


@routes.add(
    "POST",
    "/objects/many/put",
    Role.SCHEDULER,
    body_limit=BATCH_BODY,
    status_code=204,
    response_class=Response,
    openapi_extra=_BODY,
)
async def put_many_objects(request: Request) -> Response:
    """Reads a line `{"objects": [[key, size], …]}` and the bytes of the objects, and writes each in one step."""
    kept, caller = _kept(api_of(request)), caller_of(request)
    with kept.room_for(request, caller, BATCH_BODY):
        objects = _given(await request.body())
        await kept.call_aside(kept.objects.put_shared, objects)
    return Response(status_code=204)


def _wanted(body: bytes) -> tuple[list[str], int | None]:
    document = _json(body)
    keys, limit = document.get("keys"), document.get("limit")
    if not isinstance(keys, list) or not 0 < len(keys) <= MOST_KEYS or not (limit is None or type(limit) is int):
        raise UsageError(f'write {{"keys": [up to {MOST_KEYS}], "limit": bytes or null}}')
    return [_checked(key) for key in keys], limit


def _given(body: bytes) -> list[tuple[str, bytes]]:
    head, _, rest = body.partition(b"\n")
    entries = _json(head).get("objects")
    if not isinstance(entries, list) or len(entries) > MOST_KEYS:
        raise UsageError(f'begin with a line {{"objects": [[key, size], up to {MOST_KEYS}]}}')
    objects, place = [], 0
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != 2 or type(entry[1]) is not int or entry[1] < 0:
            raise UsageError("an object is written as [key, size]")
        objects.append((_checked(entry[0]), rest[place : place + entry[1]]))
        place += entry[1]
    if place != len(rest):
        raise UsageError(f"the sizes add up to {place:,} bytes, and {len(rest):,} follow")
    return objects


# ── values that are not JSON ─────────────────────────────────────────────────────────────────────


@routes.add(
    "GET", "/objects/value", Role.SCHEDULER, is_for_attempts=True, responses={200: _FOUND[200]}, response_class=Response
)
async def read_object_value(request: Request, key: Key, start: Start = 0, size: Size = None) -> Response:
    """Returns part of a value that is not JSON, at most 16 MiB."""
    kept, caller = _kept(api_of(request)), caller_of(request)
    await kept.access.check_read_value(caller, _value(key))
    most = PART_BYTES if size is None else min(size, PART_BYTES)
    with kept.room_for_answer(caller, most):
        return Response(await kept.call_aside(kept.objects.read_value, key, start, most), media_type=_BYTES)


@routes.add("GET", "/objects/value/size", Role.SCHEDULER, is_for_attempts=True, response_model=models.ObjectSize)
async def get_object_value_size(request: Request, key: Key) -> Response:
    """Returns the size of a value in bytes; null if there is none."""
    kept = _kept(api_of(request))
    await kept.access.check_read_value(caller_of(request), _value(key))
    return json_response({"size": await kept.call(kept.objects.value_size, key)})


@routes.add(
    "PUT",
    "/objects/value",
    Role.SCHEDULER,
    is_for_attempts=True,
    body_limit=PART_BYTES,
    status_code=204,
    response_class=Response,
    openapi_extra=_MAYBE_EMPTY_BODY,
)
async def write_object_value(
    request: Request, attempt: AttemptName, name: ValueName, start: ValueStart = 0
) -> Response:
    """Writes a part of a value that is not JSON. Repeating the same write changes nothing."""
    kept, caller = _kept(api_of(request)), caller_of(request)
    kept.access.check_own(caller, attempt)
    with kept.room_for(request, caller, PART_BYTES):
        data = await _body(request, PART_BYTES)
        await kept.call_aside(kept.objects.write_value, attempt, name, start, data)
    return Response(status_code=204)


@routes.add("GET", "/objects/values", Role.SCHEDULER, is_for_attempts=True, response_model=models.ObjectKeys)
async def list_object_values(request: Request, attempt: AttemptName) -> Response:
    """Returns the names of an attempt's values that are not JSON."""
    kept = _kept(api_of(request))
    kept.access.check_own(caller_of(request), attempt)
    return json_response({"keys": list(await kept.call_aside(kept.objects.list_values, attempt))})


@routes.add("DELETE", "/objects/values", Role.SCHEDULER, is_for_attempts=True, status_code=204, response_class=Response)
async def delete_object_values(request: Request, attempt: AttemptName) -> Response:
    """Deletes the values of an attempt that are not JSON, which it does when it could not store all of them."""
    kept = _kept(api_of(request))
    kept.access.check_own(caller_of(request), attempt)
    await kept.call_aside(kept.objects.delete_values, attempt)
    return Response(status_code=204)


def _value(key: str) -> str:
    if value_name(_checked(key)) is None:
        raise UsageError(f"not the key of a value: {key[:200]!r}")
    return key


# ── logs ─────────────────────────────────────────────────────────────────────────────────────────


@routes.add(
    "GET", "/objects/log", Role.SCHEDULER, is_for_attempts=True, responses={200: _FOUND[200]}, response_class=Response
)
async def read_attempt_log(request: Request, attempt: AttemptName, start: Start = 0, size: Size = None) -> Response:
    """Returns part of the attempt's log, at most 4 MiB."""
    kept = _kept(api_of(request))
    kept.access.check_log(caller_of(request), attempt)
    most = LOG_PART if size is None else min(size, LOG_PART)
    return Response(await kept.call(kept.objects.read_log, attempt, start, most), media_type=_BYTES)


@routes.add("GET", "/objects/log/size", Role.SCHEDULER, is_for_attempts=True, response_model=models.ObjectSize)
async def get_attempt_log_size(request: Request, attempt: AttemptName) -> Response:
    """Returns the size of the attempt's log in bytes; null if there is none."""
    kept = _kept(api_of(request))
    kept.access.check_log(caller_of(request), attempt)
    return json_response({"size": await kept.call(kept.objects.log_size, attempt)})


@routes.add(
    "PUT",
    "/objects/log",
    Role.SCHEDULER,
    is_for_attempts=True,
    body_limit=LOG_PART,
    status_code=204,
    response_class=Response,
    openapi_extra=_MAYBE_EMPTY_BODY,
)
async def write_attempt_log(request: Request, attempt: AttemptName, start: Start) -> Response:
    """Writes bytes of the attempt's log from `start` on. Repeating the same write changes nothing."""
    kept, caller = _kept(api_of(request)), caller_of(request)
    kept.access.check_log(caller, attempt, start)
    with kept.room_for(request, caller, LOG_PART):
        data = await request.body()
        kept.access.check_log(caller, attempt, start + len(data))
        await kept.check_run(attempt)
        await kept.call(kept.objects.write_log, attempt, start, data)
    return Response(status_code=204)


@routes.add(
    "POST",
    "/objects/log",
    Role.SCHEDULER,
    is_for_attempts=True,
    body_limit=LOG_PART,
    status_code=204,
    response_class=Response,
    openapi_extra=_MAYBE_EMPTY_BODY,
)
async def append_attempt_log(request: Request, attempt: AttemptName) -> Response:
    """Appends to the attempt's log."""
    kept, caller = _kept(api_of(request)), caller_of(request)
    size = await kept.call(kept.objects.log_size, attempt) if caller.attempt == attempt else 0
    kept.access.check_log(caller, attempt, size or 0)
    with kept.room_for(request, caller, LOG_PART):
        await kept.check_run(attempt)
        await kept.call(kept.objects.append_log, attempt, await request.body())
    return Response(status_code=204)


def _checked(key: Any) -> str:
    try:
        if isinstance(key, str) and all(
            len(part.encode("utf-8", "replace")) <= _LONGEST_PART for part in key.split("/")
        ):
            return checked_key(key)
    except ObjectsError:
        pass
    raise UsageError(f"not a key: {str(key)[:200]!r}")


async def _body(request: Request, most: int) -> bytes:
    """The body. It is not read beyond `most` bytes, since its length may not be announced."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most:
            raise HTTPException(413, f"the document may have at most {most:,} bytes")
    return bytes(data)


def _json(data: bytes) -> dict[str, Any]:
    try:
        document = strict_json(data, max_size=BATCH_BODY)
    except DocumentError as error:
        raise UsageError(f"the body is {error.message}") from None
    if not isinstance(document, dict):
        raise UsageError("the body begins with a JSON object")
    return document
