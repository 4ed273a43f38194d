"""The reads of the web pages without a browser: from the API in this process, or from a server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from ork.api.log_ends import log_end_of
from ork.errors import NotFoundError, RefusedError, StoreError, UsageError

if TYPE_CHECKING:
    from ork.api.client.connection import Server
    from ork.api.in_process import InProcessApi
    from ork.app.installation import Installation


def page_reads(installation: Installation) -> LocalReads | ServerReads:
    from ork.api import check_packages
    from ork.app.installation import RemoteInstallation

    if isinstance(installation, RemoteInstallation):
        return ServerReads(installation.server)
    check_packages("the web pages need")
    from ork.api.in_process import InProcessApi
    from ork.app.http_api import http_api

    return LocalReads(InProcessApi(http_api(installation, None)))


class LocalReads:
    """With the rights of a viewer."""

    def __init__(self, api: InProcessApi) -> None:
        self._api = api

    async def get(self, *path: object, **query: Any) -> Any:
        """The answer; None if there is nothing at this path, or the state does not allow the read."""
        found = await self._api.get(path, query)
        if found.status >= 500:
            raise StoreError(f"cannot read /{'/'.join(map(str, path))}: {found.body[:500].decode('utf-8', 'replace')}")
        return json.loads(found.body) if found.status < 400 else None

    async def log_end(self, *path: object, most: int) -> tuple[bytes, int] | None:
        """The last bytes of a log, and the size of the whole; None if there is none."""
        found = await self._api.get(path, {}, {"Range": f"bytes=-{most}"})
        return log_end_of(found.status, found.headers, found.body)


class ServerReads:
    """With the rights of the user's token."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def get(self, *path: object, **query: Any) -> Any:
        """The answer; None if there is nothing at this path, or the state does not allow the read."""
        try:
            return await asyncio.to_thread(lambda: self._server.get(*path, **query))
        except (NotFoundError, UsageError):
            return None
        except RefusedError as error:
            if error.code == RefusedError.code:
                return None
            raise

    async def log_end(self, *path: object, most: int) -> tuple[bytes, int] | None:
        """The last bytes of a log, and the size of the whole; None if there is none."""
        try:
            found = await asyncio.to_thread(self._server.call, "GET", path, {}, None, {"Range": f"bytes=-{most}"})
        except (NotFoundError, UsageError):
            return None
        return log_end_of(found.status_code, dict(found.headers), found.content)
