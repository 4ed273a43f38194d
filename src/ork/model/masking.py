"""Values of secrets in what Ork writes, replaced by `***`: as they are, in base64, URL-encoded, and escaped as JSON.

A value of fewer than `LEAST_CHARACTERS` is not looked for: replacing every `1` or `true` would hide nothing and spoil the log.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MASK = "***"
LEAST_CHARACTERS = 6
_LEAST_LINE = 16  # of a value of several lines
_LEAST_REST = 4  # of a value that was cut off
_CUT_OFF = "…"
_MASK = MASK.encode()


class Mask:
    """Empty, and so false, if there is nothing to look for."""

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
        """Also what is left of a value at the end of a text that was cut off."""
        if self._pattern is None:
            return text
        masked = self.data(text.encode("utf-8", "surrogatepass"))
        shown = masked.decode("utf-8", "surrogatepass")
        if not shown.endswith(_CUT_OFF):
            return shown
        kept = shown[: -len(_CUT_OFF)].encode("utf-8", "surrogatepass")
        begin = self.begin_of_rest(kept)
        if len(kept) - begin < _LEAST_REST:
            return shown
        return kept[:begin].decode("utf-8", "surrogatepass") + MASK + _CUT_OFF

    def value(self, value: Any) -> Any:
        """All texts in a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(name): self.value(member) for name, member in value.items()}
        return [self.value(item) for item in value] if isinstance(value, (list, tuple)) else value

    def is_in(self, data: bytes) -> bool:
        return any(needle in data for needle in self.needles)

    def first_in(self, data: bytes, start: int) -> tuple[int, int] | None:
        """Begin and end of the first value after `start`; of several that begin there, the longest."""
        found = self._pattern.search(data, start) if self._pattern is not None else None
        return None if found is None else found.span()

    def begin_of_rest(self, data: bytes, start: int = 0) -> int:
        """Where the end of the data may be the beginning of a value; its length if it is not."""
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
    """Data that comes in pieces: what may be the beginning of a value is held back until it is known."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        data, position, passed = self._held + data, 0, bytearray()
        while True:
            rest = self._mask.begin_of_rest(data, position)
            found = self._mask.first_in(data, position)
            if found is None or found[0] >= rest:
                break
            passed += data[position : found[0]] + _MASK
            position = found[1]
        self._held = data[rest:]
        return bytes(passed + data[position:rest])

    def flush(self) -> bytes:
        """What was held back: no more comes."""
        held, self._held = self._held, b""
        return self._mask.data(held)


def given_values(variables: Mapping[str, str]) -> Iterator[str]:
    """The texts to mask of what a worker is given: secrets as they are, and every text and number in sensitive params."""
    for name, value in variables.items():
        if name.startswith("ORK_PARAM_"):
            import json

            yield from texts_in(json.loads(value))
        else:
            yield value


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _forms(value: str) -> Iterator[bytes]:
    whole = value.strip()
    if len(whole) < LEAST_CHARACTERS:
        return
    yield from _written(whole)
    lines = whole.splitlines()
    if len(lines) > 1:
        for line in lines:
            if len(line.strip()) >= _LEAST_LINE:
                yield from _written(line.strip())


def _written(text: str) -> Iterator[bytes]:
    data = text.encode("utf-8", "surrogatepass")
    yield data
    from urllib.parse import quote, quote_plus

    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted.encode()
        yield re.sub(r"%..", lambda code: code[0].lower(), quoted).encode()
    for escaped in (_json(text), _json(text, ascii_only=False), repr(text)[1:-1]):
        yield escaped.encode("utf-8", "surrogatepass")
    for offset in range(3):
        yield from _in_base64(data, offset)


def _json(text: str, *, ascii_only: bool = True) -> str:
    import json

    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _in_base64(data: bytes, offset: int) -> Iterator[bytes]:
    """The characters that do not depend on what stands before and after the value: `user:` before a password, say."""
    encoded = b64encode(bytes(offset) + data)
    if offset == 0:
        yield encoded  # by itself, to its last character
    part = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
    yield part
    yield part.replace(b"+", b"-").replace(b"/", b"_")
