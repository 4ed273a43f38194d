"""Replaces characters that a stream cannot encode with ASCII."""

from __future__ import annotations

import codecs
import io
from typing import IO

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
    codecs.register_error(HANDLER, _replaced)
    encoding = "ascii" if ascii_only else None
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors=HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end
