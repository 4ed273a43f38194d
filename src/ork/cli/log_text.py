"""Writes log bytes: unchanged for programs, made safe and shortened for terminals."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from typing import Any, BinaryIO, Protocol

from ork.cli.paint import visible

CHUNK = 1 << 16
# On a terminal the rest of a longer line is counted, not shown.
MAX_LINE = 4000
MAX_JSON_LINE = 1 << 20
MAX_FIELDS_LINE = 1 << 14  # longer lines are not parsed
_LEVELS = ("DEBUG ", "INFO ", "WARNING ", "ERROR ")


class Sink(Protocol):
    def write(self, data: bytes) -> None: ...

    def close(self) -> None:
        """Ends the output; sinks that show lines end an unfinished one."""
        ...


class ExactSink:
    """Writes every byte unchanged."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data: bytes) -> None:
        self._out.write(data)
        self._out.flush()

    def close(self) -> None:
        self._out.flush()


class PrefixedSink:
    """Writes every line unchanged after its task's name. Long lines are not buffered."""

    def __init__(self, out: BinaryIO, prefix: bytes) -> None:
        self._out = out
        self._prefix = prefix
        self._at_start = True

    def write(self, data: bytes) -> None:
        for part in _lines(data):
            if self._at_start:
                self._out.write(self._prefix)
            self._out.write(part)
            self._at_start = part.endswith(b"\n")
        self._out.flush()

    def close(self) -> None:
        if not self._at_start:
            self._out.write(b"\n")
            self._at_start = True
        self._out.flush()


_NAME = re.compile(r" ([A-Za-z_]\w*)=", re.ASCII)
_decoder = json.JSONDecoder(parse_constant=str)


def structured(line: str) -> dict[str, Any]:
    """Level, message and fields of a line written by `ctx.log`; empty for any other line."""
    if len(line) > MAX_FIELDS_LINE or not line.startswith(_LEVELS):
        return {}
    level, _, rest = line.partition(" ")
    fields: dict[str, Any] = {}
    position = begin = 0
    while 0 <= position < len(rest):
        named = _NAME.match(rest, position)
        value, end = _value(rest, named.end()) if named else (None, -1)
        if named is None or end < 0:  # part of the message, and so is everything that looked like a field before
            fields.clear()
            position = rest.find(" ", position + 1)
            begin = position
            continue
        fields[named[1]] = value
        position = end
    return {"level": level, "message": rest[:begin], "fields": fields} if fields else {}


def _value(text: str, begin: int) -> tuple[Any, int]:
    """The value at `begin` and its end; -1 if there is none."""
    if text[begin : begin + 1] in ('"', "[", "{"):
        try:
            value, end = _decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return None, -1
        return value, end if text[end : end + 1] in ("", " ") else -1
    end = text.find(" ", begin)
    word = text[begin : end if end >= 0 else len(text)]
    try:
        return _decoder.decode(word), begin + len(word)
    except ValueError:
        return word, begin + len(word)


class JsonSink:
    """Writes one JSON object per line; a line of more than MAX_JSON_LINE bytes is split into marked parts."""

    def __init__(self, out: BinaryIO, fields: dict[str, Any]) -> None:
        self._out = out
        self._fields = fields
        self._rest = b""

    def write(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for text in whole:
            self._put(self._put_beginning(text))
        self._rest = self._put_beginning(self._rest)
        self._out.flush()

    def close(self) -> None:
        if self._rest:
            self._put(self._rest)
            self._rest = b""
        self._out.flush()

    def _put_beginning(self, text: bytes) -> bytes:
        """Writes all full parts of a line that is too long, and returns the rest."""
        while len(text) > MAX_JSON_LINE:
            self._put(text[:MAX_JSON_LINE], continues=True)
            text = text[MAX_JSON_LINE:]
        return text

    def _put(self, text: bytes, **more: bool) -> None:
        line = text.decode("utf-8", "replace")
        shape = {**self._fields, "line": line, **structured(line), **more}
        self._out.write(json.dumps(shape).encode() + b"\n")


class TerminalSink:
    """Writes lines without active control characters, cut after MAX_LINE characters; memory stays bounded."""

    def __init__(self, out: BinaryIO, prefix: str = "") -> None:
        self._out = out
        self._prefix = prefix
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._shown = 0
        self._hidden = 0
        self._at_start = True

    def write(self, data: bytes) -> None:
        self._feed(self._decoder.decode(data))

    def close(self) -> None:
        self._feed(self._decoder.decode(b"", final=True))
        if not self._at_start:
            self._end_line()
        self._out.flush()

    def _feed(self, text: str) -> None:
        *whole, rest = text.split("\n")
        for part in whole:
            self._add(part.removesuffix("\r"))
            self._end_line()
        if rest:
            self._add(rest)
        self._out.flush()

    def _add(self, text: str) -> None:
        if self._at_start:
            self._out.write(self._prefix.encode())
            self._at_start = False
        space = max(MAX_LINE - self._shown, 0)
        self._hidden += max(len(text) - space, 0)
        kept = text[:space]
        self._shown += len(kept)
        self._out.write(visible(kept).encode("utf-8", "replace"))

    def _end_line(self) -> None:
        if self._hidden:
            self._out.write(f" … {self._hidden:,} more characters".encode())
        self._out.write(b"\n")
        self._shown = self._hidden = 0
        self._at_start = True


def _lines(data: bytes) -> list[bytes]:
    # `splitlines` would also split at a carriage return and put a prefix in the middle of a line.
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
