"""How Postgres stores times and text; everything else in a row is the same in every store."""

from __future__ import annotations

from datetime import datetime

from ork.state.lenient import LenientRows
from ork.state.rows import RowCodec


def _as_it_is(moment: datetime | None) -> datetime | None:
    return moment


def checked(moment: datetime | None) -> datetime | None:
    """The time if Python can represent it, else ValueError. The driver returns infinity without a time zone, and text
    for years out of range (see `Session.rows`)."""
    if moment is not None and getattr(moment, "tzinfo", None) is None:
        raise ValueError("a time out of range")
    return moment


def free_text(text: str | None) -> str | None:
    """Escape lone surrogates and NUL, which text from users may contain and Postgres cannot store."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


_codec = RowCodec(_as_it_is, checked, free_text)
lenient = LenientRows(_codec, checked)
workflow_of = _codec.workflow_of
run_of = _codec.run_of
run_values = _codec.run_values
task_row = _codec.task_row
task_of = _codec.task_of
attempt_row = _codec.attempt_row
attempt_of = _codec.attempt_of
