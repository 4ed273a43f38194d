"""Makes text from user code safe for terminals: control and bidirectional characters become visible."""

from __future__ import annotations

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
