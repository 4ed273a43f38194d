"""The lines that show why a task failed. All text in them is safe to print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ork.cli.paint import Line, Span, line, shorten, shorten_front, visible
from ork.model.task import Failure

INDENT = "      "
MAX_OUTER_FRAMES = 2
MAX_TAIL_LINES = 4
MAX_TEXT = 160
MAX_MESSAGE = 2000
MESSAGE_WIDTH = 74  # after the indent, on a terminal of 80 columns
MAX_CAUSES = 3


def headline(failure: Failure | None) -> str:
    """The failure's first line, shortened."""
    if failure is None:
        return "failed"
    first = failure.message.strip().partition("\n")[0]
    return shorten(visible(first), MAX_TEXT)


def whole_message(failure: Failure | None) -> list[Line]:
    """The first line of the message in full, wrapped, if `headline` shortened it and there is no detail: messages of
    Ork end with a hint."""
    text = visible(failure.message.strip().partition("\n")[0]) if failure is not None else ""
    if len(text) <= MAX_TEXT or (failure is not None and failure.detail):
        return []
    import textwrap

    pieces = textwrap.wrap(shorten(text, MAX_MESSAGE), MESSAGE_WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line(INDENT, piece) for piece in pieces]


def explanation(failure: Failure | None, *, full: bool = False) -> list[Line]:
    """The explanation of a failure: for an exception the user's own frames, its causes and the inputs; for a command
    its last lines."""
    detail = failure.detail if failure else None
    if not isinstance(detail, dict):
        return []
    causes = _causes(_listed(detail.get("causes")))
    # The whole explanation is kept short: outer frames get only the lines that the causes leave.
    lines = _frames(_listed(detail.get("frames")), full, min(MAX_OUTER_FRAMES, MAX_CAUSES - len(causes)))
    lines += causes
    lines += _inputs(detail.get("inputs"))
    return lines + _tail(_listed(detail.get("tail")), full)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _frames(frames: list[Any], full: bool, most_outer: int) -> list[Line]:
    usable = [frame for frame in frames if isinstance(frame, dict)]
    if not usable:
        return []
    outer, inner = usable[:-1], usable[-1]
    lines: list[Line] = []
    if not full and len(outer) > most_outer:
        # Only the outermost frame, and the number of frames omitted.
        lines = [_location(outer[0]), line(INDENT, Span(f"… {len(outer) - 1} more calls", "dim"))][:most_outer]
        outer = []
    for frame in outer:
        lines += _with_source(frame) if full else [_location(frame)]
    return lines + _with_source(inner)


def _location(frame: Mapping[str, Any]) -> Line:
    where = f"{frame.get('file')}:{frame.get('line')} in {frame.get('function')}"
    return line(INDENT, shorten(visible(where), MAX_TEXT))


def _with_source(frame: Mapping[str, Any]) -> list[Line]:
    lines = [_location(frame)]
    source = frame.get("source")
    if not isinstance(source, str) or not source.strip():
        return lines
    number = visible(str(frame.get("line")))
    lines.append(line(INDENT, "  ", Span(f"{number} | ", "dim"), shorten(visible(source), MAX_TEXT)))
    caret = _caret(source, frame.get("caret"))
    if caret:
        lines.append(line(INDENT, "  ", Span(" " * len(number) + " | ", "dim"), Span(caret, "bad")))
    return lines


def _caret(source: str, span: object) -> str | None:
    """A line that points at [start, end) of the source line as it is shown (a tab is shown as spaces)."""
    if not (isinstance(span, list | tuple) and len(span) == 2 and all(isinstance(end, int) for end in span)):
        return None
    start, end = span
    if not 0 <= start < end <= len(source):
        return None
    before = len(visible(source[:start]))
    return " " * before + shorten(_marks(source[start:end]), MAX_TEXT - before) if before < MAX_TEXT else None


def _marks(segment: str) -> str:
    """Carets below the whole expression, or below the operator of an operation, as Python shows it."""
    shown = len(visible(segment))
    operator = _operator_range(segment) if segment.isascii() and segment.isprintable() else None
    if operator is None:
        return "^" * shown
    first, last = operator
    return "~" * first + "^" * (last - first) + "~" * (shown - last)


def _operator_range(segment: str) -> tuple[int, int] | None:
    import ast

    try:
        body = ast.parse(segment, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if isinstance(body, ast.Subscript):
        start = body.value.end_col_offset or 0
        return start + len(segment[start:]) - len(segment[start:].lstrip()), len(segment)
    if not isinstance(body, ast.BinOp):
        return None
    left, right = body.left.end_col_offset or 0, body.right.col_offset
    # Between the operands are blanks, possibly brackets of the operands, and the operator.
    between = segment[left:right]
    symbol = between.strip(" ()")
    start = left + between.find(symbol)
    return (start, start + len(symbol)) if symbol else None


def _causes(causes: list[Any]) -> list[Line]:
    usable = [cause for cause in causes if isinstance(cause, dict)]
    return [line(INDENT, Span("caused by ", "dim"), _cause(cause)) for cause in usable[:MAX_CAUSES]]


def _cause(cause: Mapping[str, Any]) -> str:
    """The exception and its location in one line."""
    message = str(cause.get("message") or "").strip().partition("\n")[0]
    what = f"{cause.get('type')}: {message}" if message else str(cause.get("type"))
    frames = [frame for frame in _listed(cause.get("frames")) if isinstance(frame, dict)]
    where = visible(f" ({frames[-1].get('file')}:{frames[-1].get('line')})") if frames else ""
    return shorten(visible(what), max(MAX_TEXT - len(where), MAX_TEXT // 2)) + shorten(where, MAX_TEXT // 2)


def _inputs(inputs: object) -> list[Line]:
    if not isinstance(inputs, dict) or not inputs:
        return []
    shown = ", ".join(f"{name}={value}" for name, value in inputs.items())
    return [line(INDENT, Span("inputs  ", "dim"), shorten(visible(shown), MAX_TEXT))]


def _tail(tail: list[Any], full: bool) -> list[Line]:
    kept = [str(text) for text in tail if str(text).strip()]
    if not full:
        kept = kept[-MAX_TAIL_LINES:]
    # Of a very long line the end is shown: that is where the output stopped.
    return [line(INDENT, Span("| ", "dim"), shorten_front(visible(text), MAX_TEXT)) for text in kept]
