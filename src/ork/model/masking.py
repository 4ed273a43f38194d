"""Replaces values of secrets by `***` in everything Ork writes: plain, in base64, URL-encoded and JSON-escaped.

Values of fewer than `MIN_CHARACTERS` are not masked: replacing every `1` or `true` would make the log unreadable.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MASK = "***"
MIN_CHARACTERS = 6
_MIN_LINE = 16  # for a single line of a multi-line value
_MIN_PARTIAL = 4  # for a value that was cut off
_CUT_OFF = "…"
_MASK = MASK.encode()


class Mask:
    """Falsy if there is nothing to mask."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in _forms(value)}
        self.needles = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self.needles))) if self.needles else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def data(self, data: bytes) -> bytes:
        if self._pattern is None or not self.is_in(data):
            return data
        return self._pattern.sub(_MASK, data)

    def text(self, text: str) -> str:
        """Mask a string, including a value cut off at its end."""
        if self._pattern is None:
            return text
        masked = self.data(text.encode("utf-8", "surrogatepass"))
        masked_text = masked.decode("utf-8", "surrogatepass")
        if not masked_text.endswith(_CUT_OFF):
            return masked_text
        kept = masked_text[: -len(_CUT_OFF)].encode("utf-8", "surrogatepass")
        begin = self.partial_start(kept)
        if len(kept) - begin < _MIN_PARTIAL:
            return masked_text
        return kept[:begin].decode("utf-8", "surrogatepass") + MASK + _CUT_OFF

    def value(self, value: Any) -> Any:
        """Mask all strings in a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(name): self.value(member) for name, member in value.items()}
        return [self.value(item) for item in value] if isinstance(value, (list, tuple)) else value

    def is_in(self, data: bytes) -> bool:
        return any(needle in data for needle in self.needles)

    def first_in(self, data: bytes, start: int) -> tuple[int, int] | None:
        """Start and end of the first value after `start`; the longest if several begin there."""
        found = self._pattern.search(data, start) if self._pattern is not None else None
        return None if found is None else found.span()

    def partial_start(self, data: bytes, start: int = 0) -> int:
        """Where a value may begin that continues beyond the data; the length of the data if none does."""
        begin = len(data)
        for needle in self.needles:
            at = data.find(needle[:1], max(start, len(data) - len(needle) + 1))
            while 0 <= at < begin:
                if needle.startswith(data[at:]):
                    begin = at
                    break
                at = data.find(needle[:1], at + 1)
        return begin


class MaskedStream:
    """Masks data that arrives in pieces. A possible beginning of a value is held back until the next piece."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        data, position, passed = self._held + data, 0, bytearray()
        while True:
            rest = self._mask.partial_start(data, position)
            found = self._mask.first_in(data, position)
            if found is None or found[0] >= rest:
                break
            passed += data[position : found[0]] + _MASK
            position = found[1]
        self._held = data[rest:]
        return bytes(passed + data[position:rest])

    def flush(self) -> bytes:
        """Return what was held back, at the end of the data."""
        held, self._held = self._held, b""
        return self._mask.data(held)


def values_to_mask(variables: Mapping[str, str]) -> Iterator[str]:
    """The strings to mask for a worker's environment: secrets, and all strings and numbers in sensitive params."""
    for name, value in variables.items():
        if name.startswith("ORK_PARAM_"):
            import json

            yield from strings_in(json.loads(value))
        else:
            yield value


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _forms(value: str) -> Iterator[bytes]:
    whole = value.strip()
    if len(whole) < MIN_CHARACTERS:
        return
    yield from _encodings(whole)
    lines = whole.splitlines()
    if len(lines) > 1:
        for line in lines:
            if len(line.strip()) >= _MIN_LINE:
                yield from _encodings(line.strip())


def _encodings(text: str) -> Iterator[bytes]:
    data = text.encode("utf-8", "surrogatepass")
    yield data
    from urllib.parse import quote, quote_plus

    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted.encode()
        yield re.sub(r"%..", lambda code: code[0].lower(), quoted).encode()
    for escaped in (_json(text), _json(text, ascii_only=False), repr(text)[1:-1]):
        yield escaped.encode("utf-8", "surrogatepass")
    for offset in range(3):
        yield from _base64_forms(data, offset)


def _json(text: str, *, ascii_only: bool = True) -> str:
    import json

    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _base64_forms(data: bytes, offset: int) -> Iterator[bytes]:
    """The base64 characters that do not depend on the bytes before and after the value, such as `user:` before a
    password."""
    encoded = b64encode(bytes(offset) + data)
    if offset == 0:
        yield encoded  # encoded on its own, including its last character
    part = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
    yield part
    yield part.replace(b"+", b"-").replace(b"/", b"_")
