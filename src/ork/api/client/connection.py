"""Blocking JSON requests to a server. Error responses are raised as Ork's exceptions."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import SplitResult, quote, urlencode

import httpx2

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
from ork.outbound.addresses import check_url
from ork.outbound.clients import blocking_client, reason, shown_proxy

PREFIX = "/api/v1"
TIMEOUT_SECONDS = 60.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Server:
    """An address and a token. For a server on this machine the token may come from the project's file."""

    def __init__(self, url: str, token: str | None, home: str) -> None:
        parts = _address(url)
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self._token = token or (_token_in(home) if parts.hostname in _LOOPBACK else None)
        _check_strength(self._token, "ORK_TOKEN (or ORK_TOKEN_FILE)" if token else f"{home}/token")
        self._client = blocking_client(self.url, seconds=TIMEOUT_SECONDS)

    def get(self, *path: object, **query: Any) -> Any:
        return parsed(self.call("GET", path, query))

    def post(self, *path: object, body: Any = None, headers: dict[str, str] | None = None, **query: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return parsed(self.call("POST", path, query, data, {"Content-Type": "application/json", **(headers or {})}))

    def call(
        self,
        method: str,
        path: tuple[object, ...],
        query: dict[str, Any],
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx2.Response:
        """Returns a response with a status below 400; any other is raised as an exception."""
        response = self._send(method, self.url_of(path, query), data, {**self.headers(), **(headers or {})})
        if response.status_code >= 400:
            raise error_of(response.status_code, response.content)
        return response

    def url_of(self, path: tuple[object, ...], query: dict[str, Any]) -> str:
        given = {name: value for name, value in query.items() if value is not None}
        parts = "".join(f"/{_quoted(str(part))}" for part in path)
        return f"{self.url}{PREFIX}{parts}" + (f"?{urlencode(given, doseq=True)}" if given else "")

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def close(self) -> None:
        self._client.close()

    def _send(self, method: str, url: str, data: bytes | None, headers: dict[str, str]) -> httpx2.Response:
        try:
            try:
                return self._client.request(method, url, content=data, headers=headers)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
                # The server may have closed a kept connection. Only reads may be sent twice.
                if method != "GET" or isinstance(error, httpx2.ConnectError):
                    raise
            return self._client.request(method, url, content=data, headers=headers)
        except httpx2.HTTPError as error:
            message = f"cannot reach {self.url}{shown_proxy(self.url)}: {reason(error)}"
            raise StoreUnavailableError(message, hint="is `ork serve` running there?") from error


def _address(text: str) -> SplitResult:
    try:
        parts = check_url(text if "://" in text else f"http://{text}")
        if not parts.query and not parts.fragment:
            return parts
    except ValueError:
        pass
    raise UsageError(f"`{text}` is not the address of a server", hint="write http://HOST:PORT")


def parsed(response: httpx2.Response) -> Any:
    try:
        return json.loads(response.content)
    except ValueError:
        raise StoreError("the server's response cannot be understood", hint="is it an Ork server?") from None


def _quoted(part: str) -> str:
    """Quotes one segment of a path, including `..`."""
    return quote(part, safe="@") if part.strip(".") else part.replace(".", "%2E")


def _check_strength(token: str | None, where: str) -> None:
    """UsageError for a weak token, which every server rejects; it is not sent."""
    weakness = weakness_of(token) if token else None
    if weakness is not None:
        raise UsageError(
            f"the token in {where} is too easy to guess: {weakness}",
            hint="`ork token create` creates a strong one, where the store can be reached",
        )


def _token_in(home: str) -> str | None:
    try:
        with open(os.path.join(home, "token"), encoding="ascii") as file:
            return file.read().strip() or None
    except (OSError, ValueError):
        return None


def error_of(status: int, content: bytes) -> OrkError:
    """The exception for a response with a status of 400 or more."""
    try:
        document = json.loads(content)
        detail, hint, code = str(document["detail"]), document.get("hint"), str(document["code"])
    except (ValueError, KeyError, TypeError):
        return StoreError(f"the server answered {status}", hint="is it an Ork server?")
    if status == 422 and document.get("problems"):
        return DefinitionError(detail, _problems(document["problems"]), hint=hint)
    error = _kind(status)(detail, hint=hint, code=code)
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
