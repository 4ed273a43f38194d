"""Answers requests to the API in this process, with the rights of one caller: without a socket, a server or a token."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.types import Message

from ork.api.app import all_routes, application
from ork.api.context import Api, Caller
from ork.api.routing import PREFIX, RouteTable
from ork.model.access import Role

VIEWER = Caller("export", Role.VIEWER)


class InProcessResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class InProcessApi:
    """The routes that the caller's role includes. Any other request is answered 404, as if there were no such route."""

    def __init__(self, api: Api, caller: Caller = VIEWER) -> None:
        self._app = application(api)
        self._table = RouteTable(all_routes())
        self._caller = caller

    async def get(
        self, path: tuple[object, ...], query: dict[str, Any], headers: dict[str, str] | None = None
    ) -> InProcessResponse:
        return await self.request("GET", path, query, headers)

    async def request(
        self,
        method: str,
        path: tuple[object, ...],
        query: dict[str, Any],
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> InProcessResponse:
        whole = PREFIX + "".join(f"/{part}" for part in path)
        route = self._table.match(method, whole).route if not any("/" in str(part) for part in path) else None
        if route is None or route.role is None or not self._caller.role.includes(route.role):
            return InProcessResponse(404, {}, b"")
        received = _Received()
        scope = {**_scope(method, whole, query, headers or {}), "ork.caller": self._caller}
        await self._app(scope, _one_request(body), received)
        return received.answer()


class _Received:
    """The messages of a response."""

    def __init__(self) -> None:
        self._start: Message = {"status": 500, "headers": ()}
        self._parts: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._parts.append(message.get("body", b""))

    def answer(self) -> InProcessResponse:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._start["headers"]}
        return InProcessResponse(self._start["status"], headers, b"".join(self._parts))


def _scope(method: str, path: str, query: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    given = {name: value for name, value in query.items() if value is not None}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": quote(path, safe="/").encode(),
        "root_path": "",
        "query_string": urlencode(given, doseq=True).encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": None,
        "server": None,
        "state": {},
    }


def _one_request(body: bytes) -> Any:
    """The client sends the body, and stays."""
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
