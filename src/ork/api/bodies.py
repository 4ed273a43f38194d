"""Reads request bodies: strict JSON, then a model. Also builds JSON responses."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeVar

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
_DATE_TIME: dict[str, Any] = {"format": "date-time"}


class Body(BaseModel):
    """Unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TriggerBody(Body):
    params: dict[str, Any] = Field(default_factory=dict)
    version: str | None = Field(
        None, min_length=1, max_length=200, description="A version of the workflow; default: the current one."
    )
    priority: int = Field(0, ge=-1_000_000, le=1_000_000)
    fresh: bool = Field(False, description="Use no cached outputs.")
    parent: str | None = Field(None, max_length=200, description="The run that this one reruns.")
    scheduled_for: str | None = Field(
        None,
        max_length=60,
        description="The time of the schedule that this run is for (RFC 3339); one run for each time.",
        json_schema_extra=_DATE_TIME,
    )


class CheckBody(Body):
    definition: str = Field(description="The workflow file, as YAML.")
    source: str | None = Field(None, max_length=4000, description="The file's name, for messages.")


class CommandBody(Body):
    task: str | None = Field(
        None, max_length=300, description="For retry, approve, reject and declare-dead: TASK or TASK[3]."
    )
    comment: str | None = Field(None, max_length=MAX_TEXT, description="For approve and reject.")
    everything: bool = Field(False, description="For retry: all tasks, including those that succeeded.")


class BulkBody(Body):
    kind: Literal["cancel", "pause", "resume", "retry"]
    runs: list[str] = Field(min_length=1, max_length=500, description="Ids or unique prefixes.")
    everything: bool = Field(False, description="For retry: all tasks, including those that succeeded.")


class WorkflowBody(Body):
    enabled: bool


class BackfillBody(Body):
    first: str = Field(alias="from", max_length=60, description="RFC 3339, included.", json_schema_extra=_DATE_TIME)
    last: str = Field(
        alias="to", max_length=60, description="RFC 3339, included; never later than now.", json_schema_extra=_DATE_TIME
    )
    params: dict[str, Any] = Field(default_factory=dict)
    dry_run: bool = Field(False, description="Only return the times, and which of them have a run.")


class PruneBody(Body):
    before: str = Field(max_length=60, description="RFC 3339: runs that ended earlier.", json_schema_extra=_DATE_TIME)
    keep_last: int = Field(0, ge=0, le=1_000_000, description="Number of newest runs to keep of each workflow.")
    limit: int = Field(50, ge=1, le=10_000, description="Maximum number of runs in this call.")
    dry_run: bool = Field(False, description="Only return the runs.")


class ControlBody(Body):
    mode: str = Field(json_schema_extra={"enum": [mode.value for mode in Mode]})
    reason: str | None = Field(None, max_length=1000, description="Shown by `ork status` and `ork why`.")


_DIGEST: Any = Field(
    None,
    pattern="^[0-9a-f]{64}$",
    description="SHA-256 of a token that the client created; default: the server creates one.",
)
_EXPIRY: Any = Field(
    None, max_length=60, description="When it expires (RFC 3339); default: never.", json_schema_extra=_DATE_TIME
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
        description="Until when the old token stays valid (RFC 3339); default: an hour from now.",
        json_schema_extra=_DATE_TIME,
    )
    digest: str | None = _DIGEST
    expires_at: str | None = _EXPIRY


class SignInBody(Body):
    """One of the two."""

    ticket: str | None = Field(None, max_length=500, description="From `POST /ui-tickets`.")
    token: str | None = Field(None, max_length=500)


async def read_json(request: Request, limit: int = BODY_LIMIT) -> Any:
    """The body as JSON; an empty body is an empty object."""
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
    """Describes a body that the endpoint reads itself, for the OpenAPI document."""
    content = {"application/json": {"schema": shape.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    # ASCII only: text from users may contain characters that cannot be encoded as UTF-8.
    return Response(json.dumps(value, separators=(",", ":")), status, headers, "application/json")


def _sentence(error: Any) -> str:
    location = ".".join(str(part) for part in error["loc"])
    return f"{location}: {error['msg']}" if location else str(error["msg"])
