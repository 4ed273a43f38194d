"""What an export reads: the API's own answers, from this process or from a server."""

from __future__ import annotations

from typing import Any, Protocol


class Reads(Protocol):
    """`path` are the segments below `/api/v1`."""

    async def get(self, *path: object, **query: Any) -> Any:
        """The answer; None if there is nothing at this path, or the state does not allow the read."""
        ...

    async def log_end(self, *path: object, most: int) -> tuple[bytes, int] | None:
        """The last bytes of a log, and the size of the whole; None if there is none."""
        ...


async def every_page(reads: Reads, *path: object, rows: str, **query: Any) -> Any:
    """All pages as one; None if there is nothing."""
    found = page = await reads.get(*path, **query)
    while page is not None and page["cursor"] is not None:
        page = await reads.get(*path, **query, cursor=page["cursor"])
        if page is None:
            break
        found = {**found, rows: [*found[rows], *page[rows]]}
    return None if found is None else {**found, "cursor": None}
