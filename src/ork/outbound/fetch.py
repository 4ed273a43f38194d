"""One HTTP request of the scheduler: to permitted addresses only, at every redirect, with limits. It blocks."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import SplitResult, urljoin

from ork.model.outbound import OutboundRule
from ork.outbound.connect import NoAnswerError, check_url, open_connection, port_of
from ork.sdk.web import LIMIT, Answer

MOST_REDIRECTS = 5
_CHUNK = 1 << 16
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
_OF_THE_BODY = frozenset({"content-type", "content-length", "content-encoding"})


def fetch(
    url: str,
    rule: OutboundRule,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    secret_headers: Collection[str] = (),
    body: bytes | None = None,
    timeout: float = 30.0,
    limit: int = LIMIT,
    redirects: int = MOST_REDIRECTS,
) -> Answer:
    """The answer, of any status. `secret_headers`, like other credentials, are not sent on to another origin.

    ValueError: not a URL. BlockedAddressError: not permitted. NoAnswerError: trying again may help. `timeout` is for all of
    it together.
    """
    deadline = time.monotonic() + timeout
    parts, sent = check_url(url), dict(headers or {})
    private = _CREDENTIALS | {name.lower() for name in secret_headers}
    for left in range(redirects, -1, -1):
        answer, target = _ask(parts, rule, method, sent, body, deadline, limit)
        if target is None or left == 0:
            return answer
        there = check_url(urljoin(parts.geturl(), target))
        if _origin(there) != _origin(parts):
            sent = {name: value for name, value in sent.items() if name.lower() not in private}
        if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
            method, body = "GET", None
            sent = {name: value for name, value in sent.items() if name.lower() not in _OF_THE_BODY}
        parts = there
    raise AssertionError("unreachable")


def _ask(
    parts: SplitResult,
    rule: OutboundRule,
    method: str,
    headers: Mapping[str, str],
    body: bytes | None,
    deadline: float,
    limit: int,
) -> tuple[Answer, str | None]:
    """The answer, and where it redirects to."""
    connection = open_connection(parts, rule, _remaining(deadline, parts))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, body, _with_defaults(headers, parts))
        response = connection.getresponse()
        data = _read(response, connection, deadline, limit, parts)
    except (OSError, HTTPException) as error:
        raise NoAnswerError(f"no answer from {_shown(parts)}: {error or type(error).__name__}") from None
    finally:
        connection.close()
    target = response.headers.get("Location") if response.status in _REDIRECTS else None
    return Answer(response.status, response.headers.get("Content-Type") or "", data), target


def _read(response: HTTPResponse, connection: HTTPConnection, deadline: float, limit: int, parts: SplitResult) -> bytes:
    data = bytearray()
    while chunk := response.read1(_CHUNK):
        data += chunk
        if len(data) > limit:
            raise NoAnswerError(f"the answer from {_shown(parts)} has more than {limit} bytes")
        if connection.sock is not None:
            connection.sock.settimeout(_remaining(deadline, parts))
    return bytes(data)


def _with_defaults(headers: Mapping[str, str], parts: SplitResult) -> dict[str, str]:
    given = {name.lower() for name in headers}
    host = parts.netloc.rpartition("@")[2]
    defaults = {"Host": host, "User-Agent": "ork", "Accept-Encoding": "identity", "Connection": "close"}
    return {name: value for name, value in defaults.items() if name.lower() not in given} | dict(headers)


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, port_of(parts)


def _remaining(deadline: float, parts: SplitResult) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise NoAnswerError(f"no answer from {_shown(parts)} in time")
    return remaining


def _shown(parts: SplitResult) -> str:
    """Without path and user: URLs may hold secrets, and messages are shown to everybody."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
