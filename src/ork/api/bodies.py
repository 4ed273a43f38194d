"""What is sent to us: one strict reader for JSON, then the shape."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from ork.api.routing import BODY_LIMIT
from ork.errors import DocumentError, UsageError
from ork.model.access import Role
from ork.model.installation import Mode
from ork.objects.json_text import strict_json

M = TypeVar("M", bound=BaseModel)
MAX_TEXT = 2000
_MOMENT: dict[str, Any] = {"format": "date-time"}


class Body(BaseModel):
    """A key nobody knows is a mistake, not something to be passed over."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TriggerBody(Body):
    params: dict[str, Any] = Field(default_factory=dict)
    version: str | None = Field(
        None, min_length=1, max_length=200, description="A version of the workflow; default: the current one."
    )
    priority: int = Field(0, ge=-1_000_000, le=1_000_000)
    fresh: bool = Field(False, description="Take nothing from the cache.")
    parent: str | None = Field(None, max_length=200, description="The run this one repeats.")
    scheduled_for: str | None = Field(
        None,
        max_length=60,
        description="The time of the schedule this run makes up for (RFC 3339); one run for each.",
        json_schema_extra=_MOMENT,
    )


class CommandBody(Body):
    task: str | None = Field(
        None, max_length=300, description="For retry, approve, reject and declare-dead: TASK or TASK[3]."
    )
    comment: str | None = Field(None, max_length=MAX_TEXT, description="For approve and reject.")
    everything: bool = Field(False, description="For retry: also what succeeded.")


class WorkflowBody(Body):
    enabled: bool


class BackfillBody(Body):
    first: str = Field(alias="from", max_length=60, description="RFC 3339, included.", json_schema_extra=_MOMENT)
    last: str = Field(
        alias="to", max_length=60, description="RFC 3339, included; never later than now.", json_schema_extra=_MOMENT
    )
    params: dict[str, Any] = Field(default_factory=dict)
    dry_run: bool = Field(False, description="Only say which times there are.")


class PruneBody(Body):
    before: str = Field(max_length=60, description="RFC 3339: runs that ended earlier.", json_schema_extra=_MOMENT)
    keep_last: int = Field(0, ge=0, le=1_000_000, description="The newest so many of each workflow stay.")
    limit: int = Field(50, ge=1, le=10_000, description="At most so many in this call.")
    dry_run: bool = Field(False, description="Only say which.")


class ControlBody(Body):
    mode: str = Field(json_schema_extra={"enum": [mode.value for mode in Mode]})
    reason: str | None = Field(None, max_length=1000, description="Shown wherever people look why nothing starts.")


_DIGEST: Any = Field(
    None, pattern="^[0-9a-f]{64}$", description="SHA-256 of a token that was made elsewhere; default: one is made."
)
_EXPIRY: Any = Field(
    None, max_length=60, description="When it expires (RFC 3339); default: never.", json_schema_extra=_MOMENT
)


class TokenBody(Body):
    name: str = Field(min_length=1, max_length=100)
    role: str = Field(json_schema_extra={"enum": [role.value for role in Role]})
    digest: str | None = _DIGEST
    expires_at: str | None = _EXPIRY


class RotateBody(Body):
    until: str | None = Field(
        None,
        max_length=60,
        description="How long the old token is valid beside the new one (RFC 3339); default: an hour.",
        json_schema_extra=_MOMENT,
    )
    digest: str | None = _DIGEST
    expires_at: str | None = _EXPIRY


async def read_json(request: Request, limit: int = BODY_LIMIT) -> Any:
    """An empty body is an empty object."""
    data = await request.body()
    if not data.strip():
        return {}
    try:
        return strict_json(data, max_size=limit)
    except DocumentError as error:
        raise UsageError(f"the body is {error.message}") from None


async def read_body(request: Request, shape: type[M]) -> M:
    value = await read_json(request)
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise UsageError("; ".join(_sentence(each) for each in error.errors(include_url=False))) from None


def described(shape: type[BaseModel], *, required: bool = False) -> dict[str, Any]:
    """For the OpenAPI document, which cannot see what is read by hand."""
    content = {"application/json": {"schema": shape.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}


def answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    # ASCII only: text from outside may hold what cannot be sent as UTF-8.
    return Response(json.dumps(value, separators=(",", ":")), status, headers, "application/json")


def _sentence(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {error['msg']}" if place else str(error["msg"])
