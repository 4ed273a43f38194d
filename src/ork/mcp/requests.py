"""What the tools need: requests to the API, sent with the rights of the user."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ork.model.access import Role


class LogEnd(NamedTuple):
    """The last bytes of a log, and the size of the whole log."""

    data: bytes
    size: int


class ApiRequests(Protocol):
    """Requests to the API. A refused request raises an OrkError with the API's own words."""

    async def role(self) -> Role:
        """The role of the user."""

    async def get(self, *path: object, **query: Any) -> Any: ...

    async def post(self, *path: object, body: Any, **query: Any) -> Any:
        """Sends the body as JSON."""

    async def log_end(self, *path: object, most: int) -> LogEnd: ...

    async def changed(self) -> str | None:
        """Called after a change. Has the work done where no scheduler runs; returns a note for the user, or None."""
