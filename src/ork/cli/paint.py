"""Text for terminals: safe characters, styled spans, and the glyph and colour of each status.

A line is a sequence of spans, which become escape codes only when they are written. Control and bidirectional characters
in text from user code become visible ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, NamedTuple

from ork.model.quarantine import SET_ASIDE

if TYPE_CHECKING:
    from ork.model.run import Run


TAB_WIDTH = 4

# Characters that change text direction: a log line could be made to look like another one.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_CONTROL_PICTURES = 0x2400
_DELETE_PICTURE = "\u2421"


class _Visible(dict[int, str]):
    """A table for `str.translate` that computes each character once."""

    def __missing__(self, code: int) -> str:
        shown = _shown(chr(code), code)
        self[code] = shown
        return shown


def _shown(character: str, code: int) -> str:
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == 0x7F:
        return _DELETE_PICTURE
    if 0x80 <= code < 0xA0 or character in _BIDI or code in (0x2028, 0x2029, 0xFEFF) or 0xD800 <= code < 0xE000:
        return f"<U+{code:04X}>"
    return character


_TABLE = _Visible()
_TABLE[ord("\t")] = " " * TAB_WIDTH


def visible(text: str) -> str:
    """One line of text with every control character replaced by a visible one."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_TABLE)


def visible_bytes(data: bytes) -> str:
    """Like `visible`; bytes that are not UTF-8 become the replacement character."""
    return visible(data.decode("utf-8", "replace"))


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, the last one an ellipsis if text is omitted."""
    if len(text) <= limit:
        return text
    return text[: max(limit - 1, 0)] + "…"


def shorten_front(text: str, limit: int) -> str:
    """At most `limit` characters, the first one an ellipsis if text is omitted."""
    if len(text) <= limit:
        return text
    return "…" + text[len(text) - max(limit - 1, 0) :]


def columns(text: str) -> int:
    """The number of terminal columns that the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


_CODES = {
    "good": "32",
    "bad": "31",
    "busy": "36",
    "wait": "33",
    "dim": "2",
    "bold": "1",
    "bold bad": "1;31",
    "bold good": "1;32",
}


NAME = "name"  # the style of a name: without colour, and shortened if the line is too long
REST = "rest"  # the style of text that may be cut at the end of the line, such as an output
BAR = frozenset("█░")
MIN_BAR = 8
MIN_NAME = 10
MIN_TEXT = 20


class Span(NamedTuple):
    text: str
    style: str | None = None


Line = tuple[Span, ...]


def line(*parts: str | Span) -> Line:
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def plain(spans: Line) -> str:
    """The line without any style and without trailing space."""
    return "".join(span.text for span in spans).rstrip()


def width_of(spans: Line) -> int:
    return sum(columns(span.text) for span in spans)


def fit(spans: Line, width: int) -> Line:
    """The line cut to `width` columns, with an ellipsis where text is omitted."""
    over = width_of(spans) - width
    if over > 0:
        spans = _narrowed(spans, over)
    left = width
    fitted: list[Span] = []
    for span in spans:
        size = columns(span.text)
        if size > left:
            fitted.append(Span(cut(span.text, left), span.style))
            break
        fitted.append(span)
        left -= size
    return tuple(fitted)


def _narrowed(spans: Line, over: int) -> Line:
    """Shortens outputs first, then bars and names, because the numbers after them matter more."""
    narrowed = list(spans)
    for index, span in enumerate(spans):
        if span.style == REST:
            narrowed[index] = Span(cut(span.text, max(MIN_NAME, columns(span.text) - over)), span.style)
            over -= columns(span.text) - columns(narrowed[index].text)
    bar = sum(len(span.text) for span in spans if _is_bar(span))
    for index, span in enumerate(spans):
        if over <= 0:
            break
        if _is_bar(span):
            text = span.text[: max(MIN_BAR * len(span.text) // bar, len(span.text) - over)]
        elif span.style == NAME:
            text = _short_name(span.text, max(MIN_NAME, len(span.text) - over))
        else:
            continue
        over -= len(span.text) - len(text)
        narrowed[index] = Span(text, span.style)
    return tuple(narrowed)


def _short_name(padded: str, width: int) -> str:
    """The name in `width` columns including two blanks; padding is removed before letters."""
    name = padded.rstrip()
    return (name if len(name) + 2 <= width else shorten(name, width - 2)).ljust(width)


def _is_bar(span: Span) -> bool:
    return bool(span.text) and set(span.text) <= BAR


def cut(text: str, width: int) -> str:
    """At most `width` columns of the text, ending in an ellipsis if text is omitted."""
    if text.isascii():
        return shorten(text, width)
    kept = ""
    for character in text:
        if columns(kept + character) > width - 1:
            break
        kept += character
    return kept + "…" if width > 0 else ""


class Palette:
    """Properties of an output stream: colour, width, and whether lines are cut to the width."""

    def __init__(self, colour: bool, width: int, *, is_terminal: bool = False) -> None:
        self.colour = colour
        self.width = width
        self.is_terminal = is_terminal

    def render(self, spans: Line) -> str:
        if self.is_terminal and any(span.style == REST for span in spans):
            spans = fit(spans, self.width)
        if not self.colour:
            return plain(spans)
        return "".join(_styled(span) for span in spans).rstrip()

    def hang(self, spans: Line) -> list[Line]:
        """The line wrapped to the width: on a terminal its last span is wrapped between words and indented by the width of
        the others. Otherwise it stays one line, for programs."""
        *before, last = spans
        indent = width_of(tuple(before))
        room = max(self.width - indent, MIN_TEXT)
        if not self.is_terminal or columns(last.text) <= room:
            return [spans]
        import textwrap

        first, *more = textwrap.wrap(last.text, room, break_long_words=False, break_on_hyphens=False) or [""]
        return [(*before, Span(first, last.style)), *(line(" " * indent, Span(text, last.style)) for text in more)]

    def write(self, stream: IO[str], lines: Iterable[Line]) -> None:
        text = "".join(self.render(spans) + "\n" for spans in lines)
        if text:
            stream.write(text)
            stream.flush()


def _styled(span: Span) -> str:
    code = _CODES.get(span.style) if span.style and span.text else None
    return f"\x1b[{code}m{span.text}\x1b[0m" if code else span.text


_STYLES = {
    "success": ("✓", "good"),
    "failed": ("✗", "bad"),
    "lost": ("✗", "bad"),
    "timed_out": ("✗", "bad"),
    "skipped": ("⊘", "dim"),
    "cancelled": ("⊘", "wait"),
    "running": ("▶", "busy"),
    "dispatched": ("▷", "busy"),
    "pending": ("◷", "dim"),
    "paused": ("‖", "wait"),
    "unreadable": ("✗", "bad"),
    "set aside": ("✗", "bad"),
}


def glyph(state: str) -> Span:
    symbol, style = _STYLES[state]
    return Span(symbol, style)


def status_span(state: str) -> Span:
    """Glyph and status text, so that colour is never the only sign."""
    return Span(state_text(state), style_of(state))


def run_status_span(run: Run) -> Span:
    """Like `status_span`; a quarantined or damaged run is shown as such instead."""
    if run.status == "paused" and (run.note or "").startswith(SET_ASIDE):
        return status_span("set aside")
    return status_span("unreadable" if run.unreadable else run.status)


def state_text(state: str) -> str:
    return f"{_STYLES[state][0]} {state}"


def style_of(state: str) -> str:
    return _STYLES[state][1]
