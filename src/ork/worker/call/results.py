"""Encodes the result of a function as JSON text, and stores it, even if the disk is full for a while."""

from __future__ import annotations

import sys
import time

from ork.errors import ObjectsError
from ork.objects.json_text import MAX_DEPTH, MAX_INT_DIGITS, dumps
from ork.objects.references import output_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments


_INFINITY = float("inf")
_PLAIN = (str, int, float, dict, list, tuple)
_TO_PARQUET = {"pandas": "to_parquet", "polars": "write_parquet"}
_HINTS = {
    "set": ": return a sorted list",
    "frozenset": ": return a sorted list",
    "generator": ": return a list",
    "bytes": ": return text, or write a file and return its path",
}
_LARGEST_INT = 10**MAX_INT_DIGITS


class ResultError(Exception):
    """What in the result cannot be stored, and where, as a sentence."""


def result_text(value: Any, limit: int) -> str | None:
    """The result as JSON text; None for None, because a task that returns nothing has no output."""
    if value is None:
        return None
    text = dumps(to_plain(value, ""))
    if len(text) > limit:
        raise ResultError(f"returned {len(text)} bytes of JSON, more than the {limit} allowed")
    return text


def to_plain(value: Any, path: str) -> Any:
    """The value in JSON's own types. ResultError names the position of the first value that JSON cannot represent."""
    if value is None or value is True or value is False:
        return value
    if type(value) not in _PLAIN and _is_instance(value, "enum", "Enum"):
        return to_plain(value.value, path)
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        return _whole_number(value, path)
    if isinstance(value, float):
        return _number(value, path)
    if isinstance(value, dict):
        return _members(value.items(), path)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        _refuse_depth(path)
        return [to_plain(item, f"{path}\0[{place}]") for place, item in enumerate(value)]
    return _rich(value, path)


def _rich(value: Any, path: str) -> Any:
    """Convert types that have one obvious representation in JSON."""
    names = getattr(value, "_fields", None)
    if names is not None and isinstance(value, tuple):
        return _members(zip(names, value, strict=True), path)
    if isinstance(value, type):
        raise _refusal(value, path)
    if hasattr(value, "__dataclass_fields__"):
        return _members(((name, getattr(value, name)) for name in value.__dataclass_fields__), path)
    if hasattr(value, "model_dump"):
        return to_plain(value.model_dump(mode="json"), path)
    if _is_instance(value, "datetime", "date", "time"):
        return value.isoformat()
    if _is_instance(value, "datetime", "timedelta"):
        return value.total_seconds()
    if _is_instance(value, "decimal", "Decimal") or _is_instance(value, "uuid", "UUID"):
        return str(value)
    if _is_instance(value, "pathlib", "PurePath"):
        return _text(str(value), path)
    raise _refusal(value, path)


def _is_instance(value: Any, module: str, *names: str) -> bool:
    """Checks the type without importing its module: such a value exists only if the module is loaded."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names))


def _refuse_depth(path: str) -> None:
    """ResultError if the value is nested too deeply; each step of the path is one level."""
    if path.count("\0") >= MAX_DEPTH:
        raise ResultError(f"returned data nested deeper than {MAX_DEPTH} levels (or containing itself)")


def _members(items: Any, path: str) -> dict[str, Any]:
    _refuse_depth(path)
    plain: dict[str, Any] = {}
    for key, value in items:
        name = _key(key, path)
        if name in plain:
            raise ResultError(f"returned the key {name!r} twice{_place(path)}")
        plain[name] = to_plain(value, f"{path}\0.{name}")
    return plain


def _key(key: Any, path: str) -> str:
    name = to_plain(key, path)
    if isinstance(name, str):
        return name
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    raise ResultError(f"returned a key of type {_type_name(key)}{_place(path)}: keys must be text")


def _text(value: str, path: str) -> str:
    if "\0" in value:
        raise ResultError(f"returned text with a NUL character{_place(path)}: cannot be stored as JSON")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ResultError(f"returned text that is not valid Unicode{_place(path)}: cannot be stored") from None
    return str.__str__(value)


def _whole_number(value: int, path: str) -> int:
    if not -_LARGEST_INT < value < _LARGEST_INT:
        raise ResultError(f"returned an integer of more than {MAX_INT_DIGITS} digits{_place(path)}")
    return int(value)


def _number(value: float, path: str) -> float:
    if value != value or value in (_INFINITY, -_INFINITY):
        raise ResultError(f"returned {float(value)}{_place(path)}: cannot be stored as JSON")
    return float(value)


def _refusal(value: Any, path: str) -> ResultError:
    name = _type_name(value)
    hint = _hint_for(name, value)
    if name in ("set", "frozenset", "generator"):
        name += "[…]" if name != "generator" else ""
    return ResultError(f"returned {name}{_place(path)}: cannot be stored as JSON{hint}")


def _hint_for(name: str, value: Any) -> str:
    """A hint for types that functions often return."""
    library = name.partition(".")[0]
    if library == "numpy":
        return ": return value.item()" if getattr(value, "ndim", 0) == 0 else ": return value.tolist()"
    if name.endswith(".DataFrame") and library in ("pandas", "polars"):
        rows = 'to_dict("records")' if library == "pandas" else "to_dicts()"
        return f": return df.{rows} if it is small; else write a file (df.{_TO_PARQUET[library]}(path)) and return its path"
    if name.endswith(".Series") and library in ("pandas", "polars"):
        return ": return series.tolist()" if library == "pandas" else ": return series.to_list()"
    return _HINTS.get(name, "")


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _place(path: str) -> str:
    return f" at {path.replace(chr(0), '')}" if path else ""


PATIENCE_SECONDS = 600.0
MESSAGE_CHARACTERS = 4000
_LONGEST_PAUSE = 5.0


def storable(text: str, limit: int = MESSAGE_CHARACTERS) -> str:
    """The text with NUL and lone surrogates escaped, and shortened."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def put_patiently(put: Callable[[], object], is_asked_to_end: Callable[[], bool] = lambda: False) -> bool:
    """Write, and retry while the store cannot accept it, so that nothing is lost if a full disk is freed. False if
    given up."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    pause = 0.1
    while True:
        try:
            put()
            return True
        except ObjectsError:
            if time.monotonic() > give_up_at or is_asked_to_end():
                return False
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def store_output(objects: AttemptDocuments, attempt: str, text: str, inline_limit: int) -> dict[str, Any] | None:
    """Store an output: small ones are returned for the status, larger ones become an object. None if it cannot be
    written."""
    if len(text) <= inline_limit:
        return {"inline": text}
    data = text.encode()
    if not put_patiently(lambda: objects.put_output(attempt, data)):
        return None
    return {"object": output_reference(attempt), "size": len(text)}
