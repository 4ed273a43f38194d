"""Parses times that people write."""

from __future__ import annotations

from datetime import UTC, datetime

from ork.errors import UsageError


def parse_time(text: str, option: str) -> datetime:
    """Parses RFC 3339. A time without an offset is local; a date means the start of that day."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text} is not a time", hint="such as 2026-03-01T12:00:00Z or 2026-03-01") from None
    return time.astimezone(UTC)
