"""Errors as problem documents (RFC 9457): an HTTP status, a stable code, and a message."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ork.definition.problems import Problem as DefinitionProblem
from ork.definition.problems import to_json
from ork.errors import (
    AlarmError,
    DefinitionError,
    DocumentError,
    NotFoundError,
    ObjectsError,
    OrkError,
    RefusedError,
    StoreError,
    StoreUnavailableError,
    UsageError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2

UNAUTHENTICATED = "ORK830"
FORBIDDEN = "ORK831"
FOREIGN = "ORK832"
TOO_LARGE = "ORK833"
TOO_MANY = "ORK834"
NO_SUCH_METHOD = "ORK835"
TOO_MUCH_AT_ONCE = "ORK836"
INTERNAL = "ORK899"

_CODES = {403: FORBIDDEN, 413: TOO_LARGE, 429: TOO_MUCH_AT_ONCE}
_TITLES = {
    400: "Bad request",
    401: "No valid token",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Refused",
    413: "Too large",
    415: "Unsupported media type",
    416: "Range not satisfiable",
    421: "Misdirected request",
    422: "Invalid content",
    429: "Too many requests",
    431: "Headers too large",
    500: "Internal error",
    503: "Try again later",
}


def problem(
    status: int, code: str, detail: str, hint: str | None = None, headers: dict[str, str] | None = None, **more: Any
) -> Response:
    document = {
        "type": f"urn:ork:{code}",
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "code": code,
        "detail": detail,
        "hint": hint,
        **more,
    }
    return Response(json.dumps(document), status, headers, MEDIA_TYPE)


def of_error(error: OrkError) -> Response:
    more: dict[str, Any] = {}
    if isinstance(error, DefinitionError):
        more["problems"] = [to_json(each) for each in error.problems if isinstance(each, DefinitionProblem)]
    status = status_of(error)
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else None
    return problem(status, error.code, error.message, error.hint, headers, **more)


def status_of(error: OrkError) -> int:
    match error:
        case DefinitionError():
            return 422
        case UsageError() | DocumentError():
            return 400
        case NotFoundError():
            return 404
        case RefusedError():
            return 409
        case StoreUnavailableError() | StoreError() | ObjectsError() | AlarmError():
            return 503
        case _:
            return 500


async def on_ork_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, OrkError)
    return of_error(error)


async def on_invalid(_request: Request, error: Exception) -> Response:
    """Handles an invalid path, query or header."""
    assert isinstance(error, RequestValidationError)
    return problem(422, UsageError.code, "; ".join(_sentence(each) for each in error.errors()))


async def on_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, NotFoundError.code)
    return problem(error.status_code, code, str(error.detail), None, dict(error.headers or {}))


async def on_disconnect(_request: Request, _error: Exception) -> Response:
    """Handles a client that disconnected before the end of the body; it never sees the response."""
    return problem(400, UsageError.code, "the body ended too soon")


async def on_bug(_request: Request, error: Exception) -> Response:
    """Handles a bug. Details are in the server's log, not in the response."""
    return problem(500, INTERNAL, f"unexpected error ({type(error).__name__})")


def _sentence(error: Any) -> str:
    location = ".".join(str(part) for part in error["loc"])
    return f"{location}: {error['msg']}"
