"""Encodes the result of a function as JSON text, and stores it, even if the disk is full for a while.

Values that are not JSON (tables, arrays, bytes, files) become references in it: `ork.worker.data` stores them.
"""

from __future__ import annotations

import sys
import time

from ork.errors import DocumentError, ObjectsError
from ork.model.value_reference import IN_TEXT, MARK, has_mark
from ork.objects.json_text import MAX_DEPTH, MAX_INT_DIGITS, dumps, strict_json
from ork.objects.references import output_reference
from ork.worker.data.errors import ResultError, place_of, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.data.encode import ValueWriter

    class StoresValues(Protocol):
        """Stores values that are not JSON."""

        def reference_to(self, value: Any, path: str) -> dict[str, Any] | None:
            """The reference to the value, which is now stored; None if it is of no type that is stored."""
            ...


_INFINITY = float("inf")
_PLAIN = (str, int, float, dict, list, tuple)
_HINTS = {
    "set": ": return a sorted list",
    "frozenset": ": return a sorted list",
    "generator": ": return a list",
    "bytes": ": return text",
}
_LARGEST_INT = 10**MAX_INT_DIGITS
_WORTH_A_LOOK = 256
_LIBRARIES = ("pandas", "polars", "pyarrow", "numpy", "ork.sdk.files")  # whose values are stored


class LateValues:
    """Stores the values in the result of an attempt. What that needs is loaded when there may be one: most results are JSON."""

    def __init__(self, objects: AttemptDocuments, spec: dict[str, Any]) -> None:
        self._objects = objects
        self._spec = spec
        self._writer: ValueWriter | None = None

    def reference_to(self, value: Any, path: str) -> dict[str, Any] | None:
        if self._writer is None:
            has_library = any(name in sys.modules for name in _LIBRARIES)
            if (
                not has_library
                and not self._spec.get("codecs")
                and not isinstance(value, (bytes, bytearray, memoryview))
            ):
                return None
            from ork.worker.data.encode import ValueWriter

            self._writer = ValueWriter(self._objects, self._spec["attempt"], self._spec.get("codecs"))
        return self._writer.reference_to(value, path)

    def discard(self) -> None:
        """Delete what was stored."""
        if self._writer is not None:
            self._writer.discard()


def result_text(value: Any, limit: int, values: StoresValues | None = None) -> str | None:
    """The result as JSON text; None for None, because a task that returns nothing has no output. `values` stores what is not
    JSON; without it that is a ResultError."""
    if value is None:
        return None
    text = _plain_text(value, limit)
    if text is None:
        text = dumps(to_plain(value, "", values))
    if len(text) > limit:
        raise ResultError(f"returned {len(text)} bytes of JSON, more than the {limit} allowed")
    return text


def program_output(data: bytes, limit: int) -> str:
    """The output of a program as compact JSON text. DocumentError if it is not valid JSON, or uses the key of references, which
    only Ork writes."""
    value = strict_json(data, max_size=limit)
    text = dumps(value)
    if IN_TEXT in text and has_mark(value):
        raise DocumentError(f"it has the key {IN_TEXT}, with which Ork marks references: choose another")
    return text


def _plain_text(value: Any, limit: int) -> str | None:
    """The text of a large value that is JSON already, in a quarter of the time; None if that is not certain."""
    if type(value) not in (list, dict) or len(value) < _WORTH_A_LOOK:
        return None
    from ork.worker.call.plain_json import is_plain

    if not is_plain(value, limit // 2):
        return None
    try:
        text = dumps(value)
    except ValueError:  # NaN, or a list that contains itself
        return None
    is_doubtful = IN_TEXT in text or "\\u0000" in text or "\\ud" in text
    return None if is_doubtful else text


def to_plain(value: Any, path: str, values: StoresValues | None = None) -> Any:
    """The value in JSON's own types. ResultError names the position of the first value that JSON cannot represent."""
    if value is None or value is True or value is False:
        return value
    if type(value) not in _PLAIN and _is_instance(value, "enum", "Enum"):
        return to_plain(value.value, path, values)
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        return _whole_number(value, path)
    if isinstance(value, float):
        return _number(value, path)
    if isinstance(value, dict):
        return _members(value.items(), path, values)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        _refuse_depth(path)
        return [to_plain(item, f"{path}\0[{place}]", values) for place, item in enumerate(value)]
    return _rich(value, path, values)


def _rich(value: Any, path: str, values: StoresValues | None) -> Any:
    """Convert types that have one obvious representation in JSON, and store those that have none."""
    reference = None if values is None else values.reference_to(value, path)
    if reference is not None:
        return reference
    names = getattr(value, "_fields", None)
    if names is not None and isinstance(value, tuple):
        return _members(zip(names, value, strict=True), path, values)
    if isinstance(value, type):
        raise _refusal(value, path)
    if hasattr(value, "__dataclass_fields__"):
        return _members(((name, _field(value, name)) for name in value.__dataclass_fields__), path, values)
    if hasattr(value, "model_dump"):
        return to_plain(value.model_dump(mode="json"), path, values)
    if _is_instance(value, "datetime", "date", "time"):
        return value.isoformat()
    if _is_instance(value, "datetime", "timedelta"):
        return value.total_seconds()
    if _is_instance(value, "decimal", "Decimal") or _is_instance(value, "uuid", "UUID"):
        return str(value)
    if _is_instance(value, "pathlib", "PurePath"):
        return _text(str(value), path)
    raise _refusal(value, path)


def _field(value: Any, name: str) -> Any:
    """The field of a dataclass. A path where the class has an `ork.File` is one."""
    member, annotation = getattr(value, name), value.__dataclass_fields__[name].type
    if not _is_instance(member, "pathlib", "PurePath"):
        return member
    if annotation not in ("File", "ork.File") and getattr(annotation, "__module__", "") != "ork.sdk.files":
        return member
    from ork.sdk.files import File

    return File(member)


def _is_instance(value: Any, module: str, *names: str) -> bool:
    """Checks the type without importing its module: such a value exists only if the module is loaded."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names))


def _refuse_depth(path: str) -> None:
    """ResultError if the value is nested too deeply; each step of the path is one level."""
    if path.count("\0") >= MAX_DEPTH:
        raise ResultError(f"returned data nested deeper than {MAX_DEPTH} levels (or containing itself)")


def _members(items: Any, path: str, values: StoresValues | None) -> dict[str, Any]:
    _refuse_depth(path)
    plain: dict[str, Any] = {}
    for key, value in items:
        name = _key(key, path)
        if name in plain:
            raise ResultError(f"returned the key {name!r} twice{place_of(path)}")
        if name == MARK:
            raise ResultError(
                f"returned the key {name!r}{place_of(path)}: Ork marks references with it, choose another"
            )
        plain[name] = to_plain(value, f"{path}\0.{name}", values)
    return plain


def _key(key: Any, path: str) -> str:
    name = to_plain(key, path)
    if isinstance(name, str):
        return name
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    raise ResultError(f"returned a key of type {type_name(key)}{place_of(path)}: keys must be text")


def _text(value: str, path: str) -> str:
    if "\0" in value:
        raise ResultError(f"returned text with a NUL character{place_of(path)}: cannot be stored as JSON")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ResultError(f"returned text that is not valid Unicode{place_of(path)}: cannot be stored") from None
    return str.__str__(value)


def _whole_number(value: int, path: str) -> int:
    if not -_LARGEST_INT < value < _LARGEST_INT:
        raise ResultError(f"returned an integer of more than {MAX_INT_DIGITS} digits{place_of(path)}")
    return int(value)


def _number(value: float, path: str) -> float:
    if value != value or value in (_INFINITY, -_INFINITY):
        raise ResultError(f"returned {float(value)}{place_of(path)}: cannot be stored as JSON")
    return float(value)


def _refusal(value: Any, path: str) -> ResultError:
    name = type_name(value)
    hint = _hint_for(name, value)
    if name in ("set", "frozenset", "generator"):
        name += "[…]" if name != "generator" else ""
    return ResultError(f"returned {name}{place_of(path)}: cannot be stored as JSON{hint}")


def _hint_for(name: str, value: Any) -> str:
    """A hint for types that functions often return."""
    library = name.partition(".")[0]
    if library == "numpy":
        return ": return value.item()" if getattr(value, "ndim", 0) == 0 else ": return value.tolist()"
    if name.endswith(".DataFrame") and library in ("pandas", "polars"):
        rows = 'to_dict("records")' if library == "pandas" else "to_dicts()"
        return f": return df.{rows}"
    if name.endswith(".Series") and library in ("pandas", "polars"):
        return ": return series.tolist()" if library == "pandas" else ": return series.to_list()"
    return _HINTS.get(name, "")


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
