"""How SQLite stores times and text; everything else in a row is the same in every store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from ork.state.lenient import LenientRows
from ork.state.rows import (
    NO_INDEX,
    RowCodec,
    attempt_key,
    command_of,
    failure_of,
    failure_text,
    index_number,
    index_of,
    json_text,
    output_of,
    schedule_of,
    schedule_text,
)

__all__ = [
    "NO_INDEX",
    "attempt_key",
    "attempt_of",
    "attempt_row",
    "command_of",
    "failure_of",
    "failure_text",
    "free_text",
    "index_number",
    "index_of",
    "json_text",
    "lenient",
    "moment_of",
    "output_of",
    "run_of",
    "run_values",
    "schedule_of",
    "schedule_text",
    "task_of",
    "task_row",
    "time_of",
    "time_text",
    "workflow_of",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=1024)  # the rows of one commit share a few times
def time_text(moment: datetime | None) -> str | None:
    """The time in UTC as 27 characters; text order is time order."""
    if moment is None:
        return None
    since = moment - _EPOCH
    return f"{_second(since.days, since.seconds)}.{since.microseconds:06d}Z"


@lru_cache(maxsize=64)  # many times share a second, and formatting it is the slow part
def _second(days: int, seconds: int) -> str:
    return (_EPOCH + timedelta(days, seconds)).isoformat()[:19]


def time_of(text: str | None) -> datetime | None:
    return None if text is None else moment_of(text)


def moment_of(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without its offset from UTC")
    return moment


def free_text(text: str | None) -> str | None:
    """Escape lone surrogates, which text from users may contain and SQLite cannot store."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


_codec = RowCodec(time_text, time_of, free_text)
lenient = LenientRows(_codec, time_of)
workflow_of = _codec.workflow_of
run_of = _codec.run_of
run_values = _codec.run_values
task_row = _codec.task_row
task_of = _codec.task_of
attempt_row = _codec.attempt_row
attempt_of = _codec.attempt_of
