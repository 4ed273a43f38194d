"""Reads the answer to a request for the end of a log."""

from __future__ import annotations

import re

_RANGE = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)")


def log_end_of(status: int, headers: dict[str, str], body: bytes) -> tuple[bytes, int] | None:
    """The last bytes of a log, and the size of the whole; None if there is none. An empty log has no range."""
    if status >= 400 and status != 416:
        return None
    said = _RANGE.fullmatch({name.lower(): value for name, value in headers.items()}.get("content-range", ""))
    if status == 416:
        body = b""
    return body, int(said[1]) if said else len(body)
