"""What the terminal can show: colours, characters, width. Separate from `ork.settings`, because `ork --help` needs only this."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import IO


def wants_colour(is_terminal: bool) -> bool:
    """`NO_COLOR` and `TERM=dumb` disable colour, `FORCE_COLOR` enables it; the default is colour on terminals."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def is_dumb_terminal() -> bool:
    return os.environ.get("TERM") == "dumb"


def wants_ascii() -> bool:
    """Whether the user's locale is C. Python treats it as UTF-8 and sets its own LC_CTYPE to C.UTF-8, which is ignored."""
    locale = os.environ.get("LC_ALL")
    if not locale:
        ctype = os.environ.get("LC_CTYPE")
        locale = os.environ.get("LANG") if ctype in (None, "", "C.UTF-8", "C.utf8") else ctype
    return locale in ("C", "POSIX")


HANDLER = "ork-ascii"
_PLAIN = {
    "✓": "+",
    "✗": "x",
    "⊘": "-",
    "▶": ">",
    "▷": ">",
    "◷": ".",
    "‖": "=",
    "·": "-",
    "–": "-",
    "…": "...",
    "→": "->",
    "×": "x",
    "█": "#",
    "░": ".",
    "│": "|",
}


def replace_unencodable(*streams: IO[str] | None, ascii_only: bool = False) -> None:
    """Let the streams write ASCII in place of characters that they cannot encode."""
    codecs.register_error(HANDLER, _replaced)
    encoding = "ascii" if ascii_only else None
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors=HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end


DEFAULT_WIDTH = 80


def terminal_width(stream: IO[str]) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH
    except (OSError, ValueError):
        return DEFAULT_WIDTH


def has_windows() -> bool:
    """Whether a program can open a window. On Linux `webbrowser` would otherwise start a browser in the terminal."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform != "linux" or any(os.environ.get(name) for name in names)
