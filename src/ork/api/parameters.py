"""Types of path and query parameters, with bounds that keep invalid values away from the store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Header, Path, Query

from ork.errors import UsageError
from ork.model.ids import NAME_PATTERN

LARGEST_PAGE = 1000
_MARK = "^[0-9A-Za-z_.:-]{1,40}$"  # opaque: only the store interprets it
_NAME = f"^{NAME_PATTERN}$"

RunText = Annotated[
    str,
    Path(pattern="^(@last|[0-9A-Za-z]{1,40})$", description="A run's id, a unique prefix of it, or @last."),
]
OptionalRun = Annotated[
    str | None,
    Query(pattern="^(@last|[0-9A-Za-z]{1,40})$", description="A run's id, a unique prefix of it, or @last."),
]
WorkflowName = Annotated[str, Path(pattern=_NAME)]
LocationName = Annotated[str, Path(pattern=_NAME)]
TaskName = Annotated[str, Path(pattern=_NAME)]
TaskIndex = Annotated[int, Path(ge=0, le=10**9, description="The instance; 0 for a task without instances.")]
AttemptNumber = Annotated[int, Path(ge=1, le=10**6)]
VersionText = Annotated[str, Path(min_length=1, max_length=200)]
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]
_TASK = rf"{NAME_PATTERN}(\[[0-9]{{1,9}}\])?"
_PREVIOUS = "The cursor of the previous page."
NameCursor = Annotated[str | None, Query(pattern=_NAME, description=_PREVIOUS)]
IdCursor = Annotated[str | None, Query(pattern="^[0-9a-f]{1,64}$", description=_PREVIOUS)]
MarkCursor = Annotated[str | None, Query(pattern=_MARK, description=_PREVIOUS)]
RunCursor = Annotated[str | None, Query(max_length=500, pattern="^([0-9a-f]{2})+$", description=_PREVIOUS)]
TaskCursor = Annotated[str | None, Query(pattern=f"^{_TASK}$", description=_PREVIOUS)]
AttemptCursor = Annotated[str | None, Query(pattern=f"^{_TASK}/[0-9]{{1,6}}$", description=_PREVIOUS)]
Folder = Annotated[
    str | None, Query(max_length=4000, pattern="^/", description="The folder of the workflow's files, where tasks run.")
]
Mark = Annotated[str | None, Query(pattern=_MARK, description="A mark from an earlier response.")]
LastEvent = Annotated[str | None, Header(alias="Last-Event-ID", pattern=_MARK)]
TaskTarget = Annotated[str | None, Query(max_length=300, description="TASK or TASK[3].")]
Time = Annotated[str | None, Query(max_length=60, description="RFC 3339.", json_schema_extra={"format": "date-time"})]
OptionalName = Annotated[str | None, Query(pattern=_NAME)]


def parse_time(text: str, name: str) -> datetime:
    """Parses an RFC 3339 time; the offset is required."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            raise ValueError(text)
        return time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{name}: {text[:100]!r} is not a time with an offset, such as 2026-03-01T00:00:00Z") from None
