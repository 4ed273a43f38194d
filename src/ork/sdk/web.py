"""One HTTP request with limits, by the standard library alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any
    from urllib.request import OpenerDirector

LIMIT = 64 << 20
SHOWN_CHARACTERS = 300
_SENT_ON = ("accept", "accept-language", "content-type", "user-agent")  # also to another origin
_NO_URL = "not an http or https URL: it must begin with http:// or https:// and name a host"


class WebError(Exception):
    """No answer at all: a sentence saying why. Trying again may help."""


class Answer:
    """An answer of any status, its body read whole."""

    __slots__ = ("body", "content_type", "status")

    def __init__(self, status: int, content_type: str, body: bytes) -> None:
        self.status = status
        self.content_type = content_type
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON; ValueError if it is none."""
        import json

        try:
            return json.loads(self.body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the answer is not JSON: {error}") from None

    def shown(self) -> str:
        text = " ".join(self.text.split())
        return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 30.0,
    limit: int = LIMIT,
) -> Answer:
    """WebError if nobody answers in time, or with more than `limit` bytes. Redirects are followed; headers that may hold
    credentials are not sent on to another origin."""
    check_url(url)
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    request = Request(url, data=body, headers=dict(headers or {}), method=method)
    if not request.has_header("User-agent"):
        request.add_header("User-Agent", "ork")
    try:
        try:
            response = _opener().open(request, timeout=timeout)
        except HTTPError as refused:  # an answer all the same
            response = refused
        with response:
            data = response.read(limit + 1)
            answer = Answer(response.status, response.headers.get("Content-Type") or "", data)
    except URLError as error:
        raise WebError(f"no answer from {_host(url)}: {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise WebError(f"no answer from {_host(url)}: {error or type(error).__name__}") from None
    if len(data) > limit:
        raise WebError(f"the answer from {_host(url)} has more than {limit} bytes")
    return answer


def _opener() -> OpenerDirector:
    from urllib.request import HTTPRedirectHandler, build_opener

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            new = super().redirect_request(req, fp, code, msg, headers, newurl)
            if new is not None and _host(newurl) != _host(req.full_url):
                new.headers = {name: value for name, value in new.headers.items() if name.lower() in _SENT_ON}
            return new

    return build_opener(Redirects)


def check_url(url: object) -> None:
    """ValueError for anything but a whole http or https address. What was given is not repeated: it may be a secret."""
    from urllib.parse import urlsplit

    if not isinstance(url, str) or not url.isprintable() or " " in url:
        raise ValueError(_NO_URL)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(_NO_URL) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(_NO_URL)


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _host(url: str) -> str:
    """Without the path and the user: addresses may carry secrets, and messages are shown to everybody."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
