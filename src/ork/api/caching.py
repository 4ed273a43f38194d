"""Entity tags for what rarely changes: versions, and runs that have ended. A client that has it is answered 304."""

from __future__ import annotations

import hashlib

from fastapi import Request
from starlette.responses import Response

from ork import __version__

REVALIDATED = "private, no-cache"
"""A client may keep the response, and asks each time whether it is still current."""


def entity_tag(*parts: object) -> str:
    """A weak tag: the same for a compressed and a plain body. Another release of Ork may respond with more fields."""
    text = "\0".join(map(str, (__version__, *parts)))
    return f'W/"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def not_modified(request: Request, tag: str) -> Response | None:
    """The response for a client that has this entity; None if it does not."""
    known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
    return Response(status_code=304, headers=tagged(tag)) if tag.removeprefix("W/") in known else None


def tagged(tag: str | None) -> dict[str, str]:
    """The headers of a response with this tag; without one, nothing is kept."""
    return {} if tag is None else {"ETag": tag, "Cache-Control": REVALIDATED}
