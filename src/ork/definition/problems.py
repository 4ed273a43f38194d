"""A problem in a file, and its renderings: for people, for programs, for GitHub."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, TypeAlias

from ork.model.record import Record

# (role, text) -> text; roles: "error", "title", "frame", "help". The command line adds colours.
Style: TypeAlias = Callable[[str, str], str]

SHOWN_COLUMNS = 100
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class Problem(Record):
    """One mistake. Lines and columns count from 1, in characters; `end_column` is exclusive.

    A problem of a whole file (missing, empty, unreadable) has line 0 and no source line; it is shown at line 1.
    """

    code: str
    message: str
    file: str
    line: int = 0
    column: int = 0
    end_column: int = 0
    source_line: str | None = None
    hint: str | None = None

    @property
    def position(self) -> str:
        return f"{printable(self.file)}:{max(self.line, 1)}:{max(self.column, 1)}"


def plain(_role: str, text: str) -> str:
    return text


def render_full(problem: Problem, style: Style = plain) -> str:
    """Like a compiler: message, position, source line with a caret, and a hint."""
    number = str(problem.line) if problem.line else ""
    gutter = " " * len(number)
    head = style("error", f"error[{problem.code}]") + style("title", f": {printable(problem.message)}")
    lines = [head, f"{gutter}{style('frame', '-->')} {problem.position}"]
    if problem.source_line is not None and problem.line:
        text, before, width = _cut(problem.source_line, problem.column - 1, problem.end_column - 1)
        bar = style("frame", f"{gutter} |")
        lines += [
            bar,
            f"{style('frame', f'{number} |')} {text}".rstrip(),
            f"{bar} {before}{style('error', '^' * width)}",
        ]
    if problem.hint:
        lines.append(f"{gutter} {style('help', '= help:')} {printable(problem.hint)}")
    return "\n".join(lines)


def render_concise(problem: Problem) -> str:
    return f"{problem.position}: {problem.code} {printable(problem.message)}"


def render_github(problem: Problem) -> str:
    """A workflow command that GitHub shows at the line."""
    fields = [f"file={_escaped(problem.file, property_too=True)}"]
    if problem.line:
        fields += [f"line={problem.line}", f"col={problem.column}", f"endColumn={problem.end_column}"]
    hint = f"\n{problem.hint}" if problem.hint else ""
    return f"::error {','.join(fields)},title={problem.code}::{_escaped(problem.message + hint)}"


def to_json(problem: Problem) -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": max(problem.line, 1),
        "column": max(problem.column, 1),
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
    }


def printable(text: str) -> str:
    """Replace characters that could control a terminal; the length stays the same."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_safe(character) for character in text)


def quoted(name: str, limit: int = 60) -> str:
    """A name for messages: in backticks, printable, and shortened to the limit."""
    shown = printable(name)
    return f"`{shown if len(shown) <= limit else shown[: limit - 1] + '…'}`"


def _safe(character: str) -> str:
    if character in "\t\n":
        return " "
    if ord(character) < 32:
        return chr(0x2400 + ord(character))  # the Unicode control picture
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _UNSAFE_CATEGORIES else character


def _cut(line: str, start: int, end: int) -> tuple[str, str, int]:
    """A window of the line around [start, end), the blanks before the caret, and the caret's width."""
    text = printable(line)
    start = min(max(start, 0), len(text))
    end = max(end, start + 1)
    first = max(0, start - SHOWN_COLUMNS // 2) if len(text) > SHOWN_COLUMNS else 0
    window = text[first : first + SHOWN_COLUMNS]
    left = "…" if first else ""
    right = "…" if first + SHOWN_COLUMNS < len(text) else ""
    marked = text[start : min(end, first + SHOWN_COLUMNS)]
    before = left + text[first:start]
    return left + window + right, " " * _cells(before), max(1, _cells(marked))


def _cells(text: str) -> int:
    """The number of terminal cells: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)


def _escaped(text: str, *, property_too: bool = False) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C") if property_too else escaped
