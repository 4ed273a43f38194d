"""Where a page of runs ended, as text that a caller hands back unread."""

from __future__ import annotations

from ork.errors import UsageError


def write_cursor(created_at: str, id: str) -> str:
    return f"{created_at} {id}".encode().hex()


def read_cursor(cursor: str) -> tuple[str, str]:
    try:
        created_at, id = bytes.fromhex(cursor).decode().split(" ")
    except ValueError as error:
        raise UsageError("This is not a cursor of ours.", hint="Use the cursor of the previous page.") from error
    return created_at, id
