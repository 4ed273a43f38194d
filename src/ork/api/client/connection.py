"""One connection to a server: plain calls, JSON in and out, and errors as the errors they were."""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from ork.errors import (
    DefinitionError,
    NotFoundError,
    OrkError,
    RefusedError,
    StoreError,
    StoreUnavailableError,
    UsageError,
)
from ork.model.token_strength import weakness_of

PREFIX = "/api/v1"
TIMEOUT_SECONDS = 60.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# A request that was sent may have been carried out: only these are sent again over a new connection.
_REPEATABLE = ("GET",)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    data: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.data)
        except ValueError:
            raise StoreError("the server's answer cannot be understood", hint="is it an Ork server?") from None


class Server:
    """An address and a token. For a server on this machine the token may be in the project's own file."""

    def __init__(self, url: str, token: str | None, home: str) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise UsageError(f"`{url}` is not the address of a server", hint="write http://HOST:PORT")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._parts = parts
        self._token = token or (_token_in(home) if parts.hostname in _LOOPBACK else None)
        _refuse_weak(self._token, "ORK_TOKEN (or ORK_TOKEN_FILE)" if token else f"{home}/token")
        self._connection: HTTPConnection | None = None

    def get(self, *path: object, **query: Any) -> Any:
        return self.call("GET", path, query).json()

    def post(self, *path: object, body: Any = None, headers: dict[str, str] | None = None, **query: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return self.call("POST", path, query, data, {"Content-Type": "application/json", **(headers or {})}).json()

    def call(
        self,
        method: str,
        path: tuple[object, ...],
        query: dict[str, Any],
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """The answer if it is a good one; else the error it stands for."""
        target = self.target(path, query)
        answer = self._send(method, target, data, {**self.headers(), **(headers or {})})
        if answer.status >= 400:
            raise _error(answer)
        return answer

    def target(self, path: tuple[object, ...], query: dict[str, Any]) -> str:
        given = {name: value for name, value in query.items() if value is not None}
        parts = "".join(f"/{quote(str(part), safe='@')}" for part in path)
        return f"{self._parts.path.rstrip('/')}{PREFIX}{parts}" + (f"?{urlencode(given, doseq=True)}" if given else "")

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def open(self, timeout: float | None = TIMEOUT_SECONDS) -> HTTPConnection:
        assert self._parts.hostname is not None
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return kind(self._parts.hostname, self._parts.port, timeout=timeout)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        was_open = self._connection is not None
        try:
            return self._exchange(method, target, data, headers)
        except (OSError, HTTPException) as error:
            self.close()
            if not was_open or method not in _REPEATABLE:
                raise self.unreachable(error) from error
        try:  # the server may have closed what was left open since the last call
            return self._exchange(method, target, data, headers)
        except (OSError, HTTPException) as error:
            self.close()
            raise self.unreachable(error) from error

    def _exchange(self, method: str, target: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        if self._connection is None:
            self._connection = self.open()
        self._connection.request(method, target, data, headers)
        response: HTTPResponse = self._connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def unreachable(self, error: Exception) -> StoreUnavailableError:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return StoreUnavailableError(f"cannot reach {self.url}: {why}", hint="is `ork serve` running there?")


def _refuse_weak(token: str | None, where: str) -> None:
    """No server takes such a token: it is not even sent."""
    weakness = weakness_of(token) if token else None
    if weakness is not None:
        raise UsageError(
            f"the token in {where} is too easy to guess: {weakness}",
            hint="`ork token create` makes a good one, where the store can be reached",
        )


def _token_in(home: str) -> str | None:
    try:
        with open(os.path.join(home, "token"), encoding="ascii") as file:
            return file.read().strip() or None
    except (OSError, ValueError):
        return None


def _error(answer: Answer) -> OrkError:
    try:
        document = json.loads(answer.data)
        detail, hint, code = str(document["detail"]), document.get("hint"), str(document["code"])
    except (ValueError, KeyError, TypeError):
        return StoreError(f"the server answered {answer.status}", hint="is it an Ork server?")
    if answer.status == 422 and document.get("problems"):
        return DefinitionError(detail, _problems(document["problems"]), hint=hint)
    error = _kind(answer.status)(detail, hint=hint, code=code)
    if "run" in document:
        error.run = document["run"]  # type: ignore[attr-defined]
    return error


def _kind(status: int) -> type[OrkError]:
    if status == 404:
        return NotFoundError
    if status in (401, 403, 409, 421, 429):
        return RefusedError
    if status < 500:
        return UsageError
    return StoreUnavailableError if status == 503 else StoreError


def _problems(rows: list[dict[str, Any]]) -> tuple[object, ...]:
    from ork.definition.problems import Problem

    return tuple(
        Problem(
            row["code"], row["message"], row["file"], row["line"], row["column"], row["column"] + 1, None, row["hint"]
        )
        for row in rows
    )
