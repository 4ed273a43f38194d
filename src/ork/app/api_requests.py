"""Requests to the API for the tools of `ork mcp`: answered by this process, or by a server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ork.api.context import Caller
from ork.api.log_ends import log_end_of
from ork.api.tool_requests import InProcessRequests
from ork.app.http_api import http_api
from ork.app.installation import Installation, RemoteInstallation, open_installation
from ork.errors import NotFoundError, OrkError
from ork.mcp.requests import LogEnd
from ork.model.access import Role
from ork.status.schedulers import NO_SCHEDULER

if TYPE_CHECKING:
    from ork.api.client.connection import Server


def api_requests(installation: Installation, caller: Caller) -> LocalRequests | ServerRequests:
    """Requests with the rights of the token where there is a server, else with those of `caller`."""
    if isinstance(installation, RemoteInstallation):
        return ServerRequests(installation.server)
    return LocalRequests(installation, caller)


class LocalRequests(InProcessRequests):
    """The API in this process. Where no scheduler runs, this process does the work of what the user starts."""

    def __init__(self, installation: Installation, caller: Caller) -> None:
        super().__init__(http_api(installation, None), caller)
        self._installation = installation
        self._work: asyncio.Task[None] | None = None

    async def changed(self) -> str | None:
        if await super().changed() is None:
            return None
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._tick())
        return "no scheduler is running, so this process does the work while it is open"

    async def _tick(self) -> None:
        """Works until all runs have ended. What it leaves when this process ends is taken up by the next scheduler."""
        with suppress(OrkError):
            own = await open_installation(self._installation.settings)
            try:
                await own.tick(stays=True)
            finally:
                await own.close()

    async def close(self) -> None:
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work


class ServerRequests:
    """A server, with the rights of the user's token."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def role(self) -> Role:
        return Role((await self.get("session"))["role"])

    async def get(self, *path: object, **query: Any) -> Any:
        return await asyncio.to_thread(lambda: self._server.get(*path, **query))

    async def post(self, *path: object, body: Any, **query: Any) -> Any:
        return await asyncio.to_thread(lambda: self._server.post(*path, body=body, **query))

    async def log_end(self, *path: object, most: int) -> LogEnd:
        found = await asyncio.to_thread(self._server.call, "GET", path, {}, None, {"Range": f"bytes=-{most}"})
        end = log_end_of(found.status_code, dict(found.headers), found.content)
        if end is None:
            raise NotFoundError("there is no such log")
        return LogEnd(*end)

    async def changed(self) -> str | None:
        has_scheduler = any(row["alive"] for row in (await self.get("schedulers"))["schedulers"])
        return None if has_scheduler else NO_SCHEDULER

    async def close(self) -> None:
        return
