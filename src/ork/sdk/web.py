"""One HTTP request with limits, using only the standard library."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any
    from urllib.request import OpenerDirector

LIMIT = 64 << 20
SHOWN_CHARACTERS = 300
_FORWARDED_HEADERS = (
    "accept",
    "accept-language",
    "content-type",
    "user-agent",
)  # headers that are also sent to another origin
_NO_URL = "not an http or https URL: it must begin with http:// or https:// and name a host"


class WebError(Exception):
    """There was no response. The message says why; a retry may help."""


class HttpResponse:
    """A response of any status, with its whole body."""

    __slots__ = ("body", "content_type", "status")

    def __init__(self, status: int, content_type: str, body: bytes) -> None:
        self.status = status
        self.content_type = content_type
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        import json

        try:
            return json.loads(self.body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the response is not JSON: {error}") from None

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
) -> HttpResponse:
    """Raises WebError if there is no response in time, or one of more than `limit` bytes. Follows redirects; headers
    that may contain credentials are not sent to another origin."""
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
        except HTTPError as refused:  # any other status is a response too
            response = refused
        with response:
            data = response.read(limit + 1)
            answer = HttpResponse(response.status, response.headers.get("Content-Type") or "", data)
    except URLError as error:
        raise WebError(f"no response from {_host(url)}: {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise WebError(f"no response from {_host(url)}: {error or type(error).__name__}") from None
    if len(data) > limit:
        raise WebError(f"the response of {_host(url)} has more than {limit} bytes")
    return answer


def _opener() -> OpenerDirector:
    from urllib.request import HTTPRedirectHandler, build_opener

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            new = super().redirect_request(req, fp, code, msg, headers, newurl)
            if new is not None and _host(newurl) != _host(req.full_url):
                new.headers = {name: value for name, value in new.headers.items() if name.lower() in _FORWARDED_HEADERS}
            return new

    return build_opener(Redirects)


def check_url(url: object) -> None:
    """Raises ValueError unless this is a complete http or https URL. The message does not repeat it: it may be a
    secret."""
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
    """The host without path and user: URLs may contain secrets, and messages are public."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
