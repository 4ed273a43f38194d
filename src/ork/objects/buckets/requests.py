"""HTTP requests of the clients that need the standard library only: kept connections, time limits, retries with jitter."""

from __future__ import annotations

import os
import time

from ork.errors import DocumentError, ObjectsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.client import HTTPConnection, HTTPResponse

REQUEST_SECONDS = 10.0  # for each step of a request: connect, send, receive
RETRY_SECONDS = (
    8.0  # no request is repeated later than this: a worker must notice in time that it cannot write heartbeats
)
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 4.0
PASSING = frozenset({408, 429, 500, 502, 503, 504})
_UNRESERVED = "-_.~"


class Answer:
    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Request:
    """`path` is escaped. `query` is not."""

    __slots__ = ("body", "headers", "limit", "method", "path", "query")

    def __init__(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        limit: int | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query or {}
        self.headers = headers or {}
        self.body = body
        self.limit = limit  # an answer with a larger body is a DocumentError, and is not read


class Service:
    """One host. `sign` adds the headers or parameters that authorize a request; it is called for each try."""

    def __init__(
        self, base: str, sign: Callable[[Request], None], *, more_passing: frozenset[int] = frozenset()
    ) -> None:
        from urllib.parse import urlsplit

        parts = urlsplit(base)
        self.host = parts.netloc
        self.path = parts.path.rstrip("/")
        self._is_encrypted = parts.scheme == "https"
        self._sign = sign
        self._passing = PASSING | more_passing
        self._idle: dict[int, list[HTTPConnection]] = {}  # by process: a fork must not share a connection

    def ask(self, request: Request) -> Answer:
        """The answer, or the last one where repeating does not help. ObjectsError if there is none."""
        give_up_at, pause = time.monotonic() + RETRY_SECONDS, FIRST_PAUSE_SECONDS
        while True:
            problem: ObjectsError | None = None
            try:
                answer = self._ask_once(request)
                if answer.status not in self._passing:
                    return answer
            except ObjectsError as error:
                if isinstance(error, DocumentError):
                    raise
                problem = error
            if time.monotonic() + pause > give_up_at:
                if problem is not None:
                    raise problem
                return answer
            time.sleep(jittered(pause))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _ask_once(self, request: Request) -> Answer:
        from http.client import HTTPException

        tried = Request(
            request.method, request.path, dict(request.query), dict(request.headers), request.body, request.limit
        )
        self._sign(tried)
        target = self.path + tried.path + (f"?{query_text(tried.query)}" if tried.query else "")
        idle = self._idle.setdefault(os.getpid(), [])
        is_reused = bool(idle)
        connection = idle.pop() if is_reused else self._connect()
        try:
            try:
                connection.request(tried.method, target, tried.body, tried.headers)
                response = connection.getresponse()
            except (OSError, HTTPException):
                if not is_reused:
                    raise
                # The service closes connections that are idle for long. All requests can be repeated.
                connection.close()
                connection = self._connect()
                connection.request(tried.method, target, tried.body, tried.headers)
                response = connection.getresponse()
            answer = _read(response, tried)
        except DocumentError:
            connection.close()
            raise
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            words = str(error) or type(error).__name__
            raise ObjectsError(
                f"cannot reach the object store at {self.host}: {words}",
                hint="check the network and the endpoint; work goes on when it answers",
            ) from error
        if response.will_close:
            connection.close()
        else:
            idle.append(connection)
        return answer

    def _connect(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        make = HTTPSConnection if self._is_encrypted else HTTPConnection
        return make(self.host, timeout=REQUEST_SECONDS)


def _read(response: HTTPResponse, request: Request) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    size = int(headers.get("content-length", 0))
    if request.limit is not None and response.status == 200 and size > request.limit:
        raise DocumentError(f"{request.path} has {size} bytes, more than the {request.limit} allowed")
    return Answer(response.status, headers, response.read())


def jittered(seconds: float) -> float:
    """Between a half and all of it."""
    from random import uniform

    return uniform(seconds / 2, seconds)


def escaped(text: str, safe: str = "/") -> str:
    from urllib.parse import quote

    return quote(text, safe=safe + _UNRESERVED)


def query_text(query: Mapping[str, str]) -> str:
    """Sorted and escaped as the signatures of S3 expect it."""
    return "&".join(f"{escaped(name, '')}={escaped(value, '')}" for name, value in sorted(query.items()))


def fetch(url: str, headers: Mapping[str, str], *, method: str = "GET", body: bytes | None = None) -> bytes:
    """What a credentials service answers. ObjectsError if it does not, or refuses."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    answer = Service(base, lambda _: None).ask(Request(method, target, headers=dict(headers), body=body))
    if answer.status != 200:
        words = answer.body[:200].decode("utf-8", "replace")
        raise ObjectsError(f"no credentials from {parts.netloc}: {answer.status} {words}")
    return answer.body
