"""JSON text in and out: one writer, and one strict reader for everything from outside.

Uses the interpreter's C scanner and encoder directly: the `json` package imports `re`, which would nearly
double the start time of a worker. Where the C parts are missing, `json` does the same work.
"""

from __future__ import annotations

import sys

from ork.errors import DocumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    _Scanner: TypeAlias = Callable[[str, int], tuple[Any, int]]
    _Encoder: TypeAlias = Callable[[Any, int], Iterable[str]]

MAX_DEPTH = 64
MAX_INT_DIGITS = 400

_WHITESPACE = " \t\n\r"


def dumps(value: Any) -> str:
    """No spaces, ASCII only, keys in the order they were given: what is read back is written the same again, so a
    signature over the text holds. NaN is a ValueError."""
    return "".join(_encode(value, 0))


def strict_json(data: bytes, *, max_size: int, max_depth: int = MAX_DEPTH) -> Any:
    """The value of a JSON text that every other reader would read the same way; anything else is a DocumentError."""
    if len(data) > max_size:
        raise DocumentError(f"larger than {max_size} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(f"not valid UTF-8 at byte {error.start}") from None
    value = _scan_whole(text)
    if text.count("[") + text.count("{") > max_depth and _is_deeper_than(value, max_depth):
        raise DocumentError(f"nested deeper than {max_depth} levels")
    # Escapes are the only way for these to get in, so most texts need no walk over their strings.
    if "\\u0000" in text or "\\ud" in text or "\\uD" in text:
        _refuse_unstorable_strings(value)
    return value


def stored_json(data: bytes, *, max_size: int) -> Any:
    """The value of an output that Ork's encoder has written. Read without the checks of `strict_json` that take most of its
    time (keys that occur twice, depth, large numbers): whoever can write there can run code as the reader anyway."""
    if len(data) > max_size:
        raise DocumentError(f"larger than {max_size} bytes")
    try:
        return _scan_whole(data.decode("utf-8"), _scan_own)
    except UnicodeDecodeError as error:
        raise DocumentError(f"not valid UTF-8 at byte {error.start}") from None


def own_json(data: bytes) -> Any:
    """The value of a text that Ork has written itself, and that nobody else can have changed: read as it is."""
    return _scan_own(data.decode(), 0)[0]


def _scan_whole(text: str, scan: _Scanner | None = None) -> Any:
    start = 0
    while text[start : start + 1] in ("", *_WHITESPACE) and start < len(text):
        start += 1
    try:
        value, end = (scan or _scan)(text, start)
    except StopIteration as stop:
        raise DocumentError(f"not JSON at character {stop.value}") from None
    except RecursionError:
        raise DocumentError("nested too deeply") from None
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}") from None
    except SystemError:
        # The C scanner takes its exception from there, and cannot even say what is wrong while it is not loaded.
        if "json.decoder" in sys.modules:
            raise DocumentError("not JSON") from None
        import json.decoder  # noqa: F401

        return _scan_whole(text, scan)
    if text[end:].strip(_WHITESPACE):
        raise DocumentError(f"not JSON: more text after the value, at character {end}")
    return value


def _is_deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for item in level for child in _children(item) if isinstance(child, (dict, list))]
        if not level:
            return False
    return True


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse_unstorable_strings(value: Any) -> None:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            _refuse_unstorable(item)
        elif isinstance(item, dict):
            for key in item:
                _refuse_unstorable(key)
        waiting.extend(_children(item))


def _refuse_unstorable(text: str) -> None:
    if "\0" in text:
        raise DocumentError("a string contains a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DocumentError("a string contains half a surrogate pair") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise DocumentError(f"the key {twice[:100]!r} occurs twice")
    return result


def _float(text: str) -> float:
    value = float(text)
    if value in (_INFINITY, -_INFINITY):
        raise DocumentError(f"the number {text[:40]} is too large")
    return value


def _int(text: str) -> int:
    if len(text) > MAX_INT_DIGITS:
        raise DocumentError(f"an integer has more than {MAX_INT_DIGITS} digits")
    return int(text)


def _constant(text: str) -> Any:
    raise DocumentError(f"{text} is not JSON")


def _not_json(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


_INFINITY = float("inf")


class _Rules:
    """What the C scanner asks its owner for."""

    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_object)
    parse_float = staticmethod(_float)
    parse_int = staticmethod(_int)
    parse_constant = staticmethod(_constant)
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own contract


class _OwnRules(_Rules):
    object_pairs_hook = None  # type: ignore[assignment]
    parse_float = float  # type: ignore[assignment]
    parse_int = int  # type: ignore[assignment]


def _c_parts() -> tuple[_Scanner, _Scanner, _Encoder]:
    import _json

    encoder: _Encoder = _json.make_encoder(
        None, _not_json, _json.encode_basestring_ascii, None, ":", ",", False, False, False
    )
    scanner: _Scanner = _json.make_scanner(_Rules())  # type: ignore[arg-type]
    written = "".join(encoder({"b": [1.5, None], "a": "é"}, 0))
    if written != '{"b":[1.5,null],"a":"\\u00e9"}' or scanner(written, 0)[1] != len(written):
        raise ImportError("the C parts of json behave otherwise here")
    return scanner, _json.make_scanner(_OwnRules()), encoder  # type: ignore[arg-type]


def _package_parts() -> tuple[_Scanner, _Scanner, _Encoder]:
    import json

    made = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_not_json)
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_float=_float, parse_int=_int, parse_constant=_constant, strict=True
    )
    scanner: _Scanner = decoder.scan_once  # type: ignore[attr-defined]
    return scanner, scanner, lambda value, _level: made.encode(value)


try:
    _scan, _scan_own, _encode = _c_parts()
except Exception:
    _scan, _scan_own, _encode = _package_parts()
