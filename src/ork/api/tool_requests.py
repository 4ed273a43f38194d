"""Requests of the tools of the Model Context Protocol, answered by the API in this process."""

from __future__ import annotations

import json
from typing import Any

from ork.api.client.connection import error_of
from ork.api.context import Api, Caller
from ork.api.in_process import InProcessApi, InProcessResponse
from ork.api.log_ends import log_end_of
from ork.errors import NotFoundError, RefusedError
from ork.mcp.requests import LogEnd
from ork.model.access import Role
from ork.status.schedulers import NO_SCHEDULER, present_schedulers


class InProcessRequests:
    """Requests of one caller."""

    def __init__(self, api: Api, caller: Caller) -> None:
        self._api = api
        self._caller = caller
        self._routes = InProcessApi(api, caller)

    async def role(self) -> Role:
        return self._caller.role

    async def get(self, *path: object, **query: Any) -> Any:
        return _json(await self._routes.get(path, query))

    async def post(self, *path: object, body: Any, **query: Any) -> Any:
        if not self._caller.role.includes(Role.OPERATOR):
            raise RefusedError(f"this needs the role {Role.OPERATOR}; {self._caller.name!r} has {self._caller.role}")
        data = json.dumps(body).encode()
        return _json(await self._routes.request("POST", path, query, {"content-type": "application/json"}, data))

    async def log_end(self, *path: object, most: int) -> LogEnd:
        found = await self._routes.get(path, {}, {"Range": f"bytes=-{most}"})
        end = log_end_of(found.status, found.headers, found.body)
        if end is None:
            raise error_of(found.status, found.body)
        return LogEnd(*end)

    async def changed(self) -> str | None:
        return None if await present_schedulers(self._api.store, None) else NO_SCHEDULER


def _json(answer: InProcessResponse) -> Any:
    if answer.status == 404 and not answer.body:
        raise NotFoundError("there is no such thing, or your role does not include it")
    if answer.status >= 400:
        raise error_of(answer.status, answer.body)
    return json.loads(answer.body)
